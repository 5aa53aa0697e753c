#!/usr/bin/env bash
# Labels a million images from a generated HDF5 file into CSV and Parquet and measures memory: the goal is a peak of
# less than 400 MB whatever the number of images.
#
#   scripts/bench-million.sh [FOLDER]
#
# FOLDER takes the files and keeps the dataset (default: a temporary folder, removed at the end; 800 MB are needed).
# Other settings: MODEL (mnist), THREADS (2), COUNT (1000000). Ends with exit code 1 if the goal is missed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh
# shellcheck source=/dev/null
. "${DTKC_TOOLS:-.tools}/env.sh"
. scripts/bench-folder.sh
model=${MODEL:-models/mnist.onnx} threads=${THREADS:-2} count=${COUNT:-1000000}
set=$folder/set-$count.h5
[ -f "$set" ] || "$target/examples/bench_label" dataset "$set" "$count"

python3 - "$target/dtkc-label" "$model" "$threads" "$set" "$folder" <<'PY'
import json, os, subprocess, sys

program, model, threads, dataset, folder = sys.argv[1:]
missed = False
for ending in ["csv", "parquet"]:
    out = os.path.join(folder, f"labels.{ending}")
    command = [program, "--model", model, "--threads", threads, "--input", dataset, "--output", out, "--force", "--quiet", "--json"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    output = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"error: dtkc-label ended with status {status}")
    summary = json.loads(output)
    peak = used.ru_maxrss * 1024 / 1e6
    missed = missed or peak >= 400
    print(f"{summary['labelled']:,} images to .{ending}: {summary['images_per_second']:,.0f} images/s in "
          f"{summary['seconds']:.0f} s; peak memory {peak:.0f} MB (goal < 400): {'MISSED' if peak >= 400 else 'reached'}")
    os.remove(out)
    os.remove(out + ".job.json")
sys.exit(1 if missed else 0)
PY
