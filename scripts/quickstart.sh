#!/usr/bin/env bash
# The main job from nothing to groups: sets up what is missing, builds, makes a small collection of drawn
# glyphs, learns its clusters without labels, labels it, and says what was written. Run it again: what exists is kept.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh
# shellcheck source=/dev/null
. "${DTKC_TOOLS:-.tools}/env.sh"

out=${1:-out/quickstart}
say() { printf '\n== %s\n' "$*"; }

say "build (the first time takes several minutes: burn and HDF5 are compiled once)"
cargo build --release --bins
bin=${CARGO_TARGET_DIR:-target}/release
mkdir -p "$out"

say "make the data: $out/glyphs.h5"
[ -e "$out/glyphs.h5" ] || "$bin/dtkc-data" synth --kind glyphs --count 6000 --seed 1 --out "$out/glyphs.h5"
"$bin/dtkc-data" preview "$out/glyphs.h5" --force --out "$out/glyphs.png"

say "train without labels: $out/run"
if [ -e "$out/run/model.onnx" ]; then
  echo "already trained; remove $out/run to train again"
elif [ -e "$out/run/config.toml" ]; then
  "$bin/dtkc-train" resume "$out/run"
else
  "$bin/dtkc-train" fit --data "$out/glyphs.h5" --clusters 10 --runs 1 --epochs 24 --seed 1 --out "$out/run"
fi

say "label the collection: $out/labels.csv and $out/gallery.html"
"$bin/dtkc-label" --model "$out/run/model.onnx" --input "$out/glyphs.h5" --truth --force \
  --output "$out/labels.csv" --gallery "$out/gallery.html"

cat <<END

Written to $out:
  glyphs.png     the collection, a contact sheet
  run/           the training run; run/model.onnx is the model, one file
  run/report.html  what was found: clusters as pictures, a map, warnings (docs/reading-a-report.md)
  labels.csv     a cluster for every image
  gallery.html   the clusters as pictures: open it in a browser

Try next, with your own images:
  $bin/dtkc-data import my-photos/ --size 32x32 --out my.h5
  $bin/dtkc-train fit --data my.h5 --clusters auto --out my-run
  $bin/dtkc-label --model my-run/model.onnx --input my-photos/ --output my.csv --gallery my.html

Or serve the model and post an image to it:
  $bin/dtkc-serve --model $out/run/model.onnx &
  curl --data-binary @image.png -H 'Content-Type: image/png' http://127.0.0.1:8080/v1/assign
END
