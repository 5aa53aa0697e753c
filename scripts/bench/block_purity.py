#!/usr/bin/env python3
"""How many of an image's five nearest neighbours have its label, by what the blocks of a trained network give.

Use: PYTHON scripts/bench/block_purity.py DATASET.h5 MODEL.onnx [IMAGES]     (NumPy, h5py, onnx, onnxruntime; 3000 images by default)

For each block (what its pooling gives): the values in a row, and the tensor kernel's distance, the sum over modes of
||P_a - P_b||^2 of the projectors on row spaces, as companion objectives see it. Beside them the embedding, and outlines,
by which `plus` looks for neighbours.
"""
import os
import sys

import h5py
import numpy as np
import onnx
import onnxruntime

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "golden"))
from neighbour_purity import purity, reduced, squares
from outlines_golden import outlines


def short(x, mode):
    """Unfolded along a mode, turned so that there are no more rows than columns."""
    rows = np.moveaxis(x, mode, 1).reshape(len(x), x.shape[mode], -1)
    return rows.transpose(0, 2, 1) if rows.shape[1] > rows.shape[2] else rows


def bases(rows):
    """Orthonormal rows that span the same spaces; directions of next to no length are left out (zeros)."""
    values, vectors = np.linalg.eigh(rows @ rows.transpose(0, 2, 1))
    kept = values > 1e-5 * values.mean(1, keepdims=True) + 1e-6
    scale = np.where(kept, 1 / np.sqrt(np.maximum(values, 1e-12)), 0)
    return (vectors * scale[:, None]).transpose(0, 2, 1) @ rows


def subspace_squares(rows, block=50):
    """||P_a - P_b||^2 of all pairs."""
    v = bases(rows.astype(np.float64)).astype(np.float32)
    n, rank, width = v.shape
    flat, common = v.reshape(n * rank, width), np.empty((n, n), np.float32)
    for start in range(0, n, block):
        product = v[start : start + block].reshape(-1, width) @ flat.T
        common[start : start + block] = (product**2).reshape(-1, rank, n, rank).sum((1, 3))
    own = np.diag(common)
    return np.maximum(own[:, None] + own[None] - 2 * common, 0)


def main():
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 3000
    with h5py.File(sys.argv[1]) as file:
        chosen = np.sort(np.random.default_rng(0).permutation(len(file["images"]))[:count])
        images, labels = file["images"][:][chosen], file["labels"][:][chosen]
    model = onnx.load(sys.argv[2])
    blocks = [node.output[0] for node in model.graph.node if node.op_type == "MaxPool"]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in blocks)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    seen = [session.run([*blocks, "embedding"], {"image": images[i : i + 500]}) for i in range(0, count, 500)]
    *outputs, embedding = [np.concatenate(parts) for parts in zip(*seen)]
    print(f"{len(images)} images, 5 neighbours: part with the same label")
    for number, output in enumerate(outputs, 1):
        print(f"block {number} {'x'.join(map(str, output.shape[1:])):10} values  {purity(squares(output.reshape(len(output), -1)), labels):.3f}")
        total = sum(subspace_squares(short(output, mode)) for mode in (1, 2, 3))
        print(f"block {number} {'':10} tensor  {purity(total, labels):.3f}", flush=True)
    print(f"embedding                {purity(squares(embedding), labels):.3f}")
    low, high = images.min((1, 2, 3), keepdims=True), images.max((1, 2, 3), keepdims=True)
    scaled = (images - low) / np.maximum(high - low, 1).astype(np.float32)
    outlined = np.stack([outlines(image) for image in reduced(scaled, 32)]).astype(np.float32)
    print(f"outlines                 {purity(squares(outlined), labels):.3f}")


if __name__ == "__main__":
    main()
