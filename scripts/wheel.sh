#!/usr/bin/env bash
# Builds the Python package: one wheel for every Python from 3.11 on, with the four programs and the bundled models in it.
#
#   scripts/wheel.sh [OUT]      OUT: folder for the wheel (default: out/wheel)
#
# MATURIN: the program, where it is not on the path; without one it is fetched into .tools.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${1:-out/wheel}
mkdir -p "$out"
out=$(cd "$out" && pwd)
scripts/setup.sh
tools=${DTKC_TOOLS:-$PWD/.tools}
# shellcheck source=/dev/null
. "$tools/env.sh"
if [ -z "${MATURIN:-}" ]; then
  MATURIN=$(command -v maturin || echo "$tools/python/bin/maturin")
  if [ ! -x "$MATURIN" ]; then
    MATURIN=$tools/maturin/bin/maturin
    [ -x "$MATURIN" ] || PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --target "$tools/maturin" "maturin>=1.9,<2"
  fi
fi

programs=(dtkc-data dtkc-train dtkc-label dtkc-serve)
target=${CARGO_TARGET_DIR:-$PWD/target}
# With the whole, so that nothing is compiled a second time with other features.
cargo build --release "${programs[@]/#/--package=}"

# Whatever the package holds beside its sources lies there only while it is built.
package=crates/dtkc-python/python/dtkc
trap 'rm -rf "${package:?}/bin" "${package:?}/models"' EXIT
rm -rf "${package:?}/bin" "${package:?}/models" "$out"/dtkc-*.whl
mkdir -p "$package/bin" "$package/models"
for program in "${programs[@]}"; do
  install -m 755 "$target/release/$program" "$package/bin/"
  strip "$package/bin/$program" 2>/dev/null || true
done
cp models/*.onnx "$package/models/"

"$MATURIN" build --release --manifest-path crates/dtkc-python/Cargo.toml --out "$out" --quiet
ls -lh "$out"/dtkc-*.whl
