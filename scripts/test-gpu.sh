#!/usr/bin/env bash
# Trains a few real steps on a GPU device and compares the losses with the CPU's. Without a GPU, Mesa's software Vulkan
# will do (Debian/Ubuntu: apt-get install mesa-vulkan-drivers). Losses are compared, not weights: gradients near zero
# flip their sign between devices and Adam makes a full step of either.
#
#   scripts/test-gpu.sh [DEVICE]          default wgpu; also cuda, rocm, vulkan, metal
#
# The build goes to its own folder (DTKC_GPU_TARGET, default target-gpu), because another set of burn's features would
# rebuild everything in the usual one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh
# shellcheck source=/dev/null
. "${DTKC_TOOLS:-.tools}/env.sh"
device=${1:-wgpu}
feature=${device%%:*}
export CARGO_TARGET_DIR=${DTKC_GPU_TARGET:-$PWD/target-gpu}
cargo build --release -p dtkc-train -p dtkc-data --features "dtkc-train/$feature"
bin=$CARGO_TARGET_DIR/release
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Mesa asks for it even where there is no screen.
export XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-$work}

"$bin/dtkc-train" devices
"$bin/dtkc-data" synth --kind glyphs --count 360 --seed 3 --out "$work/glyphs.h5" --quiet >/dev/null
for where in cpu "$device"; do
  "$bin/dtkc-train" fit --data "$work/glyphs.h5" --clusters 10 --preset authors --runs 1 --epochs 2 --seed 1 --quiet \
    --no-export --device "$where" --out "$work/$where"
done
python3 - "$work/cpu/log.jsonl" "$work/$device/log.jsonl" <<'PYTHON'
import json, sys

cpu, gpu = ([json.loads(line) for line in open(path)] for path in sys.argv[1:])
worst = 0.0
for a, b in zip(cpu, gpu, strict=True):
    for name, value in [("loss", a["loss"]), *a["terms"].items()]:
        other = b["loss"] if name == "loss" else b["terms"][name]
        difference = abs(value - other) / max(abs(value), 1e-3)
        worst = max(worst, difference) if a["epoch"] == 1 else worst
        print(f"epoch {a['epoch']} {name:16} cpu {value:12.6f} device {other:12.6f}")
# Three steps per epoch: the first epoch is still the same path, later ones drift apart as any two machines do.
sys.exit(f"error: the losses of the first epoch differ by {worst:.1%}" if worst > 0.02 else 0)
PYTHON
echo "the losses agree"
