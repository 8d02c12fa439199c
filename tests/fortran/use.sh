#!/bin/sh
# Uses Fortran of a Warren at a prefix as other people's projects do: by mpifort with ready-made modules and
# with modules in a cache that several compilations make at once, by CMake, by pkg-config.
#     use.sh PREFIX LIBRARY_FOLDER WORK_FOLDER
set -eu
prefix=$1
library=$prefix/$2
work=$3
here=$(dirname "$(readlink -f "$0")")
rm -rf "$work"
mkdir -p "$work"
cd "$work"

run() {
    "$prefix/bin/mpiexec" -n 2 --timeout 60 "$@"
}

echo "== wrappers"
for name in mpifort mpif90 mpif77; do
    "$prefix/bin/$name" -show hello.f90 | grep -e "-I$prefix/include" | grep -e -lmpifort_abi
done
"$prefix/bin/mpifort" -DUSE_MODULE "$here/old.F90" -o old
run ./old
if "$prefix/bin/mpifort" -fdefault-integer-8 "$here/old.F90" -o never 2> said; then
    echo "INTEGERs of 8 bytes are not refused" >&2
    exit 1
fi
grep "INTEGERs of 4 bytes" said
if "$prefix/bin/mpifort" -fc=false "$here/old.F90" -o never 2> said; then
    echo "a compiler that is none is not refused" >&2
    exit 1
fi
grep "false is no compiler" said

echo "== modules of another version, made by four compilations at once"
printf '#!/bin/sh\n[ "$*" != --version ] || { echo "another version"; exit; }\nexec gfortran "$@"\n' > other
chmod +x other
if env -u XDG_CACHE_HOME -u HOME "$prefix/bin/mpifort" -fc="$work/other" -c "$here/fatal.f90" -o never.o 2> said; then
    echo "without HOME a place for modules is found that is not the user's" >&2
    exit 1
fi
grep "no place for Fortran's modules, as HOME is not set" said
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME
for number in 1 2 3 4; do
    "$prefix/bin/mpifort" -fc="$work/other" -c "$here/fatal.f90" -o "fatal$number.o" &
    processes="${processes:-} $!"
done
for process in $processes; do
    wait "$process"
done
test "$(find cache/warren/fortran -name mpi_f08.mod | wc -l)" = 1
test "$(find cache/warren/fortran -mindepth 1 -maxdepth 1 | wc -l)" = 1

echo "== a compiler without assumed rank"
printf '#!/bin/sh\n[ "$*" != --version ] || { echo "an old one"; exit; }\ncase "$*" in *mpi_f08.f90*) exit 1 ;; esac\nexec gfortran "$@"\n' > other
"$prefix/bin/mpifort" -fc="$work/other" -fallow-argument-mismatch "$here/old.F90" -o by_old 2> said
grep "an old one can't compile these modules" said
run ./by_old

sanitizer=$("$prefix/bin/mpifort" -showme:compile | tr ' ' '\n' | grep -e -fsanitize || true)
echo "== pkg-config"
PKG_CONFIG_PATH=$library/pkgconfig
export PKG_CONFIG_PATH
# shellcheck disable=SC2046 # the flags are words
gfortran $sanitizer -fallow-argument-mismatch "$here/old.F90" -o by_pkg_config $(pkg-config --cflags --libs warren-fortran)
run ./by_pkg_config

echo "== find_package(MPI)"
mkdir project
cat > project/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.22)
project(somebody_elses LANGUAGES Fortran)
find_package(MPI REQUIRED COMPONENTS Fortran)
if(NOT MPI_Fortran_HAVE_F90_MODULE OR NOT MPI_Fortran_HAVE_F08_MODULE OR NOT MPI_Fortran_HAVE_F77_HEADER)
  message(FATAL_ERROR "not all of Fortran is found")
endif()
add_executable(new $here/new.f90)
target_link_libraries(new MPI::MPI_Fortran)
END
LDFLAGS=$sanitizer PATH=$prefix/bin:$PATH cmake -G Ninja -S project -B build > configure.log || {
    cat configure.log
    exit 1
}
cmake --build build
run build/new
