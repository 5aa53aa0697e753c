#!/usr/bin/env python3
"""Compares `dtkc-train explain` with shap.GradientExplainer: PROGRAM MODEL DATA WORK. See check-shap.sh.

The graph of the model file is run node by node in PyTorch, from the scaled image to `probabilities`: nothing of this project
is used for it. shap draws background images and places by itself with NumPy's generator. For the comparison at equal draws
its two calls of that generator are answered with the draws of our program; beside it stand shap's own draws with two
seeds, which show how much of a difference is chance.
"""
import csv
import pathlib
import subprocess
import sys
import time

import h5py
import numpy as np
import onnx
import shap
import torch
import torch.nn.functional as F
from onnx import numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "golden"))
from explain_golden import draws, scaled  # noqa: E402

IMAGES, SAMPLES, SEED, LEAST = 100, 200, 0, 0.99
SHAP_IMAGES = 20


class Graph(torch.nn.Module):
    """The model file behind its scaling: planes [n, c, h, w] to probabilities."""

    def __init__(self, path):
        super().__init__()
        graph = onnx.load(path).graph
        self.constants = {t.name: torch.tensor(numpy_helper.to_array(t)) for t in graph.initializer}
        nodes = list(graph.node)
        first = next(i for i, node in enumerate(nodes) if node.op_type == "Transpose")
        self.start = nodes[first].output[0]
        self.nodes = [node for node in nodes[first + 1 :] if node.op_type != "ArgMax"]

    def forward(self, x):
        values = {**self.constants, self.start: x}
        for node in self.nodes:
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            values[node.output[0]] = run(node.op_type, [values[name] for name in node.input], attributes)
        return values["probabilities"]


def run(kind, v, a):
    axes = lambda: tuple(v[1].tolist())
    keep = bool(a.get("keepdims", 1))
    if kind == "Conv":
        top, left, bottom, right = a.get("pads", [0, 0, 0, 0])
        return F.conv2d(F.pad(v[0], (left, right, top, bottom)), v[1], v[2])
    if kind == "BatchNormalization":
        return F.batch_norm(v[0], v[3], v[4], v[1], v[2], eps=a["epsilon"])
    if kind == "MaxPool":
        return F.max_pool2d(v[0], a["kernel_shape"], a["strides"])
    if kind == "AveragePool":
        return F.avg_pool2d(v[0], a["kernel_shape"], a["strides"])
    return {
        "Relu": lambda: F.relu(v[0]),
        "Tanh": lambda: torch.tanh(v[0]),
        "Transpose": lambda: v[0].permute(*a["perm"]),
        "Flatten": lambda: v[0].flatten(1),
        "Gemm": lambda: v[0] @ v[1] + v[2],
        "Identity": lambda: v[0],
        "Softmax": lambda: F.softmax(v[0], dim=1),
        "Unsqueeze": lambda: v[0].unsqueeze(axes()[0]),
        "Sub": lambda: v[0] - v[1],
        "Add": lambda: v[0] + v[1],
        "Div": lambda: v[0] / v[1],
        "Reciprocal": lambda: 1 / v[0],
        "ReduceSumSquare": lambda: (v[0] ** 2).sum(axes(), keepdim=keep),
        "ReduceSum": lambda: v[0].sum(axes(), keepdim=keep),
    }[kind]()


def subset(data, rows, out):
    with h5py.File(data) as source, h5py.File(out, "w") as target:
        images = source["images"][sorted(rows)]
        target.attrs.update({"dtkc_schema": 1, "kind": "images", "name": "subset", "source": str(data)})
        target.create_dataset("images", data=images)
    return images


def planes(images):
    return torch.tensor(scaled(images).transpose(0, 3, 1, 2), dtype=torch.float32)


def at_our_draws(explainer, x, backgrounds):
    """shap's maps of the assigned clusters; its generator says what ours does."""
    pairs = [pair for number in range(len(x)) for pair in draws(SEED, number, SAMPLES, backgrounds)]
    indices, places = iter([b for b, _ in pairs]), iter([float(t) for _, t in pairs])
    choice, uniform = np.random.choice, np.random.uniform
    np.random.choice, np.random.uniform = lambda *_: next(indices), lambda *_: next(places)
    try:
        return explainer.shap_values(x, nsamples=SAMPLES, ranked_outputs=1, rseed=0)
    finally:
        np.random.choice, np.random.uniform = choice, uniform


def correlations(ours, theirs):
    return np.array([np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in zip(ours, theirs)])


def main(program, model, data, work):
    work = pathlib.Path(work)
    with h5py.File(data) as file:
        order = np.random.default_rng(1).permutation(len(file["images"]))
    images = subset(data, order[:IMAGES], work / "images.h5")
    background = subset(data, order[IMAGES : IMAGES + SAMPLES], work / "background.h5")
    out = work / "why"
    began = time.monotonic()
    subprocess.run([program, "explain", "--quiet", "--model", model, "--input", work / "images.h5", "--background",
                    work / "background.h5", "--samples", str(SAMPLES), "--seed", str(SEED), "--out", out], check=True)
    took = time.monotonic() - began
    maps = np.load(out / "maps.npy")
    assert (np.load(out / "images.npy") == images).all()
    ours = maps[:SHAP_IMAGES].transpose(0, 3, 1, 2)
    explainer = shap.GradientExplainer(Graph(model), planes(background))
    x = planes(images)[:SHAP_IMAGES]
    began = time.monotonic()
    theirs, clusters = at_our_draws(explainer, x, len(background))
    shap_took = time.monotonic() - began
    with open(out / "explanations.csv", newline="") as file:
        table = list(csv.DictReader(file))[:SHAP_IMAGES]
    assert [int(row["cluster"]) for row in table] == clusters.ravel().tolist(), "other clusters"
    wanted = np.array([float(row["value"]) - float(row["expected"]) for row in table])
    missed = lambda maps: np.abs(maps.reshape(len(maps), -1).sum(1) - wanted).mean()
    same = correlations(ours, theirs[..., 0])
    apart = np.abs(ours - theirs[..., 0]).max() / np.abs(theirs).max()
    print(f"{model}: {IMAGES} images in {took:.1f} s; shap {SHAP_IMAGES} in {shap_took:.1f} s, {SAMPLES} draws each")
    print(f"equal draws: correlation {same.mean():.6f} on average, {same.min():.6f} at least; "
          f"largest difference {apart:.1e} of the largest value; sums miss {missed(ours):.4f} of {np.abs(wanted).mean():.4f}")
    free = [explainer.shap_values(x, nsamples=SAMPLES, ranked_outputs=1, rseed=seed)[0][..., 0] for seed in (7, 8)]
    for name, maps in (("ours", ours), ("its own with another seed", free[1])):
        other = correlations(maps, free[0])
        print(f"shap's own {SAMPLES} draws against {name}: correlation {other.mean():.4f} on average, {other.min():.4f} at least")
    print(f"sums of shap's own maps miss {(missed(free[0]) + missed(free[1])) / 2:.4f}")
    if not same.min() >= LEAST:
        sys.exit(f"error: the maps differ from shap's (correlation {same.min():.4f}, at least {LEAST} is wanted)")


if __name__ == "__main__":
    main(*sys.argv[1:])
