#!/usr/bin/env bash
# KServe's own Python client against dtkc-serve: health, metadata, JSON and binary tensors, errors.
#   scripts/check-kserve.sh [MODEL]        MODEL is a name or a path, mnist where it is not given
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/serve-for-checks.sh
python_with kserve "kserve==0.21.0"
start_server "${1:-mnist}"
"$python" scripts/check-kserve.py "$address" "$model"
