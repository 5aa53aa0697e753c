#!/usr/bin/env python3
"""Reference values for the k-means and the spectral clustering of dtkc-methods, by scikit-learn and SciPy.

Needs scikit-learn. Use, from the repository's root:

    python3 scripts/golden/kmeans_golden.py

writes crates/dtkc-methods/tests/golden/kmeans.json and spectral.json. Points are written with four digits and computed
with in float64 after rounding to float32, which is what the tests read.

- kmeans.json: Lloyd's iterations from given centres (labels, centres, inertia, iterations); the best inertia of 50 starts
  where there are clusters; and the mean inertia of 1000 single starts where there are none, which is what a way of choosing
  first centres is worth (the best of a few starts is a matter of luck there).
- spectral.json: neighbours, the graph's weights by row sums, eigenvalues and eigenvectors of the normalised Laplacian by
  scipy.sparse.linalg.eigsh, and the labels of sklearn.cluster.SpectralClustering, on sets that are connected, that fall
  into parts, and with a kernel.
"""
import json
import pathlib

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import laplacian
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.neighbors import kneighbors_graph

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/dtkc-methods/tests/golden"


def rounded(values, digits=4):
    return np.round(np.asarray(values, np.float64), digits)


def single(values):
    """As the tests see them."""
    return values.astype(np.float32).astype(np.float64)


def lloyd_case(points, centres, iterations, tolerance):
    model = KMeans(len(centres), init=single(centres), n_init=1, max_iter=iterations, tol=tolerance, algorithm="lloyd")
    model.fit(single(points))
    return {
        "width": points.shape[1],
        "points": points.ravel().tolist(),
        "first": centres.ravel().tolist(),
        "most": iterations,
        "tolerance": tolerance,
        "iterations": int(model.n_iter_),
        "labels": model.labels_.tolist(),
        "centres": model.cluster_centers_.ravel().tolist(),
        "inertia": float(model.inertia_),
    }


def kmeans():
    random = np.random.default_rng(1)
    blobs = rounded(random.standard_normal((5, 6))[random.integers(0, 5, 150)] * 2 + random.standard_normal((150, 6)))
    noise = rounded(random.random((200, 3)))
    far = rounded(random.standard_normal((60, 4)) + 500)
    # The last centre is nearest to no point: it has to take the farthest one.
    lost = np.vstack([noise[:6], np.full((1, 3), 9.0)])
    cases = [
        lloyd_case(blobs, blobs[:5], 300, 1e-4),
        lloyd_case(noise, noise[:8], 300, 0.0),
        lloyd_case(noise, noise[:8], 3, 0.0),
        lloyd_case(noise, lost, 300, 1e-4),
        lloyd_case(far, far[:4], 300, 1e-4),
    ]
    best = KMeans(5, n_init=50, random_state=0).fit(single(blobs)).inertia_
    mean = np.mean([KMeans(12, n_init=1, random_state=seed).fit(single(noise)).inertia_ for seed in range(1000)])
    return {"cases": cases, "best": [5, float(best)], "mean": [12, float(mean)]}


def affinity(points, neighbours, kernel):
    graph = kneighbors_graph(points, neighbours, mode="distance", include_self=False)
    order = np.argsort(graph.data.reshape(len(points), -1), axis=1, kind="stable")
    indices = np.take_along_axis(graph.indices.reshape(len(points), -1), order, axis=1)
    if kernel:
        distances = np.sort(graph.data.reshape(len(points), -1), axis=1)[:, 6]
        scale = np.sort(distances)[len(points) // 2]
        graph.data = np.exp(-graph.data**2 / (2 * scale**2))
    else:
        graph.data[:] = 1
    return indices, 0.5 * (graph + graph.T)


def spectral_case(points, neighbours, clusters, kernel=False):
    indices, weights = affinity(single(points), neighbours, kernel)
    normalised, roots = laplacian(sparse.csr_matrix(weights), normed=True, return_diag=True)
    values, vectors = eigsh(sparse.eye(len(points)) - normalised, k=clusters, which="LA", tol=0, v0=np.ones(len(points)))
    order = np.argsort(-values)
    # Scaled as in the product: about 1.
    scale = np.sqrt(len(points) * np.mean(roots**2))
    rows = vectors[:, order] / roots[:, None] * scale
    labels = SpectralClustering(clusters, affinity="precomputed", random_state=0, n_init=10).fit(weights.toarray()).labels_
    return {
        "width": points.shape[1],
        "points": points.ravel().tolist(),
        "neighbours": neighbours,
        "clusters": clusters,
        "kernel": kernel,
        "indices": indices.ravel().tolist(),
        "degrees": np.asarray(weights.sum(axis=1)).ravel().tolist(),
        "eigenvalues": values[order].tolist(),
        "rows": rounded(rows, 9).ravel().tolist(),
        "labels": labels.tolist(),
    }


def spectral():
    random = np.random.default_rng(2)
    angle = random.random(160) * 2 * np.pi
    radius = np.where(np.arange(160) % 2 == 0, 1.0, 1.8) + 0.15 * random.standard_normal(160)
    rings = rounded(np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1))
    blobs = rounded(random.standard_normal((4, 5))[np.arange(120) % 4] * 1.6 + random.standard_normal((120, 5)))
    apart = rounded(np.array([[0.0, 0], [50, 0], [0, 50]])[np.arange(90) % 3] + random.standard_normal((90, 2)))
    return {
        "rings": spectral_case(rings, 10, 2),
        "blobs": spectral_case(blobs, 9, 4),
        "kernel": spectral_case(blobs, 9, 4, kernel=True),
        "apart": spectral_case(apart, 8, 3),
    }


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for name, data in (("kmeans", kmeans()), ("spectral", spectral())):
        path = OUT / f"{name}.json"
        path.write_text(json.dumps(data, separators=(",", ":")) + "\n")
        print(path.name, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
