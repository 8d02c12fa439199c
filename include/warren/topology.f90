! The node's topology for Fortran: warren/topology.h through ISO_C_BINDING.
!
! Compile this file with your program, and link with -lwarren:
!     gfortran PREFIX/include/warren/topology.f90 program.f90 -lwarren
!
!     use warren_topology
!     type(c_ptr) :: node
!     type(warren_topology_report) :: report
!     integer(warren_object) :: core
!     if (warren_topology_load(node, report) /= 0) error stop warren_topology_problem(report)
!     core = warren_topology_next(node, WARREN_OBJECT_CORE, WARREN_NO_OBJECT)
!     do while (core /= WARREN_NO_OBJECT)
!         print *, warren_set_members(warren_object_cpus(node, core)), &
!             warren_object_os_index(node, warren_topology_nearest_memory(node, core))
!         core = warren_topology_next(node, WARREN_OBJECT_CORE, core)
!     end do
!     call warren_topology_close(node)
!
! All functions of warren/topology.h are here under their names, but warren_object_get_pci_device,
! _get_bridge and _get_group, whose names would be those of types; meanings, units, errors and the
! thread rule are those. Texts that functions take end with c_null_char; texts that they return are
! read by warren_topology_text. Optional arguments may be left out where C takes null. Fortran has
! no unsigned numbers: WARREN_NO_OBJECT and WARREN_NO_INDEX are -1, and of a PCI device
! iand(int(device%vendor_id), 65535) is the vendor.
!
! The bits of attributes and the origins of values are constants of the module warren_memory, too. A
! program that uses both, and names such a one, takes it from one: use warren_memory, only: ...
module warren_topology
    use, intrinsic :: iso_c_binding, only: c_ptr, c_null_ptr, c_associated, c_f_pointer, c_loc, &
        c_int, c_int8_t, c_int16_t, c_int32_t, c_int64_t, c_size_t, c_float, c_char, c_null_char
    implicit none
    private :: find_value, found_value, text_of_c, word_of

    integer, parameter :: warren_object = c_int32_t ! the kind of objects
    integer(warren_object), parameter :: WARREN_NO_OBJECT = -1
    integer(c_int32_t), parameter :: WARREN_NO_INDEX = -1

    ! Errors.
    integer(c_int), parameter :: &
        WARREN_TOPOLOGY_SUCCESS = 0, WARREN_TOPOLOGY_ERR_ARGUMENT = 1, &
        WARREN_TOPOLOGY_ERR_FILE = 2, WARREN_TOPOLOGY_ERR_DAMAGED = 3, &
        WARREN_TOPOLOGY_ERR_OWNER = 4, WARREN_TOPOLOGY_ERR_DISCOVERY = 5, &
        WARREN_TOPOLOGY_ERR_LIMIT = 6, WARREN_TOPOLOGY_ERR_MEMORY = 7, WARREN_TOPOLOGY_ERR_NONE = 8
    ! Types.
    integer(c_int), parameter :: &
        WARREN_OBJECT_MACHINE = 0, WARREN_OBJECT_PACKAGE = 1, WARREN_OBJECT_DIE = 2, &
        WARREN_OBJECT_CORE = 3, WARREN_OBJECT_PU = 4, WARREN_OBJECT_L1_CACHE = 5, &
        WARREN_OBJECT_L2_CACHE = 6, WARREN_OBJECT_L3_CACHE = 7, WARREN_OBJECT_L4_CACHE = 8, &
        WARREN_OBJECT_L5_CACHE = 9, WARREN_OBJECT_L1I_CACHE = 10, WARREN_OBJECT_L2I_CACHE = 11, &
        WARREN_OBJECT_L3I_CACHE = 12, WARREN_OBJECT_GROUP = 13, WARREN_OBJECT_NUMA_NODE = 14, &
        WARREN_OBJECT_MEMORY_CACHE = 15, WARREN_OBJECT_BRIDGE = 16, &
        WARREN_OBJECT_PCI_DEVICE = 17, WARREN_OBJECT_OS_DEVICE = 18, WARREN_OBJECT_MISC = 19, &
        WARREN_OBJECT_TYPES = 20
    integer(c_int32_t), parameter :: WARREN_ALL_TYPES = 2**WARREN_OBJECT_TYPES - 1
    ! Where a topology comes from.
    integer(c_int), parameter :: &
        WARREN_TOPOLOGY_NODE = 1, WARREN_TOPOLOGY_FILE = 2, WARREN_TOPOLOGY_XML = 3, &
        WARREN_TOPOLOGY_SYNTHETIC = 4, WARREN_TOPOLOGY_NATIVE = 5
    ! Kinds of children.
    integer(c_int), parameter :: &
        WARREN_CHILD_TREE = 0, WARREN_CHILD_MEMORY = 1, WARREN_CHILD_IO = 2, WARREN_CHILD_MISC = 3
    ! Kinds of caches.
    integer(c_int32_t), parameter :: &
        WARREN_CACHE_UNIFIED = 0, WARREN_CACHE_DATA = 1, WARREN_CACHE_INSTRUCTIONS = 2
    ! Kinds of OS devices.
    integer(c_int), parameter :: &
        WARREN_DEVICE_BLOCK = 0, WARREN_DEVICE_GPU = 1, WARREN_DEVICE_NETWORK = 2, &
        WARREN_DEVICE_OPENFABRICS = 3, WARREN_DEVICE_DMA = 4, WARREN_DEVICE_COPROCESSOR = 5, &
        WARREN_DEVICE_MEMORY = 6
    ! Bits of distances.
    integer(c_int32_t), parameter :: &
        WARREN_DISTANCES_FROM_OS = 1, WARREN_DISTANCES_FROM_USER = 2, &
        WARREN_DISTANCES_LATENCY = 4, WARREN_DISTANCES_BANDWIDTH = 8, &
        WARREN_DISTANCES_MIXED_TYPES = 16
    ! Attributes of memory, their bits, and where values come from.
    integer(c_int32_t), parameter :: &
        WARREN_ATTRIBUTE_CAPACITY = 0, WARREN_ATTRIBUTE_LOCALITY = 1, &
        WARREN_ATTRIBUTE_BANDWIDTH = 2, WARREN_ATTRIBUTE_LATENCY = 3, &
        WARREN_ATTRIBUTE_READ_BANDWIDTH = 4, WARREN_ATTRIBUTE_WRITE_BANDWIDTH = 5, &
        WARREN_ATTRIBUTE_READ_LATENCY = 6, WARREN_ATTRIBUTE_WRITE_LATENCY = 7, &
        WARREN_ATTRIBUTE_FIRST_OTHER = 8
    integer(c_int32_t), parameter :: &
        WARREN_ATTRIBUTE_HIGHER_IS_BETTER = 1, WARREN_ATTRIBUTE_LOWER_IS_BETTER = 2, &
        WARREN_ATTRIBUTE_NEEDS_INITIATOR = 4
    integer(c_int), parameter :: &
        WARREN_ORIGIN_FIRMWARE = 1, WARREN_ORIGIN_MEASURED = 2, WARREN_ORIGIN_GUESSED = 3

    ! A set of numbers: warren_set_members has them; warren_set_of makes one.
    type, bind(c) :: warren_set
        type(c_ptr) :: words = c_null_ptr
        integer(c_int32_t) :: first = 0, count = 0
    end type

    type, bind(c) :: warren_topology_report
        integer(c_int) :: way
        character(kind=c_char) :: problem(500) ! see warren_topology_problem
    end type

    type, bind(c) :: warren_filter
        type(warren_set) :: cpus, nodes
        integer(c_int64_t) :: levels(4)
    end type

    type, bind(c) :: warren_cache
        integer(c_int64_t) :: bytes
        integer(c_int32_t) :: line_bytes, associativity, depth, kind
    end type

    type, bind(c) :: warren_pci_device
        integer(c_int32_t) :: domain
        integer(c_int8_t) :: bus, device, function, revision
        integer(c_int16_t) :: class_id, vendor_id, device_id, subvendor_id, subdevice_id
        real(c_float) :: link_gigabytes_per_second
    end type

    type, bind(c) :: warren_bridge
        integer(c_int32_t) :: is_host, depth, domain
        integer(c_int8_t) :: secondary_bus, subordinate_bus
    end type

    type, bind(c) :: warren_group
        integer(c_int32_t) :: depth, kind, subkind
    end type

    type, bind(c) :: found_value
        integer(c_int64_t) :: amount
        integer(c_int) :: origin, error
    end type

    type, bind(c) :: warren_distances
        type(c_ptr) :: name
        integer(c_int32_t) :: kind, count
        type(c_ptr) :: objects ! count numbers of the kind warren_object, for c_f_pointer
    end type

    ! Indices count from 0.
    interface
        ! ---- Getting a topology
        function warren_topology_load(topology, report) bind(c) result(error)
            import; type(c_ptr), intent(out) :: topology
            type(warren_topology_report), intent(out), optional :: report
            integer(c_int) :: error
        end function
        function warren_topology_open(source, topology, report) bind(c) result(error)
            import; character(kind=c_char), intent(in) :: source(*)
            type(c_ptr), intent(out) :: topology
            type(warren_topology_report), intent(out), optional :: report
            integer(c_int) :: error
        end function
        subroutine warren_topology_close(topology) bind(c)
            import; type(c_ptr), value :: topology
        end subroutine
        function warren_topology_way(topology) bind(c) result(way)
            import; type(c_ptr), value :: topology
            integer(c_int) :: way
        end function
        function warren_topology_image(topology, bytes) bind(c) result(image)
            import; type(c_ptr), value :: topology
            integer(c_size_t), intent(out), optional :: bytes
            type(c_ptr) :: image
        end function
        function warren_topology_save(topology, path) bind(c) result(error)
            import; type(c_ptr), value :: topology; character(kind=c_char), intent(in) :: path(*)
            integer(c_int) :: error
        end function

        ! ---- Objects
        function warren_topology_objects(topology) bind(c) result(count)
            import; type(c_ptr), value :: topology
            integer(c_int32_t) :: count
        end function
        function warren_topology_count(topology, type) bind(c) result(count)
            import; type(c_ptr), value :: topology; integer(c_int), value :: type
            integer(c_int32_t) :: count
        end function
        function warren_topology_object(topology, type, index) bind(c) result(object)
            import; type(c_ptr), value :: topology; integer(c_int), value :: type
            integer(c_int32_t), value :: index
            integer(warren_object) :: object
        end function
        function warren_topology_by_os_index(topology, type, os_index) &
            bind(c, name="warren_topology_find_by_os_index") result(object)
            import; type(c_ptr), value :: topology; integer(c_int), value :: type
            integer(c_int32_t), value :: os_index
            integer(warren_object) :: object
        end function
        function warren_topology_next(topology, type, object) bind(c) result(next)
            import; type(c_ptr), value :: topology; integer(c_int), value :: type
            integer(warren_object), value :: object
            integer(warren_object) :: next
        end function
        function warren_topology_depth(topology) bind(c) result(depth)
            import; type(c_ptr), value :: topology
            integer(c_int32_t) :: depth
        end function
        function warren_topology_level(topology, depth, type, first, count) bind(c) result(error)
            import; type(c_ptr), value :: topology; integer(c_int32_t), value :: depth
            integer(c_int), intent(out), optional :: type
            integer(warren_object), intent(out), optional :: first
            integer(c_int32_t), intent(out), optional :: count
            integer(c_int) :: error
        end function
        function warren_object_type(topology, object) bind(c) result(type)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            integer(c_int) :: type
        end function
        function warren_object_type_name(type) bind(c) result(name)
            import; integer(c_int), value :: type
            type(c_ptr) :: name
        end function
        function warren_object_type_by_name(name) bind(c) result(type)
            import; character(kind=c_char), intent(in) :: name(*)
            integer(c_int) :: type
        end function
        function warren_object_depth(topology, object) bind(c) result(depth)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            integer(c_int) :: depth
        end function
        function warren_object_logical_index(topology, object) bind(c) result(index)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            integer(c_int32_t) :: index
        end function
        function warren_object_os_index(topology, object) bind(c) result(index)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            integer(c_int32_t) :: index
        end function
        function warren_object_cpus(topology, object) bind(c) result(set)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            type(warren_set) :: set
        end function
        function warren_object_nodes(topology, object) bind(c) result(set)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            type(warren_set) :: set
        end function
        function warren_object_complete_cpus(topology, object) bind(c) result(set)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            type(warren_set) :: set
        end function
        function warren_object_complete_nodes(topology, object) bind(c) result(set)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            type(warren_set) :: set
        end function
        function warren_object_parent(topology, object) bind(c) result(parent)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            integer(warren_object) :: parent
        end function
        function warren_object_child_count(topology, object, kind) bind(c) result(count)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            integer(c_int), value :: kind
            integer(c_int32_t) :: count
        end function
        function warren_object_child(topology, object, kind, index) bind(c) result(child)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            integer(c_int), value :: kind; integer(c_int32_t), value :: index
            integer(warren_object) :: child
        end function
        function warren_object_ancestor(topology, object, type) bind(c) result(ancestor)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            integer(c_int), value :: type
            integer(warren_object) :: ancestor
        end function
        function warren_object_common_ancestor(topology, one, other) &
            bind(c, name="warren_topology_find_common_ancestor") result(ancestor)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: one, other
            integer(warren_object) :: ancestor
        end function
        function warren_object_is_below(topology, object, ancestor) bind(c) result(answer)
            import; type(c_ptr), value :: topology
            integer(warren_object), value :: object, ancestor
            integer(c_int) :: answer
        end function
        function warren_topology_covering(topology, cpus) bind(c) result(object)
            import; type(c_ptr), value :: topology; type(warren_set), value :: cpus
            integer(warren_object) :: object
        end function
        function warren_topology_next_inside(topology, cpus, type, object) bind(c) result(next)
            import; type(c_ptr), value :: topology; type(warren_set), value :: cpus
            integer(c_int), value :: type; integer(warren_object), value :: object
            integer(warren_object) :: next
        end function
        function warren_object_name(topology, object) bind(c) result(text)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            type(c_ptr) :: text
        end function
        function warren_object_subtype(topology, object) bind(c) result(text)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            type(c_ptr) :: text
        end function
        function warren_object_info(topology, object, name) bind(c) result(text)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr) :: text
        end function
        function warren_object_info_count(topology, object) bind(c) result(count)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            integer(c_int32_t) :: count
        end function
        function warren_object_info_at(topology, object, index, name, text) bind(c) result(error)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            integer(c_int32_t), value :: index; type(c_ptr), intent(out) :: name, text
            integer(c_int) :: error
        end function
        function warren_object_is_symmetric(topology, object) bind(c) result(answer)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            integer(c_int) :: answer
        end function

        ! ---- What may be used
        function warren_topology_available_cpus(topology) bind(c) result(set)
            import; type(c_ptr), value :: topology
            type(warren_set) :: set
        end function
        function warren_topology_available_nodes(topology) bind(c) result(set)
            import; type(c_ptr), value :: topology
            type(warren_set) :: set
        end function
        function warren_topology_restrict(topology, cpus, nodes) bind(c) result(error)
            import; type(c_ptr), value :: topology
            type(warren_set), intent(in), optional :: cpus, nodes
            integer(c_int) :: error
        end function
        function warren_filter_make(topology, types, structure_types, filter) &
            bind(c) result(error)
            import; type(c_ptr), value :: topology
            integer(c_int32_t), value :: types, structure_types
            type(warren_filter), intent(out) :: filter
            integer(c_int) :: error
        end function
        function warren_filter_shows(topology, filter, object) bind(c) result(answer)
            import; type(c_ptr), value :: topology; type(warren_filter), intent(in) :: filter
            integer(warren_object), value :: object
            integer(c_int) :: answer
        end function
        function warren_filter_next(topology, filter, type, object) bind(c) result(next)
            import; type(c_ptr), value :: topology; type(warren_filter), intent(in) :: filter
            integer(c_int), value :: type; integer(warren_object), value :: object
            integer(warren_object) :: next
        end function
        function warren_filter_count(topology, filter, type) bind(c) result(count)
            import; type(c_ptr), value :: topology; type(warren_filter), intent(in) :: filter
            integer(c_int), value :: type
            integer(c_int32_t) :: count
        end function
        function warren_filter_parent(topology, filter, object) bind(c) result(parent)
            import; type(c_ptr), value :: topology; type(warren_filter), intent(in) :: filter
            integer(warren_object), value :: object
            integer(warren_object) :: parent
        end function
        function warren_filter_next_child(topology, filter, parent, kind, child) &
            bind(c) result(next)
            import; type(c_ptr), value :: topology; type(warren_filter), intent(in) :: filter
            integer(warren_object), value :: parent, child; integer(c_int), value :: kind
            integer(warren_object) :: next
        end function

        ! ---- Details of some types
        function warren_object_cache(topology, object, cache) bind(c) result(error)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            type(warren_cache), intent(inout) :: cache
            integer(c_int) :: error
        end function
        function warren_object_memory_bytes(topology, object) bind(c) result(bytes)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            integer(c_int64_t) :: bytes
        end function
        function warren_object_page_sizes(topology, object) bind(c) result(count)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            integer(c_int32_t) :: count
        end function
        function warren_object_page_size(topology, object, index, page_bytes, pages) &
            bind(c) result(error)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            integer(c_int32_t), value :: index
            integer(c_int64_t), intent(out) :: page_bytes, pages
            integer(c_int) :: error
        end function
        function warren_object_get_pci_device(topology, object, device) &
            bind(c, name="warren_object_pci_device") result(error)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            type(warren_pci_device), intent(inout) :: device
            integer(c_int) :: error
        end function
        function warren_object_get_bridge(topology, object, bridge) &
            bind(c, name="warren_object_bridge") result(error)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            type(warren_bridge), intent(inout) :: bridge
            integer(c_int) :: error
        end function
        function warren_object_get_group(topology, object, group) &
            bind(c, name="warren_object_group") result(error)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            type(warren_group), intent(inout) :: group
            integer(c_int) :: error
        end function
        function warren_object_device_kind(topology, object) bind(c) result(kind)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            integer(c_int) :: kind
        end function

        ! ---- What is near, and how far
        function warren_topology_nearest_memory(topology, object) &
            bind(c, name="warren_topology_find_nearest_memory") result(memory)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            integer(warren_object) :: memory
        end function
        function warren_topology_nearest_memory_of_cpu(topology, cpu) bind(c) result(memory)
            import; type(c_ptr), value :: topology; integer(c_int32_t), value :: cpu
            integer(warren_object) :: memory
        end function
        function warren_topology_nearest_device(topology, object, kind, index) &
            bind(c) result(device)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            integer(c_int), value :: kind; integer(c_int32_t), value :: index
            integer(warren_object) :: device
        end function
        function warren_topology_distances_count(topology) bind(c) result(count)
            import; type(c_ptr), value :: topology
            integer(c_int32_t) :: count
        end function
        function warren_topology_distances(topology, matrix, distances) bind(c) result(error)
            import; type(c_ptr), value :: topology; integer(c_int32_t), value :: matrix
            type(warren_distances), intent(inout) :: distances
            integer(c_int) :: error
        end function
        function warren_topology_distance(topology, matrix, from, to, amount) &
            bind(c) result(error)
            import; type(c_ptr), value :: topology; integer(c_int32_t), value :: matrix, from, to
            integer(c_int64_t), intent(out) :: amount
            integer(c_int) :: error
        end function

        ! ---- Kinds of processors
        function warren_topology_cpu_kinds(topology) bind(c) result(count)
            import; type(c_ptr), value :: topology
            integer(c_int32_t) :: count
        end function
        function warren_topology_cpu_kind(topology, kind, cpus, efficiency) bind(c) result(error)
            import; type(c_ptr), value :: topology; integer(c_int32_t), value :: kind
            type(warren_set), intent(out), optional :: cpus
            integer(c_int), intent(out), optional :: efficiency
            integer(c_int) :: error
        end function
        function warren_topology_cpu_kind_info_count(topology, kind) bind(c) result(count)
            import; type(c_ptr), value :: topology; integer(c_int32_t), value :: kind
            integer(c_int32_t) :: count
        end function
        function warren_topology_cpu_kind_info(topology, kind, index, name, text) &
            bind(c) result(error)
            import; type(c_ptr), value :: topology; integer(c_int32_t), value :: kind, index
            type(c_ptr), intent(out) :: name, text
            integer(c_int) :: error
        end function

        ! ---- Attributes of memory
        function warren_topology_attributes(topology) bind(c) result(count)
            import; type(c_ptr), value :: topology
            integer(c_int32_t) :: count
        end function
        function warren_topology_attribute_by_name(topology, name) bind(c) result(attribute)
            import; type(c_ptr), value :: topology; character(kind=c_char), intent(in) :: name(*)
            integer(c_int32_t) :: attribute
        end function
        function warren_topology_attribute_name(topology, attribute) bind(c) result(text)
            import; type(c_ptr), value :: topology; integer(c_int32_t), value :: attribute
            type(c_ptr) :: text
        end function
        function warren_topology_attribute_flags(topology, attribute) bind(c) result(flags)
            import; type(c_ptr), value :: topology; integer(c_int32_t), value :: attribute
            integer(c_int32_t) :: flags
        end function
        function warren_topology_initiators(topology) bind(c) result(count)
            import; type(c_ptr), value :: topology
            integer(c_int32_t) :: count
        end function
        function warren_topology_initiator_of_cpu(topology, cpu) &
            bind(c, name="warren_topology_find_initiator_of_cpu") result(initiator)
            import; type(c_ptr), value :: topology; integer(c_int32_t), value :: cpu
            integer(c_int32_t) :: initiator
        end function
        function warren_topology_initiator_of_cpus(topology, cpus) bind(c) result(initiator)
            import; type(c_ptr), value :: topology; type(warren_set), value :: cpus
            integer(c_int32_t) :: initiator
        end function
        function warren_topology_initiator_of_object(topology, object) bind(c) result(initiator)
            import; type(c_ptr), value :: topology; integer(warren_object), value :: object
            integer(c_int32_t) :: initiator
        end function
        function warren_topology_initiator(topology, initiator, cpus, device) &
            bind(c) result(error)
            import; type(c_ptr), value :: topology; integer(c_int32_t), value :: initiator
            type(warren_set), intent(out), optional :: cpus
            integer(warren_object), intent(out), optional :: device
            integer(c_int) :: error
        end function
        function find_value(topology, attribute, initiator, node) &
            bind(c, name="warren_topology_find_value") result(found)
            import; type(c_ptr), value :: topology
            integer(c_int32_t), value :: attribute, initiator, node
            type(found_value) :: found
        end function
        function warren_topology_best_target(topology, attribute, initiator, place) &
            bind(c, name="warren_topology_find_best_target") result(node)
            import; type(c_ptr), value :: topology
            integer(c_int32_t), value :: attribute, initiator, place
            integer(c_int32_t) :: node
        end function
    end interface

