#!/usr/bin/env bash
# Runs the experiments of REPRODUCING.md; each ends with the table of its restarts. A run that was stopped goes on where
# it was; of a run that is done only the table is printed.
#
#   scripts/reproduce.sh DATA OUT [ROW...]
#
# DATA: a folder with usps/usps.h5, mnist/ and fashion-mnist/ (the gzipped IDX files of each). OUT: where datasets and run
# folders go. ROW: names of the list below; all of them without any. DTKC_BIN: folder with the programs. THREADS: of
# each run (default: all cores; the result does not depend on it).
set -euo pipefail
rows='
usps-dtkc-plus        usps    10  8
usps-ddc-plus         usps    10  6
usps-dtkc-authors     usps     5 10
usps-ddc-authors      usps     5 10
usps-dtkc-tk-uco      usps     5 10
usps-ddc-tk-uco       usps     5 10
mnist-dtkc-plus       mnist    3  4
mnist-dtkc-authors    mnist    1  2
fashion-dtkc-plus     fashion  3  3
fashion-dtkc-authors  fashion  1  2
'
[ $# -ge 2 ] || { sed -n '2,9p' "$0" >&2; exit 2; }
data=$1 out=$2
shift 2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "$out"
if [ -z "${DTKC_BIN:-}" ]; then
  "$here/scripts/setup.sh"
  # shellcheck source=/dev/null
  . "${DTKC_TOOLS:-$here/.tools}/env.sh"
  (cd "$here" && cargo build --release --workspace)
  DTKC_BIN=${CARGO_TARGET_DIR:-$here/target}/release
fi

dataset() { # dataset NAME: imports it unless it is there
  local file=$out/$1.h5
  [ -e "$file" ] && return
  case $1 in
    usps) "$DTKC_BIN/dtkc-data" import "$data/usps/usps.h5" --size 32x32 --out "$file" ;;
    mnist) "$DTKC_BIN/dtkc-data" import "$data/mnist/train-images-idx3-ubyte.gz" --out "$file" ;;
    fashion) "$DTKC_BIN/dtkc-data" import "$data/fashion-mnist/train-images-idx3-ubyte.gz" --out "$file" ;;
  esac
}

wanted() { # wanted NAME LIST...: whether NAME is in the list, or the list is empty
  local name=$1 one
  shift
  [ $# -eq 0 ] && return
  for one in "$@"; do [ "$one" = "$name" ] && return; done
  return 1
}

for one in "$@"; do
  grep -q "^$one " <<<"$rows" || { echo "error: there is no row $one; see the head of this script" >&2; exit 2; }
done
while read -r name set runs epochs; do
  [ -z "$name" ] && continue
  wanted "$name" "$@" || continue
  run=$out/$name
  method=${name#*-} preset=${name#*-*-}
  method=${method%%-*}
  dataset "$set"
  if [ -e "$run/config.toml" ]; then
    "$DTKC_BIN/dtkc-train" resume "$run" --no-export
  else
    "$DTKC_BIN/dtkc-train" fit --data "$out/$set.h5" --clusters 10 --out "$run" --method "$method" --preset "$preset" \
      --runs "$runs" --epochs "$epochs" --seed 1 --no-prune --no-export --threads "${THREADS:-0}"
  fi
done <<<"$rows"
