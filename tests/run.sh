#!/bin/sh
# Every test from a bare machine: installs what is missing (examples/setup.sh), builds with
# warnings as errors, runs all. The last line is `N passed, N failed`; the status is 1 where
# something failed.
set -eu
cd "$(dirname "$0")/.."
. examples/setup.sh

set_up
build WERROR=1 all unit
HB_BUILD=build/fast exec sh tests/all.sh
