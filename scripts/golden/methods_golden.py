#!/usr/bin/env python3
"""Reference values for dtkc-methods' tests: one step of each deep method in PyTorch float64, independent of the Rust code.

Needs NumPy and PyTorch. Use, from the repository's root:

    python3 scripts/golden/methods_golden.py

writes crates/dtkc-methods/tests/golden/methods.json. Images are bytes, scaled by their own range; every network has given
weights. `steps` hold, for DEC, IDEC, DBC and DCN, the pretraining step and the clustering step: the loss, its terms, and all
weights after one step of plain gradient descent. `pieces` hold what SpectralNet is made of.
"""
import json
import pathlib

import numpy as np
import torch
import torch.nn.functional as F

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/dtkc-methods/tests/golden/methods.json"
RATE = 0.1
torch.set_default_dtype(torch.float64)


def scaled(pixels):
    low = pixels.min(axis=1, keepdims=True).astype(float)
    high = pixels.max(axis=1, keepdims=True).astype(float)
    return torch.tensor((pixels - low) / (high - low))


def parameters(rng, shapes, scale=0.6):
    # Rounded to float32, which is what the Rust side computes with.
    draw = lambda shape: rng.uniform(-scale, scale, shape).astype(np.float32).astype(np.float64)
    return {name: torch.tensor(draw(shape), requires_grad=True) for name, shape in shapes.items()}


def dense_shapes(sizes):
    shapes = {}
    for part, ends in (("encoder", sizes), ("decoder", sizes[::-1])):
        for i, (a, b) in enumerate(zip(ends, ends[1:])):
            shapes[f"{part}.{i}.weight"] = (a, b)
            shapes[f"{part}.{i}.bias"] = (b,)
    return shapes


def dense_encode(w, x):
    taps = []
    count = sum(name.startswith("encoder") for name in w) // 2
    for i in range(count):
        x = x @ w[f"encoder.{i}.weight"] + w[f"encoder.{i}.bias"]
        if i + 1 < count:
            x = torch.relu(x)
            taps.append(x)
    return taps, x


def dense_decode(w, z):
    count = sum(name.startswith("decoder") for name in w) // 2
    for i in range(count):
        z = z @ w[f"decoder.{i}.weight"] + w[f"decoder.{i}.bias"]
        if i + 1 < count:
            z = torch.relu(z)
    return z


# One block of one 3x3 convolution with 3 filters and batch norm, pooling by 2, on images of 7 x 8: 5 x 6, then 2 x 3.
CONV = {
    "encoder.blocks.0.convs.0.weight": (3, 3, 1, 3), "encoder.blocks.0.convs.0.bias": (3,),
    "encoder.blocks.0.norm.gamma": (3,), "encoder.blocks.0.norm.beta": (3,),
    "encoder.code.weight": (18, 2), "encoder.code.bias": (2,),
    "decoder.code.weight": (2, 18), "decoder.code.bias": (18,),
    "decoder.blocks.0.convs.0.weight": (3, 3, 3, 1), "decoder.blocks.0.convs.0.bias": (1,),
}


def conv_encode(w, x, running):
    n = x.shape[0]
    kernel = w["encoder.blocks.0.convs.0.weight"].permute(3, 2, 0, 1)
    y = F.conv2d(x.reshape(n, 1, 7, 8), kernel, w["encoder.blocks.0.convs.0.bias"])
    mean, variance = running or (y.mean((0, 2, 3)), y.var((0, 2, 3), unbiased=False))
    shape = (1, 3, 1, 1)
    y = (y - mean.reshape(shape)) / torch.sqrt(variance.reshape(shape) + 1e-3)
    y = y * w["encoder.blocks.0.norm.gamma"].reshape(shape) + w["encoder.blocks.0.norm.beta"].reshape(shape)
    y = F.max_pool2d(torch.relu(y), 2)
    # Channels last, as the Rust side flattens.
    code = y.permute(0, 2, 3, 1).reshape(n, 18) @ w["encoder.code.weight"] + w["encoder.code.bias"]
    return [], code


