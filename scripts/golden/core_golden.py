#!/usr/bin/env python3
"""Reference values for dtkc-core's tests, computed independently of the Rust code.

Needs NumPy and PyTorch. Use, from the repository's root:

    python3 scripts/golden/core_golden.py

writes crates/dtkc-core/tests/golden/kernels.json and network.json.

- kernels.json: distances, kernels, losses in NumPy float64. The tensor kernel takes its projectors from an SVD, and
  every gradient is a central finite difference of that SVD route, with the bandwidths held fixed. `narrow` has the
  factor .15 of the presets, `deficient` unfoldings that lack rank.
- network.json: whole networks in PyTorch float64 with given weights: activations, statistics, losses and the
  gradient of the loss for every parameter.

Every case has a generator of its own or a fixed place in an older one: add new cases at the end, and the old ones stay.
"""
import json
import pathlib

from core_kernels import kernels
from core_networks import networks

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/dtkc-core/tests/golden"


def settled(old, new):
    """Keeps a value of the old file where the new one differs by rounding only, as it does on every machine."""
    if type(old) is not type(new):
        return new
    if isinstance(new, dict):
        return {key: settled(old.get(key), value) for key, value in new.items()}
    if isinstance(new, list):
        return [settled(a, b) for a, b in zip(old, new)] + new[len(old):]
    return old if isinstance(new, float) and abs(new - old) < 1e-13 else new


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for name, data in (("kernels", kernels()), ("network", networks())):
        path = OUT / f"{name}.json"
        if path.exists():
            data = settled(json.loads(path.read_text()), data)
        path.write_text(json.dumps(data, separators=(",", ":")) + "\n")
        print(path.name, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
