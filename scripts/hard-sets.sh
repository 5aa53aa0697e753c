#!/usr/bin/env bash
# The default command on sets that are hard in one way each: what it finds, and what it says about itself.
#
#   scripts/hard-sets.sh OUT [ROW...]
#
# All sets are generated. OUT: datasets, run folders and hard-sets.md, the table; what was stopped goes on where it was.
# ROW: names of the list below; all of them without any. DTKC_BIN: folder with the programs. THREADS: of each run (default:
# all cores; the result does not depend on it).
set -euo pipefail
# Name, number of clusters, what is hard.
rows='
plain       10  2,000 glyphs, nothing is hard
unbalanced  10  3,000 glyphs: one class has 40 %, one has 1 %
few         10  200 glyphs
dark        10  2,000 glyphs, dark ink on white paper
px64        10  2,000 glyphs of 64x64
px128       10  2,000 glyphs of 128x128
px256       10  1,000 glyphs of 256x256
signs100   100  3,000 images of 100 signs
signs300   300  6,000 images of 300 signs
'
[ $# -ge 1 ] || { sed -n '2,8p' "$0" >&2; exit 2; }
out=$1
shift
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "$out"
# Used by datasets.sh: nothing is downloaded.
# shellcheck disable=SC2034
data=none
# shellcheck source=scripts/datasets.sh
. "$here/scripts/datasets.sh"

glyphs() { "$DTKC_BIN/dtkc-data" synth --kind glyphs --seed 1 "$@"; }

unbalanced() { # One class in three sizes: a large one, a tiny one, eight of the same size.
  local all=$out/parts.h5
  glyphs --quiet --force --count 13000 --out "$all"
  part() { "$DTKC_BIN/dtkc-data" subset "$all" --classes "$2" --per-class "$3" --force --out "$out/part-$1.h5"; }
  part large ring 1200
  part tiny fork 30
  part same cross,triangle,zigzag,spiral,arrow,star,hash,eight 221
  "$DTKC_BIN/dtkc-data" merge "$out"/part-{large,tiny,same}.h5 --out "$1"
  rm -f "$all" "$out"/part-*.h5
}

make_set() { # make_set NAME FILE
  case $1 in
    plain) glyphs --count 2000 --out "$2" ;;
    unbalanced) unbalanced "$2" ;;
    few) glyphs --count 200 --out "$2" ;;
    dark) glyphs --count 2000 --dark --out "$2" ;;
    px256) glyphs --count 1000 --size 256x256 --out "$2" ;;
    px*) glyphs --count 2000 --size "${1#px}x${1#px}" --out "$2" ;;
    signs100) "$DTKC_BIN/dtkc-data" synth --kind signs --classes 100 --count 3000 --seed 1 --out "$2" ;;
    signs300) "$DTKC_BIN/dtkc-data" synth --kind signs --classes 300 --count 6000 --seed 1 --out "$2" ;;
  esac
}

# line NAME WHAT: a row of the table from the run's summary and what the program said
line() {
  python3 - "$out/$1" "$1" "$2" <<'PY'
import json, sys
run, name, what = sys.argv[1:]
summary = json.load(open(f"{run}/summary.json"))
text = open(f"{run}.log", encoding="utf-8", errors="replace").read().replace("\r", "\n")
said = [line.removeprefix("warning: ") for line in text.splitlines() if line.startswith("warning: ")]
part = lambda score, key: f"{summary[score][key]:.3f}".lstrip("0") if summary.get(score) else "-"
seconds = summary["timing"]["wall_seconds"]
accs = " ".join(f"{restart['acc']:.3f}".lstrip("0") for restart in summary["restarts"] if "acc" in restart)
print(f"| {name} | {what} | {part('acc', 'best')} / {part('nmi', 'best')} | {accs} | {seconds / 60:.1f} min | {'; '.join(dict.fromkeys(said)) or '-'} |")
PY
}

known_rows "$rows" "$@"
while read -r name clusters what; do
  wanted "$name" "$@" || continue
  set=$out/$name.h5
  [ -e "$set" ] || make_set "$name" "$set"
  [ -e "$out/$name/summary.json" ] || fit_or_resume "$out/$name" "$set" "$clusters" 2>&1 | tee -a "$out/$name.log"
done <<<"$rows"
{
  echo '| set | what | ACC / NMI of the chosen restart | ACC of every restart | time | what the program said |'
  echo '|---|---|---|---|---|---|'
  while read -r name _ what; do
    [ -z "$name" ] || [ ! -e "$out/$name/summary.json" ] || line "$name" "$what"
  done <<<"$rows"
} | tee "$out/hard-sets.md"
