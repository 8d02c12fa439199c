! Wrong arguments of Fortran's procedures: the standard's error class comes back, and nothing is written
! beside what is the procedure's.
program wrong
  use mpi_f08
  implicit none
  integer, parameter :: inventions(4) = [-1, 3, 100000, huge(1)]
  integer :: failures = 0, ierror, length, value, i, strided(8)
  type(MPI_Comm) :: comm
  type(MPI_Request) :: request, requests(2)
  type(MPI_Datatype) :: datatype
  type(MPI_Status) :: statuses(3)
  character(5) :: text

  call MPI_Init()
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)

  ! Handles that nobody made.
  do i = 1, size(inventions)
    comm%MPI_VAL = inventions(i)
    call MPI_Comm_size(comm, value, ierror)
    call expect(MPI_ERR_COMM, 'communicator')
    datatype%MPI_VAL = inventions(i)
    call MPI_Type_size(datatype, value, ierror)
    call expect(MPI_ERR_TYPE, 'datatype')
    call MPI_Send(strided(1:7:2), 4, datatype, 0, 0, MPI_COMM_SELF, ierror)
    call expect(MPI_ERR_TYPE, 'datatype of a section')
    request%MPI_VAL = inventions(i)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call expect(MPI_ERR_REQUEST, 'request')
  end do
  call MPI_Comm_size(MPI_COMM_NULL, value, ierror)
  call expect(MPI_ERR_COMM, 'no communicator')
  call MPI_Send(strided(1:7:2), -1, MPI_INTEGER, 0, 0, MPI_COMM_SELF, ierror)
  call expect(MPI_ERR_COUNT, 'count of a section')
  call MPI_Send(strided(1:7:2), 4, MPI_INTEGER, 1, 0, MPI_COMM_SELF, ierror)
  call expect(MPI_ERR_RANK, 'rank')
  ! More elements than a section has.
  call MPI_Send(strided(1:7:2), 5, MPI_CHARACTER, MPI_PROC_NULL, 0, MPI_COMM_SELF, ierror)
  call check(ierror == MPI_SUCCESS, 'part of a section')
  call MPI_Send(strided(1:7:2), 17, MPI_CHARACTER, MPI_PROC_NULL, 0, MPI_COMM_SELF, ierror)
  call expect(MPI_ERR_UNSUPPORTED_OPERATION, 'more than a section')

  ! A status array of exactly as many elements as there are requests.
  statuses(3)%MPI_TAG = 77
  requests = MPI_REQUEST_NULL
  call MPI_Waitall(2, requests, statuses)
  call check(statuses(3)%MPI_TAG == 77, 'status behind the array')

  ! Strings: too short, empty, blank, longer than the standard's limit.
  text = 'xxxxx'
  call MPI_Comm_get_name(MPI_COMM_WORLD, text(2:4), length)
  call check(text == 'xMPIx' .and. length == 14, 'name in three characters')
  call MPI_Comm_get_name(MPI_COMM_WORLD, text(3:2), length)
  call check(text == 'xMPIx', 'name in no character')
  call MPI_Comm_set_name(MPI_COMM_SELF, repeat('n', 5000), ierror)
  call MPI_Comm_get_name(MPI_COMM_SELF, text, length)
  call check(ierror /= MPI_SUCCESS .or. (text == 'nnnnn' .and. length <= MPI_MAX_OBJECT_NAME), 'long name')
  call MPI_Info_set(MPI_INFO_NULL, 'key', 'value', ierror)
  call expect(MPI_ERR_INFO, 'no info')
  call info_of_blanks()

  ! Without ierror the error handler decides: it returns here, and is called.
  call MPI_Comm_size(MPI_COMM_NULL, value)

  call MPI_Finalize()
  if (failures > 0) stop 1

contains

  subroutine info_of_blanks()
    type(MPI_Info) :: info
    call MPI_Info_create(info)
    call MPI_Info_set(info, '    ', 'value', ierror)
    call expect(MPI_ERR_INFO_KEY, 'blank key')
    call MPI_Info_set(info, repeat('k', 5000), 'value', ierror)
    call expect(MPI_ERR_INFO_KEY, 'long key')
    call MPI_Info_set(info, 'key', repeat('v', 50000), ierror)
    call expect(MPI_ERR_INFO_VALUE, 'long value')
    call MPI_Info_free(info)
  end subroutine

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (.not. holds) then
      failures = failures + 1
      print *, 'wrong: ', what
    end if
  end subroutine

  subroutine expect(class, what)
    integer, intent(in) :: class
    character(*), intent(in) :: what
    integer :: found
    call MPI_Error_class(ierror, found)
    if (found /= class) print *, 'class', found, 'instead of', class
    call check(found == class, what)
  end subroutine
end program
