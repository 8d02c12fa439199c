! Sections of arrays as buffers of operations that go on after the call, in the module mpi_f08: collective
! ones, one-sided ones, and those on files. For 2 ranks or more.
program collective_sections
  use mpi_f08
  implicit none
  integer :: failures = 0, rank, ranks, i, k, ierror, class
  type(MPI_Request) :: request
  type(MPI_Win) :: window
  integer, asynchronous :: a(4, 6), b(4, 6)
  integer, allocatable, asynchronous :: many(:, :), few(:, :)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  a = reshape([(100 * rank + i, i=1, 24)], [4, 6])
  allocate (many(4, 2 * ranks), few(4, 2 * ranks))
  call reductions()
  call blocks()
  call alone()
  call persistent()
  call accumulates()
  call single_elements()
  call files()
  call refusals()
  call MPI_Allreduce(MPI_IN_PLACE, failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Finalize()
  if (failures > 0) stop 1

contains

  ! The sum over all ranks of a(i) where rank 0 has `first`.
  integer elemental function total(first)
    integer, intent(in) :: first
    total = ranks * first + 50 * ranks * (ranks - 1)
  end function

  subroutine reductions()
    b = 7
    call MPI_Iallreduce(a(1, :), b(2, :), 6, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(b(2, :) == total([1, 5, 9, 13, 17, 21])) .and. all(b([1, 3, 4], :) == 7), 'sum')
    b = a
    call MPI_Iallreduce(MPI_IN_PLACE, b(1:3:2, 1:6:2), 6, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(b(1:3:2, 1:6:2) == total(reshape([1, 3, 9, 11, 17, 19], [2, 3]))), 'sum in place')
    call check(all(b(2:4:2, :) == a(2:4:2, :)) .and. all(b(:, 2:6:2) == a(:, 2:6:2)), 'what is beside a sum')
    b = 0
    call MPI_Ireduce(a(3, 1:2), b(4, 6:1:-5), 2, MPI_INTEGER, MPI_MAX, 0, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(rank > 0 .or. all(b(4, [6, 1]) == 100 * (ranks - 1) + [3, 7]), 'maximum at rank 0')
    b = 0
    call MPI_Iscan(a(2, :), b(3, :), 6, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(b(3, :) == (rank + 1) * [2, 6, 10, 14, 18, 22] + 50 * rank * (rank + 1)), 'scan')
  end subroutine

  ! A block of four for each rank, in two dimensions: no datatype with a larger extent says that.
  subroutine blocks()
    integer :: sent(4, 2 * ranks)
    asynchronous :: sent
    sent = reshape([(1000 * rank + i, i=1, 8 * ranks)], [4, 2 * ranks])
    few = 0
    call MPI_Ialltoall(sent(1:3:2, :), 4, MPI_INTEGER, few(2:4:2, :), 4, MPI_INTEGER, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    do i = 0, ranks - 1
      call check(all(reshape(few(2:4:2, 2 * i + 1:2 * i + 2), [4]) == &
                     1000 * i + 8 * rank + [1, 3, 5, 7]), 'exchange of blocks')
    end do
    call check(all(few(1:3:2, :) == 0), 'what is beside blocks')
  end subroutine

  ! Operations that are complete when their calls return.
  subroutine alone()
    b = 0
    call MPI_Iallreduce(a(1, :), b(2, :), 6, MPI_INTEGER, MPI_SUM, MPI_COMM_SELF, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(b(2, :) == a(1, :)), 'sum of one rank')
    call MPI_Ialltoall(a(1:2, :), 12, MPI_INTEGER, b(3:4, :), 12, MPI_INTEGER, MPI_COMM_SELF, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(b(3:4, :) == a(1:2, :)), 'exchange with itself')
  end subroutine

  ! Each start sees what is there then.
  subroutine persistent()
    integer, asynchronous :: in(2, 3), out(2, 3)
    out = -1
    call MPI_Allreduce_init(in(1, :), out(2, :), 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    do k = 1, 3
      in = k * (rank + 1)
      call MPI_Start(request)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
      call check(all(out(2, :) == k * ranks * (ranks + 1) / 2) .and. all(out(1, :) == -1), 'persistent sum')
    end do
    call MPI_Request_free(request)
    call MPI_Bcast_init(in(1:1, 1:3:2), 2, MPI_INTEGER, 0, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    do k = 1, 2
      if (rank == 0) in(1, :) = 10 * k
      call MPI_Start(request)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
      call check(all(in(1, 1:3:2) == 10 * k), 'persistent broadcast')
    end do
    call MPI_Request_free(request)
  end subroutine

  ! Datatypes with gaps over sections keep their predefined type.
  subroutine accumulates()
    type(MPI_Datatype) :: pair
    integer, asynchronous :: memory(8), line(24), got(2, 4)
    memory = rank
    call MPI_Type_vector(2, 1, 2, MPI_INTEGER, pair)
    call MPI_Type_commit(pair)
    call MPI_Win_create(memory, 32_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window)
    call MPI_Win_fence(0, window)
    line = [(i, i=1, 24)]
    call MPI_Accumulate(line(1:23:2), 2, pair, mod(rank + 1, ranks), 0_MPI_ADDRESS_KIND, 4, MPI_INTEGER, MPI_SUM, window)
    call MPI_Win_fence(0, window)
    call check(all(memory(1:4) == rank + [1, 5, 7, 11]) .and. all(memory(5:) == rank), 'accumulation')
    got = 0
    call MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window)
    call MPI_Rget_accumulate(line(1:5:2), 3, MPI_INTEGER, got(2, 1:3), 3, MPI_INTEGER, rank, 0_MPI_ADDRESS_KIND, &
                             3, MPI_INTEGER, MPI_SUM, window, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Win_unlock(rank, window)
    call check(all(got(2, 1:3) == rank + [1, 5, 7]) .and. all(got(1, :) == 0), 'what was there before')
    call check(all(memory(1:3) == rank + [2, 8, 12]), 'accumulation with a result')
    call MPI_Win_free(window)
    call MPI_Type_free(pair)
  end subroutine

  subroutine single_elements()
    integer, asynchronous :: memory(1), mine(4), old(4)
    memory = 5
    mine = [1, 2, 3, 4]
    old = 0
    call MPI_Win_create(memory, 4_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window)
    call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window)
    call MPI_Fetch_and_op(mine(2:4:2), old(3:4), MPI_INTEGER, rank, 0_MPI_ADDRESS_KIND, MPI_SUM, window)
    call MPI_Win_flush(rank, window)
    call MPI_Compare_and_swap(mine(4:1:-2), [7, 0], old(1:4:3), MPI_INTEGER, rank, 0_MPI_ADDRESS_KIND, window)
    call MPI_Win_unlock(rank, window)
    call check(memory(1) == 4 .and. all(old == [7, 0, 5, 0]), 'one element of a section')
    call MPI_Win_free(window)
  end subroutine

  subroutine files()
    type(MPI_File) :: file
    type(MPI_Status) :: status
    integer(MPI_OFFSET_KIND) :: place
    integer :: number
    place = 24 * rank
    call MPI_File_open(MPI_COMM_WORLD, 'collective_sections.data', &
                       ior(ior(MPI_MODE_CREATE, MPI_MODE_RDWR), MPI_MODE_DELETE_ON_CLOSE), MPI_INFO_NULL, file)
    call MPI_File_iwrite_at(file, place, a(2:4:2, 1:5:2), 6, MPI_INTEGER, request)
    call MPI_Wait(request, status)
    call MPI_Get_count(status, MPI_INTEGER, number)
    call check(number == 6, 'count of a file')
    b = 0
    call MPI_File_read_at_all_begin(file, place, b(3, :), 6, MPI_INTEGER)
    call MPI_File_read_at_all_end(file, b(3, :), status)
    call check(all(b(3, :) == reshape(a(2:4:2, 1:5:2), [6])) .and. all(b(1:2, :) == 0), 'file')
    call MPI_File_close(file)
  end subroutine

  ! What the library keeps must be one piece of memory.
  subroutine refusals()
    type(MPI_Comm) :: comm
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
    call MPI_Win_create(a(1, :), 24_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, comm, window, ierror)
    call expect_refusal('window of a section')
    call MPI_Buffer_attach(a(1:3, :), 72, ierror)
    call expect_refusal('buffer of a section')
    ! A failed call leaves nothing behind.
    b = 3
    call MPI_Iallreduce(a(1, :), b(2, :), -1, MPI_INTEGER, MPI_SUM, comm, request, ierror)
    call MPI_Error_class(ierror, class)
    call check(class == MPI_ERR_COUNT .and. request == MPI_REQUEST_NULL .and. all(b == 3), 'count of a section')
    call MPI_Comm_free(comm)
  end subroutine

  subroutine expect_refusal(what)
    character(*), intent(in) :: what
    call MPI_Error_class(ierror, class)
    call check(class == MPI_ERR_UNSUPPORTED_OPERATION, what)
  end subroutine

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (.not. holds) then
      failures = failures + 1
      print *, 'wrong: ', what
    end if
  end subroutine
end program
