#!/usr/bin/env bash
# Tests what reads HEIC and AVIF (feature `heif`): libheif is compiled, and the system's libde265 and libdav1d are used (Debian and
# Ubuntu: apt-get install g++ pkg-config libde265-dev libdav1d-dev). Not part of scripts/test.sh, because it is off unless a
# program is built with it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh
# shellcheck source=/dev/null
. "${DTKC_TOOLS:-.tools}/env.sh"
for library in libde265 dav1d; do
  pkg-config --exists "$library" || {
    printf 'error: %s is missing; on Debian and Ubuntu: apt-get install pkg-config libde265-dev libdav1d-dev\n' "$library" >&2
    exit 1
  }
done
cargo test --release -p dtkc-image --features heif
cargo clippy --release -p dtkc-image --features heif --all-targets -- -D warnings

# A folder of such photos to a dataset, by the program itself.
cargo build --release -p dtkc-data --features heif
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${CARGO_TARGET_DIR:-target}/release/dtkc-data" import crates/dtkc-image/tests/fixtures/heif --size 32x32 --color rgb --out "$work/photos.h5"
"${CARGO_TARGET_DIR:-target}/release/dtkc-data" info "$work/photos.h5" | grep -q '5 RGB images' ||
  { echo "error: not all five photos were imported" >&2; exit 1; }
echo "HEIC and AVIF are read"
