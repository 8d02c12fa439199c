#!/bin/sh
# Installs to a prefix, moves the prefix, and uses it (use.sh): everything is found relative to it.
#     install_and_use.sh BUILD_TREE LIBRARY_FOLDER WORK_FOLDER
set -eu
build=$1
library_folder=$2
work=$3
rm -rf "$work"
mkdir -p "$work"
# Over an older one, whose library programs are not to find beside the new one.
mkdir -p "$work/first/$library_folder"
touch "$work/first/$library_folder/libwarren.so.0"
cmake --install "$build" --prefix "$work/first" > "$work/install.log"
if [ -e "$work/first/$library_folder/libwarren.so.0" ]; then
    echo "libwarren.so.0 is still there"
    exit 1
fi
mv "$work/first" "$work/moved"
"$(dirname "$(readlink -f "$0")")/use.sh" "$work/moved" "$library_folder" "$work/use"
