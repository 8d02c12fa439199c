"""What warren.topology tells of objects: plain values with names."""

import typing


class Cache(typing.NamedTuple):
    bytes: int
    line_bytes: int  # 0: not known, as in the next
    associativity: int  # ways; -1: full
    depth: int
    kind: str  # one of CACHE_KINDS


class PciDevice(typing.NamedTuple):
    domain: int
    bus: int
    device: int
    function: int
    revision: int
    class_id: int
    vendor_id: int
    device_id: int
    subvendor_id: int
    subdevice_id: int
    link_gigabytes_per_second: float  # 0: not known


class Bridge(typing.NamedTuple):
    is_host: bool
    depth: int
    domain: int
    secondary_bus: int
    subordinate_bus: int


class Group(typing.NamedTuple):
    depth: int
    kind: int
    subkind: int


class Distances(typing.NamedTuple):
    name: str  # or None
    kinds: frozenset  # of the words of DISTANCE_KINDS
    objects: list
    values: list  # of a row per object


class CpuKind(typing.NamedTuple):
    cpus: frozenset
    efficiency: int  # among the kinds; -1: not known
    infos: list  # of pairs


class Initiator(typing.NamedTuple):
    number: int
    cpus: frozenset
    device: typing.Any  # an Object, or None


class Value(typing.NamedTuple):
    value: int  # bytes, MiB/s, ns or a number
    origin: str
