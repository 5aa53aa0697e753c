# shellcheck shell=bash
# Sourced by the checks of dtkc-serve: a server on a free port, and Python packages in a folder of their own.

tools=${DTKC_TOOLS:-$PWD/.tools}
target=${CARGO_TARGET_DIR:-$PWD/target}
# shellcheck source=/dev/null
if [ -f "$tools/env.sh" ]; then . "$tools/env.sh"; fi

say() { printf '%s\n' "check: $*" >&2; }
fail() { printf '%s\n' "error: $*" >&2; exit 1; }

# python_with NAME PACKAGE...: sets `python` to an interpreter that has the packages.
python_with() {
  local folder=$tools/venv-$1
  shift
  python=$folder/bin/python
  if [ "$(cat "$folder/stamp" 2>/dev/null)" != "$*" ]; then
    say "fetching $* into $folder"
    rm -rf "$folder"
    python3 -m venv "$folder" || fail "python3 cannot make a virtual environment; install python3-venv and run this again"
    "$python" -m pip install --quiet --disable-pip-version-check "$@" ||
      fail "pip could not install $*: check the network and run this again"
    printf '%s' "$*" >"$folder/stamp"
  fi
}

# build ARGUMENT...: cargo build, unless DTKC_NO_BUILD says that everything is built.
build() { [ -n "${DTKC_NO_BUILD:-}" ] || cargo build --release --quiet "$@"; }

# start_server MODEL [FLAG...]: builds, starts, sets `address` and `model`; the server ends with the script.
start_server() {
  # shellcheck disable=SC2034 # for the script that sources this one
  model=$(basename "$1" .onnx)
  build -p dtkc-serve
  work=$(mktemp -d)
  "$target/release/dtkc-serve" --port 0 --state-dir "$work" --log-level warn --model "$@" >"$work/out" &
  server=$!
  trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
  for _ in $(seq 300); do
    address=$(sed -n 's/^ *page *//p' "$work/out")
    if [ -n "$address" ]; then break; fi
    kill -0 "$server" 2>/dev/null || fail "dtkc-serve did not start; its message is above"
    sleep 0.1
  done
  [ -n "$address" ] || fail "dtkc-serve was not ready within 30 s"
  address=${address%/}
}
