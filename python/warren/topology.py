"""The node's hardware: processors, caches, memories, devices, and how far they are from each other.

    from warren.topology import Topology

    node = Topology()                            # this node's; or Topology("xml:node.xml")
    for core in node.objects("core"):
        print(core.os_index, core.cpus, core.nearest_memory())
    node.by_os_index("PU", 5).ancestor("package")            # Package 0, or None
    node.covering({0, 1}).children("memory")
    node.object("core", 3).nearest_device("network").name    # "eth0"
    node.value("latency", node=1, initiator=node.object("core", 0))    # Value(210, 'guessed')

Over the C API of libwarren.so (warren/topology.h, which says what everything is), found as by
warren.memory. Types are known by name, in any case; sets are frozensets of OS indices. What there
isn't is None; mistakes are ValueError, IndexError, or Error when the library refuses them. Objects are
good as long as their Topology is open, and a ValueError after it.
"""

import ctypes
import numbers
import operator

from warren import _library as native
from warren import _topology_abi as abi
from warren._topology_values import (Cache, PciDevice, Bridge, Group, Distances, CpuKind, Initiator,
                                     Value)

__all__ = ["Error", "Filter", "Object", "Topology", "Value", "types"]

# In the order of warren/topology.h's numbers.
CHILD_KINDS = ("tree", "memory", "io", "misc")
DEVICE_KINDS = ("block", "gpu", "network", "openfabrics", "dma", "coprocessor", "memory")
CACHE_KINDS = ("unified", "data", "instructions")
WAYS = (None, "node", "file", "xml", "synthetic", "native")
DISTANCE_KINDS = {1: "from_os", 2: "from_user", 4: "latency", 8: "bandwidth", 16: "mixed_types"}
_ERRORS = (None, "an argument is wrong", "a file can't be read or written", "a damaged image",
           "it belongs to another user", "hwloc is not there, or fails", "the node is too large",
           "no memory", "there is no such value")
_NONE = 2**32 - 1  # WARREN_NO_OBJECT, WARREN_NO_INDEX
_ERR_NONE = 8
_MAX_OS_INDEX = 65535  # of an image


class Error(Exception):
    """A call failed; `code` is one of warren/topology.h."""

    def __init__(self, code, text=None):
        super().__init__(text or _ERRORS[code])
        self.code = code


# ---- The library

_library = None
_types = ()


def _functions():
    global _library, _types
    if _library is None:
        library = native.load(abi.declarations())
        names = []
        while library.warren_object_type_name(len(names)):
            names.append(_decoded(library.warren_object_type_name(len(names))))
        _types, _library = tuple(names), library
    return _library


def types():
    """The names of all types, "Machine", "Package" …, in the order of their numbers."""
    _functions()
    return _types


def _decoded(letters):
    return None if letters is None else letters.decode(errors="replace")


def _type(name):
    number = _functions().warren_object_type_by_name(native.text(name))
    if number < 0:
        raise ValueError(f"there is no type '{name}': {', '.join(_types)}")
    return number


def _kind(word, words):
    if word not in words:
        raise ValueError(f"'{word}' is none of {', '.join(words)}")
    return words.index(word)


def _word(words, number):
    return words[number] if number < len(words) else str(number)


def _members(view):
    """What a set of the library has, as a frozenset."""
    return frozenset((view.first + word) * 64 + bit for word in range(view.count)
                     if view.words[word] for bit in range(64) if view.words[word] >> bit & 1)


