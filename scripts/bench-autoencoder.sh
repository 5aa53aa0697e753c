#!/usr/bin/env bash
# Times a training step of the autoencoder of DEC, IDEC, DCN and SpectralNet (500-500-2000-10, 28x28 images, Adam) beside
# PyTorch's in one run and prints the ratio. Rounds alternate between the two, so that both see the same machine.
#
#   PYTHON=V/bin/python scripts/bench-autoencoder.sh [ROUNDS]
#
# PYTHON: a Python with torch. DTKC_BIN: folder with dtkc-train.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh
# shellcheck source=/dev/null
. "${DTKC_TOOLS:-.tools}/env.sh"
python=${PYTHON:-python3}
rounds=${1:-5}
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
for round in $(seq "$rounds"); do
  "$DTKC_BIN/dtkc-train" bench --method dec --batch 256 --threads 2 --json >"$work/ours.$round.json"
  "$python" scripts/bench/torch_autoencoder.py >"$work/torch.$round.json"
  echo "round $round of $rounds done" >&2
done
python3 - "$work" "$rounds" <<'PYTHON'
import json, statistics, sys

work, rounds = sys.argv[1], int(sys.argv[2])
read = lambda name: [json.load(open(f"{work}/{name}.{r}.json")) for r in range(1, rounds + 1)]
ours, torch = read("ours"), read("torch")
a, b = (statistics.median(run["ms"] for run in runs) for runs in (ours, torch))
parts = ", ".join(f"{name} {value:.1f}" for name, value in ours[0]["parts_ms"].items())
print(f"batch 256 of 28x28x1, 2 threads, torch {torch[0]['torch']}, median of {rounds} rounds")
print(f"dtkc-train {a:.1f} ms, PyTorch {b:.1f} ms, ratio {a / b:.2f} (ours: {parts} ms)")
PYTHON
