#!/bin/sh
# tools/install_packages.sh knows which packages are missing where packages of another processor are installed, too.
# Configuring says which package is missing.
#     missing_packages.sh SOURCE WORK
set -eu
tool=$1/tools/install_packages.sh
work=$2
rm -rf "$work"
mkdir -p "$work"
cat > "$work/dpkg" << 'END'
#!/bin/sh
echo amd64
END
cat > "$work/dpkg-query" << 'END'
#!/bin/sh
for package; do :; done
case $package in
both) printf 'amd64 installed\narm64 installed\n' ;;
data) echo 'all installed' ;;
other) echo 'arm64 installed' ;;
removed) echo 'amd64 config-files' ;;
*) exit 1 ;;
esac
END
printf '#!/bin/sh\nexit 100\n' > "$work/apt-get"
chmod +x "$work/dpkg" "$work/dpkg-query" "$work/apt-get"
PATH=$work:$PATH
export PATH

"$tool" both data
said=$("$tool" both other removed absent 2>&1) && {
    echo "nothing was missing"
    exit 1
}
echo "$said" | grep -x 'Could not install: other removed absent' || {
    echo "$said"
    exit 1
}

# Without hwloc, configuring names the package that has it.
said=$(PKG_CONFIG_PATH='' PKG_CONFIG_LIBDIR="$work/none" cmake -S "$1" -B "$work/build" -DWARREN_TESTS=OFF 2>&1) && {
    echo "hwloc was not missing"
    exit 1
}
echo "$said" | grep 'libhwloc-dev' || {
    echo "$said"
    exit 1
}
