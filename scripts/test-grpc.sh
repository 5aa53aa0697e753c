#!/usr/bin/env bash
# Tests the inference protocol over gRPC (the feature `grpc` of dtkc-serve, off unless a program is built with it): our own
# tests, the stock clients of Triton and of KServe, and hostile ones. Not part of scripts/test.sh, because they come from the network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh
. scripts/serve-for-checks.sh
cargo test --release -p dtkc-serve --features grpc --lib --test grpc
cargo clippy --release -p dtkc-serve --features grpc --all-targets -- -D warnings
build -p dtkc-serve --features grpc
DTKC_NO_BUILD=1 start_server "${1:-mnist}" --grpc-port 0 --api-key secret
grpc=$(sed -n 's/^ *gRPC *//p' "$work/out")
python_with triton-grpc "tritonclient[grpc]==2.73.0" numpy
"$python" scripts/check-triton-grpc.py "$grpc" "$model" secret
python_with kserve "kserve==0.21.0"
"$python" scripts/check-kserve.py "$address" "$model" "$grpc" secret
python_with h2 "h2==4.4.1"
"$python" scripts/abuse-grpc.py "$address" "$grpc" "$server" "$model" secret
