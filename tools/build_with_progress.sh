#!/bin/sh
# Builds targets with Ninja. On a terminal that is Ninja's own line; else a line per tenth, and all output in a
# file, which is shown when the build fails.
#     build_with_progress.sh LOG FOLDER [TARGET…]
set -eu
log=$1
folder=$2
shift 2
mkdir -p "$(dirname "$log")"
if [ $# != 0 ]; then set -- --target "$@"; fi
if [ -t 1 ]; then
    exec cmake --build "$folder" "$@"
fi
failed=$log.failed
rm -f "$failed"
# (A loop instead of awk, which reads pipes in large blocks.)
{ NINJA_STATUS='[%f/%t] ' cmake --build "$folder" "$@" 2>&1 || touch "$failed"; } | {
    last=0
    while IFS= read -r line; do
        printf '%s\n' "$line"
        case $line in
        '['[0-9]*/[0-9]*'] '*) ;;
        *) continue ;;
        esac
        done=${line%%/*}
        all=${line%%] *}
        tenth=$((10 * ${done#[} / ${all#*/}))
        if [ $tenth -gt $last ]; then
            last=$tenth
            echo "  built $((tenth * 10)) %" >&3
        fi
    done
} 3>&1 > "$log"
if [ -e "$failed" ]; then
    rm "$failed"
    grep -A20 '^FAILED' "$log" || tail -n 20 "$log"
    echo "The build failed; all that was said is in $log" >&2
    exit 1
fi
