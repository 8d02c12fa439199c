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
! Meanings, units, errors and the thread rule are those of warren/memory.h. c_null_ptr as criteria
! stands for the nearest memory.
module warren_memory
    use, intrinsic :: iso_c_binding
    implicit none
    private
    public :: c_ptr, c_null_ptr, c_associated, c_f_pointer, c_loc, c_size_t, c_int, c_double, c_float
    public :: warren_mem_criteria, warren_mem_criteria_free, warren_mem_message
    public :: warren_mem_alloc, warren_mem_alloc_aligned, warren_mem_realloc, warren_mem_free
    public :: warren_mem_usable_size, warren_mem_move, warren_mem_where, warren_mem_trim

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

        function criteria_parse(text, criteria) bind(c, name="warren_mem_criteria_parse") &
            result(error)
            import :: c_ptr, c_char, c_int
            character(kind=c_char), intent(in) :: text(*)
            type(c_ptr), intent(out) :: criteria
            integer(c_int) :: error
        end function

        function error_text() bind(c, name="warren_mem_error") result(text)
            import :: c_ptr
            type(c_ptr) :: text
        end function

        function length_of(text) bind(c, name="strlen") result(length)
            import :: c_ptr, c_size_t
            type(c_ptr), value :: text
            integer(c_size_t) :: length
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

        code = criteria_parse(trim(text)//c_null_char, criteria)
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
        character(kind=c_char), pointer :: letters(:)
        type(c_ptr) :: text
        integer :: i

        text = error_text()
        call c_f_pointer(text, letters, [length_of(text)])
        allocate (character(len=size(letters)) :: message)
        do i = 1, size(letters)
            message(i:i) = letters(i)
        end do
    end function
end module
