#!/bin/sh
# Builds Debian's packages of what is committed, into FOLDER, and lets lintian look at them.
#     packaging/debian/build.sh FOLDER [BUILD]      BUILD: packs this build tree, instead of a new one
# As root or with sudo it installs what it needs.
set -eu
[ $# = 1 ] || [ $# = 2 ] || {
    echo "usage: packaging/debian/build.sh FOLDER [BUILD]" >&2
    exit 2
}
top=$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")
mkdir -p "$1"
folder=$(readlink -f "$1")
if [ $# = 2 ]; then
    WARREN_BUILD=$(readlink -f "$2")
    export WARREN_BUILD
fi

# The packages of Build-Depends, a line each; debhelper-compat is none by itself.
build_depends() {
    awk '/^[^ ]/ { on = /^Build-Depends:/ } on { sub(/^[^ ]*: */, ""); print }' "$top/packaging/debian/control" |
        tr -d ' ' | sed 's/[(,].*//; s/^debhelper-compat$/debhelper/'
}
# shellcheck disable=SC2046 # (words)
"$top/tools/install_packages.sh" build-essential git lintian $(build_depends)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT INT TERM

mkdir "$scratch/warren"
git -C "$top" archive HEAD | tar -x -C "$scratch/warren"
cp -r "$scratch/warren/packaging/debian" "$scratch/warren/debian"
multiarch=$(dpkg-architecture -q DEB_HOST_MULTIARCH)
sed -i "s/@MULTIARCH@/$multiarch/g" "$scratch"/warren/debian/*.postinst "$scratch"/warren/debian/*.prerm
# Packages of several releases may lie in one archive, and a newer release's replace an older one's. (Testing and
# unstable have no number.)
release=$(. /etc/os-release && echo "${VERSION_ID:-}")
[ -z "$release" ] || sed -i "1s/(\\(.*\\))/(\\1+deb$release)/" "$scratch/warren/debian/changelog"
# Equal packages of equal commits.
SOURCE_DATE_EPOCH=$(git -C "$top" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
(cd "$scratch/warren" && dpkg-buildpackage --build=binary --no-sign)
mv "$scratch"/*.deb "$scratch"/*.changes "$scratch"/*.buildinfo "$folder"
lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$folder"/*.changes
