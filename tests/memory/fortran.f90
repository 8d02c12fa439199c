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
    call queries()

contains

    subroutine queries()
        integer(c_int) :: number, node, nodes(100), tiers(100), origin
        integer(c_int64_t) :: bytes
        integer(c_size_t) :: count, length
        character(len=1, kind=c_char) :: letters(100)

        if (warren_mem_text(warren_mem_attribute_name(WARREN_MEM_LATENCY)) /= "latency") &
            error stop "another name"
        if (warren_mem_attribute_by_name("cache"//c_null_char) /= WARREN_MEM_CACHE) &
            error stop "another number"
        if (warren_mem_get_targets(c_null_ptr, 100_c_size_t, nodes, count) /= 0 .or. count < 1) &
            error stop warren_mem_message()
        if (warren_mem_get_value(c_null_ptr, WARREN_MEM_CAPACITY, node=nodes(1), amount=bytes, &
                                 origin=origin) /= 0 .or. bytes < 1) &
            error stop warren_mem_message()
        if (warren_mem_criteria_create(criteria) /= 0) error stop warren_mem_message()
        if (warren_mem_criteria_add(criteria, WARREN_MEM_CAPACITY, -1d0) /= 0) &
            error stop warren_mem_message()
        if (warren_mem_criteria_set_policy(criteria, WARREN_MEM_STRICT) /= 0) &
            error stop warren_mem_message()
        if (warren_mem_criteria_text(criteria, letters, 100_c_size_t, length) /= 0) &
            error stop warren_mem_message()
        if (length /= 20 .or. any(letters(:8) /= ["c", "a", "p", "a", "c", "i", "t", "y"])) &
            error stop "another text"
        if (warren_mem_get_ordering(c_null_ptr, criteria, 100_c_size_t, nodes, tiers, count) /= 0) &
            error stop warren_mem_message()
        if (warren_mem_get_best_target(c_null_ptr, criteria, node) /= 0 .or. node /= nodes(1)) &
            error stop warren_mem_message()
        call warren_mem_criteria_free(criteria)
        if (warren_mem_register_attribute(c_null_ptr, "mine"//c_null_char, &
                                          WARREN_ATTRIBUTE_HIGHER_IS_BETTER, number) /= 0) &
            error stop warren_mem_message()
        if (warren_mem_set_value(c_null_ptr, number, node=node, amount=7_c_int64_t) /= 0) &
            error stop warren_mem_message()
        if (warren_mem_get_value(c_null_ptr, number, node=node, amount=bytes) /= 0 .or. &
            bytes /= 7) error stop "another value"
    end subroutine
end program
