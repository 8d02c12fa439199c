! Arrays in memory by attribute, from Fortran.
program memory_fortran
    use warren_memory
    implicit none
    type(c_ptr) :: criteria, block, moved
    real(c_double), pointer :: u(:, :)
    integer(c_int) :: nodes(1000), error
    integer(c_size_t) :: pages, i

    criteria = warren_mem_criteria("bandwidth~10%,capacity")
    block = warren_mem_alloc(8_c_size_t*600*500, criteria)
    if (.not. c_associated(block)) error stop warren_mem_message()
    if (warren_mem_usable_size(block) < 2400000_c_size_t) error stop "too small"
    call c_f_pointer(block, u, [600, 500])
    u = 2.5d0
    if (abs(sum(u) - 750000d0) > 1d-6) error stop "wrong sum"

    error = warren_mem_where(block, 2400000_c_size_t, 1000_c_size_t, nodes, pages)
    if (error == 0) then
        if (pages /= 586) error stop "wrong number of pages"
        do i = 1, pages
            if (nodes(i) < 0) error stop "a page is nowhere"
        end do
    end if

    moved = warren_mem_move(block, c_null_ptr)
    if (.not. c_associated(moved, block)) error stop "a large block has moved away"
    moved = warren_mem_realloc(moved, 9000000_c_size_t, c_null_ptr)
    call c_f_pointer(moved, u, [600, 500])
    if (abs(sum(u) - 750000d0) > 1d-6) error stop "reallocation lost contents"
    call warren_mem_free(moved)
    call warren_mem_criteria_free(criteria)

    criteria = warren_mem_criteria("no such thing", error)
    if (error == 0 .or. c_associated(criteria)) error stop "nonsense was taken"
    if (len(warren_mem_message()) == 0) error stop "no sentence"

    block = warren_mem_alloc_aligned(4096_c_size_t, 100_c_size_t, c_null_ptr)
    if (.not. c_associated(block)) error stop warren_mem_message()
    call warren_mem_free(block)
    call warren_mem_trim()
end program
