#!/usr/bin/env bash
# Precision and recall of `dtkc-label --duplicates` on copies of real images that scripts/duplicates.py makes.
#   scripts/duplicates.sh [--coil coil.h5] [--svhn svhn.h5] [--plain mnist.h5 ..] [--model M] [-- FLAGS of dtkc-label]
# Photos come with Python packages, which go to a folder of their own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/serve-for-checks.sh
python_with duplicates numpy pillow h5py scikit-image scikit-learn matplotlib
build -p dtkc-label
"$python" scripts/duplicates.py --program "$target/release/dtkc-label" "$@"
