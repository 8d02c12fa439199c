"""Argument checks of collective communication, where not every argument means something.

Under MPI_IN_PLACE, and away from the root, one side's arguments are ignored: they are not checked,
and the core gets count 0 and MPI_BYTE for them, or a null array of counts.
"""

from dataclasses import dataclass

from checks import base_name, object_name


@dataclass
class Side:
    """The parameters that describe one buffer: its address, counts, displacements, datatypes."""

    buffer: object
    counts: object
    displacements: object
    datatype: object

    @property
    def root_only(self):
        # The datatype knows: the standard's data also mark the receive buffer of Scatterv_init.
        return self.datatype.root_only


def sides_of(procedure):
    """Send and receive side of a collective that moves data, else []."""
    by_name = {p.name: p for p in procedure.parameters}
    sides = []
    for prefix in ("send", "recv"):
        buffer = by_name.get(f"{prefix}buf")
        counts = by_name.get(f"{prefix}count") or by_name.get(f"{prefix}counts")
        datatype = by_name.get(f"{prefix}type") or by_name.get(f"{prefix}types")
        if buffer is None or counts is None or datatype is None:
            return []
        displacements = by_name.get(f"{prefix[0]}displs")
        if displacements is None and counts.is_array:
            displacements = by_name.get("displs")
        sides.append(Side(buffer, counts, displacements, datatype))
    return sides


def of_neighbours(procedure):
    """Neighbourhood collectives: all means something, but arrays and buffers of no neighbours may be null,
    which the core looks at."""
    return "neighbor" in procedure.name.lower()


def significance(procedure, side, other):
    """C++: whether a side means something at the calling rank; and what must hold else."""
    name = side.buffer.name
    if of_neighbours(procedure):
        return "true", f'entry.not_in_place("{name}", {name})'
    rooted = any(p.name == "root" for p in procedure.parameters)
    if side.root_only:
        return "is_root(comm_, root)", ""
    if not rooted:
        # Allgather, Alltoall and their like: MPI_IN_PLACE replaces the send side.
        return (f"{name} != MPI_IN_PLACE", "") if name == "sendbuf" else ("true", "")
    # The contribution of a gather, the result of a scatter: MPI_IN_PLACE at the root only.
    return (
        f"({name} != MPI_IN_PLACE || !is_root(comm_, root)) && is_member(comm_, root)",
        f'entry.not_in_place("{name}", {name})',
    )


def array_check(procedure, array):
    return [] if of_neighbours(procedure) else [f'entry.not_null("{array.name}", {array.name})']


def side_lines(procedure, side, other):
    """Declarations and checks of one side."""
    condition, else_check = significance(procedure, side, other)
    scalar_count = not side.counts.is_array
    scalar_type = not side.datatype.is_array
    lines, checks = [], []
    flag = side.buffer.name.removesuffix("buf")
    flag = {"send": "sends", "recv": "receives"}[flag]
    if else_check:
        checks.append(else_check)
    if scalar_count:
        lines.append(f"    MPI_Count {side.counts.name}_ = 0;")
        checks.append(f'entry.count("{side.counts.name}", {side.counts.name})')
    else:
        for array in (side.counts, side.displacements):
            if array is not None:
                lines.append(f"    CountArray {array.name}_;")
                checks += array_check(procedure, array)
    if scalar_type:
        lines.append(f"    const datatype::Datatype* {object_name(side.datatype)} = unused_type();")
        name = side.datatype.name
        checks.append(f'entry.find_committed("{name}", {name}, {object_name(side.datatype)})')
        if scalar_count and not of_neighbours(procedure):
            checks.append(
                f'entry.buffer("{side.buffer.name}", {side.buffer.name}, {side.counts.name}, '
                f"{object_name(side.datatype)})"
            )
    else:
        checks += array_check(procedure, side.datatype)
    indent = "    " if condition == "true" else "        "
    body = [f"{indent}if (!(" + (f" &&\n{indent}      ".join(checks)) + ")) [[unlikely]] {",
            f"{indent}    return entry.refuse();", f"{indent}}}"]
    body.append(f"{indent}{side.counts.name}_ = {side.counts.name};")
    if side.displacements is not None:
        body.append(f"{indent}{side.displacements.name}_ = {side.displacements.name};")
    if condition == "true":
        return lines + body
    return lines + [f"    const bool {flag} = {condition};", f"    if ({flag}) {{"] + body + ["    }"]


def is_divided(procedure, side):
    """Whether a buffer has a part for each rank, of which one is the calling rank's own."""
    name = base_name(procedure.name).lower()
    return side.root_only or "alltoall" in name or ("allgather" in name and side.buffer.name == "recvbuf")


