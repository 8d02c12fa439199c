! Sections of arrays as buffers of the module mpi_f08. For 2 ranks or more.
program sections
  use mpi_f08
  implicit none
  integer :: failures = 0, rank, ranks, i, j, k, to, from, value
  type(MPI_Request) :: requests(2)
  type(MPI_Datatype) :: pair, column
  type(MPI_Win) :: window
  type(MPI_Comm) :: comm
  integer, asynchronous :: a(4, 6), b(4, 6), c(3, 4, 5), d(3, 4, 5), line(24)
  integer, allocatable :: many(:, :), few(:, :)
  character(3) :: words(4), heard(4)
  integer(MPI_COUNT_KIND) :: large
  type :: mixed
    integer :: key
    real(8) :: x
  end type
  type(mixed), asynchronous :: records(5), copies(5)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  to = mod(rank + 1, ranks)
  from = mod(rank + ranks - 1, ranks)
  a = reshape([(100 * rank + i, i=1, 24)], [4, 6])

  ! A row is sent, and received as an odd-numbered part of a column and of another row.
  b = 0
  call MPI_Sendrecv(a(2, :), 6, MPI_INTEGER, to, 0, b(3, :), 6, MPI_INTEGER, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call check(all(b(3, :) == 100 * from + [2, 6, 10, 14, 18, 22]) .and. all(b([1, 2, 4], :) == 0), 'row')
  b = 0
  call MPI_Irecv(b(1:3:2, 2:6:2), 6, MPI_INTEGER, from, 0, MPI_COMM_WORLD, requests(1))
  call MPI_Isend(a(4:1:-1, 1), 4, MPI_INTEGER, to, 0, MPI_COMM_WORLD, requests(2))
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  call check(all(reshape(b(1:3:2, 2:4:2), [4]) == 100 * from + [4, 3, 2, 1]) .and. b(1, 6) == 0, 'backwards')

  ! Three dimensions, fewer elements than the section has.
  c = reshape([(1000 * rank + i, i=1, 60)], [3, 4, 5])
  d = 0
  call MPI_Sendrecv(c(1:2, 1:4:3, 1:5:2), 11, MPI_INTEGER, to, 1, d(2:3, 2:3, 2:4), 11, MPI_INTEGER, from, 1, &
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call check(all(reshape(d(2:3, 2:3, 2:3), [8]) == 1000 * from + [1, 2, 10, 11, 25, 26, 34, 35]), 'cube')
  call check(all(reshape(d(2:3, 2:3, 4), [4]) == [1000 * from + [49, 50, 58], 0]), 'rest of a cube')
  call check(sum(d(1, :, :)) == 0 .and. sum(d(:, 1, :)) == 0, 'what is beside a cube')

  ! Derived types over a section: two elements of three with a gap, so that they lie across its rows.
  call MPI_Type_vector(2, 1, 2, MPI_INTEGER, pair)
  call MPI_Type_commit(pair)
  b = 0
  call MPI_Irecv(b(2:4, 1:5), 5, pair, from, 2, MPI_COMM_WORLD, requests(1))
  line = [(i, i=1, 24)] + 100 * rank
  call MPI_Isend(line(1:23:2), 10, MPI_INTEGER, to, 2, MPI_COMM_WORLD, requests(2))
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  call check(all(reshape(b(2:4, 1:5), [15]) == expected()), 'derived type')
  call MPI_Type_free(pair)
  ! A column as a type, every second one: evenly spaced.
  call MPI_Type_contiguous(4, MPI_INTEGER, column)
  call MPI_Type_commit(column)
  b = 0
  call MPI_Sendrecv(a(:, 1:5:2), 3, column, to, 3, b(:, 2:6:2), 3, column, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call check(all(b(:, 2:6:2) == a(:, 1:5:2) + 100 * (from - rank)) .and. sum(b(:, 1:5:2)) == 0, 'columns')
  call MPI_Type_free(column)

  ! Collective operations.
  if (rank == 0) line = -5
  call MPI_Bcast(line(1:24:3), 8, MPI_INTEGER, 0, MPI_COMM_WORLD)
  call check(all(line(1:24:3) == -5) .and. (rank == 0 .or. all(line(2:24:3) /= -5)), 'broadcast')
  b = 7
  call MPI_Allreduce(a(1, :), b(2, :), 6, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call check(all(b(2, :) == ranks * [1, 5, 9, 13, 17, 21] + 50 * ranks * (ranks - 1)) .and. all(b(1, :) == 7), 'reduction')
  call MPI_Allreduce(MPI_IN_PLACE, b(2, 1:6:2), 3, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
  call check(all(b(2, :) == ranks * [1, 5, 9, 13, 17, 21] + 50 * ranks * (ranks - 1)), 'reduction in place')
  allocate (many(3, 2 * ranks), few(3, 2 * ranks))
  many = 0
  call MPI_Allgather(a(2, 1:2), 2, MPI_INTEGER, many(2, :), 2, MPI_INTEGER, MPI_COMM_WORLD)
  call check(all(many(2, :) == [(100 * i + 2, 100 * i + 6, i=0, ranks - 1)]) .and. sum(many(1, :)) == 0, 'gathering')
  few = 0
  call MPI_Iallgather(a(2, 1:2), 2, MPI_INTEGER, few(3, :), 2, MPI_INTEGER, MPI_COMM_WORLD, requests(1))
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
  call check(all(few(3, :) == many(2, :)) .and. sum(few(2, :)) == 0, 'gathering, nonblocking')
  large = 2
  few = 0
  call MPI_Alltoall(many(2, :), large, MPI_INTEGER, few(1, :), large, MPI_INTEGER, MPI_COMM_WORLD)
  call check(few(1, 1) == 100 * rank + 2 .and. few(1, 2 * ranks) == 100 * rank + 6, 'exchange of large counts')

  ! Components, strings, and what is no section: an expression, one element.
  records = [(mixed(10 * rank + i, 0.5d0 * i), i=1, 5)]
  copies%key = 0
  call MPI_Sendrecv(records%key, 5, MPI_INTEGER, to, 4, line, 5, MPI_INTEGER, from, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call check(all(line(1:5) == 10 * from + [1, 2, 3, 4, 5]), 'component')
  words = ['one', 'two', 'six', 'ten']
  heard = '...'
  call MPI_Sendrecv(words(4:2:-1), 9, MPI_CHARACTER, to, 5, heard(1:4:1), 9, MPI_CHARACTER, from, 5, MPI_COMM_WORLD, &
                    MPI_STATUS_IGNORE)
  call check(all(heard == ['ten', 'six', 'two', '...']), 'strings')
  call MPI_Sendrecv(rank + 3, 1, MPI_INTEGER, to, 6, value, 1, MPI_INTEGER, from, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call check(value == from + 3, 'expression')
  call assumed(a(2:3, :))

  ! Persistent requests see each time what is there.
  call MPI_Send_init(a(1, 1:6:5), 2, MPI_INTEGER, to, 8, MPI_COMM_WORLD, requests(1))
  call MPI_Recv_init(b(1:4:3, 1), 2, MPI_INTEGER, from, 8, MPI_COMM_WORLD, requests(2))
  do k = 1, 3
    a(1, 1) = k
    b = 0
    call MPI_Startall(2, requests)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(b(1, 1) == k .and. b(4, 1) == 100 * from + 21 .and. b(2, 1) == 0, 'persistent')
  end do
  call MPI_Request_free(requests(1))
  call MPI_Request_free(requests(2))

  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call MPI_Win_create(a, 96_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, comm, window)
  call MPI_Win_fence(0, window)
  b(:, 1) = 1
  call MPI_Accumulate(b(1:3:2, 1), 2, MPI_INTEGER, to, 1_MPI_ADDRESS_KIND, 2, MPI_INTEGER, MPI_SUM, window)
  call MPI_Win_fence(0, window)
  call check(a(2, 1) == 100 * rank + 3 .and. a(3, 1) == 100 * rank + 4, 'accumulation')
  call MPI_Win_free(window)
  call MPI_Comm_free(comm)

  call MPI_Allreduce(MPI_IN_PLACE, failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Finalize()
  if (failures > 0) stop 1

contains

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (.not. holds) then
      failures = failures + 1
      print *, 'wrong: ', what
    end if
  end subroutine

  subroutine assumed(part)
    integer, intent(in) :: part(:, :)
    integer :: got(12)
    call MPI_Sendrecv(part, 12, MPI_INTEGER, to, 7, got, 12, MPI_INTEGER, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(all(got == reshape(part, [12]) + 100 * (from - rank)), 'assumed shape')
  end subroutine

  ! Ten numbers at the places 0, 2, 3, 5, 6, … of 15.
  function expected() result(numbers)
    integer :: numbers(15), place
    numbers = 0
    do j = 0, 4
      place = 3 * j
      numbers(place + 1) = 100 * from + 4 * j + 1
      numbers(place + 3) = 100 * from + 4 * j + 3
    end do
  end function
end program
