#!/usr/bin/env python3
"""Writes the bill of materials of an installation, as SPDX 2.3 in JSON, to the standard output.

    make.py PREFIX

The files are read, not the build: each ELF file is asked what it needs, names and contains, by the rows of
components.tsv. A library that no row knows is an error. SOURCE_DATE_EPOCH is the date, else 1980-01-01.
"""

import argparse
import csv
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
COLUMNS = ("name", "relation", "by", "evidence", "unless", "version", "license", "supplier")
LICENSE = "Apache-2.0 WITH LLVM-exception"
# The note that gcc leaves and Debian's packages lose, and the text of `warren info`.
COMPILER = re.compile(rb"(?:GCC: \([^)]*\)|\0GCC) (\d+\.\d+\.\d+)")
FIRST_DATE = 315532800  # 1980, as in the wheel


class SbomError(Exception):
    """Why there is no bill."""


def components():
    lines = (line for line in (HERE / "components.tsv").open(encoding="utf-8") if not line.startswith("#"))
    return [dict(zip(COLUMNS, row, strict=True)) for row in csv.reader(lines, delimiter="\t")]


def is_elf(path):
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def dynamic(path):
    """The sonames that an ELF file needs, and its own or None."""
    done = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True)
    if done.returncode != 0:
        raise SbomError(f"{path}: {done.stderr.strip()}")
    own = re.search(r"\(SONAME\).*\[(.*)\]", done.stdout)
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", done.stdout)), own[1] if own else None


def shows(row, name, data, needed):
    """Does the file `name` with these bytes have the component of the row?"""
    if row["unless"] in needed:
        return False
    if row["by"] == "soname":
        return bool(needed & set(row["evidence"].split("|")))
    if row["by"] == "folder":
        return name.startswith(row["evidence"])
    text = row["evidence"].encode()
    return (text + b"\0" if row["by"] == "name" else text) in data


def version_of(row, compilers):
    if row["version"] == "-":
        return "NOASSERTION"
    if row["version"] == "gcc":
        if not compilers:
            raise SbomError(f"the version of {row['name']} is unknown: no file has a note of gcc, nor does bin/warren name it")
        return ", ".join(sorted(compilers))
    return re.search(r"^version=(\S+)", (TOP / row["version"]).read_text(encoding="utf-8"), re.MULTILINE)[1]


def warren_version():
    header = (TOP / "include/warren/version.h").read_text(encoding="utf-8")
    return ".".join(re.search(rf"#define WARREN_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))


def examine(prefix, rows):
    """Files as SPDX has them, {component: names of files that show it}, versions of the compiler."""
    names = sorted(path.relative_to(prefix).as_posix() for path in prefix.rglob("*")
                   if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts)
    if "bin/mpiexec" not in names:
        raise SbomError(f"{prefix} is no installation: it has no bin/mpiexec")
    elves = {name: dynamic(prefix / name) for name in names if is_elf(prefix / name)}
    own = {soname for _, soname in elves.values()}
    known = {soname for row in rows if row["by"] == "soname" for soname in row["evidence"].split("|")}
    files, found, compilers = [], {}, set()
    for name in names:
        data = (prefix / name).read_bytes()
        files.append({"SPDXID": file_id(name), "fileName": f"./{name}", "licenseConcluded": "NOASSERTION",
                      "licenseInfoInFiles": ["NOASSERTION"], "copyrightText": "NOASSERTION",
                      "checksums": [{"algorithm": "SHA1", "checksumValue": hashlib.sha1(data).hexdigest()},
                                    {"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()}]})
        needed = elves[name][0] if name in elves else set()
        if strangers := needed - own - known:
            raise SbomError(f"{name} needs {', '.join(sorted(strangers))}, which packaging/sbom/components.tsv does not have")
        for row in rows:
            if (name in elves or row["by"] == "folder") and shows(row, name, data, needed):
                found.setdefault(row["name"], []).append(name)
        if name in elves:
            compilers |= {text.decode() for text in COMPILER.findall(data)}
    return files, found, compilers


def file_id(name):
    return "SPDXRef-File-" + hashlib.sha256(name.encode()).hexdigest()[:16]


def package(name, version, license_text, supplier, files=None):
    made = {"SPDXID": f"SPDXRef-{re.sub('[^A-Za-z0-9]', '-', name)}", "name": name, "versionInfo": version,
            "downloadLocation": "NOASSERTION", "filesAnalyzed": files is not None, "licenseConcluded": license_text,
            "licenseDeclared": license_text, "copyrightText": "NOASSERTION", "supplier": f"Organization: {supplier}"}
    if files is not None:
        sums = sorted(file["checksums"][0]["checksumValue"] for file in files)
        made["packageVerificationCode"] = {
            "packageVerificationCodeValue": hashlib.sha1("".join(sums).encode()).hexdigest()}
        made["licenseInfoFromFiles"] = ["NOASSERTION"]
    return made


def relations(row, names, ours, other):
    """Which file has what from the component; of Warren as a whole, where SPDX wants it that way round."""
    if row["relation"] == "OPTIONAL_DEPENDENCY_OF":
        yield other, row["relation"], ours
    elif row["relation"] == "CONTAINS":
        yield ours, row["relation"], other
    else:
        for name in names:
            yield file_id(name), row["relation"], other


def bill(prefix):
    rows = components()
    files, found, compilers = examine(prefix, rows)
    seconds = max(int(os.environ.get("SOURCE_DATE_EPOCH", FIRST_DATE)), FIRST_DATE)
    ours = package("warren", warren_version(), LICENSE, "Warren maintainers", files)
    packages, edges = [ours], [("SPDXRef-DOCUMENT", "DESCRIBES", ours["SPDXID"])]
    edges += [(ours["SPDXID"], "CONTAINS", file["SPDXID"]) for file in files]
    for row in rows:
        if row["name"] in found:
            other = package(row["name"], version_of(row, compilers), row["license"], row["supplier"])
            packages.append(other)
            edges += relations(row, found[row["name"]], ours["SPDXID"], other["SPDXID"])
    whole = ours["packageVerificationCode"]["packageVerificationCodeValue"]
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"warren-{warren_version()}",
        "documentNamespace": f"https://warren-mpi.invalid/spdx/warren-{warren_version()}-{whole}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)),
                         "creators": [f"Tool: packaging/sbom/make.py-{warren_version()}"]},
        "packages": packages, "files": files,
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in edges],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", type=pathlib.Path)
    json.dump(bill(parser.parse_args().prefix), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    try:
        main()
    except SbomError as problem:
        sys.exit(f"packaging/sbom/make.py: {problem}")
