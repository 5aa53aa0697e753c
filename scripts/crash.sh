#!/usr/bin/env bash
# Ends the programs that write files at random moments, with kill -9, with a full disk (as root: a tmpfs of its own) and
# with a file that cannot grow (which fails in the same places), and checks that no half file lies under a final name,
# that going on gives the same bytes as an undisturbed run, and that nothing is left of the killed ones.
#
#   scripts/crash.sh [TIMES [SEED]]       default 200 times, over import, label, merge, fit and rename; a random seed
#
# DTKC_BIN: folder with the four programs (default: built here). Needs ONNX Runtime, see setup.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=/dev/null
[ -f "${DTKC_TOOLS:-.tools}/env.sh" ] && . "${DTKC_TOOLS:-.tools}/env.sh"
if [ -z "${DTKC_BIN:-}" ]; then
  cargo build --release --bins
  DTKC_BIN=${CARGO_TARGET_DIR:-target}/release
fi
exec python3 scripts/crash.py "$DTKC_BIN" "$PWD/models/mnist.onnx" "${1:-200}" "${2:-$RANDOM}"
