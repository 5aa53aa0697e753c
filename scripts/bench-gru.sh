#!/usr/bin/env bash
# Times the recurrent layers of dtkc-ops (forward and backward) beside PyTorch's nn.GRU in one run and prints the ratios.
# Rounds alternate between the two, so that both see the same machine; the faster of PyTorch's two ways (packed sequences,
# or padded ones whose padding it computes, too) and the median over rounds count.
#
#   PYTHON=V/bin/python scripts/bench-gru.sh [--threads N] [--batch N] [--units N] [--layers N] [--rounds N] [--seconds N]
#
# PYTHON: a Python with torch (python3 -m venv V && V/bin/pip install torch). DTKC_GRU: the built example `gru`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh
# shellcheck source=/dev/null
. "${DTKC_TOOLS:-.tools}/env.sh"
python=${PYTHON:-python3}
threads=2 batch=120 units=32 layers=2 rounds=3 seconds=3
while [ $# -gt 0 ]; do
  case $1 in
    --threads | --batch | --units | --layers | --rounds | --seconds)
      [ $# -ge 2 ] || { echo "error: $1 needs a number" >&2; exit 2; }
      printf -v "${1#--}" '%s' "$2"
      shift 2
      ;;
    *) echo "error: unknown flag $1; see the head of this script" >&2; exit 2 ;;
  esac
done
"$python" -c 'import torch' 2>/dev/null || {
  echo "error: $python has no torch; set PYTHON to one that has (pip install torch)" >&2
  exit 1
}
if [ -z "${DTKC_GRU:-}" ]; then
  cargo build --release -p dtkc-ops -p dtkc-train --example gru
  DTKC_GRU=${CARGO_TARGET_DIR:-target}/release/examples/gru
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Lengths and dimensions: pen trajectories, spoken digits, equal lengths.
cases=("109 198 3" "4 93 13" "100 100 3" "200 200 13")
for round in $(seq "$rounds"); do
  for i in "${!cases[@]}"; do
    read -r least longest dim <<<"${cases[$i]}"
    shape=("$batch" "$least" "$longest" "$dim" "$units" "$layers" "$threads" "$seconds")
    "$DTKC_GRU" "${shape[@]}" >"$work/ours.$i.$round.json"
    "$python" scripts/bench/torch_gru.py "${shape[@]}" >"$work/torch.$i.$round.json"
  done
  echo "round $round of $rounds done" >&2
done
echo "batch $batch, $layers bidirectional layers of $units units, $threads threads, forward and backward, median of $rounds rounds"
python3 - "$work" "$rounds" "${cases[@]}" <<'PYTHON'
import json, statistics, sys

work, rounds, cases = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
print(f"{'lengths':>12}{'values':>8}{'dtkc-ops':>12}{'packed':>11}{'padded':>11}{'ratio':>8}{'forward':>9}")
for i, case in enumerate(cases):
    read = lambda side: [json.load(open(f"{work}/{side}.{i}.{r}.json")) for r in range(1, rounds + 1)]
    ours, torch = read("ours"), read("torch")
    middle = lambda runs, key: statistics.median(run[key] for run in runs)
    least, longest, dim = case.split()
    packed, padded = middle(torch, "ms"), middle(torch, "padded_ms")
    forward = min(middle(torch, "forward_ms"), middle(torch, "padded_forward_ms"))
    print(f"{least + ' to ' + longest:>12}{dim:>8}{middle(ours, 'ms'):>9.1f} ms{packed:>8.1f} ms{padded:>8.1f} ms"
          f"{middle(ours, 'ms') / min(packed, padded):>8.2f}{middle(ours, 'forward_ms') / forward:>9.2f}")
PYTHON
