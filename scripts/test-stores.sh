#!/usr/bin/env bash
# Azure Blob Storage by its emulator: npm's azurite, filled and read back with Microsoft's own Python package. The tests of S3 and of the protocol
# of Google Cloud Storage (against moto) are part of scripts/test.sh; this one fetches 100 MB, so it is not.
#
#   scripts/test-stores.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools=${DTKC_TOOLS:-$PWD/.tools}
command -v npm >/dev/null || { echo "error: npm is missing: install Node.js and run this again" >&2; exit 1; }
scripts/setup.sh
# shellcheck source=/dev/null
. "$tools/env.sh"
cargo build --release -p dtkc-data -p dtkc-label
[ -x "$tools/stores/bin/python" ] || python3 -m venv "$tools/stores"
"$tools/stores/bin/pip" install --quiet --disable-pip-version-check azure-storage-blob pillow
npm install --silent --prefix "$tools/stores/npm" azurite
work=$(mktemp -d)
port=$("$tools/stores/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$tools/stores/npm/node_modules/.bin/azurite-blob" --silent --inMemoryPersistence --skipApiVersionCheck \
  --blobHost 127.0.0.1 --blobPort "$port" >"$work/azurite.log" 2>&1 &
server=$!
trap 'kill "$server"; rm -rf "$work"' EXIT
PATH="${CARGO_TARGET_DIR:-$PWD/target}/release:$PATH" DTKC_MODELS=$PWD/models \
  "$tools/stores/bin/python" scripts/test-stores.py "$work" "$port"
