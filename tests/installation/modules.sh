#!/bin/sh
# Loads the module files of an installation by Environment Modules and by Lmod: after it was moved, from a
# copy of the files elsewhere, and where no Warren is. The two exclude each other as Debian's packages; they are
# unpacked and laid over /usr in a mount namespace. Exit code 77: they can't be had, so nothing was tested.
#     modules.sh BUILD_TREE WORK_FOLDER
set -eu
build=$1
work=$2
skip() {
    echo "LEFT OUT: $1" >&2
    exit 77
}
rm -rf "$work"
mkdir -p "$work/packages" "$work/files"
cd "$work/packages"
packages=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
    --no-enhances environment-modules lmod 2> "$work/apt.log" | grep -xE '(lib)?(lua|tcl)[a-z0-9.-]*|environment-modules|lmod') ||
    skip "apt knows no environment-modules and lmod"
# shellcheck disable=SC2086 # the packages are words
apt-get download $packages > "$work/apt.log" 2>&1 || skip "environment-modules and lmod can't be downloaded"
for package in *.deb; do
    dpkg -x "$package" "$work/files"
done
unshare=$([ "$(id -u)" = 0 ] && echo "unshare --mount" || echo "unshare --map-root-user --mount")
$unshare mount -t overlay overlay -o "lowerdir=$work/files/usr:/usr" /usr 2> "$work/mount.log" ||
    skip "no overlay in a mount namespace: $(cat "$work/mount.log")"

cmake --install "$build" --prefix "$work/first" > "$work/install.log"
version=$("$work/first/bin/warren" version | grep -oE '[0-9]+(\.[0-9]+)+' | head -1)
mkdir -p "$work/copy/warren" "$work/lost/warren" "$work/usual"
cp "$work/first/share/modulefiles/warren/"* "$work/copy/warren"
for file in "$work/first/share/modulefiles/warren/"*; do
    sed "s|$work/first|/nowhere|" "$file" > "$work/lost/warren/${file##*/}"
done
cp -r "$work/first" "$work/moved"

cat > "$work/load" <<'END'
#!/bin/sh
# load TOOL MODULEPATH PREFIX [MANPATH]: the module gives PREFIX; "none": it says why there is none.
set -eu
mount -t overlay overlay -o "lowerdir=$WORK/files/usr:/usr" /usr
case $1 in
modules) load="tclsh $(ls /usr/lib/*/modulecmd.tcl) sh load warren" ;;
lmod) load="/usr/share/lmod/lmod/libexec/lmod sh load warren" ;;
esac
MODULEPATH=$2 $load > "$WORK/$1.sh" 2> "$WORK/$1.said" || true
if [ "$3" = none ]; then
    grep -q "there is no /nowhere" "$WORK/$1.said"
    exit 0
fi
. "$WORK/$1.sh"
[ "$(command -v mpiexec)" = "$3/bin/mpiexec" ]
[ "$MPI_HOME" = "$3" ]
[ "${MANPATH:-}" = "${4:+$3/share/man:$4}" ]
pkg-config --exists warren-mpi
python3 -c 'import warren.topology'
mpiexec -n 2 --timeout 60 true
END
chmod +x "$work/load"
load() {
    WORK=$work env -u MANPATH -u LOADEDMODULES -u PYTHONPATH $unshare "$work/load" "$@" || {
        echo "load $*:" >&2
        cat "$work/$1.said" "$work/$1.sh" >&2
        exit 1
    }
}
for tool in modules lmod; do
    echo "== $tool"
    load $tool "$work/moved/share/modulefiles" "$work/moved"
    load $tool "$work/copy" "$work/first"
    load $tool "$work/lost" none
    MANPATH=/usual WORK=$work $unshare "$work/load" $tool "$work/copy" "$work/first" /usual
done
grep -q LMOD_FAMILY_MPI=.warren "$work/lmod.sh" || grep -q LMOD_FAMILY_MPI=warren "$work/lmod.sh"
[ -e "$work/first/share/modulefiles/warren/$version.lua" ]
