! Memory by attribute for Fortran: warren/memory.h through ISO_C_BINDING.
!
! Compile this file with your program, and link with -lwarren:
!     gfortran PREFIX/include/warren/memory.f90 program.f90 -lwarren
!
!     use warren_memory
!     type(c_ptr) :: fast, block
!     real(c_double), pointer :: u(:, :)
!     fast = warren_mem_criteria("bandwidth,capacity")
!     block = warren_mem_alloc(8_c_size_t * nx * ny, fast)
!     if (.not. c_associated(block)) error stop warren_mem_message()
!     call c_f_pointer(block, u, [nx, ny])
!     ...
!     call warren_mem_free(block)
!     call warren_mem_criteria_free(fast)
!
! All functions of warren/memory.h are here under their names; meanings, units, errors and the thread
! rule are those. c_null_ptr as criteria stands for the nearest memory, and as a machine's memories
! (`memory`) for this node's. Texts that functions take end with c_null_char; texts that they return
! are read by warren_mem_text. Optional arguments may be left out where C takes null.
module warren_memory
    use, intrinsic :: iso_c_binding
    implicit none
    private
    public :: c_ptr, c_null_ptr, c_associated, c_f_pointer, c_loc, c_size_t, c_int, c_double, c_float
    public :: c_int64_t, c_char, c_null_char
    public :: warren_mem_criteria, warren_mem_criteria_free, warren_mem_message
    public :: warren_mem_alloc, warren_mem_alloc_aligned, warren_mem_realloc, warren_mem_free
    public :: warren_mem_usable_size, warren_mem_move, warren_mem_where, warren_mem_trim
    public :: warren_mem_criteria_create, warren_mem_criteria_parse, warren_mem_criteria_copy
    public :: warren_mem_criteria_add, warren_mem_criteria_add_named, warren_mem_criteria_text
    public :: warren_mem_criteria_set_initiator, warren_mem_criteria_set_initiator_cpus
    public :: warren_mem_criteria_set_policy, warren_mem_criteria_set_page_size
    public :: warren_mem_criteria_set_reserved_pages, warren_mem_criteria_set_targets
    public :: warren_mem_open, warren_mem_close, warren_mem_error, warren_mem_text
    public :: warren_mem_attribute_name, warren_mem_attribute_by_name, warren_mem_find_attribute
    public :: warren_mem_get_targets, warren_mem_get_value, warren_mem_get_best_target
    public :: warren_mem_get_ordering, warren_mem_get_initiator
    public :: warren_mem_register_attribute, warren_mem_set_value

    ! Errors.
    integer(c_int), parameter, public :: &
        WARREN_MEM_SUCCESS = 0, WARREN_MEM_ERR_ARG = 1, WARREN_MEM_ERR_ATTRIBUTE = 2, &
        WARREN_MEM_ERR_NO_VALUE = 3, WARREN_MEM_ERR_NO_TARGET = 4, WARREN_MEM_ERR_MACHINE = 5, &
        WARREN_MEM_ERR_FILE = 6, WARREN_MEM_ERR_FULL = 7, WARREN_MEM_ERR_SYSTEM = 8
    ! Attributes.
    integer(c_int), parameter, public :: &
        WARREN_MEM_CAPACITY = 0, WARREN_MEM_LOCALITY = 1, WARREN_MEM_BANDWIDTH = 2, &
        WARREN_MEM_LATENCY = 3, WARREN_MEM_READ_BANDWIDTH = 4, WARREN_MEM_WRITE_BANDWIDTH = 5, &
        WARREN_MEM_READ_LATENCY = 6, WARREN_MEM_WRITE_LATENCY = 7, WARREN_MEM_AVAILABLE = 8, &
        WARREN_MEM_CACHE = 9, WARREN_MEM_FIRST_OTHER_ATTRIBUTE = 64
    ! Of registered attributes, one of the first two and perhaps the third (their sum).
    integer(c_int), parameter, public :: &
        WARREN_ATTRIBUTE_HIGHER_IS_BETTER = 1, WARREN_ATTRIBUTE_LOWER_IS_BETTER = 2, &
        WARREN_ATTRIBUTE_NEEDS_INITIATOR = 4
    ! What is done when the best target is full.
    integer(c_int), parameter, public :: &
        WARREN_MEM_NEXT = 0, WARREN_MEM_STRICT = 1, WARREN_MEM_INTERLEAVE = 2
    ! Memories that are considered: the sum of some.
    integer(c_int), parameter, public :: &
        WARREN_MEM_LOCAL = 1, WARREN_MEM_REMOTE = 2, WARREN_MEM_CPULESS = 4, &
        WARREN_MEM_DEVICE = 8, WARREN_MEM_EVERYWHERE = 15
    ! Origins of values.
    integer(c_int), parameter, public :: &
        WARREN_ORIGIN_FIRMWARE = 1, WARREN_ORIGIN_MEASURED = 2, WARREN_ORIGIN_GUESSED = 3, &
        WARREN_MEM_ORIGIN_SYSTEM = 16, WARREN_MEM_ORIGIN_PROGRAM = 17

    interface
        subroutine warren_mem_criteria_free(criteria) bind(c)
            import :: c_ptr
            type(c_ptr), value :: criteria
        end subroutine

        function warren_mem_alloc(bytes, criteria) bind(c) result(block)
            import :: c_ptr, c_size_t
            integer(c_size_t), value :: bytes
            type(c_ptr), value :: criteria
            type(c_ptr) :: block
        end function

        function warren_mem_alloc_aligned(alignment, bytes, criteria) bind(c) result(block)
            import :: c_ptr, c_size_t
            integer(c_size_t), value :: alignment, bytes
            type(c_ptr), value :: criteria
            type(c_ptr) :: block
        end function

        function warren_mem_realloc(old, bytes, criteria) bind(c) result(block)
            import :: c_ptr, c_size_t
            type(c_ptr), value :: old
            integer(c_size_t), value :: bytes
            type(c_ptr), value :: criteria
            type(c_ptr) :: block
        end function

        subroutine warren_mem_free(block) bind(c)
            import :: c_ptr
            type(c_ptr), value :: block
        end subroutine

        function warren_mem_usable_size(block) bind(c) result(bytes)
            import :: c_ptr, c_size_t
            type(c_ptr), value :: block
            integer(c_size_t) :: bytes
        end function

        function warren_mem_move(old, criteria) bind(c) result(block)
            import :: c_ptr
            type(c_ptr), value :: old, criteria
            type(c_ptr) :: block
        end function

        ! nodes(i): the NUMA node of the i-th page of 4096 bytes, -1 where there is none yet.
        function warren_mem_where(address, bytes, capacity, nodes, count) bind(c) result(error)
            import :: c_ptr, c_size_t, c_int
            type(c_ptr), value :: address
            integer(c_size_t), value :: bytes, capacity
            integer(c_int), intent(out) :: nodes(*)
            integer(c_size_t), intent(out) :: count
            integer(c_int) :: error
        end function

        subroutine warren_mem_trim() bind(c)
        end subroutine

        function warren_mem_criteria_create(criteria) bind(c) result(error)
            import :: c_ptr, c_int
            type(c_ptr), intent(out) :: criteria
            integer(c_int) :: error
        end function

        function warren_mem_criteria_parse(text, criteria) bind(c) result(error)
            import :: c_ptr, c_char, c_int
            character(kind=c_char), intent(in) :: text(*)
            type(c_ptr), intent(out) :: criteria
            integer(c_int) :: error
        end function

        function warren_mem_criteria_copy(criteria, copy) bind(c) result(error)
            import :: c_ptr, c_int
            type(c_ptr), value :: criteria
            type(c_ptr), intent(out) :: copy
            integer(c_int) :: error
        end function

        function warren_mem_criteria_add(criteria, attribute, tolerance) bind(c) result(error)
            import :: c_ptr, c_int, c_double
            type(c_ptr), value :: criteria
            integer(c_int), value :: attribute
            real(c_double), value :: tolerance
            integer(c_int) :: error
        end function

        function warren_mem_criteria_add_named(criteria, name, tolerance) bind(c) result(error)
            import :: c_ptr, c_char, c_int, c_double
            type(c_ptr), value :: criteria
            character(kind=c_char), intent(in) :: name(*)
            real(c_double), value :: tolerance
            integer(c_int) :: error
        end function

        function warren_mem_criteria_set_initiator(criteria, initiator) bind(c) result(error)
            import :: c_ptr, c_char, c_int
            type(c_ptr), value :: criteria
            character(kind=c_char), intent(in) :: initiator(*)
            integer(c_int) :: error
        end function

        function warren_mem_criteria_set_initiator_cpus(criteria, mask, bytes) bind(c) &
            result(error)
            import :: c_ptr, c_int, c_size_t
            type(c_ptr), value :: criteria, mask
            integer(c_size_t), value :: bytes
            integer(c_int) :: error
        end function

        function warren_mem_criteria_set_policy(criteria, policy) bind(c) result(error)
            import :: c_ptr, c_int
            type(c_ptr), value :: criteria
            integer(c_int), value :: policy
            integer(c_int) :: error
        end function

        function warren_mem_criteria_set_page_size(criteria, page_bytes) bind(c) result(error)
            import :: c_ptr, c_int, c_size_t
            type(c_ptr), value :: criteria
            integer(c_size_t), value :: page_bytes
            integer(c_int) :: error
        end function

        function warren_mem_criteria_set_reserved_pages(criteria, page_bytes) bind(c) &
            result(error)
            import :: c_ptr, c_int, c_size_t
            type(c_ptr), value :: criteria
            integer(c_size_t), value :: page_bytes
            integer(c_int) :: error
        end function

        function warren_mem_criteria_set_targets(criteria, targets) bind(c) result(error)
            import :: c_ptr, c_int
            type(c_ptr), value :: criteria
            integer(c_int), value :: targets
            integer(c_int) :: error
        end function

        function warren_mem_criteria_text(criteria, text, bytes, length) bind(c) result(error)
            import :: c_ptr, c_char, c_int, c_size_t
            type(c_ptr), value :: criteria
            character(kind=c_char), intent(out) :: text(*)
            integer(c_size_t), value :: bytes
            integer(c_size_t), intent(out), optional :: length
            integer(c_int) :: error
        end function

        ! topology: a warren_topology of warren/topology.h.
        function warren_mem_open(topology, memory) bind(c) result(error)
            import :: c_ptr, c_int
            type(c_ptr), value :: topology
            type(c_ptr), intent(out) :: memory
            integer(c_int) :: error
        end function

        subroutine warren_mem_close(memory) bind(c)
            import :: c_ptr
            type(c_ptr), value :: memory
        end subroutine

        function warren_mem_attribute_name(attribute) bind(c) result(text)
            import :: c_ptr, c_int
            integer(c_int), value :: attribute
            type(c_ptr) :: text
        end function

        function warren_mem_attribute_by_name(name) bind(c) result(attribute)
            import :: c_char, c_int
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int) :: attribute
        end function

        function warren_mem_find_attribute(memory, name, attribute) bind(c) result(error)
            import :: c_ptr, c_char, c_int
            type(c_ptr), value :: memory
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), intent(out) :: attribute
            integer(c_int) :: error
        end function

        function warren_mem_get_targets(memory, capacity, nodes, count) bind(c) result(error)
            import :: c_ptr, c_int, c_size_t
            type(c_ptr), value :: memory
            integer(c_size_t), value :: capacity
            integer(c_int), intent(inout) :: nodes(*)
            integer(c_size_t), intent(out) :: count
            integer(c_int) :: error
        end function

        function warren_mem_get_value(memory, attribute, initiator, node, amount, origin) bind(c) &
            result(error)
            import :: c_ptr, c_char, c_int, c_int64_t
            type(c_ptr), value :: memory
            integer(c_int), value :: attribute
            character(kind=c_char), intent(in), optional :: initiator(*)
            integer(c_int), value :: node
            integer(c_int64_t), intent(out) :: amount
            integer(c_int), intent(out), optional :: origin
            integer(c_int) :: error
        end function

        function warren_mem_get_best_target(memory, criteria, node) bind(c) result(error)
            import :: c_ptr, c_int
            type(c_ptr), value :: memory, criteria
            integer(c_int), intent(out) :: node
            integer(c_int) :: error
        end function

        function warren_mem_get_ordering(memory, criteria, capacity, nodes, tiers, count) bind(c) &
            result(error)
            import :: c_ptr, c_int, c_size_t
            type(c_ptr), value :: memory, criteria
            integer(c_size_t), value :: capacity
            integer(c_int), intent(inout) :: nodes(*)
            integer(c_int), intent(inout), optional :: tiers(*)
            integer(c_size_t), intent(out) :: count
            integer(c_int) :: error
        end function

        ! index counts from 0.
        function warren_mem_get_initiator(memory, attribute, node, index, mask, mask_bytes, &
                                          amount, origin) bind(c) result(error)
            import :: c_ptr, c_int, c_size_t, c_int64_t
            type(c_ptr), value :: memory
            integer(c_int), value :: attribute, node
            integer(c_size_t), value :: index
            type(c_ptr), value :: mask
            integer(c_size_t), value :: mask_bytes
            integer(c_int64_t), intent(out), optional :: amount
            integer(c_int), intent(out), optional :: origin
            integer(c_int) :: error
        end function

        function warren_mem_register_attribute(memory, name, flags, attribute) bind(c) &
            result(error)
            import :: c_ptr, c_char, c_int
            type(c_ptr), value :: memory
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: flags
            integer(c_int), intent(out) :: attribute
            integer(c_int) :: error
        end function

        function warren_mem_set_value(memory, attribute, initiator, node, amount) bind(c) &
            result(error)
            import :: c_ptr, c_char, c_int, c_int64_t
            type(c_ptr), value :: memory
            integer(c_int), value :: attribute
            character(kind=c_char), intent(in), optional :: initiator(*)
            integer(c_int), value :: node
            integer(c_int64_t), value :: amount
            integer(c_int) :: error
        end function

        function warren_mem_error() bind(c) result(text)
            import :: c_ptr
            type(c_ptr) :: text
        end function
    end interface

contains

    ! Criteria in words, as warren_mem_criteria_parse takes them. With `error` present it gets the
    ! code, 0 for success, and the result of a failure is c_null_ptr; without it a failure stops the
    ! program.
    function warren_mem_criteria(text, error) result(criteria)
        character(len=*), intent(in) :: text
        integer(c_int), intent(out), optional :: error
        type(c_ptr) :: criteria
        integer(c_int) :: code
        character(len=:), allocatable :: message

        code = warren_mem_criteria_parse(trim(text)//c_null_char, criteria)
        if (code /= 0) then
            if (.not. present(error)) then
                message = warren_mem_message()
                error stop message
            end if
            criteria = c_null_ptr
        end if
        if (present(error)) error = code
    end function

    ! The sentence of the calling thread's last failure.
    function warren_mem_message() result(message)
        character(len=:), allocatable :: message

        message = warren_mem_text(warren_mem_error())
    end function

    ! A text that a function has returned, "" for none.
    function warren_mem_text(text) result(copy)
        type(c_ptr), intent(in) :: text
        character(len=:), allocatable :: copy

        copy = text_of_c(text)
    end function

    include "text_of_c.inc"
end module