def conv_decode(w, z):
    n = z.shape[0]
    y = torch.relu(z @ w["decoder.code.weight"] + w["decoder.code.bias"]).reshape(n, 2, 3, 3).permute(0, 3, 1, 2)
    y = F.interpolate(y, scale_factor=2, mode="nearest")
    y = F.pad(y, (0, 0, 0, 1))  # the row that pooling dropped
    # The Rust side holds the kernel of the convolution that the transposed one is.
    kernel = w["decoder.blocks.0.convs.0.weight"].flip(0, 1).permute(2, 3, 0, 1)
    y = F.conv_transpose2d(y, kernel, w["decoder.blocks.0.convs.0.bias"])
    return y.permute(0, 2, 3, 1).reshape(n, 56)


def student_t(z, centres):
    t = 1 / (1 + torch.cdist(z, centres) ** 2)
    return t / t.sum(1, keepdim=True)


def target(q):
    weight = q ** 2 / q.sum(0)
    return (weight / weight.sum(1, keepdim=True)).detach()


def companion(tap, u, sigma=0.15):
    square = ((tap[:, None] - tap[None]) ** 2).sum(2)
    kernel = torch.exp(-square / (sigma * square.detach().flatten().quantile(0.5)))
    n = u.T @ kernel @ u
    diagonal = torch.diagonal(n)
    ratio = n / torch.sqrt(torch.outer(diagonal, diagonal) + 1e-6)
    k = u.shape[1]
    return 2 / (k * (k - 1)) * torch.triu(ratio, 1).sum()


def stepped(w, loss):
    names = list(w)
    slopes = torch.autograd.grad(loss, [w[name] for name in names], allow_unused=True,
                                 retain_graph=True)
    return {name: (w[name] if g is None else w[name] - RATE * g).detach() for name, g in zip(names, slopes)}


def plain(value):
    if isinstance(value, torch.Tensor):
        value = value.detach().numpy()
    return {"shape": list(value.shape), "values": [float(v) for v in value.flatten()]}


def record(w, loss, terms, **more):
    after = stepped(w, loss)
    return {
        "loss": loss.item(), "terms": {name: value.item() for name, value in terms.items()},
        "after": {name: plain(value) for name, value in after.items()}, **more,
    }


def case(rng, shapes, height, width, encode, decode, code, k=3, n=9):
    pixels = rng.integers(0, 256, (n, height * width))
    x = scaled(pixels)
    w = parameters(rng, shapes)
    if "encoder.blocks.0.norm.gamma" in w:
        running = (torch.tensor([0.1, -0.2, 0.05]), torch.tensor([0.5, 0.8, 0.3]))
    else:
        running = None
    centres = {"centres": parameters(rng, {"c": (k, code)}, 0.8)["c"]}
    pretrain = ((decode(w, encode(w, x, None)[1]) - x) ** 2).mean()
    both = {**w, **centres}
    taps, z = encode(w, x, running)
    q = student_t(z, both["centres"])
    p = target(q)
    kl = (p * (p.log() - q.log())).sum() / n
    error = ((decode(w, z) - x) ** 2).mean()
    out = {
        "height": height, "width": width, "pixels": pixels.flatten().tolist(),
        "weights": {name: plain(value) for name, value in w.items()}, "centres": plain(centres["centres"]),
        "codes": plain(z), "memberships": plain(q), "targets": plain(p),
        "pretraining": record(w, pretrain, {"reconstruction": pretrain}),
        "dec": record(both, kl, {"clustering": kl}),
        "idec": record(both, 0.1 * kl + error, {"clustering": kl, "reconstruction": error}),
    }
    if running:
        names = ("encoder.blocks.0.norm.mean", "encoder.blocks.0.norm.variance")
        out["weights"].update({name: plain(value) for name, value in zip(names, running)})
    if taps:
        companions = {f"companion_{i + 1}": companion(tap, q) for i, tap in enumerate(taps)}
        out["dec_companions"] = record(both, kl + 0.5 * sum(companions.values()), {"clustering": kl, **companions})
        labels = [int(v) for v in rng.integers(0, k, n)]
        c = centres["centres"].detach()
        near = ((z - c[labels]) ** 2).sum() / n
        whole = ((decode(w, z) - x) ** 2).sum() / n
        after = stepped(w, 0.5 * near + whole)
        moved, given = c.clone(), []
        counts = [100] * k
        for row in encode(after, x, None)[1]:
            nearest = int(((moved - row) ** 2).sum(1).argmin())
            counts[nearest] += 1
            moved[nearest] += (row - moved[nearest]) / counts[nearest]
            given.append(nearest)
        out["dcn"] = record(w, 0.5 * near + whole, {"clustering": near, "reconstruction": whole}, labels=labels,
                            centres=plain(moved), given=given)
    return out


