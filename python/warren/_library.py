"""libwarren.so by ctypes, for the modules over its C API."""

import ctypes
import operator
import os
import pathlib

# Where values come from: warren/topology.h, and the last two warren/memory.h.
ORIGINS = {1: "firmware", 2: "measured", 3: "guessed", 16: "system", 17: "program"}


class Report(ctypes.Structure):
    """warren_topology_report"""

    _fields_ = [("way", ctypes.c_int), ("problem", ctypes.c_char * 500)]


# What makes and ends a topology, which both modules need: name, result, arguments.
OPENING = (
    ("warren_topology_load", ctypes.c_int,
     [ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(Report)]),
    ("warren_topology_open", ctypes.c_int,
     [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(Report)]),
    ("warren_topology_close", None, [ctypes.c_void_p]),
)


def _candidates():
    named = os.environ.get("WARREN_LIBRARY")
    if named:
        return [named]
    here = pathlib.Path(__file__).resolve()
    # PREFIX/lib/python3/warren/_library.py, in an installation.
    found = [folder / "libwarren.so.1" for folder in list(here.parents)[:4]]
    found += [folder / "lib" / "libwarren.so.1" for folder in list(here.parents)[1:5]]
    # SOURCE/python/warren/_library.py, with a build beside.
    found += [here.parents[2] / "build" / preset / "lib" / "libwarren.so.1"
              for preset in ("release", "debug")]
    # BUILD/lib/python3/warren/_library.py, a link to SOURCE/python, in a build folder of another name.
    found += [folder / "libwarren.so.1" for folder in list(pathlib.Path(__file__).absolute().parents)[2:3]]
    return [str(path) for path in found if path.exists()] + ["libwarren.so.1"]


def load(declarations):
    """The library with its functions of OPENING and `declarations`."""
    problems = []
    for candidate in _candidates():
        try:
            library = ctypes.CDLL(candidate)
            break
        except OSError as problem:
            problems.append(str(problem))
    else:
        raise ImportError("libwarren.so can't be loaded (WARREN_LIBRARY may say where it is): " +
                          "; ".join(problems))
    for name, result, arguments in OPENING + tuple(declarations):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def unsigned(number):
    """A number of 32 bits: ctypes would cut larger ones, and take negative ones for large."""
    number = operator.index(number)
    if not 0 <= number < 2**32 - 1:
        raise ValueError(f"{number} is not in 0 … 2^32 - 2")
    return number


def text(letters):
    """What a function takes as char*, which would end at a null."""
    encoded = os.fsencode(letters)
    if b"\0" in encoded:
        raise ValueError(f"{letters!r} has a null character")
    return encoded


def open_topology(library, source):
    """The machine that `source` names, or this node (None): error (0: none), handle, report."""
    handle, report = ctypes.c_void_p(), Report()
    if source is None:
        code = library.warren_topology_load(ctypes.byref(handle), ctypes.byref(report))
    else:
        code = library.warren_topology_open(text(source), ctypes.byref(handle),
                                            ctypes.byref(report))
    return code, handle, report
