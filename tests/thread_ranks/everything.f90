! A rank without MPI in Fortran: module variables, SAVE, COMMON, input and output units, arrays that
! are initialised, a private scratch file, intrinsics with a state. Prints what a process prints.
module state
    implicit none
    integer :: counter = 10
    real(8), allocatable :: grid(:)
    character(len=16) :: name = "module"
    integer, save :: table(4) = [1, 2, 3, 4]
contains
    subroutine count_up(by)
        integer, intent(in) :: by
        integer, save :: calls = 0
        calls = calls + 1
        counter = counter + by
        table(mod(calls, 4) + 1) = table(mod(calls, 4) + 1) * 2
        if (calls == 3) write (*, '(a, i0, a, i0)') "third call, counter ", counter, ", calls ", calls
    end subroutine
end module

subroutine add_to_common(value)
    implicit none
    integer, intent(in) :: value
    integer :: total, pieces(8)
    common /shared/ total, pieces
    total = total + value
    pieces(mod(value, 8) + 1) = value
end subroutine

block data
    integer :: total, pieces(8)
    common /shared/ total, pieces
    data total /100/, pieces /8*0/
end block data

program everything
    use state
    implicit none
    integer :: rank, i, total, pieces(8), unit, got, seed_size
    character(len=200) :: text, line
    real(8) :: numbers(3)
    integer, allocatable :: seed(:)
    integer, pointer :: nowhere
    common /shared/ total, pieces

    call get_environment_variable("WARREN_RANK", text)
    read (text, *) rank
    do i = 1, 5
        call count_up(rank + i)
        call add_to_common(rank * i)
    end do
    print *, "rank", rank, "counter", counter, "table", table
    write (*, '(a, 9i6)') "common", total, pieces

    allocate (grid(100))
    grid = [(real(i, 8) * rank, i = 1, 100)]
    write (*, '(a, f12.3, a, es14.6)') "sum ", sum(grid), " norm ", sqrt(dot_product(grid, grid))

    open (newunit=unit, status="scratch", action="readwrite")
    do i = 1, 3
        write (unit, '(a, i0, a, i0)') "line ", i, " of rank ", rank
    end do
    rewind (unit)
    do
        read (unit, '(a)', iostat=got) line
        if (got /= 0) exit
        write (*, '(2a)') "read back: ", trim(line)
    end do
    close (unit)
    open (17, status="scratch", form="unformatted")
    write (17) rank, 2.5d0 * rank
    rewind (17)
    read (17) i, numbers(1)
    write (*, '(a, i0, f8.2)') "unformatted ", i, numbers(1)
    inquire (17, number=i)
    write (*, '(a, i0)') "unit ", i

    call random_seed(size=seed_size)
    allocate (seed(seed_size))
    seed = rank + 1
    call random_seed(put=seed)
    call random_number(numbers)
    write (*, '(a, 3f10.6)') "random", numbers
    call get_command_argument(1, text)
    write (*, '(a, i0, 2a)') "arguments ", command_argument_count(), " ", trim(text)
    write (0, '(a, i0)') "error unit ", rank
    if (command_argument_count() > 0 .and. trim(text) == "stop") stop 7
    if (command_argument_count() > 0 .and. trim(text) == "crash" .and. rank == 1) then
        nullify (nowhere)
        nowhere = 1
    end if
    if (command_argument_count() > 0 .and. trim(text) == "error") error stop "as told"
end program
