! Compiled with reals of 8 bytes by default, which makes double precision 16 bytes long: the functions of mpif.h
! still give 8.
program reals
  implicit none
  include 'mpif.h'
  integer :: ierror
  real(8) :: begin
  call MPI_Init(ierror)
  begin = MPI_Wtime()
  if (kind(MPI_Wtime()) /= 8 .or. kind(PMPI_Wtick()) /= 8) stop 1
  if (.not. (MPI_Wtick() > 0 .and. MPI_Wtick() < 1)) stop 2
  do while (MPI_Wtime() < begin + 0.001)
  end do
  if (.not. MPI_Wtime() > begin) stop 3
  call MPI_Finalize(ierror)
end program
