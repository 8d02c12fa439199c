"""What warren/topology.h declares, in the words of ctypes, for warren.topology."""

import ctypes


class Set(ctypes.Structure):
    _fields_ = [("words", ctypes.POINTER(ctypes.c_uint64)), ("first", ctypes.c_uint32),
                ("count", ctypes.c_uint32)]


class Filter(ctypes.Structure):
    _fields_ = [("cpus", Set), ("nodes", Set), ("levels", ctypes.c_uint64 * 4)]


class Cache(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint64), ("line_bytes", ctypes.c_uint32),
                ("associativity", ctypes.c_int32), ("depth", ctypes.c_uint32),
                ("kind", ctypes.c_uint32)]


class PciDevice(ctypes.Structure):
    _fields_ = ([("domain", ctypes.c_uint32)] +
                [(name, ctypes.c_uint8) for name in ("bus", "device", "function", "revision")] +
                [(name, ctypes.c_uint16) for name in ("class_id", "vendor_id", "device_id",
                                                      "subvendor_id", "subdevice_id")] +
                [("link_gigabytes_per_second", ctypes.c_float)])


class Bridge(ctypes.Structure):
    _fields_ = [("is_host", ctypes.c_uint32), ("depth", ctypes.c_uint32),
                ("domain", ctypes.c_uint32), ("secondary_bus", ctypes.c_uint8),
                ("subordinate_bus", ctypes.c_uint8)]


class Group(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("depth", "kind", "subkind")]


class Distances(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_uint32), ("count", ctypes.c_uint32),
                ("objects", ctypes.POINTER(ctypes.c_uint32))]


class Found(ctypes.Structure):
    _fields_ = [("value", ctypes.c_uint64), ("origin", ctypes.c_int), ("error", ctypes.c_int)]


def declarations():
    pointer, text, u32, code = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32, ctypes.c_int
    to = ctypes.POINTER
    u32_p, u64_p, text_p, set_p = to(u32), to(ctypes.c_uint64), to(text), to(Set)
    filter_p = to(Filter)
    table = [
        ("warren_topology_way", code, []),
        ("warren_topology_image", pointer, [to(ctypes.c_size_t)]),
        ("warren_topology_save", code, [text]),
        ("warren_topology_count", u32, [code]),
        ("warren_topology_object", u32, [code, u32]),
        ("warren_topology_find_by_os_index", u32, [code, u32]),
        ("warren_topology_next", u32, [code, u32]),
        ("warren_topology_level", code, [u32, to(code), u32_p, u32_p]),
        ("warren_object_type", code, [u32]),
        ("warren_object_depth", code, [u32]),
        ("warren_object_child_count", u32, [u32, code]),
        ("warren_object_child", u32, [u32, code, u32]),
        ("warren_object_ancestor", u32, [u32, code]),
        ("warren_topology_find_common_ancestor", u32, [u32, u32]),
        ("warren_object_is_below", code, [u32, u32]),
        ("warren_topology_covering", u32, [Set]),
        ("warren_topology_next_inside", u32, [Set, code, u32]),
        ("warren_object_info", text, [u32, text]),
        ("warren_object_info_at", code, [u32, u32, text_p, text_p]),
        ("warren_object_is_symmetric", code, [u32]),
        ("warren_topology_restrict", code, [set_p, set_p]),
        ("warren_filter_make", code, [u32, u32, filter_p]),
        ("warren_filter_shows", code, [filter_p, u32]),
        ("warren_filter_next", u32, [filter_p, code, u32]),
        ("warren_filter_count", u32, [filter_p, code]),
        ("warren_filter_parent", u32, [filter_p, u32]),
        ("warren_filter_next_child", u32, [filter_p, u32, code, u32]),
        ("warren_object_cache", code, [u32, to(Cache)]),
        ("warren_object_memory_bytes", ctypes.c_uint64, [u32]),
        ("warren_object_page_size", code, [u32, u32, u64_p, u64_p]),
        ("warren_object_pci_device", code, [u32, to(PciDevice)]),
        ("warren_object_bridge", code, [u32, to(Bridge)]),
        ("warren_object_group", code, [u32, to(Group)]),
        ("warren_object_device_kind", code, [u32]),
        ("warren_topology_nearest_device", u32, [u32, code, u32]),
        ("warren_topology_distances", code, [u32, to(Distances)]),
        ("warren_topology_distance", code, [u32, u32, u32, u64_p]),
        ("warren_topology_cpu_kind", code, [u32, set_p, to(code)]),
        ("warren_topology_cpu_kind_info", code, [u32, u32, text_p, text_p]),
        ("warren_topology_attribute_by_name", u32, [text]),
        ("warren_topology_attribute_flags", u32, [u32]),
        ("warren_topology_initiator_of_cpus", u32, [Set]),
        ("warren_topology_initiator", code, [u32, set_p, u32_p]),
        ("warren_topology_find_value", Found, [u32, u32, u32]),
        ("warren_topology_find_best_target", u32, [u32, u32, u32])]
    table += [(name, u32, []) for name in (
        "warren_topology_objects", "warren_topology_depth", "warren_topology_distances_count",
        "warren_topology_cpu_kinds", "warren_topology_attributes", "warren_topology_initiators")]
    table += [(name, u32, [u32]) for name in (
        "warren_object_logical_index", "warren_object_os_index", "warren_object_parent",
        "warren_object_info_count", "warren_object_page_sizes", "warren_topology_find_nearest_memory",
        "warren_topology_nearest_memory_of_cpu", "warren_topology_cpu_kind_info_count",
        "warren_topology_find_initiator_of_cpu", "warren_topology_initiator_of_object")]
    table += [(name, text, [u32]) for name in (
        "warren_object_name", "warren_object_subtype", "warren_topology_attribute_name")]
    table += [(name, Set, [u32]) for name in (
        "warren_object_cpus", "warren_object_nodes", "warren_object_complete_cpus",
        "warren_object_complete_nodes")]
    table += [(name, Set, []) for name in (
        "warren_topology_available_cpus", "warren_topology_available_nodes")]
    return [(name, result, [pointer] + arguments) for name, result, arguments in table] + [
        ("warren_object_type_name", text, [code]), ("warren_object_type_by_name", code, [text])]