contains

    ! The value for a pair, and where it comes from; the result is an error.
    function warren_topology_value(topology, attribute, initiator, node, amount, origin) &
        result(error)
        type(c_ptr), intent(in) :: topology
        integer(c_int32_t), intent(in) :: attribute, initiator, node
        integer(c_int64_t), intent(out) :: amount
        integer(c_int), intent(out), optional :: origin
        integer(c_int) :: error
        type(found_value) :: found

        found = find_value(topology, attribute, initiator, node)
        amount = found%amount
        if (present(origin)) origin = found%origin
        error = found%error
    end function

    ! ---- Sets

    ! 64 numbers of a set, those from 64 * place on; none for places outside.
    function word_of(set, place) result(word)
        type(warren_set), intent(in) :: set
        integer(c_int32_t), intent(in) :: place
        integer(c_int64_t) :: word
        integer(c_int64_t), pointer :: words(:)

        word = 0
        if (place < set%first .or. place >= set%first + set%count) return
        call c_f_pointer(set%words, words, [set%count])
        word = words(place - set%first + 1)
    end function

    logical function warren_set_has(set, number) result(has)
        type(warren_set), intent(in) :: set
        integer(c_int32_t), intent(in) :: number

        has = .false.
        if (number >= 0) has = btest(word_of(set, number/64), mod(number, 64))
    end function

    ! The smallest member from `from` (0 or more) on, WARREN_NO_INDEX behind the last.
    function warren_set_next(set, from) result(next)
        type(warren_set), intent(in) :: set
        integer(c_int32_t), intent(in) :: from
        integer(c_int32_t) :: next, place
        integer(c_int64_t) :: word

        next = WARREN_NO_INDEX
        if (from < 0) return
        do place = max(from/64, set%first), set%first + set%count - 1
            word = word_of(set, place)
            if (place == from/64) word = iand(word, shiftl(-1_c_int64_t, mod(from, 64)))
            if (word /= 0) then
                next = 64*place + trailz(word)
                return
            end if
        end do
        next = WARREN_NO_INDEX
    end function

    function warren_set_count(set) result(members)
        type(warren_set), intent(in) :: set
        integer(c_int32_t) :: members, place

        members = 0
        do place = set%first, set%first + set%count - 1
            members = members + popcnt(word_of(set, place))
        end do
    end function

    ! Whether all members of `part` are in `set`.
    logical function warren_set_includes(set, part) result(includes)
        type(warren_set), intent(in) :: set, part
        integer(c_int32_t) :: place

        includes = .false.
        do place = part%first, part%first + part%count - 1
            if (iand(word_of(part, place), not(word_of(set, place))) /= 0) return
        end do
        includes = .true.
    end function

    ! Whether the sets have a member in common.
    logical function warren_set_intersects(one, other) result(intersects)
        type(warren_set), intent(in) :: one, other
        integer(c_int32_t) :: place

        intersects = .true.
        do place = one%first, one%first + one%count - 1
            if (iand(word_of(one, place), word_of(other, place)) /= 0) return
        end do
        intersects = .false.
    end function

    ! All members, rising.
    function warren_set_members(set) result(members)
        type(warren_set), intent(in) :: set
        integer(c_int32_t), allocatable :: members(:)
        integer(c_int32_t) :: number
        integer :: place

        allocate (members(warren_set_count(set)))
        number = -1
        do place = 1, size(members)
            number = warren_set_next(set, number + 1)
            members(place) = number
        end do
    end function

    ! The words of a set with these members (from 0 on; others are left out), and the set that has
    ! these words, valid as long as they:
    !     integer(c_int64_t), allocatable, target :: words(:)
    !     words = warren_set_words([0, 1])
    !     object = warren_topology_covering(node, warren_set_of(words))
    function warren_set_words(members) result(words)
        integer(c_int32_t), intent(in) :: members(:)
        integer(c_int64_t), allocatable :: words(:)
        integer :: place

        allocate (words(max(0, maxval(members))/64 + 1), source=0_c_int64_t)
        do place = 1, size(members)
            if (members(place) < 0) cycle
            associate (word => words(members(place)/64 + 1))
                word = ibset(word, mod(members(place), 64))
            end associate
        end do
    end function

    function warren_set_of(words) result(set)
        integer(c_int64_t), intent(in), target, contiguous :: words(:)
        type(warren_set) :: set

        set = warren_set(c_null_ptr, 0, size(words, kind=c_int32_t))
        if (set%count > 0) set%words = c_loc(words)
    end function

    ! ---- Texts

    ! Why a topology can't be had, or a better way was not gone, "" if nothing was amiss.
    function warren_topology_problem(report) result(problem)
        type(warren_topology_report), intent(in), target :: report
        character(len=:), allocatable :: problem

        problem = warren_topology_text(c_loc(report%problem))
    end function

    ! A text that a function has returned, "" for none.
    function warren_topology_text(text) result(copy)
        type(c_ptr), intent(in) :: text
        character(len=:), allocatable :: copy

        copy = text_of_c(text)
    end function

    include "text_of_c.inc"
end module
