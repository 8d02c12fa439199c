#!/bin/sh
# tools/chroots ends when a system can't be had, and never takes the chroot of another one for it.
#     chroots.sh SOURCE WORK_FOLDER
# Commands that need root or the network are stand-ins; `unshare` would run the steps.
set -eu
work=$2
rm -rf "$work"
mkdir -p "$work/top/tools" "$work/bin" "$work/folder/chroot-12.base/etc"
work=$(cd "$work" && pwd)
cp "$1/tools/chroots" "$work/top/tools"
touch "$work/folder/chroot-12.base/complete"

stand_in() {
    printf '#!/bin/sh\n%s\n' "$2" > "$1"
    chmod +x "$1"
}
stand_in "$work/top/tools/install_packages.sh" true
stand_in "$work/bin/id" "echo 0"
stand_in "$work/bin/git" true
stand_in "$work/bin/debootstrap" "echo no such mirror; exit 1"
stand_in "$work/bin/unshare" "echo step >> '$work/steps'"
code=0
PATH=$work/bin:$PATH "$work/top/tools/chroots" --folder "$work/folder" --steps quickstart 12 13 > "$work/said" 2>&1 || code=$?
if [ $code != 1 ] || [ "$(wc -l < "$work/steps")" != 1 ] || ! grep -q "no such mirror" "$work/said"; then
    echo "exit code $code, steps:" >&2
    cat "$work/steps" "$work/said" >&2
    exit 1
fi
