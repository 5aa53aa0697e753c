# shellcheck shell=bash
# shellcheck disable=SC2154
# For scripts that train on the paper's datasets; they set `here`, `out`, and `data` (a folder with the publishers' files, or
# empty to download them), and source this.

# Builds the programs unless DTKC_BIN says where they are.
[ -n "${DTKC_BIN:-}" ] || "$here/scripts/setup.sh"
tools=${DTKC_TOOLS:-$here/.tools}
# shellcheck source=/dev/null
[ ! -e "$tools/env.sh" ] || . "$tools/env.sh"
if [ -z "${DTKC_BIN:-}" ]; then
  (cd "$here" && cargo build --release --bins)
  DTKC_BIN=${CARGO_TARGET_DIR:-$here/target}/release
fi

# publisher NAME FOLDER FILE... -- FLAG...: imports files of the folder FOLDER in `data`, or downloads the set NAME
publisher() {
  local name=$1 folder=$2 files=()
  shift 2
  while [ "$1" != -- ]; do
    # Names of files may be patterns.
    # shellcheck disable=SC2206
    files+=("$data/$folder"/$1)
    shift
  done
  shift
  if [ -n "$data" ]; then
    "$DTKC_BIN/dtkc-data" import "${files[@]}" "$@"
  else
    "$DTKC_BIN/dtkc-data" fetch "$name" "$@"
  fi
}

# dataset NAME: makes OUT/NAME.h5 unless it is there. NAME10k, NAME3k, NAME28-4k: a random sample of so many thousand.
dataset() {
  local file=$out/$1.h5 whole
  [ -e "$file" ] && return
  case $1 in
    *[0-9]k)
      case $1 in *-*) whole=${1%-*} ;; *) whole=${1%%[0-9]*k} ;; esac
      dataset "$whole"
      local thousands=${1#"$whole"}
      thousands=${thousands#-}
      "$DTKC_BIN/dtkc-data" subset "$out/$whole.h5" --sample "${thousands%k}000" --seed 1 --out "$file"
      ;;
    glyphs) "$DTKC_BIN/dtkc-data" synth --kind glyphs --count 6000 --seed 1 --out "$file" ;;
    usps) publisher usps usps usps.h5 -- --size 32x32 --out "$file" ;;
    usps28) publisher usps usps usps.h5 -- --size 28x28 --out "$file" ;;
    mnist) publisher mnist mnist train-images-idx3-ubyte.gz -- --out "$file" ;;
    fashion) publisher fashion-mnist fashion-mnist train-images-idx3-ubyte.gz -- --out "$file" ;;
    coil) publisher coil-100 coil-100 '*.zip' -- --out "$file" ;;
    coilsmall) publisher coil-100 coil-100 '*.zip' -- --size 32x32 --out "$file" ;;
    svhn) publisher svhn svhn 'train_32x32*.mat' -- --out "$file" ;;
    # The first ten letters. In the untrimmed file the length gives the letter away.
    trajectories | untrimmed)
      local part=Trimmed
      [ "$1" = trajectories ] || part=
      [ -n "$part$data" ] || { echo "error: the set untrimmed cannot be downloaded: name a folder with CharacterTrajectories.ts.gz" >&2; return 2; }
      publisher character-trajectories character-trajectories "CharacterTrajectories$part.ts.gz" -- --out "$out/letters$part.h5"
      "$DTKC_BIN/dtkc-data" subset "$out/letters$part.h5" --classes a,b,c,d,e,g,h,l,m,n --out "$file"
      ;;
    arabic)
      publisher arabic-digits arabic-digits Train_Arabic_Digit.txt.gz Test_Arabic_Digit.txt.gz -- --out "$file"
      ;;
    *)
      echo "error: there is no dataset $1 in scripts/datasets.sh" >&2
      return 2
      ;;
  esac
}

# known_rows LIST NAME...: refuses a NAME that begins no line of the LIST
known_rows() {
  local list=$1 one
  shift
  for one in "$@"; do
    grep -q "^$one " <<<"$list" || { echo "error: there is no row $one; see the head of this script" >&2; exit 2; }
  done
}

# wanted NAME LIST...: whether NAME is in the list, or the list is empty; a line without a name never is
wanted() {
  local name=$1
  shift
  [ -n "$name" ] && { [ $# -eq 0 ] || [[ " $* " == *" $name "* ]]; }
}

# fit_or_resume RUN SET CLUSTERS [SEED]: the default command, or what it left
fit_or_resume() {
  if [ -e "$1/config.toml" ]; then
    "$DTKC_BIN/dtkc-train" resume "$1"
  else
    "$DTKC_BIN/dtkc-train" fit --data "$2" --clusters "$3" --seed "${4:-1}" --threads "${THREADS:-0}" --out "$1"
  fi
}
