#!/usr/bin/env bash
# Labelling and training on a cluster: Ray on this machine, with nodes, workers and the driver killed in the middle; Spark where Java is there; array jobs.
# Takes some minutes and fetches Ray, so it is not part of scripts/test.sh.
#
#   scripts/test-cluster.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools=${DTKC_TOOLS:-$PWD/.tools}
scripts/wheel.sh "$tools/wheels"
# An environment of its own, as a user has it: what the wheel needs, pip installs.
[ -x "$tools/cluster/bin/python" ] || python3 -m venv "$tools/cluster"
"$tools/cluster/bin/pip" install --quiet --disable-pip-version-check pytest pillow "pyarrow>=15" "ray>=2.40" "pyspark>=4.0" pandas
"$tools/cluster/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps "$tools"/wheels/dtkc-*.whl
"$tools/cluster/bin/pip" install --quiet --disable-pip-version-check "$tools"/wheels/dtkc-*.whl
cd crates/dtkc-python
exec "$tools/cluster/bin/python" -m pytest -x -v cluster "$@"
