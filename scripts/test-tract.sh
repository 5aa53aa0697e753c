#!/usr/bin/env bash
# Tests the optional runtime tract (pure Rust): the same answers as ONNX Runtime, in the library and in dtkc-label. Not
# part of scripts/test.sh, because tract takes minutes to compile and is off unless a program is built with it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh
# shellcheck source=/dev/null
. "${DTKC_TOOLS:-.tools}/env.sh"
cargo test --release -p dtkc-infer --features tract --lib --test tract -- --nocapture
cargo test --release -p dtkc-label --features tract --test device
cargo clippy --release -p dtkc-infer --features tract --all-targets -- -D warnings
