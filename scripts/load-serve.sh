#!/usr/bin/env bash
# Measures dtkc-serve on this machine, over loopback:
#   throughput   keep-alive clients post PNGs in groups of 32; against dtkc-label on the same PNGs with the same
#                number of worker threads
#   latency      one image at low load; against decoding and inference in one process
#   overload     with --overload: ten times the sustainable load for 60 s; answers, memory, recovery
# Ends with 1 where the service does not hold what it promises.
#
#   scripts/load-serve.sh [--model NAME|PATH] [--workers N] [--repeats N] [--overload [SECONDS]] [--build]
#
# On a machine that is made quiet for the measurement, build before: --build only builds, and with DTKC_NO_BUILD=1
# nothing is built. The whole then takes about two minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/serve-for-checks.sh

given=mnist workers=$(nproc) repeats=3 overload=0 only_build=false
while [ $# -gt 0 ]; do
  case $1 in
    --model) given=$2; shift 2 ;;
    --workers) workers=$2; shift 2 ;;
    --repeats) repeats=$2; shift 2 ;;
    --overload)
      overload=60; shift
      if [[ ${1:-} =~ ^[0-9]+$ ]]; then overload=$1; shift; fi ;;
    --build) only_build=true; shift ;;
    *) fail "unknown flag $1; see the head of this script" ;;
  esac
done
[ -f "$given" ] || given=models/$given.onnx
[ -f "$given" ] || fail "there is no model file $given; give one with --model PATH"

build -p dtkc-serve -p dtkc-label --bins
build -p dtkc-serve --example load
if $only_build; then exit; fi
start_server "$given" --workers "$workers"
load=$target/release/examples/load
host=${address#http://}
images=12800
"$load" images "$given" "$work/images" "$images"
"$load" throughput "$host" "$work/images" --seconds 2 >/dev/null # warm-up

median() { sort -n | sed -n "$((repeats / 2 + 1))p"; }
# Both numbers are taken in turn, so that what else the machine does hits both.
for _ in $(seq "$repeats"); do
  "$load" throughput "$host" "$work/images" --clients $((2 * workers)) >>"$work/serve"
  "$target/release/dtkc-label" --model "$given" --input "$work/images" --output "$work/labels.csv" \
    --threads "$workers" --json --quiet >"$work/label.json"
  rm -f "$work"/labels.csv*
  python3 -c 'import json,sys; r = json.load(open(sys.argv[1])); print(round(r["images_per_second"]))' \
    "$work/label.json" >>"$work/label"
done
serve=$(median <"$work/serve") label=$(median <"$work/label")
printf 'throughput with %s workers, median of %s (dtkc-serve: %s; dtkc-label: %s)\n' "$workers" "$repeats" \
  "$(tr '\n' ' ' <"$work/serve")" "$(tr '\n' ' ' <"$work/label")"
printf '  dtkc-label  %6d images/s\n  dtkc-serve  %6d images/s = %d %% (at least 80)\n' \
  "$label" "$serve" $((100 * serve / label))
held=true
[ $((100 * serve)) -ge $((80 * label)) ] || held=false

printf 'latency of one image\n'
"$load" latency "$host" "$work/images" "$given" | sed 's/^/  /' || held=false

if [ "$overload" -gt 0 ]; then
  printf 'overload\n'
  "$load" overload "$host" "$work/images" --seconds "$overload" | sed 's/^/  /' || held=false
fi
$held || fail "the service does not hold what it promises on this machine, see above"
