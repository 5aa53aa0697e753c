#!/bin/sh
# Measures the data loader on a file of 1 GB, warm, and compares random access with h5py in the same run.
#
#   PYTHON=python3 scripts/bench-data.sh [FOLDER]
#
# FOLDER takes the test file (default: a temporary folder, removed at the end); PYTHON must have h5py and
# NumPy. Other settings: MEGABYTES (1000), SIDE (32), REPEATS (3), GZIP (a level; default not compressed).
# Ends with exit code 1 if a goal is missed: 200 MB/s streamed, 3 times h5py at random.
set -eu

cd "$(dirname "$0")/.."
scripts/setup.sh
# shellcheck source=/dev/null
. "${DTKC_TOOLS:-.tools}/env.sh"
python=${PYTHON:-python3}
megabytes=${MEGABYTES:-1000} side=${SIDE:-32} repeats=${REPEATS:-3} batch=120
if ! "$python" -c 'import h5py, numpy' 2>/dev/null; then
    echo "bench-data: $python has no h5py and NumPy; set PYTHON to a Python that has them" >&2
    exit 2
fi
if [ $# -gt 0 ]; then
    folder=$1
    mkdir -p "$folder"
else
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT INT TERM
fi

cargo build --quiet --release -p dtkc-dataset --example bench_data
bench=${CARGO_TARGET_DIR:-target}/release/examples/bench_data
file=$folder/bench-data-$megabytes-$side-${GZIP:-0}.h5
log=$folder/bench-data.log
: >"$log"

[ -f "$file" ] || "$bench" make "$file" --megabytes "$megabytes" --side "$side" ${GZIP:+--gzip "$GZIP"} >>"$log"
"$bench" indices "$file" "$folder/indices" --batch $batch
cat "$file" >/dev/null # warm

for _ in $(seq "$repeats"); do
    "$bench" random "$file" "$folder/indices" --batch $batch
    "$python" scripts/bench-data.py "$file" "$folder/indices" $batch
    "$bench" epochs "$file" --batch $batch
    "$bench" epochs "$file" --batch $batch --memory
done >>"$log"

"$python" - "$log" <<'PYTHON'
import json, statistics, sys

rates, sums = {}, {}
for line in open(sys.argv[1]):
    run = json.loads(line)
    rates.setdefault(run["what"], []).append(run["megabytes_per_second"])
    sums.setdefault(run["what"], set()).add(run["checksum"])
for what, title in [
    ("write", "writing"), ("stream", "minibatches, streamed"), ("memory", "minibatches, in memory"),
    ("random", "random batches"), ("h5py", "random batches, h5py"),
]:
    if what in rates:
        r = rates[what]
        print(f"{title:26} median {statistics.median(r):8.0f} MB/s   best {max(r):8.0f}   worst {min(r):8.0f}")
ratio = statistics.median(a / b for a, b in zip(rates["random"], rates["h5py"]))
print(f"random batches against h5py: {ratio:.1f} times as fast (median of {len(rates['h5py'])} pairs)")
assert sums["random"] == sums["h5py"], "both sides must have read the same pixels"
assert sums["stream"] == sums["memory"], "an epoch must hold the same pixels in both modes"
stream = statistics.median(rates["stream"])
ok = stream >= 200 and ratio >= 3
print("goals (200 MB/s streamed, 3 times h5py):", "met" if ok else "MISSED")
sys.exit(0 if ok else 1)
PYTHON
