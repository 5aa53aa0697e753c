#!/usr/bin/env python3
"""Reference values for `dtkc-train explain`: slopes and expected gradients in PyTorch float64, independent of the Rust code.

Needs NumPy and PyTorch. Use, from the repository's root:

    python3 scripts/golden/explain_golden.py

writes crates/dtkc-train/tests/golden/explain.json: networks with given weights, images and a background as bytes, and for each
image, for probabilities and for scores: the slope of the assigned cluster at the image, what the network says, and the map.
The draws are those of crates/dtkc-train/src/explain/draws.rs, written again here; scripts/check-shap.py uses them, too.
"""
import json
import pathlib

import numpy as np

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/dtkc-train/tests/golden/explain.json"
MASK = (1 << 64) - 1
SAMPLES, SEED = 24, 11


class SplitMix:
    def __init__(self, seed):
        self.state = seed & MASK

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def unit(self):
        return (self.next() >> 11) / (1 << 53)

    def order(self, count):
        order = list(range(count))
        for last in range(count - 1, 0, -1):
            other = (self.next() * (last + 1)) >> 64
            order[last], order[other] = order[other], order[last]
        return order


def draws(seed, image, samples, backgrounds):
    """Pairs of a background image and a place on the way from it, for image number `image`."""
    random = SplitMix(seed ^ ((image * 0xD1342543DE82EF95) & MASK))
    order = random.order(backgrounds)
    rounds = range(0, samples, backgrounds)
    parts = [first + part for first in rounds for part in random.order(min(backgrounds, samples - first))]
    return [
        (order[turn % backgrounds], np.float32((part + random.unit()) / samples)) for turn, part in enumerate(parts)
    ]


def scaled(pixels):
    """Images [n, h, w, c] of bytes, each by its own range; a constant one becomes zeros."""
    pixels = np.asarray(pixels, dtype=np.float64)
    low = pixels.min(axis=(1, 2, 3), keepdims=True)
    high = pixels.max(axis=(1, 2, 3), keepdims=True)
    return (pixels - low) / np.maximum(high - low, 1.0)


def forward(layers, x, output):
    """x: [n, h, w, c] as a tensor."""
    import torch
    import torch.nn.functional as F

    tensor = lambda values, shape=None: torch.tensor(np.reshape(np.array(values, dtype=np.float64), shape or [-1]))
    x = x.permute(0, 3, 1, 2)
    for layer in layers:
        kind = layer["kind"]
        if kind == "conv":
            top, left, bottom, right = layer["padding"]
            x = F.conv2d(F.pad(x, (left, right, top, bottom)), tensor(layer["weight"], layer["shape"]), tensor(layer["bias"]))
        elif kind == "norm":
            mean, variance = tensor(layer["mean"]), tensor(layer["variance"])
            gamma, beta = tensor(layer["gamma"]), tensor(layer["beta"])
            x = F.batch_norm(x, mean, variance, gamma, beta, eps=float(np.float32(layer["epsilon"])))
        elif kind == "relu":
            x = F.relu(x)
        elif kind == "tanh":
            x = torch.tanh(x)
        elif kind == "maxpool":
            x = F.max_pool2d(x, layer["size"])
        elif kind == "averagepool":
            x = F.avg_pool2d(x, layer["size"])
        elif kind == "flatten":
            x = x.permute(0, 2, 3, 1).flatten(1)
        elif kind == "dense":
            x = x @ tensor(layer["weight"], layer["shape"]) + tensor(layer["bias"])
        elif kind == "softmax":
            x = x if output == "score" else F.softmax(x, dim=1)
        elif kind == "student_t":
            far = ((x[:, None, :] - tensor(layer["centres"], layer["shape"])[None]) ** 2).sum(2)
            near = 1 / (1 + far)
            x = torch.log(near) if output == "score" else near / near.sum(1, keepdim=True)
        else:
            assert kind == "embedding", kind
    return x


