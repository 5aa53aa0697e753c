#!/usr/bin/env bash
# Times Lloyd's iterations beside scikit-learn: the same points, first centres and number of iterations, in one run.
# Rounds alternate between the two, so that both see the same machine; the median over rounds counts.
#
#   PYTHON=V/bin/python scripts/bench-kmeans.sh [--threads N] [--points N] [--width N] [--clusters N] [--iterations N] [--rounds N]
#
# PYTHON: a Python with scikit-learn (python3 -m venv V && V/bin/pip install scikit-learn).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh
# shellcheck source=/dev/null
. "${DTKC_TOOLS:-.tools}/env.sh"
python=${PYTHON:-python3}
threads=2 points=60000 width=784 clusters=10 iterations=20 rounds=5
while [ $# -gt 0 ]; do
  case $1 in
    --threads | --points | --width | --clusters | --iterations | --rounds)
      [ $# -ge 2 ] || { echo "error: $1 needs a number" >&2; exit 2; }
      printf -v "${1#--}" '%s' "$2"
      shift 2
      ;;
    *) echo "error: unknown flag $1; see the head of this script" >&2; exit 2 ;;
  esac
done
"$python" -c 'import sklearn' 2>/dev/null || {
  echo "error: $python has no scikit-learn; set PYTHON to one that has (pip install scikit-learn)" >&2
  exit 1
}
cargo build --release -p dtkc-methods --example lloyd
ours=${CARGO_TARGET_DIR:-target}/release/examples/lloyd
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" scripts/bench/kmeans_sklearn.py make "$work/points" "$work/centres" "$points" "$width" "$clusters"
for round in $(seq "$rounds"); do
  "$ours" "$work/points" "$work/centres" "$width" "$iterations" "$threads" >"$work/ours.$round.json"
  OMP_NUM_THREADS=$threads OPENBLAS_NUM_THREADS=$threads "$python" scripts/bench/kmeans_sklearn.py \
    run "$work/points" "$work/centres" "$width" "$iterations" >"$work/sklearn.$round.json"
  echo "round $round of $rounds done" >&2
done
"$python" - "$work" "$rounds" "$points x $width, k = $clusters, $threads threads" <<'PYTHON'
import json, statistics, sys
import sklearn

work, rounds, shape = sys.argv[1], int(sys.argv[2]), sys.argv[3]
read = lambda side: [json.load(open(f"{work}/{side}.{r}.json")) for r in range(1, rounds + 1)]
ours, theirs = read("ours"), read("sklearn")
done = {run["iterations"] for run in ours + theirs}
if len(done) != 1:
    sys.exit(f"error: the sides made different numbers of iterations ({done}); ask for fewer (--iterations)")
a, b = (statistics.median(run["seconds"] for run in runs) for runs in (ours, theirs))
print(f"{shape}, {done.pop()} iterations, median of {rounds} rounds, scikit-learn {sklearn.__version__}")
print(f"ours {a:.3f} s, scikit-learn {b:.3f} s: {b / a:.2f} times as fast; "
      f"inertia {ours[0]['inertia']:.6g} and {theirs[0]['inertia']:.6g}")
PYTHON
