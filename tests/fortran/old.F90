! mpif.h and the module mpi (with -DUSE_MODULE): messages, collective operations, constants that are
! places, strings, logical values, functions of the program. For 2 ranks or more.
module counted
  implicit none
  integer :: failures = 0, copies = 0, deletes = 0, handled = 0
contains
  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (.not. holds) then
      failures = failures + 1
      print *, 'wrong: ', what
    end if
  end subroutine
end module

subroutine larger(in, inout, length, datatype)
  implicit none
  integer :: length, datatype, i
  integer :: in(length), inout(length)
  do i = 1, length
    inout(i) = max(in(i), inout(i)) + 0 * datatype
  end do
end subroutine

subroutine copy_twice(comm, key, extra, value, copied, wanted, ierror)
  use counted
  implicit none
  integer :: comm, key, ierror
  integer(8) :: extra, value, copied
  logical :: wanted
  copies = copies + 1
  copied = 2 * value + extra + 0 * (comm + key)
  wanted = .true.
  ierror = 0
end subroutine

subroutine count_delete(comm, key, value, extra, ierror)
  use counted
  implicit none
  integer :: comm, key, ierror
  integer(8) :: extra, value
  deletes = deletes + 1 + 0 * (comm + key) + 0 * int(extra + value)
  ierror = 0
end subroutine

subroutine handle(comm, code)
  use counted
  implicit none
  integer :: comm, code
  handled = code + 0 * comm
end subroutine

program old
#ifdef USE_MODULE
  use mpi
#endif
  use counted
  implicit none
#ifndef USE_MODULE
  include 'mpif.h'
