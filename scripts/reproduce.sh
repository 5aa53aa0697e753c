#!/usr/bin/env bash
# Runs the experiments of REPRODUCING.md; each ends with its table. What was stopped goes on where it was; of what is done
# only the table is printed.
#
#   scripts/reproduce.sh DATA OUT [ROW...]
#
# DATA: a folder with usps/usps.h5, mnist/ and fashion-mnist/ (the gzipped IDX files of each), coil-100/ (a zip of its images),
# svhn/ (train_32x32*.mat), character-trajectories/ (both .ts.gz), arabic-digits/ (both texts). OUT: where datasets and run folders go. ROW: names of the two lists below; all of them without
# any. DTKC_BIN: folder with the programs. THREADS: of each run (default: all cores; the result does not depend on it). SEEDS: of the default command (default: 1); the runs of another
# seed S are in OUT/ROW-S.
set -euo pipefail
# The default command on each set: name, dataset, clusters.
defaults='
glyphs   glyphs   10
usps     usps28   10
mnist    mnist    10
fashion  fashion  10
svhn     svhn     10
coil     coil    100
letters  trajectories  10
arabic   arabic   10
'
# Comparisons at equal seeds: name, datasets, flags of `dtkc-train compare`.
comparisons='
companions        usps28,fashion10k  --methods ddc,dtkc --runs 5 --epochs 10
companion-cells   usps28-4k          --methods ddc,dtkc,dtkc+lambda=0.1,dtkc+lambda=1,CELL.sigma=0.5,CELL.sigma=1,CELL.sigma=2,CELL.bandwidth=nearest+COMPANIONS.sigma=1,CELL.sigma=1+loss.kernel=naive,dtkc+lambda=0.1+loss.kernel=identity,dtkc+lambda=1+COMPANIONS.detached=true,dtkc+lambda=1+COMPANIONS.detached=true+COMPANIONS.sigma=1 --runs 5 --epochs 10
companion-more    usps28-4k          --methods ddc,CELL.sigma=1+COMPANIONS.until=7,dtkc+lambda=1+COMPANIONS.sigma=1+COMPANIONS.until=7,dtkc+COMPANIONS.views=0.1 --runs 5 --epochs 10
companion-sets    fashion4k,mnist4k  --methods ddc,dtkc+lambda=0.1,dtkc+lambda=1,CELL.sigma=1,dtkc+lambda=1+COMPANIONS.detached=true+COMPANIONS.sigma=1,dtkc+lambda=0.1+loss.kernel=identity --runs 5 --epochs 10
companion-taps    usps28-4k,fashion4k --methods CELL.sigma=1 --set dtkc.network.blocks=[{kernel=5,filters=32,tap="unpooled"},{kernel=3,filters=32,tap="unpooled"}] --runs 5 --epochs 10
ablation          usps28-4k,mnist4k  --methods ddc,ddc+start.strays=false,ddc+neighbours.share=0,ddc+start.join=fine,ddc+start.from=fine,ddc+start.from=graph,ddc+start.from=random,ddc+network.fine=0+start.from=random,ddc+loss.mutual_information=0,ddc+loss.consistency=0,ddc+loss.separation=0+loss.orthogonality=0+loss.simplex=0,ddc+loss.separation=0+loss.orthogonality=0+loss.simplex=0+loss.consistency=0,ddc+augment.brightness=0+augment.contrast=0+augment.gamma=0,ddc+augment.aspect=0 --runs 3 --epochs 12
letters-published trajectories       --methods ddc,dtkc --preset ddc=authors --preset dtkc=authors --runs 20
letters-untrimmed untrimmed          --methods ddc,dtkc --preset ddc=authors --preset dtkc=authors --runs 20
arabic-published  arabic             --methods ddc,dtkc --preset ddc=authors --preset dtkc=authors --runs 12
methods-usps      usps               --methods dec,dec+lambda=0.01,idec,idec+lambda=0.01,dcn,dcn+lambda=0.01 --runs 5 --epochs 10 --set dec.pretraining.epochs=15 --set idec.pretraining.epochs=15 --set dcn.pretraining.epochs=15
methods-mnist     mnist              --methods kmeans,dec,idec,dcn --runs 3 --epochs 10 --set dec.pretraining.epochs=20 --set idec.pretraining.epochs=20 --set dcn.pretraining.epochs=20
'
[ $# -ge 2 ] || { sed -n '2,11p' "$0" >&2; exit 2; }
data=$1 out=$2
shift 2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "$out"
# shellcheck source=scripts/datasets.sh
. "$here/scripts/datasets.sh"

known_rows "$defaults$comparisons" "$@"
while read -r name set clusters; do
  wanted "$name" "$@" || continue
  dataset "$set"
  for seed in ${SEEDS:-1}; do
    run=$out/$name
    [ "$seed" = 1 ] || run=$run-$seed
    fit_or_resume "$run" "$out/$set.h5" "$clusters" "$seed"
  done
done <<<"$defaults"
while read -r name sets flags; do
  wanted "$name" "$@" || continue
  files=()
  for set in ${sets//,/ }; do
    dataset "$set"
    files+=("$out/$set.h5")
  done
  flags=${flags//CELL/dtkc+lambda=0.1+COMPANIONS}
  read -ra words <<<"${flags//COMPANIONS/loss.companions}"
  "$DTKC_BIN/dtkc-train" compare --data "${files[@]}" --seed 1 --threads "${THREADS:-0}" --no-export --against paper \
    "${words[@]}" --out "$out/$name"
done <<<"$comparisons"
