#!/usr/bin/env bash
# The maps of `dtkc-train explain` against those of Python's shap (GradientExplainer) on the same ONNX weights.
#   scripts/check-shap.sh [MODEL [DATA]]    MODEL is a name or a path, glyphs where it is not given; DATA is a dataset of
#                                           images, drawn ones where it is not given
# PyTorch and shap go to a folder of their own (some gigabytes).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/serve-for-checks.sh
python_with shap "shap==0.51.0" torch onnx h5py
build -p dtkc-train -p dtkc-data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
data=${2:-$work/glyphs.h5}
if [ $# -lt 2 ]; then "$target/release/dtkc-data" synth --kind glyphs --count 600 --quiet --out "$data"; fi
model=${1:-glyphs}
if [ -f "models/$model.onnx" ]; then model=models/$model.onnx; fi
"$python" scripts/check-shap.py "$target/release/dtkc-train" "$model" "$data" "$work"
