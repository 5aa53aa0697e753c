# shellcheck shell=bash
# Sourced by the benchmarks of labelling, with their arguments: builds dtkc-label with its example and sets `target` and
# `folder` (the first argument, which is kept, or a temporary one that goes with the script).
if [ $# -gt 0 ]; then
  folder=$1
  mkdir -p "$folder"
else
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
fi
cargo build --quiet --release -p dtkc-label --bins --examples
# shellcheck disable=SC2034 # for the script that sources this one
target=${CARGO_TARGET_DIR:-target}/release
