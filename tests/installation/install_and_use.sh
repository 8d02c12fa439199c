#!/bin/sh
# Installs to a prefix, moves the prefix, and uses it (use.sh): everything is found relative to it.
#     install_and_use.sh BUILD_TREE LIBRARY_FOLDER WORK_FOLDER
set -eu
build=$1
library_folder=$2
work=$3
rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$work/first" > "$work/install.log"
mv "$work/first" "$work/moved"
"$(dirname "$(readlink -f "$0")")/use.sh" "$work/moved" "$library_folder" "$work/use"
