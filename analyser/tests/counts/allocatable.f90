! Allocatable arrays: which accesses are of which, when one gets the memory of another.
program allocatable
    use iso_c_binding, only: c_intptr_t
    use iso_fortran_env, only: int64
    implicit none
    integer, parameter :: pages = 8, in_page = 512
    integer(int64), parameter :: page_bytes = 4096
    real(8), allocatable, volatile :: field(:)
    real(8) :: total
    integer(c_intptr_t) :: block
    integer :: before, page, index, turn

    allocate (field((pages + 2)*in_page))
    block = loc(field)
    ! Elements in front of the first whole page.
    before = int(modulo(-block, page_bytes)/8)
    do page = 0, pages - 1 ! written by thread 0
        do index = 1, in_page
            field(before + page*in_page + index) = index
        end do
    end do
    total = 0
    ! The upper half is read three times by thread 1.
    !$omp parallel num_threads(2) default(shared) private(page, index, turn) reduction(+:total)
    if (thread() == 1) then
        do turn = 1, 3
            do page = pages/2, pages - 1
                do index = 1, in_page
                    total = total + field(before + page*in_page + index)
                end do
            end do
        end do
    end if
    !$omp end parallel
    deallocate (field)
    allocate (field((pages + 2)*in_page))
    if (loc(field) /= block) error stop "the memory is not used again"
    !$omp parallel num_threads(2) default(shared) private(page)
    if (thread() == 1) then
        do page = 0, pages - 1
            field(before + page*in_page + 7) = 1
        end do
    end if
    !$omp end parallel
    do page = 0, pages - 1
        call expect(0, 0, 0, in_page)
        call expect(0, 1, merge(3*in_page, 0, page >= pages/2), 0)
        call expect(1, 0, 0, 0)
        call expect(1, 1, 0, 1)
        print '(a, z0, a)', "first ", block + 8*before + page*page_bytes, " 0 1"
    end do

contains
    integer function thread()
        !$ integer, external :: omp_get_thread_num
        thread = 0
        !$ thread = omp_get_thread_num()
    end function

    ! Of numbers of 8 bytes.
    subroutine expect(life, thread, reads, writes)
        integer, intent(in) :: life, thread, reads, writes
        print '(a, z0, 1x, z0, 6(1x, i0))', "within ", block + 8*before + page*page_bytes, block, life, thread, &
            reads, writes, 8*reads, 8*writes
    end subroutine
end program
