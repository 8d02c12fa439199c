! Spawned programs get their arguments without leading and trailing blanks, up to the first blank one.
program spawn
  use mpi_f08
  implicit none
  character(8), parameter :: given(4) = ['  a b   ', '-c      ', '        ', 'd       ']
  character(4), parameter :: expected(2) = ['a b ', '-c  ']
  character(500) :: program_name, argument
  integer :: i, wrong, all_wrong, length
  type(MPI_Comm) :: parent, children

  call MPI_Init()
  call MPI_Comm_get_parent(parent)
  wrong = 0
  if (parent == MPI_COMM_NULL) then
    call get_command_argument(0, program_name)
    call MPI_Comm_spawn(' '//program_name, given, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, children, MPI_ERRCODES_IGNORE)
    call MPI_Reduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, MPI_ROOT, children)
    call MPI_Comm_disconnect(children)
  else
    if (command_argument_count() /= 2) wrong = 1
    do i = 1, min(2, command_argument_count())
      call get_command_argument(i, argument, length)
      if (argument /= expected(i) .or. length /= len_trim(expected(i))) then
        print *, 'argument ', i, ': "', argument(:length), '"'
        wrong = wrong + 1
      end if
    end do
    call MPI_Reduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, 0, parent)
    call MPI_Comm_disconnect(parent)
    all_wrong = 0
  end if
  call MPI_Finalize()
  if (all_wrong > 0) stop 1
end program
