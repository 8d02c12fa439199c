#!/bin/sh
# Installs built packages in a copy of a fresh Debian, alone first; runs debian/tests there as autopkgtest would; removes
# the packages, of which nothing may be left. Needs root and the network.
#     packaging/debian/try.sh PACKAGES BASE SCRATCH
# PACKAGES: the folder that build.sh filled. BASE: a system, by debootstrap --variant=minbase. SCRATCH gets the copy.
set -eu
[ $# = 3 ] && [ -e "$2/etc/debian_version" ] || {
    echo "usage: packaging/debian/try.sh PACKAGES BASE SCRATCH" >&2
    exit 2
}
here=$(dirname "$(readlink -f "$0")")
root=$3/system
rm -rf --one-file-system "$root"
mkdir -p "$3"
cp -a "$2" "$root"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
mkdir "$root/packages"
cp "$1"/*.deb "$root/packages/"
cp -r "$here/tests" "$root/packages/"

# Runs a shell's command in the system.
inside() {
    unshare --mount --pid --fork sh -eu -c '
        mount -t proc proc "$1/proc"
        mount --rbind /sys "$1/sys"
        mount --rbind /dev "$1/dev"
        exec env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            ${http_proxy+"http_proxy=$http_proxy"} ${https_proxy+"https_proxy=$https_proxy"} \
            chroot "$1" sh -eu -c "$2"
    ' inside "$root" "$1" < /dev/null
}
install="apt-get install -qq -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io"

step() {
    printf '\n== %s\n' "$1"
    inside "$2" > "$3" 2>&1 || {
        tail -20 "$3" >&2
        echo "FAILED: $1; all of it: $3" >&2
        exit 1
    }
    tail -4 "$3"
}

step "install" "apt-get update -qq && $install /packages/*.deb && warren version" "$3/install.log"
others=$(inside "dpkg-query -W -f '\${Package}\n' | grep -E '^lib(openmpi|mpich)|^(openmpi|mpich)'" || true)
if [ -n "$others" ]; then
    echo "FAILED: the packages bring other MPI libraries:" $others >&2
    exit 1
fi
# name and packages of each test
awk -F': ' '$1 == "Tests" { name = $2 } $1 == "Depends" { gsub(",", "", $2); print name, $2 }' "$here/tests/control" |
    while read -r name packages; do
        step "test $name" "$install $packages && cd /packages/tests && ./$name" "$3/$name.log"
    done
step "doctor" "warren doctor /usr/bin/lmp" "$3/doctor.log"
step "purge" "apt-get purge -qq -y $(cd "$1" && printf '%s ' *.deb | sed 's/_[^ ]*//g')" "$3/purge.log"

left=$(inside "find / -xdev -path /proc -prune -o -path /packages -prune -o -name '*warren*' -print
    find /etc/alternatives -lname '*warren*'")
if [ -n "$left" ]; then
    echo "left by the packages: $left" >&2
    exit 1
fi
printf '\nall passed; nothing is left\n'
