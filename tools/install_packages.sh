#!/bin/sh
# Installs the Debian packages named as arguments, of them only the missing ones. Quick, silent and
# without the network when nothing is missing. Needs root or sudo. Removes no package.
#     install_packages.sh PACKAGE…
#     install_packages.sh --update     only has apt learn what packages there are
set -eu

# Those of other processors, which may lie beside this machine's own, don't count.
missing_of() {
    own=$(dpkg --print-architecture 2> /dev/null || true)
    for package in "$@"; do
        dpkg-query -W -f '${Architecture} ${db:Status-Status}\n' "$package" 2> /dev/null |
            grep -q -x -e "$own installed" -e 'all installed' || printf ' %s' "$package"
    done
}

if [ "${1:-}" = --update ]; then
    missing=
else
    missing=$(missing_of "$@")
    [ -n "$missing" ] || exit 0
fi

if ! command -v apt-get > /dev/null; then
    echo "This machine has no apt-get; install what corresponds to:$missing" >&2
    exit 1
fi
as_root=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo > /dev/null; then
        echo "Installing$missing needs root: run this once as root, or install sudo." >&2
        exit 1
    fi
    as_root=sudo
fi

[ -z "$missing" ] || echo "Installing$missing"
# A source of packages that is out of order is no reason to fail while the others have what we need.
$as_root apt-get update -qq || echo "apt-get update had errors; going on" >&2
[ -n "$missing" ] || exit 0
# apt reports "dlstatus:what:percent:…" and "pmstatus:what:percent:…": one line per tenth.
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends --no-remove \
    -o Dpkg::Use-Pty=0 -o APT::Status-Fd=3 $missing 3>&1 > /dev/null | {
    last=
    while IFS=: read -r kind _ percent _; do
        case $kind in
        dlstatus) what=downloaded ;;
        pmstatus) what=installed ;;
        *) continue ;;
        esac
        now="$what $((${percent%%.*} / 10 * 10))"
        if [ "$now" != "$last" ] && [ "${percent%%.*}" -ge 10 ]; then
            echo "  $now %"
            last=$now
        fi
    done
}
missing=$(missing_of "$@")
if [ -n "$missing" ]; then
    echo "Could not install:$missing" >&2
    exit 1
fi
