#!/usr/bin/env python3
"""How well classes are apart in graphs of near images, by several kinds of neighbours.

Use: PYTHON scripts/bench/near_graph.py DATASET.h5 MODEL.onnx [IMAGES]     (NumPy, SciPy, scikit-learn, h5py, onnxruntime)

MODEL: what `dtkc-train export RUN` makes of a run of `plus` that was stopped (Ctrl-C) when half of its epochs were done, just before
clusters are made. Kinds of neighbours: the 10 nearest by the embedding, the 5 nearest to each of two random views of an
image, the 10 nearest by outlines. Edges as `plus` weighs them. For every graph: spectral clusterings into as many groups as
there are classes and into more, joined where the least is lost of what tells about near images, against the labels (ACC / NMI), and
what they tell (nats, by which `plus` chooses). Then what would be taken if other parts of the entropy of sizes did not count, and
the numbers of clusters for which most is told, as `--clusters auto` reads them. The views are turned, scaled, sheared and moved
as those of `plus`, but without changes of light.
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
# Part of the entropy of sizes that does not count as told, as crates/dtkc-methods has it.
UNEVEN = 0.2
UNEVENS = [0, 0.1, UNEVEN, 0.33]
# The same when the number of clusters is looked for.
TWO = 0.57


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


def agreement(labels, clusters):
    return f"{accuracy(labels, clusters):.4f} / {normalized_mutual_info_score(labels, clusters):.4f}"


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


def plogp(values):
    return np.where(values > 0, values * np.log(np.maximum(values, 1e-300)), 0)


def joints(clusters, near):
    """How often two clusters are near each other, in every way to be near: symmetric, and each sums to 1."""
    found = []
    for edges in near:
        one, other = edges.nonzero()
        joint = np.zeros((clusters.max() + 1,) * 2)
        np.add.at(joint, (clusters[one], clusters[other]), edges.data)
        found.append((joint + joint.T) / (2 * joint.sum()))
    return found


def worth(joint, uneven):
    return plogp(joint).sum() - (2 - uneven) * plogp(joint.sum(0)).sum()


def told(clusters, near, uneven=UNEVEN):
    return sum(worth(joint, uneven) for joint in joints(clusters, near))


def merged(joint, a, b):
    joint = joint.copy()
    joint[a] += joint[b]
    joint[:, a] += joint[:, b]
    return np.delete(np.delete(joint, b, 0), b, 1)


def joinings(groups, near, uneven):
    """Groups, and what is left of them as those are joined, one pair after the other, where the least is lost."""
    joint = sum(joints(groups, near)) / len(near)
    while True:
        yield groups
        if len(joint) == 1:
            return
        pairs = [(a, b) for b in range(len(joint)) for a in range(b)]
        a, b = max(pairs, key=lambda pair: worth(merged(joint, *pair), uneven))
        joint = merged(joint, a, b)
        groups = np.where(groups == b, a, groups)
        groups = groups - (groups > b)


def joined(groups, classes, near, uneven):
    return next(found for found in joinings(groups, near, uneven) if found.max() + 1 == classes)


def spectral(graph, sizes):
    """Spectral clusterings into so many groups."""
    _, vectors = leading(mutual(graph), max(sizes))
    for groups in sizes:
        rows = vectors[:, :groups] / np.linalg.norm(vectors[:, :groups], axis=1, keepdims=True)
        yield KMeans(groups, n_init=5, random_state=0).fit(rows).labels_


def number(groups, near):
    """Numbers of clusters, best first: mutual information less that part of the entropy of sizes is largest."""
    steps = {found.max() + 1: found for found in joinings(groups, near, TWO)}
    worths = {k: worth(sum(joints(steps[k], near)) / len(near), TWO) for k in range(2, LAST + 1)}
    best = sorted(worths, key=worths.get, reverse=True)[:3]
    return ", ".join(f"{k} ({worths[k]:.3f})" for k in best)


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
    near = [edges.tocsr() for edges in (by_views, by_outlines)]
    print(f"{len(images)} images; the model's own clusters: {agreement(labels, clusters)}   told: {told(clusters, near):.3f}")
    classes = len(np.unique(labels))
    candidates = []
    for outlined, name in [(2, "outlines twice"), (1, "outlines once"), (0, "no outlines")]:
        graph = by_embedding + by_views + outlined * by_outlines
        for groups in spectral(graph, [classes, 3 * classes // 2, 2 * classes]):
            candidates.append(groups)
            clusters = joined(groups, classes, near, UNEVEN)
            print(f"{name}, {groups.max() + 1:2} groups: {agreement(labels, clusters)}   told: {told(clusters, near):.3f}", flush=True)
    for uneven in UNEVENS:
        clusters = max((joined(groups, classes, near, uneven) for groups in candidates), key=lambda c: told(c, near, uneven))
        print(f"{uneven:.2f} of the entropy of sizes not counted: {agreement(labels, clusters)} is taken", flush=True)
    groups = next(spectral(by_embedding + by_views + by_outlines, [2 * LAST]))
    print(f"number of clusters: {number(groups, near)}")


if __name__ == "__main__":
    main()
