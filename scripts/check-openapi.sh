#!/usr/bin/env bash
# Schemathesis against dtkc-serve: made-up requests from /openapi.json, every answer checked against it.
#   scripts/check-openapi.sh [MODEL]       MODEL is a name or a path, mnist where it is not given
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/serve-for-checks.sh
python_with schemathesis schemathesis==4.32.5
start_server "${1:-mnist}"
DTKC_CHECK_MODEL=$model "$(dirname "$python")/schemathesis" --config-file scripts/schemathesis.toml run "$address/openapi.json"
