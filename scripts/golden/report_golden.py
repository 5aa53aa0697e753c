#!/usr/bin/env python3
"""Reference values for the tests of dtkc-map and of dtkc-train's reports, from NumPy and scikit-learn.

Needs NumPy and scikit-learn. Use, from the repository's root:

    python3 scripts/golden/report_golden.py

writes crates/dtkc-map/tests/golden.json, and prints the NMI of the three partitions in dtkc-train/src/report/agree.rs.
"""
import json
import pathlib

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/dtkc-map/tests/golden.json"


def points(rng, n, width):
    """Points with a few directions of different variance, turned at random."""
    basis, _ = np.linalg.qr(rng.normal(size=(width, width)))
    spread = np.array([6.0, 3.0, 1.5] + [0.2] * (width - 3))
    values = (rng.normal(size=(n, width)) * spread) @ basis.T + rng.normal(size=width)
    return values.astype(np.float32)


def pca(values, count):
    values = values.astype(np.float64)
    variances, axes = np.linalg.eigh(np.cov(values.T))
    order = np.argsort(variances)[::-1][:count]
    axes = axes[:, order].T
    # The entry of largest size is positive.
    signs = np.sign(axes[np.arange(count), np.abs(axes).argmax(axis=1)])
    return axes * signs[:, None], variances[order], np.trace(np.cov(values.T))


def gap(values, first, second):
    values = values.astype(np.float64)
    line = values[second].mean(axis=0) - values[first].mean(axis=0)
    length = np.linalg.norm(line)
    a, b = values[first] @ line / length, values[second] @ line / length
    return float(length / np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2))


def main():
    rng = np.random.default_rng(5)
    values = points(rng, 120, 7)
    axes, variances, total = pca(values, 3)
    first, second = np.arange(0, 50), np.arange(50, 120)
    golden = {
        "width": 7, "values": [float(f"{v:.9g}") for v in values.flatten()], "axes": axes.flatten().tolist(),
        "variances": variances.tolist(), "total": float(total), "mean": values.astype(np.float64).mean(axis=0).tolist(),
        "first": first.tolist(), "second": second.tolist(), "gap": gap(values, first, second),
    }
    OUT.write_text(json.dumps(golden) + "\n")
    partitions = [[0, 0, 0, 1, 1, 1, 2, 2, 2, 2], [2, 2, 2, 0, 0, 1, 1, 1, 1, 1], [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]]
    for a in range(3):
        for b in range(a + 1, 3):
            print(a, b, round(normalized_mutual_info_score(partitions[a], partitions[b]), 6))


if __name__ == "__main__":
    main()
