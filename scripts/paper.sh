#!/usr/bin/env bash
# Every table and figure of the paper, by this project: OUT/index.html shows each beside what the paper has.
#
#   scripts/paper.sh OUT [--fast] [--data DIR] [PART...]
#
# PART: tables lambda sigma mismatch importance clusters sequences; all of them without any. What was stopped goes on where it
# was. --fast: samples of 2,000 items, short training and two restarts, within an hour on two cores; it shows that everything
# works, its figures mean little. Without it: the published presets and 20 restarts, which is weeks on two cores.
# --data: a folder with usps/usps.h5, mnist/ and fashion-mnist/ (gzipped IDX files), coil-100/ (a zip), svhn/
# (train_32x32*.mat), character-trajectories/ (the trimmed .ts.gz), arabic-digits/ (both texts); they are downloaded without it.
# DTKC_BIN: folder with the programs. THREADS: of each run (default: all cores; the result does not depend on it).
set -euo pipefail
usage() { sed -n '2,12p' "$0" >&2; exit 2; }
[ $# -ge 1 ] && [ "${1#-}" = "$1" ] || usage
out=$1 data='' fast='' parts=()
shift
while [ $# -gt 0 ]; do
  case $1 in
    --fast) fast=1 ;;
    --data) data=${2:?"--data needs a folder"} && shift ;;
    tables | lambda | sigma | mismatch | importance | clusters | sequences) parts+=("$1") ;;
    *) usage ;;
  esac
  shift
done
[ ${#parts[@]} -gt 0 ] || parts=(tables lambda sigma mismatch importance clusters sequences)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "$out"
# What one was begun with, the other must not go on with.
kind=${fast:+fast}
kind=${kind:-full}
[ ! -e "$out/kind" ] || [ "$(cat "$out/kind")" = "$kind" ] || {
  echo "error: $out holds the $(cat "$out/kind") version; name another folder" >&2
  exit 2
}
echo "$kind" >"$out/kind"
# shellcheck source=scripts/datasets.sh
. "$here/scripts/datasets.sh"

if [ -n "$fast" ]; then
  mnist=mnist2k usps=usps2k coil=coilsmall2k fashion=fashion2k svhn=svhn2k runs=2 looks=(--epochs 20 --every 2)
  short=(--epochs 6)
  for method in dec idec dcn dbc spectralnet; do short+=(--set "$method.pretraining.epochs=10"); done
  short+=(--set spectralnet.siamese.epochs=10)
  sequences=(--epochs 10)
else
  mnist=mnist usps=usps coil=coil fashion=fashion svhn=svhn runs=20 looks=(--epochs 1200 --every 5)
  short=() sequences=()
fi

# files NAME...: makes the datasets, and names their files in `files`
files() {
  local name
  files=()
  for name in "$@"; do
    dataset "$name"
    files+=("$out/$name.h5")
  done
}

# train COMMAND FLAG...: a failure is told at the end and costs nothing else; an interrupt ends everything
failed=()
train() {
  local command=$1 code=0
  shift
  "$DTKC_BIN/dtkc-train" "$command" --threads "${THREADS:-0}" "$@" || code=$?
  [ $code -ne 130 ] || exit 130
  [ $code -eq 0 ] || failed+=("$command in ${*: -1}")
}

# table OUT METHODS PRESETS SET...: a comparison with the paper's settings
table() {
  local folder=$1 methods=$2 presets=$3 preset words=()
  shift 3
  files "$@"
  for preset in ddc=paper dtkc=paper ${presets//,/ }; do words+=(--preset "$preset"); done
  train compare --data "${files[@]}" --methods "$methods" --runs "$runs" --seed 1 --no-export --against paper "${words[@]}" \
    ${short[@]+"${short[@]}"} --out "$out/$folder"
}

tables() {
  local own=dcn=published
  table tables-mnist all "dec=mnist,idec=mnist,dbc=mnist,$own" "$mnist"
  table tables-usps all "dec=usps,idec=usps,dbc=usps,$own" "$usps"
  table tables-coil kmeans,spectral,dbc,dec,ddc,dtkc "" "$coil"
  table tables-more ddc,dtkc "" "$fashion" "$svhn"
}

lambda() {
  files "$mnist"
  train sweep --data "${files[@]}" --like paper-lambda --runs "$runs" --seed 1 ${short[@]+"${short[@]:0:2}"} --out "$out/lambda"
}

sigma() {
  files "$mnist" "$usps"
  train sweep --data "${files[@]}" --like paper-sigma --runs "$runs" --seed 1 ${short[@]+"${short[@]:0:2}"} --out "$out/sigma"
}

mismatch() {
  files "$mnist"
  train mismatch --data "${files[@]}" --seed 1 "${looks[@]}" --out "$out/mismatch"
}

# trained METHOD: the comparison's run on MNIST, which is made if it is not there
trained() {
  [ -e "$out/tables-mnist/$mnist/$1/summary.json" ] || table tables-mnist "$1" "" "$mnist"
}

importance() {
  local method
  for method in ddc dtkc; do
    trained "$method"
    [ -e "$out/importance-$method/sheet.png" ] || train explain --model "$out/tables-mnist/$mnist/$method" \
      --input "$out/$mnist.h5" --count 40 --seed 1 --out "$out/importance-$method"
  done
}

clusters() {
  local method
  for method in ddc dtkc; do
    trained "$method"
    train report --force "$out/tables-mnist/$mnist/$method" --out "$out/clusters-$method.html"
  done
}

sequences() {
  files trajectories arabic
  train compare --data "${files[@]}" --methods ddc,dtkc --preset ddc=paper --preset dtkc=paper --runs "$runs" --seed 1 --no-export \
    --against paper ${sequences[@]+"${sequences[@]}"} --out "$out/sequences"
}

for part in "${parts[@]}"; do
  echo "$part" >&2
  "$part"
  python3 "$here/scripts/paper.py" "$out"
done
[ ${#failed[@]} -eq 0 ] || {
  printf 'error: failed, for reasons above: %s; the same command tries again\n' "${failed[*]}" >&2
  exit 1
}
echo "everything is on $out/index.html" >&2
