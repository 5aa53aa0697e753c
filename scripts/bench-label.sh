#!/usr/bin/env bash
# Measures batch labelling against its goals, each as a ratio within one run:
#   1. from HDF5 at least 0.9 times the images/s of a bare ONNX Runtime loop with the same threads,
#   2. a folder of 20000 PNG files at least 3 times as fast as Pillow and onnxruntime in Python,
#   3. a million images in less than 400 MB of memory.
#
#   PYTHON=python3 scripts/bench-label.sh [FOLDER]
#
# FOLDER takes the test files and keeps them (default: a temporary folder, removed at the end); PYTHON must have
# onnxruntime, NumPy and Pillow. Other settings: MODEL (mnist where it is bundled, else random weights of the same
# size), THREADS (2), REPEATS (3), PNGS (20000), SIDES ("28 128": pixels of the PNG files), MILLION (1000000; 0 skips
# the third part). Ends with exit code 1 if a goal is missed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${PYTHON:-python3}
threads=${THREADS:-2} repeats=${REPEATS:-3} pngs=${PNGS:-20000} sides=${SIDES:-28 128} million=${MILLION:-1000000}
fail() { printf 'bench-label: %s\n' "$*" >&2; exit 2; }
"$python" -c 'import numpy, onnxruntime, PIL' 2>/dev/null ||
  fail "$python has no onnxruntime, NumPy and Pillow; set PYTHON to a Python that has them"
if [ -z "${ORT_DYLIB_PATH:-}" ]; then
  # The same library on both sides.
  ORT_DYLIB_PATH=$("$python" -c 'import glob, os, onnxruntime
print(glob.glob(os.path.dirname(onnxruntime.__file__) + "/capi/libonnxruntime.*")[0])')
  export ORT_DYLIB_PATH
fi
if [ $# -gt 0 ]; then
  folder=$1
  mkdir -p "$folder"
else
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
fi

cargo build --quiet --release -p dtkc-label --bins --examples
cargo build --quiet --release -p dtkc-infer --example bare_loop
target=${CARGO_TARGET_DIR:-target}/release
label=$target/dtkc-label make=$target/examples/bench_label bare=$target/examples/bare_loop

model=${MODEL:-models/mnist.onnx}
if [ ! -f "$model" ]; then
  model=$folder/random.onnx
  "$make" model "$model"
fi
echo "model $model, $threads threads, $repeats repeats, $(nproc) cores"

missed=0
median() { sort -g | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f", a / b }'; }
goal() { # goal TEXT VALUE COMPARISON LIMIT
  if awk -v v="$2" -v l="$4" "BEGIN { exit !(v $3 l) }"; then
    echo "  $1 $2 (goal $3 $4): reached"
  else
    echo "  $1 $2 (goal $3 $4): MISSED"
    missed=1
  fi
}
rate() { # rate ARGUMENTS...: images per second of a run of dtkc-label
  rm -f "$folder"/out.csv*
  "$label" --model "$model" --threads "$threads" --output "$folder/out.csv" --quiet --json "$@" |
    "$python" -c 'import json, sys; print(json.load(sys.stdin)["images_per_second"])'
}

echo "1. from HDF5"
[ -f "$folder/set.h5" ] || "$make" dataset "$folder/set.h5" 60000
cat "$folder/set.h5" >/dev/null
: >"$folder/ratios"
for _ in $(seq "$repeats"); do
  bare_rate=$("$bare" "$model" "$threads" 64 5 | awk '{ print $1 }')
  label_rate=$(rate --input "$folder/set.h5")
  echo "  bare loop $bare_rate, dtkc-label $(printf '%.0f' "$label_rate") images/s: $(ratio "$label_rate" "$bare_rate")"
  ratio "$label_rate" "$bare_rate" >>"$folder/ratios"
  echo >>"$folder/ratios"
done
goal "of the bare loop" "$(median <"$folder/ratios")" ">=" 0.9

for side in $sides; do
  echo "2. $pngs PNG files of $side x $side pixels"
  photos=$folder/pngs-$side-$pngs
  [ -d "$photos" ] || "$make" pngs "$photos" "$pngs" "$side"
  find "$photos" -type f -exec cat {} + >/dev/null
  : >"$folder/ratios"
  for _ in $(seq "$repeats"); do
    python_rate=$("$python" scripts/bench/label_pillow.py "$model" "$photos" "$folder/python.csv" "$threads")
    label_rate=$(rate --input "$photos")
    echo "  Python $python_rate, dtkc-label $(printf '%.0f' "$label_rate") images/s: $(ratio "$label_rate" "$python_rate")"
    ratio "$label_rate" "$python_rate" >>"$folder/ratios"
    echo >>"$folder/ratios"
  done
  "$python" - "$folder/python.csv" "$folder/out.csv" <<'PY'
import csv, sys
theirs, ours = (list(csv.DictReader(open(path, newline=""))) for path in sys.argv[1:])
same = sum(a["path"] == b["path"] and a["cluster"] == b["cluster"] for a, b in zip(theirs, ours))
print(f"  same cluster for {same} of {len(ours)} images")
PY
  goal "times Python" "$(median <"$folder/ratios")" ">=" 3
done

if [ "$million" -gt 0 ]; then
  echo "3. $million images from HDF5"
  [ -f "$folder/million.h5" ] || "$make" dataset "$folder/million.h5" "$million"
  rm -f "$folder"/out.csv*
  megabytes=$("$python" - "$label" --model "$model" --threads "$threads" --input "$folder/million.h5" \
    --output "$folder/out.csv" --quiet <<'PY'
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6)
PY
)
  goal "MB of memory at most:" "$megabytes" "<" 400
fi
exit $missed
