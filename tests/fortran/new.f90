! The module mpi_f08: types of handles, optional ierror, statuses, functions of the program, large counts.
! For 2 ranks or more.
module counted
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: failures = 0, copies = 0, handled = 0, asked = 0
contains
  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (.not. holds) then
      failures = failures + 1
      print *, 'wrong: ', what
    end if
  end subroutine

  subroutine larger(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: in(:), inout(:)
    call c_f_pointer(invec, in, [len])
    call c_f_pointer(inoutvec, inout, [len])
    call check(datatype == MPI_INTEGER, 'datatype of an operation')
    inout = max(in, inout)
  end subroutine

  subroutine smaller(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer(MPI_COUNT_KIND) :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: in(:), inout(:)
    call c_f_pointer(invec, in, [len])
    call c_f_pointer(inoutvec, inout, [len])
    call check(datatype == MPI_INTEGER, 'datatype of an operation of large counts')
    inout = min(in, inout)
  end subroutine

  subroutine copy(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    copies = copies + 1
    attribute_val_out = attribute_val_in + extra_state + 0 * (oldcomm%MPI_VAL + comm_keyval)
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine

  subroutine handle(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    handled = error_code + 0 * comm%MPI_VAL
  end subroutine

  subroutine forgive(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    error_code = MPI_SUCCESS + 0 * comm%MPI_VAL
  end subroutine

  subroutine query(extra_state, status, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    asked = int(extra_state)
    call MPI_Status_set_elements(status, MPI_INTEGER, 11)
    call MPI_Status_set_cancelled(status, .false.)
    status%MPI_SOURCE = 4
    status%MPI_TAG = 5
    ierror = MPI_SUCCESS
  end subroutine

  subroutine release(extra_state, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    extra_state = extra_state - 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine cancel(extra_state, complete, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    ierror = MPI_SUCCESS
    if (complete) extra_state = 0
  end subroutine
end module

program new
  use counted
  implicit none
  type(MPI_Comm) :: comm, other
  type(MPI_Status) :: status, statuses(2)
  type(MPI_Request) :: requests(2)
  type(MPI_Op) :: op
  type(MPI_Datatype) :: datatype
  type(MPI_Errhandler) :: handler
  type(MPI_Group) :: group
  type(MPI_Win) :: window
  type(MPI_Message) :: message
  type(c_ptr) :: memory
  integer :: rank, ranks, value, old_status(MPI_STATUS_SIZE), class, length, key, ierror, i
  integer(MPI_COUNT_KIND) :: count, elements
  integer(MPI_ADDRESS_KIND) :: attribute, lower, extent
  integer(MPI_ADDRESS_KIND), volatile :: state ! of a request: its functions change it
  integer, pointer :: shared(:)
  integer, allocatable, target :: buffer(:)
  logical :: flag
  character(MPI_MAX_OBJECT_NAME) :: name
  real(8) :: x(3)
  complex(4) :: z

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  call check(ierror == MPI_SUCCESS, 'ierror')
  call check(MPI_COMM_WORLD /= MPI_COMM_NULL .and. .not. (MPI_COMM_WORLD == MPI_COMM_SELF), 'operators')
  call check(MPI_SUBARRAYS_SUPPORTED .and. MPI_ASYNC_PROTECTS_NONBLOCKING, 'promises')

  call MPI_Irecv(value, 1, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, requests(1))
  call MPI_Isend(rank, 1, MPI_INTEGER, mod(rank + 1, ranks), 3, MPI_COMM_WORLD, requests(2))
  call MPI_Waitall(2, requests, statuses)
  call check(value == mod(rank + ranks - 1, ranks) .and. statuses(1)%MPI_SOURCE == value, 'ring')
  call check(statuses(1)%MPI_TAG == 3 .and. all(requests == MPI_REQUEST_NULL), 'statuses and requests')
  call MPI_Status_f082f(statuses(1), old_status)
  call check(old_status(MPI_SOURCE) == value .and. old_status(MPI_TAG) == 3, 'status in INTEGERs')
  call MPI_Status_f2f08(old_status, status)
  call MPI_Get_count(status, MPI_INTEGER, value)
  call check(value == 1, 'count of a converted status')
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)

  ! Large counts are told by their kind.
  count = 1
  call MPI_Sendrecv(rank, count, MPI_INTEGER, rank, 1, value, count, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, status)
  call MPI_Get_count(status, MPI_INTEGER, elements)
  call check(elements == 1 .and. value == rank, 'large counts')
  call MPI_Type_contiguous(count + 4, MPI_INTEGER, datatype)
  call MPI_Type_size(datatype, elements)
  call check(elements == 20, 'size of a large count')
  call MPI_Type_get_extent(datatype, lower, extent)
  call check(lower == 0 .and. extent == 20, 'extent')
  call MPI_Type_free(datatype)
  call check(datatype == MPI_DATATYPE_NULL, 'type is freed')

  call MPI_Op_create(larger, .true., op)
  call MPI_Allreduce(rank, value, 1, MPI_INTEGER, op, MPI_COMM_WORLD)
  call check(value == ranks - 1, 'operation')
  call MPI_Op_free(op)
  call MPI_Op_create_c(smaller, .true., op)
  call MPI_Allreduce(rank, value, count, MPI_INTEGER, op, MPI_COMM_WORLD)
  call check(value == 0, 'operation of large counts')
  call MPI_Op_free(op)

  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, key, 7_MPI_ADDRESS_KIND)
  call MPI_Comm_set_attr(comm, key, 100_MPI_ADDRESS_KIND)
  call MPI_Comm_dup(comm, other)
  call MPI_Comm_get_attr(other, key, attribute, flag)
  call check(flag .and. attribute == 107 .and. copies == 1, 'attributes')
  call MPI_Comm_free(other)
  call MPI_Comm_free_keyval(key)
  call MPI_Comm_create_errhandler(handle, handler)
  call MPI_Comm_set_errhandler(comm, handler)
  call MPI_Send(rank, 1, MPI_INTEGER, ranks, 0, comm, ierror)
  call MPI_Error_class(ierror, class)
  call check(class == MPI_ERR_RANK .and. handled == ierror, 'error handler')
  handled = 0
  call MPI_Send(rank, 1, MPI_INTEGER, ranks, 0, comm)
  call check(handled /= 0, 'error handler without ierror')
  call MPI_Errhandler_free(handler)
  call MPI_Comm_create_errhandler(forgive, handler)
  call MPI_Comm_set_errhandler(comm, handler)
  call MPI_Send(rank, 1, MPI_INTEGER, ranks, 0, comm, ierror)
  call check(ierror == MPI_SUCCESS, 'error handler that changes the code')
  call MPI_Errhandler_free(handler)
  call MPI_Comm_set_name(comm, 'another name')
  call MPI_Comm_get_name(comm, name, length)
  call check(name == 'another name' .and. length == 12, 'name')
  call MPI_Comm_group(comm, group)
  call MPI_Group_size(group, value)
  call check(value == ranks .and. group /= MPI_GROUP_EMPTY, 'group')
  call MPI_Group_free(group)
  call MPI_Comm_free(comm)

  state = 42
  call MPI_Grequest_start(query, release, cancel, state, requests(1))
  call MPI_Grequest_complete(requests(1))
  call MPI_Wait(requests(1), status)
  call MPI_Get_count(status, MPI_INTEGER, value)
  call check(asked == 42 .and. state == 41 .and. value == 11 .and. status%MPI_TAG == 5, 'generalised request')

  call MPI_Isend(rank, 1, MPI_INTEGER, rank, 9, MPI_COMM_WORLD, requests(1))
  call MPI_Mprobe(rank, 9, MPI_COMM_WORLD, message, status)
  call check(message /= MPI_MESSAGE_NULL, 'matched message')
  call MPI_Mrecv(value, 1, MPI_INTEGER, message, status)
  call check(message == MPI_MESSAGE_NULL .and. value == rank, 'receive of a matched message')
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE)

  call MPI_Alloc_mem(40_MPI_ADDRESS_KIND, MPI_INFO_NULL, memory)
  call c_f_pointer(memory, shared, [10])
  shared = rank
  call MPI_Allreduce(MPI_IN_PLACE, shared, 10, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
  call check(all(shared == ranks - 1), 'allocated memory')
  call MPI_Free_mem(shared)

  call MPI_Win_allocate(40_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, memory, window)
  call c_f_pointer(memory, shared, [10])
  shared = -1
  call MPI_Win_fence(0, window)
  call MPI_Put(rank, 1, MPI_INTEGER, mod(rank + 1, ranks), 2_MPI_ADDRESS_KIND, 1, MPI_INTEGER, window)
  call MPI_Win_fence(0, window)
  call check(shared(3) == mod(rank + ranks - 1, ranks), 'window')
  call MPI_Win_free(window)

  allocate (buffer(1000))
  call MPI_Buffer_attach(buffer, 4000)
  call MPI_Buffer_detach(memory, value)
  call check(c_associated(memory, c_loc(buffer)) .and. value == 4000, 'detached buffer')

  call MPI_Sizeof(x, value, ierror)
  call check(value == 8, 'size of a real')
  call MPI_Sizeof(z, i)
  call check(i == 8, 'size of a complex number')
  call MPI_F_sync_reg(x)
  call MPI_Type_create_f90_real(12, MPI_UNDEFINED, datatype)
  call MPI_Type_size(datatype, value)
  call check(value == 8, 'type of a precision')

  call MPI_Allreduce(MPI_IN_PLACE, failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Finalize()
  if (failures > 0) stop 1
end program
