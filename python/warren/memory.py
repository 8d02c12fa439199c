"""Memory by attribute: which memory of a machine is best for something.

    from warren.memory import Memory

    memory = Memory()                                # this node's; or Memory("xml:node.xml")
    memory.order("latency,capacity from=core:3")     # [[0, 4], [6], [8]]: equal ones together
    memory.best("bandwidth")                         # 0, a NUMA node
    memory.value("latency", 6, "package:1")          # Value(value=350, origin='firmware')

    block = allocate(8 * 1000, "bandwidth,capacity")     # of this node; freed with its last view
    u = numpy.frombuffer(block)                          # any user of the buffer protocol
    set(where(block))                                    # {0}: the nodes that its pages are on

Over the C API of libwarren.so (warren/memory.h, which says what criteria and attributes are); nothing
of it is compiled. The library is the one that the environment variable WARREN_LIBRARY names, else
that of the installation or build tree that this file belongs to, else the system's.
"""

import contextlib
import ctypes
import typing
import weakref

from warren import _library as native
from warren._library import ORIGINS

__all__ = ["Error", "Memory", "Value", "allocate", "move", "trim", "where"]

HIGHER_IS_BETTER, LOWER_IS_BETTER, NEEDS_INITIATOR = 1, 2, 4
_SHARED_BYTES = 2**20  # larger blocks have pages of their own
_MASK_BYTES = 1024  # as many processors as Linux can be built for, in bits


