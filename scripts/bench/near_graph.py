#!/usr/bin/env python3
"""How well classes are apart in graphs of near images, by several kinds of neighbours.

Use: PYTHON scripts/bench/near_graph.py DATASET.h5 MODEL.onnx [IMAGES]     (NumPy, SciPy, scikit-learn, h5py, onnxruntime)

MODEL: what `dtkc-train export RUN` makes of a run of `plus` that was stopped (Ctrl-C) when half of its epochs were done, so that it
has learnt fine clusters alone. Kinds of neighbours: the 10 nearest by the embedding, the 5 nearest to each of two random views
of an image, the 10 nearest by outlines. Edges as `plus` weighs them. For every graph: a spectral clustering into as many
clusters as there are classes, against the labels; what they tell about images that are near by views and by outlines (nats, by
which `plus` chooses), for the model's own clusters, too; and the numbers of clusters whose score is highest. The views are turned, scaled, sheared and moved as those of
`plus`, but without changes of light.
"""
import os
import sys

import h5py
import numpy as np
import onnxruntime
import scipy.sparse as sparse
from scipy.ndimage import affine_transform
from scipy.optimize import linear_sum_assignment
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "golden"))
from outlines_golden import outlines

LAST = 15


def accuracy(labels, clusters):
    counts = np.zeros((max(labels.max(), clusters.max()) + 1,) * 2, int)
    np.add.at(counts, (clusters, labels), 1)
    rows, columns = linear_sum_assignment(-counts)
    return counts[rows, columns].sum() / len(labels)


def view(image, random):
    height, width, _ = image.shape
    angle, shear = np.radians(random.uniform(-25, 25)), random.uniform(-0.3, 0.3)
    scale, aspect = 1 + random.uniform(-0.2, 0.2), np.exp(random.uniform(-0.15, 0.15))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    matrix = turn @ np.array([[1, shear], [0, 1]]) @ np.diag([scale * aspect, scale / aspect])
    middle = (np.array([height, width]) - 1) / 2
    moved = middle - matrix @ middle + random.uniform(-0.1, 0.1, 2) * [height, width]
    channels = [affine_transform(image[..., c], matrix, moved, order=1) for c in range(image.shape[2])]
    return np.stack(channels, -1)


def nearest(places, rows, count):
    """An adjacency matrix: the rows nearest to each place, never the row of the same number."""
    found = np.empty((len(rows), count), np.int64)
    half = (rows**2).sum(1) / 2
    for start in range(0, len(rows), 1000):
        score = places[start : start + 1000] @ rows.T - half
        score[np.arange(len(score)), np.arange(start, start + len(score))] = -np.inf
        found[start : start + 1000] = np.argpartition(-score, count, axis=1)[:, :count]
    ends = (np.repeat(np.arange(len(rows)), count), found.ravel())
    return sparse.csr_matrix((np.ones(found.size), ends), (len(rows),) * 2)


def mutual(edges):
    both, either = edges.minimum(edges.T), edges.maximum(edges.T)
    return both + 0.025 * (either - both)


def leading(graph, count):
    roots = sparse.diags(1 / np.sqrt(np.asarray(graph.sum(1)).ravel()))
    values, vectors = eigsh(roots @ graph @ roots, count, which="LA", tol=1e-5)
    order = np.argsort(-values)
    return values[order], vectors[:, order]


def information(clusters, edges):
    """Mutual information between the clusters of images and of those near them."""
    one, other = edges.nonzero()
    joint = np.zeros((clusters.max() + 1,) * 2)
    np.add.at(joint, (clusters[one], clusters[other]), edges.data)
    joint = (joint + joint.T) / (2 * joint.sum())
    chance = np.outer(joint.sum(0), joint.sum(0))
    return float((joint * np.log(np.maximum(joint, 1e-300) / np.maximum(chance, 1e-300))).sum())


def told(clusters, by_views, by_outlines):
    return sum(information(clusters, edges.tocsr()) for edges in (by_views, by_outlines))


def report(name, edges, labels, seen):
    classes = len(np.unique(labels))
    values, vectors = leading(mutual(edges), max(LAST, classes) + 1)
    rows = vectors[:, :classes]
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    clusters = KMeans(classes, n_init=5, random_state=0).fit(rows).labels_
    roots = np.sqrt(np.maximum(1 - values[: LAST + 1], 0))
    scores = {k: (roots[k] - roots[k - 1]) / roots[-1] for k in range(2, LAST + 1)}
    best = sorted(scores, key=scores.get, reverse=True)[:3]
    numbers = ", ".join(f"{k} ({scores[k]:.3f})" for k in best)
    agreement = f"{accuracy(labels, clusters):.4f} / {normalized_mutual_info_score(labels, clusters):.4f}"
    print(f"{name:44} {agreement}   told: {told(clusters, *seen):.3f}   number: {numbers}", flush=True)


def main():
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 10_000
    with h5py.File(sys.argv[1]) as file:
        chosen = np.sort(np.random.default_rng(0).permutation(len(file["images"]))[:count])
        images, labels = file["images"][:][chosen], file["labels"][:][chosen].astype(int)
    labels = np.unique(labels, return_inverse=True)[1]
    session = onnxruntime.InferenceSession(sys.argv[2])

    def run(name, pixels):
        parts = [session.run([name], {"image": pixels[i : i + 1000]})[0] for i in range(0, len(pixels), 1000)]
        return np.concatenate(parts)

    def of_length_one(rows):
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

    clusters = run("cluster", images)
    random, rows = np.random.default_rng(1), run("embedding", images)
    views = [run("embedding", np.stack([view(image, random) for image in images])) for _ in range(2)]
    places = of_length_one(rows)
    by_embedding = nearest(places, places, 10)
    by_views = sum(nearest(of_length_one(seen), places, 5) for seen in views)
    low, high = images.min((1, 2, 3), keepdims=True), images.max((1, 2, 3), keepdims=True)
    scaled = (images - low) / np.maximum(high - low, 1).astype(np.float32)
    outlined = np.stack([outlines(image) for image in scaled]).astype(np.float32)
    by_outlines = nearest(outlined, outlined, 10)
    print(f"{len(images)} images; the model's own clusters: {accuracy(labels, clusters):.4f} / "
          f"{normalized_mutual_info_score(labels, clusters):.4f}   told: {told(clusters, by_views, by_outlines):.3f}")
    seen = (by_views, by_outlines)
    report("embedding", by_embedding, labels, seen)
    report("embedding and views", by_embedding + by_views, labels, seen)
    report("outlines", by_outlines, labels, seen)
    report("embedding, views and outlines (the number)", by_embedding + by_views + by_outlines, labels, seen)
    report("the same, outlines twice", by_embedding + by_views + 2 * by_outlines, labels, seen)


if __name__ == "__main__":
    main()