def _set_of(members):
    """A set for the library; its words live as long as it does."""
    words = [0]
    for number in map(operator.index, members):
        if not 0 <= number <= _MAX_OS_INDEX:
            raise ValueError(f"{number} is no OS index: they are in 0 … {_MAX_OS_INDEX}")
        words += [0] * (number // 64 + 1 - len(words))
        words[number // 64] |= 1 << number % 64
    return abi.Set((ctypes.c_uint64 * len(words))(*words), 0, len(words))


def _check(code):
    if code != 0:
        raise Error(code)


# ---- Objects

class Object:
    """An object of a topology: a number in it (`number`). Two are equal when they are the same one of
    the same Topology."""

    __slots__ = ("topology", "number")

    def __init__(self, topology, number):
        self.topology = topology
        self.number = number

    def __eq__(self, other):
        return (isinstance(other, Object) and self.topology is other.topology and
                self.number == other.number)

    def __hash__(self):
        return hash((id(self.topology), self.number))

    def __repr__(self):
        if self.topology.is_closed:
            return f"object {self.number} of a closed topology"
        return f"{self.type} {self.logical_index}" + (f" ({self.name})" if self.name else "")

    def _ask(self, name, *arguments):
        return self.topology._ask(name, self.number, *arguments)

    def _text(self, name):
        return _decoded(self._ask(name))

    def _details(self, name, structure):
        found = structure()
        code = self._ask(name, ctypes.byref(found))
        if code == _ERR_NONE:
            return None
        _check(code)
        return [getattr(found, field) for field, _ in structure._fields_]

    @property
    def type(self):
        return _types[self._ask("warren_object_type")]

    @property
    def depth(self):
        """In the tree; None beside it."""
        depth = self._ask("warren_object_depth")
        return None if depth < 0 else depth

    @property
    def logical_index(self):
        """Its place among the objects of its level."""
        return self._ask("warren_object_logical_index")

    @property
    def os_index(self):
        index = self._ask("warren_object_os_index")
        return None if index == _NONE else index

    @property
    def name(self):
        return self._text("warren_object_name")

    @property
    def subtype(self):
        return self._text("warren_object_subtype")

    def info(self, name):
        return _decoded(self._ask("warren_object_info", native.text(name)))

    @property
    def infos(self):
        """All of them: pairs of name and value."""
        return self.topology._infos(self.number)

    @property
    def cpus(self):
        """The processors below it (of devices: of what they are attached to), by OS index."""
        return _members(self._ask("warren_object_cpus"))

    @property
    def nodes(self):
        """The NUMA nodes that are local to it, by OS index."""
        return _members(self._ask("warren_object_nodes"))

    @property
    def complete_cpus(self):
        """Those that are offline, too."""
        return _members(self._ask("warren_object_complete_cpus"))

    @property
    def complete_nodes(self):
        return _members(self._ask("warren_object_complete_nodes"))

    @property
    def is_symmetric(self):
        return bool(self._ask("warren_object_is_symmetric"))

    @property
    def parent(self):
        return self.topology._made(self._ask("warren_object_parent"))

    def children(self, kind="tree"):
        """`kind`: one of CHILD_KINDS."""
        number = _kind(kind, CHILD_KINDS)
        return [Object(self.topology, self._ask("warren_object_child", number, index))
                for index in range(self._ask("warren_object_child_count", number))]

    def ancestor(self, type):
        """The closest object of a type above it."""
        return self.topology._made(self._ask("warren_object_ancestor", _type(type)))

    def common_ancestor(self, other):
        """The lowest object that has both below it, or is one of them."""
        return self.topology._made(self._ask("warren_topology_find_common_ancestor",
                                             self.topology._number(other)))

    def is_below(self, other):
        """Whether it is `other` or below it."""
        return bool(self._ask("warren_object_is_below", self.topology._number(other)))

    @property
    def memory_bytes(self):
        """Of a NUMA node; of other objects, of all NUMA nodes at or below them."""
        return self._ask("warren_object_memory_bytes")

    @property
    def page_sizes(self):
        """A NUMA node's: pairs of bytes and how many pages of them there are."""
        found = []
        size, pages = ctypes.c_uint64(), ctypes.c_uint64()
        for index in range(self._ask("warren_object_page_sizes")):
            _check(self._ask("warren_object_page_size", index, ctypes.byref(size),
                             ctypes.byref(pages)))
            found.append((size.value, pages.value))
        return found

    @property
    def cache(self):
        """A Cache; None for objects of other types, as for the next ones."""
        found = self._details("warren_object_cache", abi.Cache)
        return found and Cache(*found[:-1], _word(CACHE_KINDS, found[-1]))

    @property
    def pci_device(self):
        found = self._details("warren_object_pci_device", abi.PciDevice)
        return found and PciDevice(*found)

    @property
    def bridge(self):
        found = self._details("warren_object_bridge", abi.Bridge)
        return found and Bridge(bool(found[0]), *found[1:])

    @property
    def group(self):
        found = self._details("warren_object_group", abi.Group)
        return found and Group(*found)

    @property
    def device_kind(self):
        """One of DEVICE_KINDS."""
        kind = self._ask("warren_object_device_kind")
        return None if kind < 0 else _word(DEVICE_KINDS, kind)

    def nearest_memory(self):
        """The NUMA node that is nearest to its processors."""
        return self.topology._made(self._ask("warren_topology_find_nearest_memory"))

    def nearest_device(self, kind, index=0):
        """The nearest OS device of one of DEVICE_KINDS, or the next ones by `index`."""
        return self.topology._made(self._ask("warren_topology_nearest_device",
                                             _kind(kind, DEVICE_KINDS), native.unsigned(index)))


class Filter:
    """A part of a topology: objects of which something may be used, on certain levels. What may be used
    is that of when the filter was made."""

    def __init__(self, topology, types=None, structure_types=()):
        self._topology = topology
        self._filter = abi.Filter()
        shown = range(len(_types)) if types is None else map(_type, types)
        _check(topology._ask("warren_filter_make", sum(1 << number for number in set(shown)),
                             sum(1 << number for number in set(map(_type, structure_types))),
                             ctypes.byref(self._filter)))
        # Sets of its own: those of the topology end with a restriction.
        self._sets = _set_of(_members(self._filter.cpus)), _set_of(_members(self._filter.nodes))
        self._filter.cpus, self._filter.nodes = self._sets

    def _ask(self, name, *arguments):
        return self._topology._ask(name, ctypes.byref(self._filter), *arguments)

    def shows(self, object):
        return bool(self._ask("warren_filter_shows", self._topology._number(object)))

    def count(self, type):
        return self._ask("warren_filter_count", _type(type))

    def objects(self, type):
        """The objects of a type that are shown."""
        number = _type(type)
        return self._topology._walk(lambda last: self._ask("warren_filter_next", number, last))

    def parent(self, object):
        """The closest object above that is shown."""
        return self._topology._made(self._ask("warren_filter_parent",
                                              self._topology._number(object)))

    def children(self, object, kind="tree"):
        """The objects whose closest object above that is shown is `object`."""
        above, number = self._topology._number(object), _kind(kind, CHILD_KINDS)
        return self._topology._walk(
            lambda last: self._ask("warren_filter_next_child", above, number, last))


# ---- The topology

class Topology:
    """A machine: this node, or the one that `source` describes, in a form of warren_topology_open
    ("xml:FILE", "synthetic:TEXT", "image:FILE", "native").

    Any number of threads may use one at once, except close and restrict, which must be alone. It is
    closed at the end of a with statement, or with the last of its objects."""

    def __init__(self, source=None):
        code, self._handle, report = native.open_topology(_functions(), source)
        if code != 0:
            raise Error(code, report.problem.decode(errors="replace"))
        self.note = report.problem.decode(errors="replace")  # why no better way was gone, or ""

    def close(self):
        if self._handle:
            _functions().warren_topology_close(self._handle)
            self._handle = ctypes.c_void_p()

    @property
    def is_closed(self):
        return not self._handle

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if _library is not None and hasattr(self, "_handle"):
            self.close()

    def _ask(self, name, *arguments):
        if not self._handle:
            raise ValueError("the topology is closed")
        return getattr(_library, name)(self._handle, *arguments)

    def _made(self, number):
        return None if number == _NONE else Object(self, number)

    def _number(self, object):
        if not isinstance(object, Object) or object.topology is not self:
            raise ValueError("no object of this topology")
        return object.number

    def _walk(self, step):
        number = step(_NONE)
        while number != _NONE:
            yield Object(self, number)
            number = step(number)

    def _pairs(self, name, count, *arguments):
        found, key, value = [], ctypes.c_char_p(), ctypes.c_char_p()
        for index in range(count):
            _check(self._ask(name, *arguments, index, ctypes.byref(key), ctypes.byref(value)))
            found.append((_decoded(key.value), _decoded(value.value)))
        return found

    def _infos(self, number):
        return self._pairs("warren_object_info_at", self._ask("warren_object_info_count", number),
                           number)

    @property
    def way(self):
        """How it was got: one of WAYS."""
        return _word(WAYS, self._ask("warren_topology_way"))

    def image(self):
        """The bytes of an image file."""
        size = ctypes.c_size_t()
        return ctypes.string_at(self._ask("warren_topology_image", ctypes.byref(size)), size.value)

    def save(self, path):
        """Writes an image file, whole or not at all."""
        _check(self._ask("warren_topology_save", native.text(path)))

    def info(self, name):
        """Of the topology; infos are all of them, pairs of name and value."""
        return _decoded(self._ask("warren_object_info", _NONE, native.text(name)))

    @property
    def infos(self):
        return self._infos(_NONE)

    def __len__(self):
        return self._ask("warren_topology_objects")

    def __iter__(self):
        """All objects, parents before children."""
        return (Object(self, number) for number in range(len(self)))

    def __getitem__(self, number):
        """The object with a number."""
        number = operator.index(number)
        if not 0 <= number < len(self):
            raise IndexError(f"no object {number} among {len(self)}")
        return Object(self, number)

    @property
    def machine(self):
        return Object(self, 0)

    def count(self, type):
        return self._ask("warren_topology_count", _type(type))

    def objects(self, type):
        """All objects of a type, one after the other."""
        number = _type(type)
        return self._walk(lambda last: self._ask("warren_topology_next", number, last))

    def object(self, type, index):
        """The one with a logical index, its place among those of its type."""
        index = operator.index(index)
        if not 0 <= index < self.count(type):
            raise IndexError(f"no {type} {index} among {self.count(type)}")
        return Object(self, self._ask("warren_topology_object", _type(type), index))

    def by_os_index(self, type, os_index):
        """The first object of a type with an OS index."""
        return self._made(self._ask("warren_topology_find_by_os_index", _type(type),
                                    native.unsigned(os_index)))

    def levels(self):
        """The objects of each depth of the tree, which are of one type: a list of lists."""
        found, first, count = [], ctypes.c_uint32(), ctypes.c_uint32()
        for depth in range(self._ask("warren_topology_depth")):
            _check(self._ask("warren_topology_level", depth, None, ctypes.byref(first),
                             ctypes.byref(count)))
            found.append([Object(self, first.value + place) for place in range(count.value)])
        return found

    def covering(self, cpus):
        """The lowest object of the tree that has all these processors."""
        return self._made(self._ask("warren_topology_covering", _set_of(cpus)))

    def inside(self, cpus, type):
        """The objects of a type that have processors, and only such of the set."""
        members, number = _set_of(cpus), _type(type)
        return self._walk(
            lambda last: self._ask("warren_topology_next_inside", members, number, last))

    def nearest_memory_of_cpu(self, cpu):
        return self._made(self._ask("warren_topology_nearest_memory_of_cpu",
                                    native.unsigned(cpu)))

    @property
    def available_cpus(self):
        """What may be used: warren/topology.h says by whom."""
        return _members(self._ask("warren_topology_available_cpus"))

    @property
    def available_nodes(self):
        return _members(self._ask("warren_topology_available_nodes"))

    def restrict(self, cpus=None, nodes=None):
        """Makes what may be used fewer: only such as are in the sets, too (None: no change)."""
        _check(self._ask("warren_topology_restrict",
                         None if cpus is None else ctypes.byref(_set_of(cpus)),
                         None if nodes is None else ctypes.byref(_set_of(nodes))))

    def filter(self, types=None, structure_types=()):
        """A Filter that shows what may be used, of these types (None: all), and always the machine and
        its processing units. Levels of `structure_types` that bring no structure are left out."""
        return Filter(self, types, structure_types)

    def distances(self):
        """All matrices of distances."""
        return [self._distances(matrix)
                for matrix in range(self._ask("warren_topology_distances_count"))]

    def _distances(self, matrix):
        found = abi.Distances()
        _check(self._ask("warren_topology_distances", matrix, ctypes.byref(found)))
        places = range(found.count)
        return Distances(
            _decoded(found.name),
            frozenset(word for bit, word in DISTANCE_KINDS.items() if found.kind & bit),
            [Object(self, found.objects[place]) for place in places],
            [[self._distance(matrix, row, column) for column in places] for row in places])

    def _distance(self, matrix, row, column):
        value = ctypes.c_uint64()
        _check(self._ask("warren_topology_distance", matrix, row, column, ctypes.byref(value)))
        return value.value

    def cpu_kinds(self):
        """The kinds of processors, from the slowest to the fastest."""
        found, cpus, efficiency = [], abi.Set(), ctypes.c_int()
        for kind in range(self._ask("warren_topology_cpu_kinds")):
            _check(self._ask("warren_topology_cpu_kind", kind, ctypes.byref(cpus),
                             ctypes.byref(efficiency)))
            count = self._ask("warren_topology_cpu_kind_info_count", kind)
            found.append(CpuKind(_members(cpus), efficiency.value,
                                 self._pairs("warren_topology_cpu_kind_info", count, kind)))
        return found

    def attributes(self):
        """The names of memory's attributes."""
        return [_decoded(self._ask("warren_topology_attribute_name", number))
                for number in range(self._ask("warren_topology_attributes"))]

    def _attribute(self, name):
        number = self._ask("warren_topology_attribute_by_name", native.text(name))
        if number == _NONE:
            raise ValueError(f"there is no attribute '{name}': {', '.join(self.attributes())}")
        return number

    def higher_is_better(self, attribute):
        return bool(self._ask("warren_topology_attribute_flags", self._attribute(attribute)) & 1)

    def needs_initiator(self, attribute):
        """Whether its value is not the same from everywhere."""
        return bool(self._ask("warren_topology_attribute_flags", self._attribute(attribute)) & 4)

    def initiators(self):
        """The classes of processors from which all memory looks alike, and devices about which
        something is known."""
        found, cpus, device = [], abi.Set(), ctypes.c_uint32()
        for number in range(self._ask("warren_topology_initiators")):
            _check(self._ask("warren_topology_initiator", number, ctypes.byref(cpus),
                             ctypes.byref(device)))
            found.append(Initiator(number, _members(cpus), self._made(device.value)))
        return found

    def initiator_of(self, what):
        """The initiator that a processor, all processors of a set, or an Object belongs to."""
        number = self._initiator(what)
        return None if number == _NONE else self.initiators()[number]

    def _initiator(self, what):
        if isinstance(what, Initiator):
            return native.unsigned(what.number)
        if isinstance(what, Object):
            return self._ask("warren_topology_initiator_of_object", self._number(what))
        if isinstance(what, numbers.Integral):
            return self._ask("warren_topology_find_initiator_of_cpu", native.unsigned(what))
        return self._ask("warren_topology_initiator_of_cpus", _set_of(what))

    def value(self, attribute, node, initiator=None):
        """The Value of an attribute (a name) of a NUMA node (its OS index, or an Object), as seen from
        an initiator: one of initiators(), or what initiator_of takes; None: an attribute that needs
        none. None when nobody knows it."""
        target = self._node(node) if isinstance(node, Object) else native.unsigned(node)
        found = self._ask("warren_topology_find_value", self._attribute(attribute),
                          _NONE if initiator is None else self._initiator(initiator), target)
        if found.error == _ERR_NONE:
            return None
        if found.error != 0:
            raise Error(found.error, f"no memory {target}, or no initiator {initiator}, which "
                                     f"'{attribute}' needs")
        return Value(found.value, native.ORIGINS.get(found.origin, "unknown"))

    def _node(self, object):
        number = self._number(object)
        if object.type != "NUMANode":
            raise ValueError(f"{object} is no NUMANode")
        return self._ask("warren_object_os_index", number)

    def best_targets(self, attribute, initiator):
        """The OS indices of all NUMA nodes, the best first for an initiator, as value takes it."""
        number, seen_from = self._attribute(attribute), self._initiator(initiator)
        if seen_from == _NONE:
            raise ValueError(f"{initiator} is no initiator")
        return [self._ask("warren_topology_find_best_target", number, seen_from, place)
                for place in range(self.count("NUMANode"))]
