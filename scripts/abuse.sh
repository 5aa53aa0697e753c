#!/usr/bin/env bash
# Attacks a dtkc-serve of its own with slow, broken, hostile and many clients, over loopback, and watches it: a health
# probe from another address every fifth of a second, and its memory. Ends with 1 unless
#   the probe was always answered within a second,
#   memory stayed under the bound that the service printed when it started,
#   and nothing but documented answers came back, and the service still works at the end.
#
#   scripts/abuse.sh [--seconds N] [--model NAME|PATH]
#
# About three minutes on a machine that does nothing else; --seconds (default 20) is how long each kind of silent client
# is kept. Linux: it uses many addresses of 127.0.0.0/8.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/serve-for-checks.sh

given=mnist seconds=20
while [ $# -gt 0 ]; do
  case $1 in
    --model) given=$2; shift 2 ;;
    --seconds) seconds=$2; shift 2 ;;
    *) fail "unknown flag $1; see the head of this script" ;;
  esac
done
[ -f "$given" ] || given=models/$given.onnx
[ -f "$given" ] || fail "there is no model file $given; give one with --model PATH"
# Every connection is a file, here and in the service.
ulimit -n "$(ulimit -Hn)"
build -p dtkc-serve --bins
start_server "$given" --api-key abuse-key 2>"${TMPDIR:-/tmp}/dtkc-abuse.log"
python3 scripts/abuse.py "${address#http://}" "$server" "$model" --seconds "$seconds"
