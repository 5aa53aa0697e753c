#!/bin/sh
# Measures importing, beside Python in the same run:
#   1. 60000 images from gzipped IDX files take no longer than the same job written in Python with h5py;
#   2. a folder of 100000 small PNG files imports in less than 300 MB of memory.
#
#   PYTHON=python3 scripts/bench-import.sh [FOLDER]
#
# FOLDER takes the test files and keeps them (default: a temporary folder, removed at the end); PYTHON must have
# h5py and NumPy. Other settings: MNIST (a folder with the four gzipped IDX files; default: glyphs in that format),
# DTKC_BIN (the folder of dtkc-data), ROUNDS (5), PNGS (100000; 0 skips the second part). Ends with exit code 1 if
# a goal is missed.
set -eu

cd "$(dirname "$0")/.."
scripts/setup.sh
# shellcheck source=/dev/null
. "${DTKC_TOOLS:-.tools}/env.sh"
python=${PYTHON:-python3}
if [ -n "${DTKC_BIN:-}" ]; then
  program=$DTKC_BIN/dtkc-data
else
  cargo build --release --quiet -p dtkc-data --bin dtkc-data
  program=${CARGO_TARGET_DIR:-target}/release/dtkc-data
fi
if [ $# -gt 0 ]; then
  folder=$1
  mkdir -p "$folder"
else
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT INT TERM
fi
"$python" scripts/bench-import.py "$program" "$folder"
