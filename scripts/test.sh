#!/usr/bin/env bash
# Sets up what is missing and runs every check. Ends with 0 only if all of them passed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export DTKC_TOOLS=${DTKC_TOOLS:-$PWD/.tools}
scripts/setup.sh --tests
# shellcheck source=/dev/null
. "$DTKC_TOOLS/env.sh"

step() { printf '\n== %s\n' "$*"; }
skipped=()

step "format"
cargo fmt --all --check

step "shell scripts"
PATH=$PATH:$DTKC_PYTHONPATH/bin shellcheck scripts/*.sh .ci/run

step "one feature set for the whole and its parts"
python3 scripts/features.py --check

step "build"
cargo build --release --workspace --all-targets

step "tests"
if cargo nextest --version >/dev/null 2>&1; then
  cargo nextest run --release --workspace --no-fail-fast
else
  skipped+=("cargo-nextest (not installed: cargo test ran instead)")
  cargo test --release --workspace --all-targets --no-fail-fast
fi

step "the Python package"
scripts/wheel.sh "$DTKC_TOOLS/wheels"
rm -rf "$DTKC_TOOLS/package"
PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$DTKC_TOOLS/package" "$DTKC_TOOLS"/wheels/dtkc-*.whl
PYTHONPATH=$DTKC_TOOLS/package:$DTKC_PYTHONPATH python3 -m pytest crates/dtkc-python/tests

step "documentation tests"
cargo test --release --workspace --doc

step "clippy"
cargo clippy --release --workspace --all-targets -- -D warnings

step "rustdoc"
RUSTDOCFLAGS="-D warnings" cargo doc --release --workspace --no-deps

step "dependencies"
if cargo deny --version >/dev/null 2>&1; then
  cargo deny check licenses bans sources
else
  skipped+=("cargo-deny (not installed)")
fi

step "advisories"
# Its exit code is the same for an advisory and for a database that cannot be fetched; only the first has a report.
if ! cargo audit --version >/dev/null 2>&1; then
  skipped+=("cargo-audit (not installed)")
elif [ -z "$(cargo audit --json 2>/dev/null)" ]; then
  skipped+=("cargo-audit (its database cannot be fetched)")
else
  cargo audit --no-fetch
fi

printf '\nall checks passed\n'
for check in "${skipped[@]}"; do printf 'not run: %s\n' "$check"; done