def slopes(layers, x, output, cluster):
    import torch

    x = torch.tensor(np.asarray(x, dtype=np.float64), requires_grad=True)
    forward(layers, x, output)[:, cluster].sum().backward()
    return x.grad.numpy()


def explained(layers, images, background, output):
    """The assigned cluster, what the network says of it, the mean over the background, slope and map of every image."""
    import torch

    x, others = scaled(images), scaled(background)
    said = forward(layers, torch.tensor(x), output).numpy()
    mean = forward(layers, torch.tensor(others), output).numpy().mean(0)
    rows = []
    for number, image in enumerate(x):
        cluster = int(said[number].argmax())
        pairs = draws(SEED, number, SAMPLES, len(others))
        apart = np.stack([image - others[b] for b, _ in pairs])
        between = np.stack([others[b] + float(t) * (image - others[b]) for b, t in pairs])
        rows.append({
            "cluster": cluster,
            "value": said[number, cluster],
            "expected": mean[cluster],
            "slope": slopes(layers, image[None], output, cluster)[0].ravel().tolist(),
            "map": (apart * slopes(layers, between, output, cluster)).mean(0).ravel().tolist(),
        })
    return rows


def networks(rng):
    # Rounded to float32, which is what the Rust side computes with.
    draw = lambda count, low, high: [float(v) for v in np.round(rng.uniform(low, high, count), 3).astype(np.float32)]
    weights = lambda kind, shape, reach, **more: {
        "kind": kind, "shape": shape, "weight": draw(int(np.prod(shape)), -reach, reach), **more}
    conv = lambda i, o, padding: weights("conv", [o, i, 3, 3], 0.6, bias=draw(o, -0.2, 0.2), padding=padding)
    dense = lambda i, o: weights("dense", [i, o], 0.7, bias=draw(o, -0.2, 0.2))
    norm = lambda c: {
        "kind": "norm", "gamma": draw(c, 0.5, 1.5), "beta": draw(c, -0.3, 0.5), "mean": draw(c, -0.2, 0.4),
        "variance": draw(c, 0.3, 2.0), "epsilon": 0.001}
    plain = lambda kind, **more: {"kind": kind, **more}
    yield "softmax", [9, 10, 3], [
        conv(3, 4, [0, 0, 0, 0]), plain("relu"), conv(4, 4, [1, 1, 1, 1]), norm(4), plain("relu"),
        plain("maxpool", size=2), plain("flatten"), dense(48, 6), plain("relu"), norm(6), plain("embedding"),
        dense(6, 3), plain("softmax")]
    yield "student_t", [13, 12, 1], [
        plain("averagepool", size=2), conv(1, 3, [1, 0, 0, 1]), norm(3), plain("tanh"), plain("maxpool", size=2),
        plain("flatten"), dense(12, 5), plain("tanh"), plain("embedding"),
        {"kind": "student_t", "shape": [4, 5], "centres": draw(20, -1.0, 1.0)}]
    yield "pixels", [5, 4, 1], [
        plain("flatten"), plain("embedding"), {"kind": "student_t", "shape": [3, 20], "centres": draw(60, 0.0, 1.0)}]


def main():
    rng = np.random.default_rng(5)
    cases = []
    for name, shape, layers in networks(rng):
        images = rng.integers(0, 256, [2, *shape])
        background = rng.integers(0, 256, [7, *shape])
        cases.append({
            "name": name, "shape": shape, "layers": layers,
            "images": images.ravel().tolist(), "background": background.ravel().tolist(),
            "samples": SAMPLES, "seed": SEED,
            **{output: explained(layers, images, background, output) for output in ("probability", "score")},
        })
    rounded = json.loads(json.dumps(cases), parse_float=lambda text: float(f"{float(text):.10g}"))
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(rounded, separators=(",", ":")) + "\n")
    print(f"{OUT.relative_to(OUT.parents[4])}: {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
