"""Which way of assigning new images is better for spectral clustering: Nystroem's extension, or a network that learns the
clusters? Answers with held-out halves of a dataset; labels are the judge.

    spectral_outside.py DATASET SEED WORK [COUNT]

Needs scikit-learn and h5py. Writes WORK/train.h5 and WORK/test.h5, two halves of (COUNT images of) a dataset of dtkc-data,
and prints ACC and NMI of Nystroem's extension on both. The other side is

    dtkc-train fit --method spectral --data WORK/train.h5 --clusters K --out RUN
    dtkc-train evaluate RUN --data WORK/test.h5
"""
import json
import pathlib
import sys

import h5py
import numpy as np
import scipy.sparse as sparse
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import laplacian
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.neighbors import NearestNeighbors

NEIGHBOURS = 10


def write(path, source, images, labels):
    with h5py.File(path, "w") as out:
        for name, value in source.attrs.items():
            out.attrs[name] = value
        out.create_dataset("images", data=images, chunks=(min(64, len(images)), *images.shape[1:]))
        out.create_dataset("labels", data=labels)
        if "label_names" in source:
            source.copy("label_names", out)


def scaled(images):
    flat = images.reshape(len(images), -1).astype(np.float64)
    low, high = flat.min(1, keepdims=True), flat.max(1, keepdims=True)
    return (flat - low) / np.where(high > low, high - low, 1)


def scores(labels, clusters):
    table = contingency_matrix(labels, clusters)
    rows, columns = linear_sum_assignment(-table)
    nmi = normalized_mutual_info_score(labels, clusters)
    return [round(float(table[rows, columns].sum() / len(labels)), 4), round(float(nmi), 4)]


def main(dataset, seed, work, count):
    with h5py.File(dataset) as source:
        order = np.random.default_rng(seed).permutation(len(source["images"]))[:count]
        train, test = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
        images, labels = source["images"][()], source["labels"][()]
        for name, half in (("train", train), ("test", test)):
            write(work / f"{name}.h5", source, images[half], labels[half])
    x, y = scaled(images[train]), scaled(images[test])
    k = len(np.unique(labels))
    search = NearestNeighbors(n_neighbors=NEIGHBOURS, algorithm="brute").fit(x)
    graph = search.kneighbors_graph()
    normalised, roots = laplacian(sparse.csr_matrix(0.5 * (graph + graph.T)), normed=True, return_diag=True)
    values, vectors = eigsh(sparse.eye(len(x)) - normalised, k=k, which="LA", v0=np.ones(len(x)))
    rows = vectors / roots[:, None] * np.sqrt(len(x) * np.mean(roots**2))
    means = KMeans(k, n_init=10, random_state=seed).fit(rows)
    # A new image is the mean of its neighbours, over the eigenvalue: the walk that the eigenvectors belong to.
    near = search.kneighbors(y, return_distance=False)
    extended = rows[near].mean(axis=1) / values
    print(json.dumps({
        "train": scores(labels[train], means.labels_),
        "nystroem": scores(labels[test], means.predict(extended)),
    }))


if __name__ == "__main__":
    limit = int(sys.argv[4]) if len(sys.argv) > 4 else None
    main(sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3]), limit)