#endif
  integer :: rank, ranks, ierror, status(MPI_STATUS_SIZE), next, before, i, op, key, comm, handler, class, length
  integer :: requests(2), statuses(MPI_STATUS_SIZE, 2), numbers(2), datatype, found, value, info, types(2), lengths(2)
  integer(MPI_ADDRESS_KIND) :: place, places(2), attribute
  logical :: flag, periods(1)
  character(MPI_MAX_PROCESSOR_NAME) :: name
  character(20) :: short
  double precision :: x, sum, both(2)
  external :: larger, copy_twice, count_delete, handle

  call MPI_Init(ierror)
  call check(ierror == MPI_SUCCESS, 'init')
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)

  call MPI_Irecv(numbers(1), 1, MPI_INTEGER, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, requests(1), ierror)
  call MPI_Isend(rank, 1, MPI_INTEGER, next, 7, MPI_COMM_WORLD, requests(2), ierror)
  call MPI_Waitall(2, requests, statuses, ierror)
  call MPI_F_sync_reg(numbers) ! The compiler may not know that the wait has filled them.
  call check(numbers(1) == before .and. statuses(MPI_SOURCE, 1) == before .and. statuses(MPI_TAG, 1) == 7, 'ring')
  call check(all(requests == MPI_REQUEST_NULL), 'requests are freed')
  call MPI_Get_count(statuses(1, 1), MPI_INTEGER, found, ierror)
  call check(found == 1, 'count')
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, before, 1, value, 1, MPI_INTEGER, next, 1, MPI_COMM_WORLD, &
                    MPI_STATUS_IGNORE, ierror)
  call check(value == next, 'status ignored')

  call MPI_Irecv(value, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, requests(1), ierror)
  requests(2) = MPI_REQUEST_NULL
  call MPI_Waitany(2, requests, i, status, ierror)
  call check(i == 1 .and. status(MPI_SOURCE) == MPI_PROC_NULL, 'indices count from 1')
  call MPI_Waitany(2, requests, i, status, ierror)
  call check(i == MPI_UNDEFINED, 'no request')

  x = rank + 1
  call MPI_Allreduce(MPI_IN_PLACE, x, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  sum = ranks * (ranks + 1) / 2
  call check(x == sum, 'in place')
  call MPI_Op_create(larger, .true., op, ierror)
  call MPI_Allreduce(rank, value, 1, MPI_INTEGER, op, MPI_COMM_WORLD, ierror)
  call check(value == ranks - 1, 'operation of the program')
  call MPI_Op_free(op, ierror)
  call check(op == MPI_OP_NULL, 'operation is freed')

  both = [1.5d0, 2.5d0]
  value = 5
  call MPI_Get_address(both, places(1), ierror)
  call MPI_Get_address(value, places(2), ierror)
  lengths = [2, 1]
  types = [MPI_DOUBLE_PRECISION, MPI_INTEGER]
  call MPI_Type_create_struct(2, lengths, places, types, datatype, ierror)
  call MPI_Type_commit(datatype, ierror)
  if (rank > 0) both = 0
  if (rank > 0) value = 0
  call MPI_Bcast(MPI_BOTTOM, 1, datatype, 0, MPI_COMM_WORLD, ierror)
  call check(all(both == [1.5d0, 2.5d0]) .and. value == 5, 'bottom')
  call MPI_Type_free(datatype, ierror)

  call MPI_Get_processor_name(name, length, ierror)
  call check(length > 0 .and. name(length:length) /= ' ' .and. name(length + 1:) == ' ', 'processor name')
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
  call MPI_Comm_set_name(comm, 'a name   ', ierror)
  short = 'xxxxxxxxxxxxxxxxxxxx'
  call MPI_Comm_get_name(comm, short, length, ierror)
  call check(short == 'a name' .and. length == 6, 'name of a communicator')
  call MPI_Comm_get_name(comm, short(1:3), length, ierror)
  call check(short == 'a name', 'name cut to three characters')

  call MPI_Info_create(info, ierror)
  call MPI_Info_set(info, '  key ', '  some value ', ierror)
  call MPI_Info_get(info, 'key', 20, short, flag, ierror)
  call check(flag .and. short == 'some value', 'info')
  call MPI_Info_get(info, 'other', 20, short, flag, ierror)
  call check(.not. flag, 'info without the key')
  call MPI_Info_free(info, ierror)

  call MPI_Comm_create_keyval(copy_twice, count_delete, key, 3_MPI_ADDRESS_KIND, ierror)
  call MPI_Comm_set_attr(comm, key, 20_MPI_ADDRESS_KIND, ierror)
  call MPI_Comm_dup(comm, i, ierror)
  call MPI_Comm_get_attr(i, key, attribute, flag, ierror)
  call check(flag .and. attribute == 43 .and. copies == 1, 'attribute is copied')
  call MPI_Comm_free(i, ierror)
  call check(deletes == 1 .and. i == MPI_COMM_NULL, 'attribute is deleted')
  call MPI_Comm_free_keyval(key, ierror)
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, 0_MPI_ADDRESS_KIND, ierror)
  call MPI_Comm_set_attr(comm, key, -9_MPI_ADDRESS_KIND, ierror)
  call MPI_Comm_dup(comm, i, ierror)
  call MPI_Comm_get_attr(i, key, attribute, flag, ierror)
  call check(flag .and. attribute == -9, 'predefined functions')
  call MPI_Comm_free(i, ierror)
  call MPI_Comm_free_keyval(key, ierror)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, attribute, flag, ierror)
  call check(flag .and. attribute >= 32767, 'MPI_TAG_UB')

  call MPI_Comm_create_errhandler(handle, handler, ierror)
  call MPI_Comm_set_errhandler(comm, handler, ierror)
  call MPI_Send(rank, 1, MPI_INTEGER, ranks, 0, comm, ierror)
  call MPI_Error_class(ierror, class, i)
  call check(class == MPI_ERR_RANK .and. handled == ierror, 'error handler of the program')
  call MPI_Errhandler_free(handler, ierror)
  call MPI_Comm_free(comm, ierror)

  periods = .true.
  call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], periods, .false., comm, ierror)
  call MPI_Cart_get(comm, 1, numbers, periods, lengths, ierror)
  call check(numbers(1) == ranks .and. periods(1), 'logical values')
  call MPI_Cart_shift(comm, 0, 1, before, next, ierror)
  call check(next == mod(rank + 1, ranks), 'shift')
  call MPI_Comm_free(comm, ierror)
  call MPI_Comm_test_inter(MPI_COMM_WORLD, flag, ierror)
  call check(.not. flag .and. MPI_Wtime() > 0, 'intercommunicator')
  place = MPI_Aint_add(places(1), 8_MPI_ADDRESS_KIND)
  call check(MPI_Aint_diff(place, places(1)) == 8, 'addresses')

  call MPI_Allreduce(MPI_IN_PLACE, failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  call MPI_Finalize(ierror)
  if (failures > 0) stop 1
end program
