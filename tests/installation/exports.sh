#!/bin/sh
# The MPI library exports MPI_*, PMPI_* and what src/foreign needs, all that mpi.h declares, and needs
# nothing but the C library.
#     exports.sh LIBRARY MPI_H
set -eu
library=$1
header=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nm -D --defined-only "$library" | awk '{ print $3 }' | sort > "$work/exported"
grep -oE '\bP?MPI_[A-Za-z_0-9]+\(' "$header" | tr -d '(' | sort -u > "$work/named"
# Names of callbacks' types and of constants made by a macro are no procedures.
grep -oE 'typedef [^;]*;|#define [A-Z_0-9a-z]+' "$header" | grep -oE '\bP?MPI_[A-Za-z_0-9]+' | sort -u > "$work/types"
comm -23 "$work/named" "$work/types" > "$work/declared"

status=0
report() {
    if [ -s "$work/$2" ]; then
        echo "$1:" >&2
        head -20 "$work/$2" >&2
        status=1
    fi
}
grep -vE '^(P?MPI_|warren_(entry_points|foreign_hooks)$)' "$work/exported" > "$work/foreign" || true
comm -13 "$work/exported" "$work/declared" > "$work/missing"
readelf -d "$library" | grep NEEDED | grep -vE '\[(libc\.so\.6|ld-linux[^]]*|libm\.so\.6)\]' > "$work/needed" || true
report "exported and not of MPI" foreign
report "declared and not exported" missing
report "needed besides the C library" needed
echo "$(wc -l < "$work/exported") exported, $(wc -l < "$work/declared") declared"
exit $status
