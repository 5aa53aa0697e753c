#!/usr/bin/env bash
# Runs everything that reads files or requests on damaged and hostile input, for so many minutes in all, and says how
# many executions there were. Ends with 1 where one of them ended the process, hung for more than 10 s, took more than
# 2 GiB, or was answered in a way that is not documented; such inputs are kept in fuzz-findings/.
#
#   scripts/fuzz.sh [MINUTES] [FLAG...]      flags of dtkc-fuzz, such as --target image,zip --from 1000000
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools=${DTKC_TOOLS:-$PWD/.tools}
# shellcheck source=/dev/null
if [ -f "$tools/env.sh" ]; then . "$tools/env.sh"; fi
minutes=10
if [[ ${1:-} =~ ^[0-9.]+$ ]]; then minutes=$1; shift; fi
cargo build --release --quiet -p dtkc-fuzz
exec "${CARGO_TARGET_DIR:-target}/release/dtkc-fuzz" --minutes "$minutes" "$@"
