#!/bin/sh
# From a bare machine to a first answer: installs what is missing (see setup.sh), builds hbmsim
# into build/, and runs it. Run again, it only does what is left to do.
set -eu
cd "$(dirname "$0")/.."
. examples/setup.sh

set_up
build all
build/fast/hbmsim simulate examples/quickstart/model.yaml
echo
echo "The fastest configuration that fits (a few seconds):"
build/fast/hbmsim plan examples/quickstart/model.yaml
echo
echo "hbmsim is $PWD/build/fast/hbmsim; \`make install\` puts it where your shell finds it."
echo "Next: README.md, A first look; with your own config.json, yml or toml: hbmsim import FILE"
