#!/usr/bin/env bash
# The Python package beside a plain loop of Pillow and onnxruntime and beside dtkc-label, in one run (REPRODUCING.md).
#
#   PYTHON=V/bin/python scripts/bench-python.sh DATASET.h5 [ROUNDS]
#
# V: an environment with the wheel of scripts/wheel.sh, pillow and pyarrow. DATASET: images of 28x28, such as MNIST's. Let nothing else run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# -ge 1 ] || { sed -n '2,6p' "$0" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" scripts/bench/python_assign.py "$1" "$work" "${2:-5}"
