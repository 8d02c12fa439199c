! The Fortran module of warren/topology.h: without arguments it checks what it gets of an invented
! machine; with a source it says what that has, a line per object and value (fortran.py compares).
program topology_fortran
    use warren_topology
    implicit none
    type(c_ptr) :: node
    type(warren_topology_report) :: report
    character(len=1000) :: source

    call get_command_argument(1, source)
    if (source /= "") then
        if (warren_topology_open(trim(source)//c_null_char, node, report) /= 0) &
            error stop warren_topology_problem(report)
        call list_objects()
        call list_values()
        call list_distances()
        call warren_topology_close(node)
    else
        call check_lookups()
        call check_sets()
        call check_use()
        call check_mistakes()
    end if

contains

    subroutine list_objects()
        integer(warren_object) :: object
        integer :: kind
        character(len=:), allocatable :: line, device
        type(warren_pci_device) :: card
        type(warren_cache) :: cache

        do object = 0, warren_topology_objects(node) - 1
            line = warren_topology_text(warren_object_type_name(warren_object_type(node, object)))
            device = "-"
            if (warren_object_get_pci_device(node, object, card) == 0) &
                device = listed([iand(int(card%vendor_id), 65535), iand(int(card%device_id), 65535)])
            if (warren_object_cache(node, object, cache) == 0) &
                device = listed([int(cache%bytes), int(cache%line_bytes)])
            write (*, '(*(g0))') "object ", line, " ", object, " ", &
                warren_object_logical_index(node, object), " ", &
                warren_object_os_index(node, object), " ", warren_object_parent(node, object), " ", &
                listed([(warren_object_child_count(node, object, kind), kind=0, 3)]), " ", &
                listed(warren_set_members(warren_object_cpus(node, object))), " ", &
                listed(warren_set_members(warren_object_nodes(node, object))), " ", device, " ", &
                warren_topology_text(warren_object_name(node, object))
        end do
    end subroutine

    subroutine list_values()
        integer(c_int32_t) :: attribute, initiator, place, memory, rows
        integer(c_int64_t) :: amount
        integer(c_int) :: origin

        do attribute = 0, warren_topology_attributes(node) - 1
            rows = 1
            if (btest(warren_topology_attribute_flags(node, attribute), 2)) &
                rows = warren_topology_initiators(node)
            do initiator = 0, rows - 1
                do place = 0, warren_topology_count(node, WARREN_OBJECT_NUMA_NODE) - 1
                    memory = warren_object_os_index(node, warren_topology_object( &
                                                    node, WARREN_OBJECT_NUMA_NODE, place))
                    if (warren_topology_value(node, attribute, initiator, memory, amount, origin) &
                        == 0) write (*, '(*(g0,:," "))') "value", &
                        warren_topology_text(warren_topology_attribute_name(node, attribute)), &
                        initiator, memory, amount, origin
                end do
            end do
        end do
    end subroutine

    subroutine list_distances()
        integer(c_int32_t) :: matrix, from, to
        integer(c_int64_t) :: amount
        type(warren_distances) :: distances
        integer(warren_object), pointer :: objects(:)

        do matrix = 0, warren_topology_distances_count(node) - 1
            if (warren_topology_distances(node, matrix, distances) /= 0) error stop "no distances"
            call c_f_pointer(distances%objects, objects, [distances%count])
            do from = 0, distances%count - 1
                do to = 0, distances%count - 1
                    if (warren_topology_distance(node, matrix, from, to, amount) /= 0) &
                        error stop "no distance"
                    write (*, '(*(g0,:," "))') "distance", objects(from + 1), objects(to + 1), amount
                end do
            end do
        end do
    end subroutine

    ! Numbers with commas between, "-" for none.
    function listed(numbers) result(text)
        integer, intent(in) :: numbers(:)
        character(len=:), allocatable :: text
        character(len=11) :: letters
        integer :: i

        text = ""
        do i = 1, size(numbers)
            write (letters, '(i0)') numbers(i)
            text = text//trim(letters)//","
        end do
        if (size(numbers) == 0) text = "--"
        text = text(:len(text) - 1)
    end function

    subroutine expect(is_so, what)
        logical, intent(in) :: is_so
        character(len=*), intent(in) :: what

        if (.not. is_so) error stop what
    end subroutine

    subroutine open_machine(text)
        character(len=*), intent(in) :: text

        if (warren_topology_open("synthetic:"//text//c_null_char, node, report) /= 0) &
            error stop warren_topology_problem(report)
    end subroutine

    subroutine check_lookups()
        integer(warren_object) :: core, package, first
        integer(c_int) :: type
        integer(c_int32_t) :: count, seen
        integer(c_int64_t), allocatable, target :: words(:)

        call open_machine("package:2 [numa(memory=1GB)] core:40 pu:2")
        call expect(warren_topology_way(node) == WARREN_TOPOLOGY_SYNTHETIC, "way")
        core = warren_topology_object(node, WARREN_OBJECT_CORE, 41)
        package = warren_topology_object(node, WARREN_OBJECT_PACKAGE, 1)
        call expect(all(warren_set_members(warren_object_cpus(node, core)) == [82, 83]), "cpus")
        call expect(warren_object_ancestor(node, core, WARREN_OBJECT_PACKAGE) == package, "ancestor")
        call expect(warren_object_child(node, package, WARREN_CHILD_TREE, 1) == core, "child")
        call expect(warren_object_is_below(node, core, package) == 1, "below")
        call expect(warren_object_common_ancestor(node, core, core + 1) == package, "ancestor of two")
        call expect(warren_object_common_ancestor(node, core, core - 2) == 0, "machine of two")
        call expect(warren_topology_by_os_index(node, WARREN_OBJECT_PU, 83) == &
                    warren_object_child(node, core, WARREN_CHILD_TREE, 1), "by OS index")
        call expect(warren_topology_covering(node, warren_object_cpus(node, core)) == core, "covering")
        words = warren_set_words([80, 83])
        call expect(warren_topology_covering(node, warren_set_of(words)) == package, "covering two")
        words = warren_set_words([1, 82, 83])
        call expect(warren_topology_next_inside(node, warren_set_of(words), WARREN_OBJECT_CORE, &
                                                WARREN_NO_OBJECT) == core, "inside")
        call expect(warren_object_os_index(node, warren_topology_nearest_memory(node, core)) == 1, &
                    "nearest memory")
        call expect(warren_topology_nearest_memory_of_cpu(node, 2) == &
                    warren_topology_object(node, WARREN_OBJECT_NUMA_NODE, 0), "a processor's memory")
        call expect(warren_topology_nearest_device(node, core, WARREN_DEVICE_NETWORK, 0) == &
                    WARREN_NO_OBJECT, "nearest device")
        call expect(warren_topology_best_target(node, WARREN_ATTRIBUTE_LOCALITY, &
                                                warren_topology_initiator_of_cpu(node, 82), 0) == 1, &
                    "best target")
        call expect(warren_topology_level(node, 2, type, first, count) == 0 .and. &
                    type == WARREN_OBJECT_CORE .and. count == 80 .and. first + 41 == core, "level")
        seen = 0
        core = warren_topology_next(node, WARREN_OBJECT_CORE, WARREN_NO_OBJECT)
        do while (core /= WARREN_NO_OBJECT)
            seen = seen + 1
            core = warren_topology_next(node, WARREN_OBJECT_CORE, core)
        end do
        call expect(seen == 80, "iteration")
        call warren_topology_close(node)
    end subroutine

    subroutine check_sets()
        integer(c_int64_t), allocatable, target :: words(:), others(:), shifted(:)
        type(warren_set) :: set, other, late

        allocate (words, source=warren_set_words([3, 63, 64, 130]))
        others = warren_set_words([64, 130])
        set = warren_set_of(words)
        other = warren_set_of(others)
        call expect(size(words) == 3 .and. warren_set_count(set) == 4, "count")
        call expect(all(warren_set_members(set) == [3, 63, 64, 130]), "members")
        call expect(warren_set_has(set, 63) .and. .not. warren_set_has(set, 62), "has")
        call expect(.not. (warren_set_has(set, -1) .or. warren_set_has(set, 10000)), "has outside")
        call expect(warren_set_next(set, 65) == 130, "next")
        call expect(warren_set_next(set, 131) == WARREN_NO_INDEX, "behind the last")
        call expect(warren_set_includes(set, other) .and. .not. warren_set_includes(other, set), &
                    "includes")
        shifted = [ibset(0_c_int64_t, 2)] ! 130, from word 2 on
        late = warren_set_of(shifted)
        late%first = 2
        call expect(all(warren_set_members(late) == [130]), "first word")
        call expect(warren_set_includes(other, late), "includes a later word")
        call expect(warren_set_intersects(late, set), "intersects")
        others = warren_set_words([4, 65])
        call expect(.not. warren_set_intersects(warren_set_of(others), set), "no intersection")
        call expect(warren_set_count(warren_set()) == 0, "nothing")
    end subroutine

    subroutine check_use()
        integer(c_int64_t), allocatable, target :: words(:)
        type(warren_filter) :: filter
        integer(warren_object) :: second

        call open_machine("package:2 [numa(memory=1GB)] core:2 pu:1")
        words = warren_set_words([1, 2])
        call expect(warren_topology_restrict(node, cpus=warren_set_of(words)) == 0, "restriction")
        call expect(all(warren_set_members(warren_topology_available_cpus(node)) == [1, 2]), &
                    "available processors")
        call expect(all(warren_set_members(warren_topology_available_nodes(node)) == [0, 1]), &
                    "available nodes")
        call expect(warren_filter_make(node, ibset(0, WARREN_OBJECT_PACKAGE), 0, filter) == 0, &
                    "filter")
        call expect(all(warren_set_members(filter%cpus) == [1, 2]), "filter's set")
        call expect(warren_filter_count(node, filter, WARREN_OBJECT_PU) == 2, "filter's processors")
        call expect(warren_filter_count(node, filter, WARREN_OBJECT_CORE) == 0, "filter's cores")
        second = warren_topology_object(node, WARREN_OBJECT_PU, 1)
        call expect(warren_filter_next(node, filter, WARREN_OBJECT_PU, WARREN_NO_OBJECT) == second, &
                    "filter's first")
        call expect(warren_filter_shows(node, filter, second) == 1, "shown")
        call expect(warren_filter_parent(node, filter, second) == &
                    warren_topology_object(node, WARREN_OBJECT_PACKAGE, 0), "filter's parent")
        call warren_topology_close(node)
    end subroutine

    subroutine check_mistakes()
        integer(c_int64_t) :: amount
        type(warren_cache) :: cache

        call expect(warren_topology_open("nonsense:1"//c_null_char, node, report) == &
                    WARREN_TOPOLOGY_ERR_ARGUMENT, "nonsense was taken")
        call expect(index(warren_topology_problem(report), "nonsense") > 0, "no reason")
        call expect(warren_topology_open("xml:/nowhere/at.all"//c_null_char, node) == &
                    WARREN_TOPOLOGY_ERR_FILE, "a file that isn't there")
        call expect(warren_topology_objects(c_null_ptr) == 0, "objects of nothing")
        call open_machine("core:2 pu:1")
        call expect(warren_object_parent(node, 0) == WARREN_NO_OBJECT, "parent of the machine")
        call expect(warren_object_type(node, 1000) == -1, "type of nothing")
        call expect(warren_topology_object(node, WARREN_OBJECT_CORE, 2) == WARREN_NO_OBJECT, "core 2")
        call expect(warren_object_cache(node, 0, cache) == WARREN_TOPOLOGY_ERR_NONE, "cache")
        call expect(warren_topology_value(node, WARREN_ATTRIBUTE_CAPACITY, 0, 9, amount) == &
                    WARREN_TOPOLOGY_ERR_ARGUMENT, "value of nothing")
        call expect(warren_topology_text(warren_object_name(node, 0)) == "", "name")
        call expect(warren_object_type_by_name("numanode"//c_null_char) == WARREN_OBJECT_NUMA_NODE, &
                    "type by name")
        call warren_topology_close(node)
        call warren_topology_close(c_null_ptr)
    end subroutine
end program