def own_part(procedure, side):
    """C++: where the part of a buffer is that the calling rank sends to itself, and its count."""
    buffer, counts = side.buffer.name, f"{side.counts.name}_"
    count = f"{counts}[own]" if side.counts.is_array else counts
    if not is_divided(procedure, side):
        return buffer, count
    offset = f"{side.displacements.name}_[own]" if side.displacements is not None else f"own * {counts}"
    if side.datatype.is_array:
        return f"part_at({buffer}, {offset})", count
    return f"part_at({buffer}, {offset}, {object_name(side.datatype)})", count


def alias_lines(procedure, sides):
    """What a rank sends to itself must not be where it receives it."""
    if not sides or of_neighbours(procedure):
        return []
    send, receive = sides
    conditions = [flag for flag, side, other in (("sends", send, receive), ("receives", receive, send))
                  if significance(procedure, side, other)[0] != "true"]
    from_where, count = own_part(procedure, send)
    to_where, _ = own_part(procedure, receive)
    types = [f"{s.datatype.name}[own]" if s.datatype.is_array else object_name(s.datatype) for s in sides]
    return [f"    if ({' && '.join(conditions + ['!comm_->inter()'])}) {{",
            "        [[maybe_unused]] const int own = comm_->rank();",
            f"        if (!entry.apart({from_where}, {to_where}, {count}, {', '.join(types)})) [[unlikely]] {{",
            "            return entry.refuse();", "        }", "    }"]


def ignored_names(procedure):
    """Parameters that side_lines deals with: name -> the core's argument."""
    arguments = {}
    for side in sides_of(procedure):
        arguments[side.counts.name] = f"{side.counts.name}_"
        if side.displacements is not None:
            arguments[side.displacements.name] = f"{side.displacements.name}_"
        if side.datatype.is_array:
            arguments[side.datatype.name] = side.datatype.name
        else:
            arguments[side.datatype.name] = f"*{object_name(side.datatype)}"
        arguments[side.buffer.name] = side.buffer.name
    return arguments


def reduction_buffers(procedure):
    """Extra checks of the reductions' buffers: recvbuf is always real; sendbuf may be MPI_IN_PLACE."""
    base = base_name(procedure.name).lower()
    names = {p.name for p in procedure.parameters}
    if "op" not in names or "sendbuf" not in names or not {"count", "datatype"} <= names:
        return []
    rooted = "root" in names
    receives = "is_root(comm_, root)" if rooted else "true"
    checks = []
    guard = f"!{receives} || " if rooted else ""
    checks.append(f'({guard}entry.buffer("recvbuf", recvbuf, count, datatype_))')
    if rooted:
        checks.append(f'({receives} || entry.not_in_place("sendbuf", sendbuf))')
    if base != "reduce_local":
        ignored = "!is_member(comm_, root) || " if rooted else ""
        checks.append(f'({ignored}sendbuf == MPI_IN_PLACE || '
                      'entry.buffer("sendbuf", sendbuf, count, datatype_))')
    return checks


def measures(procedure):
    """C++: what a profile records of a collective operation that begins; "" for none. The size is what
    the calling rank brings, or gets where only the root brings something."""
    name = base_name(procedure.name).lower().removeprefix("mpi_")
    names = {p.name for p in procedure.parameters}
    if "comm" not in names or name.endswith("_init"):
        return ""
    operation = name[1:] if name.startswith("i") else name
    pattern = "all"
    # A rank waits for some of the others only in scans and among neighbours.
    if name.startswith("i") or of_neighbours(procedure) or operation in ("scan", "exscan"):
        pattern = "none"
    elif operation in ("bcast", "scatter", "scatterv"):
        pattern = "from_root"
    elif operation in ("reduce", "gather", "gatherv"):
        pattern = "to_root"
    root = "root" if "root" in names else "MPI_PROC_NULL"
    return f"entry.measured(Profile::Pattern::{pattern}, {root}, {size(procedure, operation, names)});"


def size(procedure, operation, names):
    """C++: the bytes of a collective operation at the calling rank."""
    if {"count", "datatype"} <= names:
        return "entry.bytes(count, datatype)"
    if "datatype" in names:
        counts = "recvcount" if "recvcount" in names else "recvcounts"
        return f"entry.bytes(Peers::ranks, {counts}, datatype)"
    sides = sides_of(procedure)
    if not sides:
        return "0"
    send, receive = sides
    divided = "alltoall" in operation
    if of_neighbours(procedure):
        return side_size(send, "neighbours" if divided else None)
    first, second = (receive, send) if operation.startswith("scatter") else (send, receive)
    peers = "ranks" if divided else None
    return f"{first.buffer.name} != MPI_IN_PLACE ? {side_size(first, peers)} : {side_size(second, peers)}"


def side_size(side, peers):
    """The blocks for all peers, or the calling rank's own."""
    count, datatype = side.counts.name, side.datatype.name
    if peers is not None:
        return f"entry.bytes(Peers::{peers}, {count}, {datatype})"
    return f"entry.{'own_' if side.counts.is_array else ''}bytes({count}, {datatype})"
