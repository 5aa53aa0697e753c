#!/usr/bin/env python3
"""Reference values for dtkc-metrics' tests, from scikit-learn and SciPy.

Needs NumPy, SciPy and scikit-learn. Use, from the repository's root:

    python3 scripts/golden/metrics_golden.py

writes crates/dtkc-metrics/tests/golden.json.
"""
import json
import pathlib

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, silhouette_score
from sklearn.metrics.cluster import contingency_matrix

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/dtkc-metrics/tests/golden.json"


def accuracy(truth, clusters):
    table = contingency_matrix(truth, clusters)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return table[rows, columns].sum() / len(truth)


def agreement(name, truth, clusters):
    truth, clusters = np.asarray(truth), np.asarray(clusters)
    return {
        "name": name, "truth": truth.tolist(), "clusters": clusters.tolist(),
        "acc": float(accuracy(truth, clusters)),
        "nmi": float(normalized_mutual_info_score(truth, clusters)),
        "nmi_geometric": float(normalized_mutual_info_score(truth, clusters, average_method="geometric")),
        "ari": float(adjusted_rand_score(truth, clusters)),
    }


def noisy(rng, n, classes, clusters, noise):
    truth = rng.integers(0, classes, n)
    mapped = rng.permutation(max(classes, clusters))[truth] % clusters
    random = rng.integers(0, clusters, n)
    return truth, np.where(rng.random(n) < noise, random, mapped)


def embedding(name, rng, n, dim, groups, spread):
    centres = rng.normal(size=(groups, dim)) * 2
    clusters = rng.integers(0, groups, n)
    points = (centres[clusters] + rng.normal(size=(n, dim)) * spread).astype(np.float32)
    return {"name": name, "dim": dim, "points": [float(f"{v:.9g}") for v in points.flatten()],
            "clusters": clusters.tolist(), "silhouette": float(silhouette_score(points.astype(np.float64), clusters))}


def main():
    rng = np.random.default_rng(5)
    cases = [
        agreement("equal", [0, 0, 1, 1, 2, 2], [2, 2, 0, 0, 1, 1]),
        agreement("one cluster", [0, 1, 2, 2], [0, 0, 0, 0]),
        agreement("one class", [4, 4, 4, 4], [0, 1, 1, 2]),
        agreement("all alone", [0, 0, 1, 1], [0, 1, 2, 3]),
        agreement("worse than chance", [0, 0, 1, 1], [0, 1, 0, 1]),
        agreement("ten of ten, some noise", *noisy(rng, 200, 10, 10, 0.3)),
        agreement("ten of ten, pure noise", *noisy(rng, 200, 10, 10, 1.0)),
        agreement("more clusters than classes", *noisy(rng, 150, 4, 9, 0.2)),
        agreement("fewer clusters than classes", *noisy(rng, 150, 9, 4, 0.2)),
        agreement("unbalanced", np.repeat([0, 1, 2], [90, 8, 2]), rng.integers(0, 3, 100)),
    ]
    embeddings = [
        embedding("clear", rng, 30, 3, 3, 0.3),
        embedding("overlapping", rng, 40, 2, 4, 2.0),
        {"name": "with a single image", "dim": 1, "points": [0.0, 1.0, 2.0, 10.0], "clusters": [0, 0, 0, 1],
         "silhouette": float(silhouette_score([[0.0], [1.0], [2.0], [10.0]], [0, 0, 0, 1]))},
    ]
    OUT.write_text(json.dumps({"agreement": cases, "embeddings": embeddings}, separators=(",", ":")) + "\n")
    print(OUT.name, OUT.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
