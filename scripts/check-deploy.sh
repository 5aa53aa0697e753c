#!/usr/bin/env bash
# Starts deploy/dtkc-serve.service under a systemd of its own (a small Debian in systemd-nspawn), asks it, has it reload and
# stops it. Changes nothing outside of the tools folder.
#   apt-get install systemd-container debootstrap && scripts/check-deploy.sh      as root; fetches about 70 MB once
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/serve-for-checks.sh
for program in systemd-nspawn debootstrap; do
  command -v "$program" >/dev/null || fail "$program is missing: apt-get install systemd-container debootstrap, then run this again"
done
[ "$(id -u)" = 0 ] || fail "only root can start a container with systemd in it; run this as root"
[ -n "${ORT_DYLIB_PATH:-}" ] || fail "ONNX Runtime is missing: run scripts/setup.sh first"
build -p dtkc-serve

root=$tools/deploy-root
if [ ! -e "$root.made" ]; then
  say "making a Debian in $root"
  rm -rf "$root"
  debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,curl bookworm "$root" >"$root.log" ||
    fail "debootstrap failed; $root.log says why"
  touch "$root.made"
fi
install -m 755 "$target/release/dtkc-serve" "$root/usr/local/bin/"
install -m 644 "$ORT_DYLIB_PATH" "$root/usr/local/lib/libonnxruntime.so"
install -D -m 644 -t "$root/usr/local/share/dtkc/models" models/*.onnx
install -m 644 deploy/dtkc-serve.service "$root/etc/systemd/system/"
cat >"$root/etc/dtkc-serve.env" <<'SETTINGS'
DTKC_MODELS=/usr/local/share/dtkc/models
ORT_DYLIB_PATH=/usr/local/lib/libonnxruntime.so
DTKC_API_KEY=secret
DTKC_PORT=18080
SETTINGS

# What is asked, inside; the machine ends afterwards, whatever came out.
cat >"$root/usr/local/bin/check" <<'CHECK'
#!/bin/bash
set -euo pipefail
ask() { curl --silent --show-error --fail --header 'x-api-key: secret' "$@"; }
for _ in $(seq 300); do if ask http://127.0.0.1:18080/readyz; then break; fi; sleep 0.1; done
[ "$(curl --silent --output /dev/null --write-out '%{http_code}' http://127.0.0.1:18080/v1/models)" = 401 ]
ask http://127.0.0.1:18080/v1/models | grep --quiet '"mnist"'
base64 --decode >/tmp/a.png <<<'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=='
ask --form image=@/tmp/a.png http://127.0.0.1:18080/v1/assign | grep --quiet '"failed":0'
ask --request PUT --json '{"name": "sevens"}' http://127.0.0.1:18080/v1/models/mnist/clusters/0
ls /var/lib/dtkc-serve/*.names.json
user=$(systemctl show --property=MainPID --value dtkc-serve | xargs -I{} stat --format=%u /proc/{})
[ "$user" != 0 ]
systemctl reload dtkc-serve
ask http://127.0.0.1:18080/readyz
systemctl stop dtkc-serve
[ "$(systemctl show --property=Result,NRestarts --value dtkc-serve | sort | xargs)" = "0 success" ]
echo "checked as user $user"
CHECK
chmod 755 "$root/usr/local/bin/check"
cat >"$root/etc/systemd/system/check.service" <<'UNIT'
[Unit]
After=dtkc-serve.service
Wants=dtkc-serve.service
SuccessAction=exit
FailureAction=exit
SuccessActionExitStatus=0
FailureActionExitStatus=1
[Service]
Type=oneshot
ExecStart=/usr/local/bin/check
StandardOutput=file:/check.log
StandardError=file:/check.log
UNIT
rm -f "$root/check.log"
say "starting it"
if ! timeout 180 systemd-nspawn --quiet --directory "$root" --register=no --keep-unit --private-network --boot \
  systemd.unit=check.service >"$root.boot.log" 2>&1; then
  cat "$root/check.log" 2>/dev/null || true
  fail "the unit did not pass; $root.boot.log has what systemd said"
fi
tail -n 1 "$root/check.log"
say "the unit starts, answers, reloads, keeps names and stops"
