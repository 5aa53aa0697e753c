#!/usr/bin/env bash
# Times a training step of dtkc-train beside PyTorch (scripts/bench/torch_step.py: the same arithmetic) in one run and
# prints the ratios. Rounds alternate between the two, so that both see the same machine; the best of each side's
# layouts and the median over rounds count.
#
#   PYTHON=V/bin/python scripts/bench-step.sh [--threads N] [--batch N] [--size N] [--channels N] [--clusters N] [--rounds N]
#
# PYTHON: a Python with torch (python3 -m venv V && V/bin/pip install torch). DTKC_BIN: folder with dtkc-train.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh
# shellcheck source=/dev/null
. "${DTKC_TOOLS:-.tools}/env.sh"
python=${PYTHON:-python3}
threads=2 batch=120 size=28 channels=1 clusters=10 rounds=3
while [ $# -gt 0 ]; do
  case $1 in
    --threads | --batch | --size | --channels | --clusters | --rounds)
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
if [ -z "${DTKC_BIN:-}" ]; then
  cargo build --release -p dtkc-train
  DTKC_BIN=${CARGO_TARGET_DIR:-target}/release
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
shape=(--batch "$batch" --size "$size" --channels "$channels" --clusters "$clusters" --threads "$threads")
for round in $(seq "$rounds"); do
  for method in ddc dtkc; do
    "$DTKC_BIN/dtkc-train" bench --method "$method" "${shape[@]}" --json >"$work/$method.$round.json"
  done
  "$python" scripts/bench/torch_step.py "${shape[@]}" >"$work/torch.$round.json"
  echo "round $round of $rounds done" >&2
done
python3 - "$work" "$rounds" <<'PYTHON'
import json, statistics, sys

work, rounds = sys.argv[1], int(sys.argv[2])
ours = {m: [json.load(open(f"{work}/{m}.{r}.json")) for r in range(1, rounds + 1)] for m in ("ddc", "dtkc")}
torch = [json.load(open(f"{work}/torch.{r}.json")) for r in range(1, rounds + 1)]
first = ours["dtkc"][0]
print(f"batch {first['batch']} of {'x'.join(map(str, first['image']))}, k = {first['clusters']}, "
      f"{first['threads']} threads, torch {torch[0]['torch']}, median of {rounds} rounds")
print(f"{'':6}{'dtkc-train':>12}{'PyTorch':>10}{'ratio':>8}{'GFLOP/s':>10}{'of sgemm':>10}")
for method, runs in ours.items():
    # PyTorch's better layout, chosen by its median over the rounds.
    names = [s["name"] for s in torch[0]["steps"] if s["name"].startswith(method) and "eigen" not in s["name"]]
    peer = min(statistics.median(next(s["ms"] for s in t["steps"] if s["name"] == n) for t in torch) for n in names)
    ms = statistics.median(r["ms"] for r in runs)
    rate = statistics.median(r["gflop_per_second"] for r in runs)
    share = statistics.median(r["share_of_sgemm"] for r in runs)
    print(f"{method:6}{ms:>9.1f} ms{peer:>7.1f} ms{ms / peer:>8.2f}{rate:>10.0f}{share:>9.0%}")
PYTHON
