#!/usr/bin/env python3
"""Writes mpi.h from the standard's data (procedures.json, constants.tsv, types.tsv)."""

import csv
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).parent


def declaration(name, procedure):
    parameters = []
    for parameter in procedure["parameters"]:
        if "c" in parameter:
            parameters.append(parameter["c"])
            continue
        c_type = parameter["c_type"]
        if "[" in c_type:
            base, brackets = c_type.split("[", 1)
            parameters.append(f"{base.strip()} {parameter['name']}[{brackets}")
        else:
            parameters.append(f"{c_type} {parameter['name']}")
    return f"{procedure['returns']} {name}({', '.join(parameters) or 'void'});"


def write_header(path):
    with open(HERE / "procedures.json") as file:
        procedures = json.load(file)["procedures"]
    with open(HERE / "types.tsv") as file:
        types = list(csv.DictReader(file, delimiter="\t"))
    with open(HERE / "constants.tsv") as file:
        constants = list(csv.DictReader(file, delimiter="\t"))
    out = ["/* mpi.h: the MPI 5.0 standard ABI. Generated from abi/ by abi/generate.py. */",
           "#ifndef MPI_H_ABI", "#define MPI_H_ABI", "", "#include <stdint.h>", "",
           "#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    for row in types:
        print(row, file=sys.stderr) if False else None
        name, form, definition = row["name"], row["form"], row["definition"]
        if form in ("opaque pointer", "integer"):
            out.append(f"typedef {definition}{'' if definition.endswith('*') else ' '}{name};")
    out += ["typedef struct MPI_Status {", "    int MPI_SOURCE;", "    int MPI_TAG;",
            "    int MPI_ERROR;", "    int MPI_internal[5];", "} MPI_Status;"]
    for name in ("MPI_T_cb_safety", "MPI_T_source_order"):
        if not any(row["name"] == name for row in types):
            out.append(f"typedef int {name};")
    for row in types:
        name, form, definition = row["name"], row["form"], row["definition"]
        if form == "callback":
            result, rest = definition.split("(", 1)
            out.append(f"typedef {result.strip()} {name}({rest};")
    out.append("")
    for row in constants:
        name, c_type, value = row["name"], row["c_type"], row["value"]
        out.append(f"#define {name} (({c_type}){value})" if c_type else f"#define {name} {value}"
                   if not value.startswith("-") else f"#define {name} ({value})")
    out.append("")
    for procedure in procedures:
        out.append(declaration(procedure["name"], procedure))
    for procedure in procedures:
        out.append(declaration("P" + procedure["name"], procedure))
    out += ["", "#ifdef __cplusplus", "}", "#endif", "", "#endif"]
    pathlib.Path(path).write_text("\n".join(out) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "header":
        sys.exit("usage: generate.py header FILE")
    write_header(sys.argv[2])
