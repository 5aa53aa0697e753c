#!/usr/bin/env bash
# How well a model file tells images that are unlike those it was trained on.
#   scripts/outliers.sh --train mnist.h5 --normal mnist-test.h5 --outliers fashion-test.h5 [MORE.h5 ..] [--model models/mnist.onnx]
# The model gets its output `outlier` from --train; the area under the ROC curve of --normal against each of --outliers is printed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/serve-for-checks.sh
python_with outliers numpy h5py onnxruntime
build -p dtkc-train
"$python" scripts/outliers.py --program "$target/release/dtkc-train" "$@"