class Error(Exception):
    """A call failed; `code` is one of warren/memory.h, or 0 for one of a topology."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class Value(typing.NamedTuple):
    value: int
    origin: str


class Initiator(typing.NamedTuple):
    processors: frozenset
    value: int
    origin: str


def _declarations():
    c_uint_p, c_size_p = ctypes.POINTER(ctypes.c_uint), ctypes.POINTER(ctypes.c_size_t)
    c_int_p, c_uint64_p = ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_uint64)
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    to_pointer = ctypes.POINTER(ctypes.c_void_p)
    return (
        ("warren_mem_error", text, []),
        ("warren_mem_open", ctypes.c_int, [pointer, to_pointer]),
        ("warren_mem_close", None, [pointer]),
        ("warren_mem_criteria_parse", ctypes.c_int, [text, to_pointer]),
        ("warren_mem_criteria_free", None, [pointer]),
        ("warren_mem_alloc_aligned", pointer, [ctypes.c_size_t, ctypes.c_size_t, pointer]),
        ("warren_mem_free", None, [pointer]),
        ("warren_mem_move", pointer, [pointer, pointer]),
        ("warren_mem_trim", None, []),
        ("warren_mem_where", ctypes.c_int,
         [pointer, ctypes.c_size_t, ctypes.c_size_t, c_int_p, c_size_p]),
        ("warren_mem_get_targets", ctypes.c_int, [pointer, ctypes.c_size_t, c_uint_p, c_size_p]),
        ("warren_mem_find_attribute", ctypes.c_int, [pointer, text, c_int_p]),
        ("warren_mem_get_value", ctypes.c_int,
         [pointer, ctypes.c_int, text, ctypes.c_uint, c_uint64_p, c_int_p]),
        ("warren_mem_get_ordering", ctypes.c_int,
         [pointer, pointer, ctypes.c_size_t, c_uint_p, c_uint_p, c_size_p]),
        ("warren_mem_get_initiator", ctypes.c_int,
         [pointer, ctypes.c_int, ctypes.c_uint, ctypes.c_size_t, pointer, ctypes.c_size_t,
          c_uint64_p, c_int_p]),
        ("warren_mem_register_attribute", ctypes.c_int,
         [pointer, text, ctypes.c_uint, c_int_p]),
        ("warren_mem_set_value", ctypes.c_int,
         [pointer, ctypes.c_int, text, ctypes.c_uint, ctypes.c_uint64]))


_library = None


def _functions():
    global _library
    if _library is None:
        _library = native.load(_declarations())
    return _library


def _check(code):
    if code != 0:
        raise Error(code, _functions().warren_mem_error().decode(errors="replace"))


def _no_memory():
    raise MemoryError(_functions().warren_mem_error().decode(errors="replace"))


@contextlib.contextmanager
def _criteria(text):
    parsed = ctypes.c_void_p()
    _check(_functions().warren_mem_criteria_parse(text.encode(), ctypes.byref(parsed)))
    try:
        yield parsed
    finally:
        _functions().warren_mem_criteria_free(parsed)


_movable = set()  # addresses of blocks whose pages move where they are


def _free(block):
    _movable.discard(block)
    _functions().warren_mem_free(block)


def allocate(size, criteria="", alignment=64):
    """A block of `size` bytes in memory of this node by criteria, as a writable memoryview. It is freed
    when nothing views it any more. MemoryError says why there is none."""
    with _criteria(criteria) as parsed:
        block = _functions().warren_mem_alloc_aligned(alignment, size, parsed)
    if not block:
        _no_memory()
    if size > _SHARED_BYTES and "hugetlb" not in criteria:
        _movable.add(block)
    array = (ctypes.c_ubyte * max(size, 1)).from_address(block)
    weakref.finalize(array, _free, block).atexit = False
    return memoryview(array).cast("B")[:size]


def _address(view):
    return ctypes.addressof(ctypes.c_ubyte.from_buffer(view)), memoryview(view).nbytes


def where(view):
    """The NUMA node of each page of 4096 bytes of a writable buffer, -1 where there is none yet."""
    if memoryview(view).nbytes == 0:
        return []
    address, size = _address(view)
    count = ctypes.c_size_t()
    _check(_functions().warren_mem_where(address, size, 0, None, ctypes.byref(count)))
    nodes = (ctypes.c_int * count.value)()
    _check(_functions().warren_mem_where(address, size, count.value, nodes, ctypes.byref(count)))
    return list(nodes)


def move(view, criteria):
    """Moves the pages of a block of allocate(), of more than 1 MiB, to where other criteria say; views
    stay what they are. Smaller blocks share pages with others: allocate one and copy."""
    address, _ = _address(view)
    if address not in _movable or "hugetlb" in criteria:
        raise ValueError("no block, or one that would get another address: allocate and copy")
    with _criteria(criteria) as parsed:
        if not _functions().warren_mem_move(address, parsed):
            _no_memory()


def trim():
    """Gives what is kept in reserve back to the system."""
    _functions().warren_mem_trim()


class Memory:
    """The memories of a machine: of this node, or of the one that `source` describes, in a form of
    warren_topology_open ("xml:FILE", "synthetic:TEXT", "image:FILE", "native").

    Any number of threads may use one at once. It is closed at the end of a with statement, or with the
    object."""

    def __init__(self, source=None):
        self._topology = ctypes.c_void_p()
        self._memory = ctypes.c_void_p()
        functions = _functions()
        code, self._topology, report = native.open_topology(functions, source)
        if code != 0:
            raise Error(0, report.problem.decode(errors="replace"))
        _check(functions.warren_mem_open(self._topology, ctypes.byref(self._memory)))

    def close(self):
        if self._memory:
            _functions().warren_mem_close(self._memory)
            self._memory = ctypes.c_void_p()
        if self._topology:
            _functions().warren_topology_close(self._topology)
            self._topology = ctypes.c_void_p()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if _library is not None and hasattr(self, "_memory"):
            self.close()

    @property
    def _open(self):
        if not self._memory:
            raise ValueError("the machine is closed")
        return self._memory

    def _attribute(self, name):
        number = ctypes.c_int()
        _check(_functions().warren_mem_find_attribute(self._open, name.encode(),
                                                      ctypes.byref(number)))
        return number

    def targets(self):
        """The numbers (NUMA nodes) of all memories."""
        count = ctypes.c_size_t()
        _check(_functions().warren_mem_get_targets(self._open, 0, None, ctypes.byref(count)))
        nodes = (ctypes.c_uint * count.value)()
        _check(_functions().warren_mem_get_targets(self._open, count.value, nodes,
                                                   ctypes.byref(count)))
        return list(nodes)

    def value(self, attribute, node, initiator="here"):
        """A Value: bytes, MiB/s, ns or a number, and where it is from."""
        value, origin = ctypes.c_uint64(), ctypes.c_int()
        _check(_functions().warren_mem_get_value(
            self._open, self._attribute(attribute), native.text(initiator), native.unsigned(node),
            ctypes.byref(value), ctypes.byref(origin)))
        return Value(value.value, ORIGINS.get(origin.value, "unknown"))

    def order(self, criteria=""):
        """The targets that criteria allow, the best first: a list of lists, each of equal ones."""
        with _criteria(criteria) as parsed:
            size = len(self.targets())
            nodes, tiers = (ctypes.c_uint * size)(), (ctypes.c_uint * size)()
            count = ctypes.c_size_t()
            _check(_functions().warren_mem_get_ordering(self._open, parsed, size, nodes, tiers,
                                                        ctypes.byref(count)))
        groups = [[] for _ in range(tiers[count.value - 1] + 1)]
        for place in range(count.value):
            groups[tiers[place]].append(nodes[place])
        return groups

    def best(self, criteria=""):
        """The best target, a number."""
        return self.order(criteria)[0][0]

    def initiators(self, attribute, node):
        """From where a memory has a value, the best first: processors, value, origin."""
        number = self._attribute(attribute)
        mask = (ctypes.c_ubyte * _MASK_BYTES)()
        value, origin = ctypes.c_uint64(), ctypes.c_int()
        found = []
        while True:
            code = _functions().warren_mem_get_initiator(
                self._open, number, native.unsigned(node), len(found), mask, _MASK_BYTES, ctypes.byref(value),
                ctypes.byref(origin))
            if code == 3 and found:  # behind the last
                return found
            _check(code)
            processors = frozenset(8 * byte + bit for byte, bits in enumerate(mask) if bits
                                   for bit in range(8) if bits >> bit & 1)
            found.append(Initiator(processors, value.value, ORIGINS.get(origin.value, "unknown")))

    def register(self, name, higher_is_better=True, by_initiator=False):
        """Registers an attribute of this process, which criteria may then name."""
        flags = HIGHER_IS_BETTER if higher_is_better else LOWER_IS_BETTER
        number = ctypes.c_int()
        _check(_functions().warren_mem_register_attribute(
            self._open, name.encode(), flags | (NEEDS_INITIATOR if by_initiator else 0),
            ctypes.byref(number)))

    def set(self, attribute, node, value, initiator="here"):
        """Sets a value of a registered attribute."""
        if not 0 <= value < 2**64:
            raise ValueError(f"{value} is not in 0 … 2^64 - 1")
        _check(_functions().warren_mem_set_value(self._open, self._attribute(attribute),
                                                 native.text(initiator), native.unsigned(node),
                                                 value))
