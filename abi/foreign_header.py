"""Writes generated/foreign/ABI/include/mpi.h: the header of a foreign ABI, as far as the tests in
tests/foreign need it. Nobody installs it: programs bring what they were compiled with."""

import foreign
import header

PROLOGUE = """/* The ABI of {abi} for tests of Warren. Generated from abi/ by abi/generate.py. */
#ifndef WARREN_FOREIGN_MPI_H
#define WARREN_FOREIGN_MPI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif
"""

STATUSES = {
    "mpich": "int count_low; int count_high_and_cancelled; int MPI_SOURCE; int MPI_TAG; int MPI_ERROR;",
    "openmpi": "int MPI_SOURCE; int MPI_TAG; int MPI_ERROR; int cancelled; size_t count;",
}

FUNCTION_OWNERS = ("", "COMM_", "TYPE_", "WIN_")


def handle_types(abi):
    if abi.name == "openmpi":
        return [f"typedef struct ompi_{kind}_t* MPI_{kind};" for kind in foreign.HANDLES.values()]
    return [
        f"typedef struct mpich_file* MPI_File;" if kind == "File" else f"typedef int MPI_{kind};"
        for kind in foreign.HANDLES.values()
    ]


def constant(c):
    if c.foreign.startswith("*"):
        return [f"extern {c.c_type} const {c.name};"]
    if c.foreign.startswith("&"):
        return [f"extern struct ompi_object_t {c.foreign[1:]};",
                f"#define {c.name} (({c.c_type})(void*)&{c.foreign[1:]})"]
    cast = f"({c.c_type})" if c.c_type != "-" else ""
    return [f"#define {c.name} ({cast}{c.number if not cast or 'Offset' in cast else c.foreign})"]


def functions(abi):
    """The predefined functions of attributes."""
    if abi.name == "mpich":
        lines = ["int MPIR_Dup_fn(int, int, void*, void*, void*, int*);"]
        for owner in FUNCTION_OWNERS:
            lines += [f"#define MPI_{owner}NULL_COPY_FN 0", f"#define MPI_{owner}NULL_DELETE_FN 0",
                      f"#define MPI_{owner}DUP_FN MPIR_Dup_fn"]
        return lines
    lines = []
    for owner in FUNCTION_OWNERS:
        handle = {"TYPE_": "MPI_Datatype", "WIN_": "MPI_Win"}.get(owner, "MPI_Comm")
        copy = f"({handle}, int, void*, void*, void*, int*);"
        for name, prototype in (("NULL_COPY_FN", copy), ("DUP_FN", copy),
                                ("NULL_DELETE_FN", f"({handle}, int, void*, void*);")):
            lines += [f"int OMPI_C_MPI_{owner}{name}{prototype}",
                      f"#define MPI_{owner}{name} OMPI_C_MPI_{owner}{name}"]
    return lines


def text(abi, standard):
    lines = [PROLOGUE.format(abi=abi.name)] + handle_types(abi)
    kinds = {f"MPI_{kind}" for kind in foreign.HANDLES.values()}
    for row in standard.types:
        if row["form"] in ("opaque pointer", "integer") and row["name"] not in kinds:
            lines.append(f"typedef {row['definition']} {row['name']};")
    lines.append(f"typedef struct MPI_Status {{ {STATUSES[abi.name]} }} MPI_Status;")
    enumerators = [{"name": c.name, "value": c.foreign} for c in abi.constants.values()]
    for name, prefix in header.ENUMERATIONS.items():
        lines += header.enumeration(name, prefix, enumerators)
    for row in standard.types:
        if row["form"] == "callback":
            result, rest = row["definition"].split("(", 1)
            lines.append(f"typedef {result.strip()} {row['name']}({rest};")
    lines += ["#define MPI_VERSION 5", "#define MPI_SUBVERSION 0"]
    for c in abi.constants.values():
        if c.foreign != "-" and not c.name.startswith(tuple(header.ENUMERATIONS.values())):
            lines += constant(c)
    lines += functions(abi)
    for prefix in ("", "P"):
        for procedure in standard.procedures.values():
            lines.append(f"{procedure.returns} {prefix}{procedure.name}({procedure.prototype});")
    return "\n".join(lines) + "\n" + header.EPILOGUE
