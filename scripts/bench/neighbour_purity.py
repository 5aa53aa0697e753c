#!/usr/bin/env python3
"""How many of an image's five nearest neighbours have its label, by several distances.

Use: PYTHON scripts/bench/neighbour_purity.py DATASET.h5 [IMAGES]     (NumPy, h5py; a sample of 6000 images by default)

pixels: Euclidean, each image scaled by its own range; reduced: means of squares, sides of at most 16 pixels, which is what
`plus` looks for neighbours with where there are many clusters; outlines: directions of edges, with which it does for fewer; tensor: the tensor kernel's distance between images, the sum over modes of ||P_a - P_b||^2 of
the projectors on row spaces, of full rank (a ridge of 1 % makes it defined) and of the r leading directions alone.
"""
import os
import sys

import h5py
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "golden"))
from outlines_golden import outlines

NEIGHBOURS = 5


def purity(squares, labels):
    np.fill_diagonal(squares, np.inf)
    nearest = np.argpartition(squares, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
    return (labels[nearest] == labels[:, None]).mean()


def squares(rows):
    norms = (rows**2).sum(1)
    return norms[:, None] + norms[None] - 2 * rows @ rows.T


def reduced(x, side=16):
    cell = max(1, -(-max(x.shape[1:3]) // side))
    height, width = x.shape[1] // cell, x.shape[2] // cell
    x = x[:, : height * cell, : width * cell]
    return x.reshape(len(x), height, cell, width, cell, -1).mean((2, 4))


def unfoldings(x):
    n, height, width, channels = x.shape
    yield x.reshape(n, height, width * channels)
    yield x.transpose(0, 2, 1, 3).reshape(n, width, height * channels)


def projectors(matrices, rank):
    if rank:
        v = np.linalg.svd(matrices, full_matrices=False)[2][:, :rank]
        return np.einsum("nrd,nre->nde", v, v)
    gram = matrices @ matrices.transpose(0, 2, 1)
    side = gram.shape[1]
    gram += np.eye(side) * (1e-2 * np.trace(gram, axis1=1, axis2=2) / side + 1e-6)[:, None, None]
    return matrices.transpose(0, 2, 1) @ np.linalg.solve(gram, matrices)


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 6000
    with h5py.File(sys.argv[1]) as file:
        n = len(file["images"])
        chosen = np.sort(np.random.default_rng(0).permutation(n)[:count])
        x, labels = file["images"][:][chosen].astype(np.float32), file["labels"][:][chosen]
    low, high = x.min((1, 2, 3), keepdims=True), x.max((1, 2, 3), keepdims=True)
    x = (x - low) / np.maximum(high - low, 1)
    small = reduced(x)
    print(f"{len(x)} images, {NEIGHBOURS} neighbours: part with the same label")
    print(f"pixels          {purity(squares(x.reshape(len(x), -1)), labels):.3f}")
    print(f"reduced         {purity(squares(small.reshape(len(x), -1)), labels):.3f}")
    outlined = np.stack([outlines(image) for image in reduced(x, 32)]).astype(np.float32)
    print(f"outlines        {purity(squares(outlined), labels):.3f}", flush=True)
    for rank in (0, 2, 3, 5, 8):
        total = sum(squares(projectors(m, rank).reshape(len(x), -1).astype(np.float32)) for m in unfoldings(small))
        print(f"tensor {f'rank {rank}' if rank else 'full  '}   {purity(total, labels):.3f}", flush=True)


if __name__ == "__main__":
    main()
