! An error without ierror under MPI_ERRORS_ARE_FATAL: the job ends.
program fatal
  use mpi_f08
  implicit none
  integer :: value
  call MPI_Init()
  call MPI_Send(value, 1, MPI_INTEGER, 99, 0, MPI_COMM_WORLD)
  print *, 'still here'
  call MPI_Finalize()
end program
