#!/usr/bin/env bash
# Measures labelling through a network of others: dtkc-label on a dataset and on a folder of PNG files beside a bare loop of
# ONNX Runtime in Python that runs the same model file over pixels in memory. Each is a ratio within one run.
#
#   scripts/bench-backbone.sh MODEL.onnx DATA.h5 [FOLDER]
#
# MODEL.onnx is what `fit --backbone` exported, DATA.h5 the images that it was trained on, or others of that size. FOLDER takes
# the PNG files and keeps them (default: a temporary folder, removed at the end). Settings: PYTHON (python3; needs onnxruntime
# and NumPy), THREADS (2), REPEATS (3), BATCH (64), SECONDS_EACH (10), PNGS (2000). Ratios are given in images per second
# and in images per CPU second, which a busy machine disturbs least.
set -euo pipefail
wrong() { printf 'error: %s\n' "$*" >&2; exit 2; }
[ $# -ge 2 ] || wrong "model and dataset are missing; usage: scripts/bench-backbone.sh MODEL.onnx DATA.h5 [FOLDER]"
for file in "$1" "$2"; do [ -f "$file" ] || wrong "there is no file $file"; done
model=$(realpath "$1") data=$(realpath "$2")
shift 2
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh
# shellcheck source=/dev/null
. "${DTKC_TOOLS:-.tools}/env.sh"
python=${PYTHON:-python3}
threads=${THREADS:-2} repeats=${REPEATS:-3} batch=${BATCH:-64} seconds=${SECONDS_EACH:-10} pngs=${PNGS:-2000}
"$python" -c 'import numpy, onnxruntime' 2>/dev/null || wrong "$python has no onnxruntime and NumPy; set PYTHON to one that has"
# The same library on both sides.
ORT_DYLIB_PATH=$("$python" -c 'import glob, os, onnxruntime
print(glob.glob(os.path.dirname(onnxruntime.__file__) + "/capi/libonnxruntime.*")[0])')
export ORT_DYLIB_PATH
. scripts/bench-folder.sh
label=$target/dtkc-label

run_label() { # run_label INPUT: images per second and images per CPU second
  rm -f "$folder"/out.csv*
  "$python" - "$label" --model "$model" --threads "$threads" --output "$folder/out.csv" --quiet --json --input "$1" <<'PY'
import json, resource, subprocess, sys
output = subprocess.run(sys.argv[1:], check=True, stdout=subprocess.PIPE).stdout
used = resource.getrusage(resource.RUSAGE_CHILDREN)
summary = json.loads(output)
print(f"{summary['images_per_second']:.1f} {summary['images'] / (used.ru_utime + used.ru_stime):.1f}")
PY
}
median() { sort -g | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
compare() { # compare NAME INPUT
  echo "$1"
  : >"$folder/ratios"
  for _ in $(seq "$repeats"); do
    theirs=$("$python" scripts/bench/backbone_loop.py "$model" "$threads" "$batch" "$seconds")
    echo "$theirs $(run_label "$2")" | awk -v ratios="$folder/ratios" '{
      printf "   bare loop %s, dtkc-label %s images/s: %.2f (per CPU second %s and %s: %.2f)\n", $1, $3, $3 / $1, $2, $4, $4 / $2
      print $3 / $1 >>ratios }'
  done
  echo "   of the bare loop: $(median <"$folder/ratios")"
}

echo "model $model, $threads threads, $repeats repeats, $(nproc) cores, load $(cut -d ' ' -f 1 /proc/loadavg)"
cat "$data" >/dev/null
compare "from HDF5" "$data"
photos=$folder/pngs-$pngs
[ -d "$photos" ] || "$target/examples/bench_label" pngs "$photos" "$pngs" 256
find "$photos" -type f -exec cat {} + >/dev/null
compare "from $pngs PNG files of 256 x 256 pixels" "$photos"
