"""mpi.h: the standard ABI for C and C++."""

PROLOGUE = """/* mpi.h: the MPI 5.0 standard ABI, version {version}.{subversion}. Generated from abi/ by abi/generate.py. */
#ifndef MPI_H_ABI
#define MPI_H_ABI

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif
"""

# The ABI has none of these, as it leaves the size of Fortran's INTEGER open. As macros over procedures of the
# ABI they add no symbol, so programs still run with other libraries.
FORTRAN = """
/* Handles and statuses of Fortran, whose INTEGER has the size of int. */
#define MPI_Fint int
{handles}
#define MPI_Status_c2f(c_status, f_status) \\
    (*(MPI_Status *)(void *)(f_status) = *(c_status), MPI_SUCCESS)
#define MPI_Status_f2c(f_status, c_status) \\
    (*(c_status) = *(const MPI_Status *)(const void *)(f_status), MPI_SUCCESS)
#define PMPI_Status_c2f MPI_Status_c2f
#define PMPI_Status_f2c MPI_Status_f2c

/* TYPE(MPI_Status) of the module mpi_f08 is the same as C's. */
#define MPI_F08_status MPI_Status
#define MPI_Status_c2f08(c_status, f08_status) (*(f08_status) = *(c_status), MPI_SUCCESS)
#define MPI_Status_f082c(f08_status, c_status) (*(c_status) = *(f08_status), MPI_SUCCESS)
#define MPI_Status_f082f(f08_status, f_status) MPI_Status_c2f(f08_status, f_status)
#define MPI_Status_f2f08(f_status, f08_status) MPI_Status_f2c(f_status, f08_status)
"""

CLOSE = """
#ifdef __cplusplus
}
#endif
"""

END = """
#endif
"""

EPILOGUE = CLOSE + END

STATUS = """
typedef struct MPI_Status {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int MPI_internal[5];
} MPI_Status;
"""

# Enumerations of the tool information interface: their constants are enumerators.
ENUMERATIONS = {
    "MPI_T_cb_safety": "MPI_T_CB_REQUIRE_",
    "MPI_T_source_order": "MPI_T_SOURCE_",
}

# Names of MPI 2 that the standard keeps.
ERROR_HANDLER_TYPES = ("Comm", "File", "Session", "Win")


def constant(row):
    name, c_type, value = row["name"], row["c_type"], row["value"]
    if c_type:
        return f"#define {name} (({c_type}){value})"
    return f"#define {name} {value}" if not value.startswith("-") else f"#define {name} ({value})"


def enumeration(name, prefix, constants):
    lines = [f"typedef enum {name} {{"]
    rows = [row for row in constants if row["name"].startswith(prefix)]
    lines += [f"    {row['name']} = {row['value']}," for row in rows]
    lines[-1] = lines[-1].rstrip(",")
    return lines + [f"}} {name};"]


def fortran(standard):
    handles = []
    for name in standard.procedures:
        if name.endswith(("_toint", "_fromint")):
            kind = name.removesuffix("_toint").removesuffix("_fromint")
            conversion = f"{kind}_c2f" if name.endswith("_toint") else f"{kind}_f2c"
            handles += [f"#define {prefix}{conversion} {prefix}{name}" for prefix in ("", "P")]
    return FORTRAN.format(handles="\n".join(handles))


def text(standard):
    values = {row["name"]: row["value"] for row in standard.constants}
    lines = [PROLOGUE.format(version=values["MPI_ABI_VERSION"],
                             subversion=values["MPI_ABI_SUBVERSION"])]
    for row in standard.types:
        if row["form"] in ("opaque pointer", "integer"):
            definition = row["definition"]
            space = "" if definition.endswith("*") else " "
            lines.append(f"typedef {definition}{space}{row['name']};")
    lines.append(STATUS)
    for name, prefix in ENUMERATIONS.items():
        lines += enumeration(name, prefix, standard.constants)
    lines.append("")
    for row in standard.types:
        if row["form"] == "callback":
            result, rest = row["definition"].split("(", 1)
            lines.append(f"typedef {result.strip()} {row['name']}({rest};")
    for kind in ERROR_HANDLER_TYPES:
        lines.append(f"typedef MPI_{kind}_errhandler_function MPI_{kind}_errhandler_fn;")
    lines.append("")
    enumerated = tuple(ENUMERATIONS.values())
    lines += [constant(row) for row in standard.constants if not row["name"].startswith(enumerated)]
    lines.append("")
    for prefix in ("", "P"):
        for procedure in standard.procedures.values():
            lines.append(f"{procedure.returns} {prefix}{procedure.name}({procedure.prototype});")
    return "\n".join(lines) + "\n" + CLOSE + fortran(standard) + END
