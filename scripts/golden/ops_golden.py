#!/usr/bin/env python3
"""Reference values for dtkc-ops, computed with NumPy in f64 and independently of the Rust code.

Distances between projectors come from singular value decompositions (the Rust code uses none), gradients from central
differences. Use: python3 scripts/golden/ops_golden.py > crates/dtkc-ops/tests/golden/projector.json
"""
import json
import sys

import numpy as np

rng = np.random.default_rng(20010)


def ridge(x):
    """The ridge of one matrix, relative to the mean of the diagonal of its smaller Gram matrix."""
    x = x if x.shape[0] <= x.shape[1] else x.T
    return 1e-5 * np.sum(x * x) / x.shape[0] + 1e-6


def projector(x, e):
    """X^T (X X^T + e I)^-1 X of the wide orientation, by SVD."""
    x = x if x.shape[0] <= x.shape[1] else x.T
    _, s, vt = np.linalg.svd(x, full_matrices=False)
    return (vt.T * (s * s / (s * s + e))) @ vt


def distances(projectors):
    flat = np.array([p.ravel() for p in projectors])
    return np.array([[np.sum((a - b) ** 2) for b in flat] for a in flat])


def gradient(x, upstream, step=1e-4):
    """Central differences of sum(upstream * distances), the ridges held constant."""
    n = len(x)
    ridges = [ridge(m) for m in x]
    base = [projector(m, e) for m, e in zip(x, ridges)]
    both = upstream + upstream.T
    result = np.zeros_like(x)
    for a in range(n):
        for index in np.ndindex(x[a].shape):
            values = []
            for sign in (1, -1):
                moved = x[a].copy()
                moved[index] += sign * step
                p = projector(moved, ridges[a])
                values.append(sum(both[a, b] * np.sum((p - base[b]) ** 2) for b in range(n) if b != a))
            result[a][index] = (values[0] - values[1]) / (2 * step)
    return result


def case(name, x, with_gradient=True):
    x = np.asarray(x, dtype=np.float32).astype(np.float64)
    n = len(x)
    upstream = rng.normal(size=(n, n)).astype(np.float32).astype(np.float64)
    out = {
        "name": name,
        "shape": list(x.shape),
        "x": np.round(x, 9).ravel().tolist(),
        "distances": np.round(distances([projector(m, ridge(m)) for m in x]), 10).ravel().tolist(),
    }
    if with_gradient:
        out["upstream"] = np.round(upstream, 9).ravel().tolist()
        out["gradient"] = np.round(gradient(x, upstream), 8).ravel().tolist()
    return out


def main():
    duplicates = rng.normal(size=(5, 3, 7))
    duplicates[2] = duplicates[0]
    dead = np.maximum(rng.normal(size=(5, 6, 20)), 0)
    dead[:, 2] = 0
    dead[3, 4:] = 0
    blank = rng.normal(size=(4, 3, 8))
    blank[1] = 0
    constant = np.ones((4, 4, 9)) * np.array([1.0, 3.0, 0.5, 2.0])[:, None, None]
    constant[3] = rng.normal(size=(4, 9))
    equal_rows = rng.normal(size=(4, 4, 12))
    equal_rows[:, 1] = equal_rows[:, 0]
    cases = [
        case("wide", rng.normal(size=(6, 3, 24))),
        case("almost square", rng.normal(size=(7, 5, 6))),
        case("tall", rng.normal(size=(6, 11, 4))),
        case("one row", rng.normal(size=(5, 1, 9))),
        case("one column", rng.normal(size=(5, 4, 1))),
        case("a pair", rng.normal(size=(2, 3, 5))),
        case("large values", 100 * rng.normal(size=(4, 3, 10))),
        case("duplicates", duplicates, with_gradient=False),
        case("dead channels", dead, with_gradient=False),
        case("blank image", blank, with_gradient=False),
        case("constant images", constant, with_gradient=False),
        case("equal rows", equal_rows, with_gradient=False),
    ]
    json.dump({"cases": cases}, sys.stdout, separators=(",", ":"))
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