def pieces(rng):
    n, d, k = 12, 3, 4
    draw = lambda *shape: rng.normal(size=shape).astype(np.float32).astype(np.float64)
    own, near, far = (torch.tensor(draw(n, d) * 0.5, requires_grad=True) for _ in range(3))
    apart = torch.sqrt(((own - far) ** 2).sum(1))
    contrast = (((own - near) ** 2).sum() + (torch.relu(1.0 - apart) ** 2).sum()) / (2 * n)
    slopes = torch.autograd.grad(contrast, [own, near, far])
    points = draw(n, d)
    square = ((points[:, None] - points[None]) ** 2).sum(2)
    order = np.argsort(square + np.eye(n) * 1e9, axis=1)
    second = np.sqrt(np.take_along_axis(square, order[:, 1:2], 1)).flatten()
    scale = np.sort(second)[n // 2]
    ties = np.zeros((n, n))
    for i in range(n):
        for j in order[i, :3]:
            ties[i, j] = np.exp(-square[i, j] / (2 * scale ** 2))
    ties = (ties + ties.T) / 2
    outputs = torch.tensor(draw(n, k), requires_grad=True)
    w = torch.tensor(ties)
    loss = (w * ((outputs[:, None] - outputs[None]) ** 2).sum(2)).sum() / (2 * n)
    (slope,) = torch.autograd.grad(loss, [outputs])
    # The same loss with the outputs made orthonormal first, differentiated through the factor.
    turned = np.sqrt(n) * torch.linalg.solve_triangular(torch.linalg.cholesky(outputs.T @ outputs), outputs.T,
                                                        upper=False).T
    orthonormal = (w * ((turned[:, None] - turned[None]) ** 2).sum(2)).sum() / (2 * n)
    (through,) = torch.autograd.grad(orthonormal, [outputs])
    raw = outputs.detach().numpy()
    layer = np.sqrt(n) * np.linalg.inv(np.linalg.cholesky(raw.T @ raw)).T
    return {
        "own": plain(own), "near": plain(near), "far": plain(far), "contrast": contrast.item(),
        "contrast_slopes": [plain(s) for s in slopes], "points": plain(points), "ties": plain(ties),
        "outputs": plain(outputs), "spectral_loss": loss.item(), "spectral_slope": plain(slope), "layer": plain(layer),
        "orthonormal_loss": orthonormal.item(), "orthonormal_slope": plain(through),
    }


def main():
    rng = np.random.default_rng(20261117)
    dense = lambda w, x, _: dense_encode(w, x)
    data = {
        "rate": RATE,
        "dense": case(rng, dense_shapes([6, 5, 4, 2]), 2, 3, dense, dense_decode, 2),
        "conv": case(rng, CONV, 7, 8, conv_encode, conv_decode, 2),
        "pieces": pieces(rng),
    }
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(data, separators=(",", ":")) + "\n")
    print(OUT.name, OUT.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
