#!/usr/bin/env python3
"""How well classes are apart in graphs of near images, by several kinds of neighbours.

Use: PYTHON scripts/bench/near_graph.py DATASET.h5 MODEL.onnx [IMAGES]     (NumPy, SciPy, scikit-learn, h5py, onnxruntime)

MODEL: what `dtkc-train export RUN` makes of a run of `plus` that was stopped (Ctrl-C) when half of its epochs were done, just before
clusters are made. Kinds of neighbours: the 10 nearest by the embedding, the 5 nearest to each of two random views of an
image, the 10 nearest by outlines. Edges as `plus` weighs them. For every graph: spectral clusterings into as many groups as
there are classes and into more, joined where the least is lost of what tells about near images, against the labels; what they tell
(nats, by which `plus` chooses); and the numbers of clusters that stand out, by the eigenvalues and by what joining costs. The
views are turned, scaled, sheared and moved as those of `plus`, but without changes of light.
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


def worth(joint, uneven=UNEVEN):
    return plogp(joint).sum() - (2 - uneven) * plogp(joint.sum(0)).sum()


def told(clusters, near):
    return sum(worth(joint) for joint in joints(clusters, near))


def merged(joint, a, b):
    joint = joint.copy()
    joint[a] += joint[b]
    joint[:, a] += joint[:, b]
    return np.delete(np.delete(joint, b, 0), b, 1)


def joinings(groups, near):
    """Groups joined one after the other where the least is lost: the groups before each step, and their mutual information."""
    joint = sum(joints(groups, near)) / len(near)
    while True:
        yield groups, worth(joint, 0)
        if len(joint) == 1:
            return
        pairs = [(a, b) for b in range(len(joint)) for a in range(b)]
        a, b = max(pairs, key=lambda pair: worth(merged(joint, *pair)))
        joint = merged(joint, a, b)
        groups = np.where(groups == b, a, groups)
        groups = groups - (groups > b)


def numbers(steps):
    """Numbers of clusters where joining two more begins to cost: each by how many times as much it costs as the step before.
    A step costs at most what tells two of so many equal clusters apart."""
    worths = {groups.max() + 1: worth for groups, worth in steps}
    costs = {k: (worths[k] - worths[k - 1]) * k for k in worths if k > 2}
    scores = {k: costs[k] / max(costs[k + 1], 1e-9) for k in costs if k + 1 in costs}
    return ", ".join(f"{k} ({scores[k]:.2f})" for k in sorted(scores, key=scores.get, reverse=True)[:3])


def report(name, edges, labels, near):
    classes = len(np.unique(labels))
    values, vectors = leading(mutual(edges), max(LAST, 2 * classes) + 1)
    roots = np.sqrt(np.maximum(1 - values[: LAST + 1], 0))
    scores = {k: (roots[k] - roots[k - 1]) / roots[-1] for k in range(2, LAST + 1)}
    best = sorted(scores, key=scores.get, reverse=True)[:3]
    print(f"{name}; number by eigenvalues: " + ", ".join(f"{k} ({scores[k]:.3f})" for k in best))
    for groups in [classes, 3 * classes // 2, 2 * classes]:
        rows = vectors[:, :groups] / np.linalg.norm(vectors[:, :groups], axis=1, keepdims=True)
        steps = list(joinings(KMeans(groups, n_init=5, random_state=0).fit(rows).labels_, near))
        clusters = next(found for found, _ in steps if found.max() + 1 == classes)
        agreement = f"{accuracy(labels, clusters):.4f} / {normalized_mutual_info_score(labels, clusters):.4f}"
        number = f"   number by joining: {numbers(steps)}" if groups > classes else ""
        print(f"  of {groups:2} groups: {agreement}   told: {told(clusters, near):.3f}{number}", flush=True)


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
    print(f"{len(images)} images; the model's own clusters: {accuracy(labels, clusters):.4f} / "
          f"{normalized_mutual_info_score(labels, clusters):.4f}   told: {told(clusters, near):.3f}")
    for outlined, name in [(2, "outlines twice"), (1, "outlines once"), (0, "no outlines")]:
        report(f"embedding, views, {name}", by_embedding + by_views + outlined * by_outlines, labels, near)


if __name__ == "__main__":
    main()
