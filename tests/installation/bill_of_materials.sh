#!/bin/sh
# The bill of materials of an installation names what is linked, contained and loaded, is the same each time, and
# refuses a library that nobody has described.
#     bill_of_materials.sh PACKAGING BUILD_TREE WORK_FOLDER
set -eu
make=$1/sbom/make.py
build=$2
work=$3
rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$work/prefix" > "$work/install.log"
"$make" "$work/prefix" > "$work/bill.json"
"$make" "$work/prefix" | cmp - "$work/bill.json"
python3 - "$work/bill.json" "$work/prefix" <<'END'
import json
import pathlib
import sys

bill = json.load(open(sys.argv[1], encoding="utf-8"))
names = {package["SPDXID"]: package["name"] for package in bill["packages"]}
files = {file["SPDXID"]: file["fileName"] for file in bill["files"]}
there = {f"./{path.relative_to(sys.argv[2])}" for path in pathlib.Path(sys.argv[2]).rglob("*")
         if path.is_file() and not path.is_symlink()}
assert set(files.values()) == there, set(files.values()) ^ there
edges = {(files.get(edge["spdxElementId"], names.get(edge["spdxElementId"])), edge["relationshipType"],
          names.get(edge["relatedSpdxElement"])) for edge in bill["relationships"]}
for edge in (("./lib/libmpi_abi.so.1", "STATIC_LINK", "libstdc++"), ("./lib/libmpi_abi.so.1", "DYNAMIC_LINK", "glibc"),
             ("./bin/mpiexec", "STATIC_LINK", "libgcc"), ("hwloc", "OPTIONAL_DEPENDENCY_OF", "warren"),
             ("libfabric", "OPTIONAL_DEPENDENCY_OF", "warren")):
    assert edge in edges, edge
assert ("./lib/warren/libwarren-tracker.so", "STATIC_LINK", "libstdc++") not in edges
dynamorio = any(name.startswith("./lib/warren/dynamorio/") for name in there)
assert dynamorio == ("DynamoRIO" in names.values())
END
# Debian's packages are stripped.
find "$work/prefix" -type f -exec strip --strip-unneeded -R .comment -R .note {} + 2> "$work/no_object_files" || true
"$make" "$work/prefix" > "$work/stripped.json"
python3 - "$work/bill.json" "$work/stripped.json" <<'END'
import json
import sys

bills = [json.load(open(name, encoding="utf-8")) for name in sys.argv[1:]]
packages = [{package["name"]: package["versionInfo"] for package in bill["packages"]} for bill in bills]
assert packages[0] == packages[1], packages
assert packages[0]["libgcc"] != "NOASSERTION", packages
edges = [[edge for edge in bill["relationships"] if edge["relationshipType"] == "STATIC_LINK"] for bill in bills]
assert edges[0] == edges[1], [edge for edge in edges[0] if edge not in edges[1]]
END
refused() {
    if "$make" "$work/prefix" > "$work/never.json" 2> "$work/refused"; then
        echo "a bill although $1" >&2
        exit 1
    fi
    grep -q "$1" "$work/refused"
}
mv "$work/prefix/bin/warren" "$work/warren"
refused "version of libstdc++ is unknown"
mv "$work/warren" "$work/prefix/bin/warren"
cc -shared -x c /dev/null -o "$work/libstranger.so" -Wl,-soname,libstranger.so.7
cc -shared -x c /dev/null -o "$work/prefix/lib/libneedy.so" -x none \
    -Wl,--no-as-needed "$work/libstranger.so"
refused "lib/libneedy.so needs libstranger.so.7"
rm "$work/prefix/bin/mpiexec"
refused "no installation"
