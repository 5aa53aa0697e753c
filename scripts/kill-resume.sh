#!/usr/bin/env bash
# Shows that a run that is killed (kill -9) at random moments and resumed ends in the same files as one that was left
# alone, byte for byte: the model, every checkpoint, the settings, the log and the summary. Wall times are the only
# difference and are cut off before the comparison: `seconds` and `loading_seconds`, the last two fields of every line
# of log.jsonl, and `timing`, the last entry of summary.json.
#
#   scripts/kill-resume.sh [KILLS]        default 20
#
# DTKC_BIN: folder with dtkc-train and dtkc-data (default: built here). Needs ONNX Runtime for the export, see setup.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
kills=${1:-20}
# shellcheck source=/dev/null
[ -f "${DTKC_TOOLS:-.tools}/env.sh" ] && . "${DTKC_TOOLS:-.tools}/env.sh"

if [ -z "${DTKC_BIN:-}" ]; then
  cargo build --release -p dtkc-train -p dtkc-data
  DTKC_BIN=${CARGO_TARGET_DIR:-target}/release
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$DTKC_BIN/dtkc-data" synth --kind glyphs --count 600 --seed 3 --out "$work/glyphs.h5" --quiet >/dev/null
fit=("$DTKC_BIN/dtkc-train" fit --data "$work/glyphs.h5" --clusters 10 --quiet --seed 1 --runs 5 --epochs 6 --prune
  --set prune.first_epoch=2 --set run.comparison_batches=4 --checkpoint-every 100ms
  --set network.hidden=16 --set "network.blocks=[{filters=8,kernel=5},{filters=8,kernel=3}]")

echo "undisturbed run"
begin=$(date +%s%N)
"${fit[@]}" --out "$work/whole"
whole_ms=$((($(date +%s%N) - begin) / 1000000))
echo "  took $whole_ms ms"

# Each attempt may live for up to a third of the whole run, so that kills fall into every phase of it.
killed=0
attempts=0
"${fit[@]}" --out "$work/broken" 2>/dev/null &
pid=$!
while [ "$killed" -lt "$kills" ]; do
  attempts=$((attempts + 1))
  sleep "$(awk -v r=$RANDOM -v m="$whole_ms" 'BEGIN { printf "%.3f", (0.02 + r / 32768 * 0.33) * m / 1000 }')"
  if kill -9 "$pid" 2>/dev/null; then
    killed=$((killed + 1))
  fi
  wait "$pid" 2>/dev/null || true
  if [ -f "$work/broken/report.html" ]; then
    # It finished between two kills: the rest of the kills goes to a run that starts again from the beginning.
    mv "$work/broken" "$work/done-$attempts"
  fi
  if [ -f "$work/broken/config.toml" ]; then
    "$DTKC_BIN/dtkc-train" resume "$work/broken" --quiet 2>"$work/stderr" &
  else
    "${fit[@]}" --out "$work/broken" 2>/dev/null &
  fi
  pid=$!
done
wait "$pid"
echo "killed $killed times, resumed to the end"

# Prints what is compared of a run: a checksum per file, times cut off.
describe() {
  (cd "$1" && find . -type f ! -name .lock | LC_ALL=C sort | while read -r file; do
    case $file in
      ./log.jsonl) sum=$(sed 's/,"seconds":.*//' "$file" | sha256sum) ;;
      ./summary.json) sum=$(sed '/^  "timing": {/,$d' "$file" | sha256sum) ;;
      *) sum=$(sha256sum <"$file") ;;
    esac
    echo "${sum%% *}  $file"
  done)
}
describe "$work/whole" >"$work/whole.sums"
status=0
for run in "$work"/broken "$work"/done-*; do
  [ -d "$run" ] || continue
  describe "$run" >"$work/broken.sums"
  if diff "$work/whole.sums" "$work/broken.sums"; then
    echo "same: $(wc -l <"$work/whole.sums") files ($(basename "$run"))"
  else
    echo "error: the files above differ ($(basename "$run"))" >&2
    status=1
  fi
done
exit "$status"
