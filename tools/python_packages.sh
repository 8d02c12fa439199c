#!/bin/sh
# Makes build/python, a virtual environment with the Python packages that warren.locality and a check
# need (python/requirements.txt). Quick, silent and without the network when it is there. Its python3 is
# the one that `warren locality report` of a build uses, and the tests.
set -eu
cd "$(dirname "$(readlink -f "$0")")/.."
environment=build/python
if cmp -s python/requirements.txt $environment/requirements.txt; then exit 0; fi
echo "Installing Python packages into $environment"
mkdir -p build
rm -rf $environment
python3 -m venv $environment || {
    echo "python3 can't make a virtual environment (Debian: python3-venv)" >&2
    exit 1
}
$environment/bin/pip install --quiet --disable-pip-version-check --retries 1 -r python/requirements.txt || {
    rm -rf $environment # who finds it takes it for whole
    exit 1
}
cp python/requirements.txt $environment/requirements.txt
