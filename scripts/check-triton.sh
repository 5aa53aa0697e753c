#!/usr/bin/env bash
# The stock Triton Python client against dtkc-serve: metadata, JSON and binary tensors, compression, errors.
#   scripts/check-triton.sh [MODEL]        MODEL is a name or a path, mnist where it is not given
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/serve-for-checks.sh
python_with triton "tritonclient[http]==2.73.0" numpy
start_server "${1:-mnist}"
"$python" scripts/check-triton.py "${address#http://}" "$model"
