#!/usr/bin/env python3
"""Reference values for dtkc-core's tests, computed independently of the Rust code.

Needs NumPy and PyTorch. Use, from the repository's root:

    python3 scripts/golden/core_golden.py

writes crates/dtkc-core/tests/golden/kernels.json and network.json.

- kernels.json: distances, kernels, losses in NumPy float64. The tensor kernel takes its projectors from an SVD, and
  every gradient is a central finite difference of that SVD route, with the bandwidths held fixed.
- network.json: whole networks in PyTorch float64 with given weights: activations, statistics, losses and the
  gradient of the loss for every parameter.
"""
import json
import pathlib

import numpy as np
import torch
import torch.nn.functional as F

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/dtkc-core/tests/golden"
RULES = {"distance": 0.6, "squared": 0.30}


# --- NumPy: distances and losses -------------------------------------------------------------------------------

def projector(x):
    """Orthogonal projector on the row space of x, transposed when it has more rows than columns."""
    if x.shape[0] > x.shape[1]:
        x = x.T
    _, s, vt = np.linalg.svd(x, full_matrices=False)
    v = vt[s > s[0] * 1e-10]
    return v.T @ v


def tensor_distances(y):
    n, rank = y.shape[0], y.ndim - 1
    total = np.zeros((n, n))
    for mode in range(rank):
        unfolded = np.moveaxis(y, mode + 1, 1).reshape(n, y.shape[mode + 1], -1)
        p = [projector(x) for x in unfolded]
        total += np.array([[((a - b) ** 2).sum() for b in p] for a in p])
    return total


def vector_distances(z):
    return ((z[:, None] - z[None]) ** 2).sum(-1)


def bandwidth(d, rule, sigma):
    if rule == "distance":
        return max(2 * (sigma * np.median(np.sqrt(d))) ** 2, 1e-9)
    return max(sigma * np.median(d), 1e-9)


def d_cs(a, kernel):
    k, total = a.shape[1], 0.0
    products = a.T @ kernel @ a
    for i in range(k):
        for j in range(i + 1, k):
            total += products[i, j] / np.sqrt(products[i, i] * products[j, j] + 1e-6)
    return total * 2 / (k * (k - 1))


def l2_sum(u):
    return float(sum(u[i] @ u[j] for i in range(len(u)) for j in range(i + 1, len(u))))


def closeness(u):
    return np.array([[np.exp(-((row - e) ** 2).sum()) for e in np.eye(u.shape[1])] for row in u])


def difference(f, x, step=1e-5):
    """Gradient of f at x by central differences of fourth order."""
    g = np.zeros_like(x)
    for at in np.ndindex(*x.shape):
        def shifted(by):
            moved = x.copy()
            moved[at] += by
            return f(moved)
        g[at] = (8 * (shifted(step) - shifted(-step)) - (shifted(2 * step) - shifted(-2 * step))) / (12 * step)
    return g


def kernel_case(name, y, u, distances):
    """Distances, kernels and the companion objective of one output, with gradients for output and membership."""
    case = {"name": name, "shape": list(y.shape), "output": flat(y), "distances": flat(distances(y)), "rules": {}}
    for rule, sigma in RULES.items():
        b = bandwidth(distances(y), rule, sigma)
        case["rules"][rule] = {
            "sigma": sigma,
            "bandwidth": b,
            "kernel": flat(np.exp(-distances(y) / b)),
            "objective": d_cs(u, np.exp(-distances(y) / b)),
            "output_gradient": flat(difference(lambda t: d_cs(u, np.exp(-distances(t) / b)), y)),
            "membership_gradient": flat(difference(lambda t: d_cs(t, np.exp(-distances(y) / b)), u)),
        }
    return case


def kernels():
    rng = np.random.default_rng(7)
    n, k = 7, 4
    u = softmax(rng.normal(size=(n, k)) * 1.5)
    outputs = [
        ("vector", rng.normal(size=(n, 6)), vector_distances),
        ("matrix", rng.normal(size=(n, 3, 5)), tensor_distances),
        ("block", rng.normal(size=(n, 5, 4, 3)), tensor_distances),
        ("wide block", rng.normal(size=(n, 2, 3, 11)), tensor_distances),
        ("rank 4", rng.normal(size=(n, 2, 3, 2, 4)), tensor_distances),
    ]
    z = outputs[0][1]
    kernel = np.exp(-vector_distances(z) / bandwidth(vector_distances(z), "squared", 0.3))
    terms = {
        "separation": d_cs(u, kernel),
        "orthogonality": l2_sum(u),
        "orthogonality_mean": l2_sum(u) * 2 / (n * (n - 1)),
        "simplex": d_cs(closeness(u), kernel),
        "orthogonality_gradient": flat(difference(l2_sum, u)),
        "simplex_gradient": flat(difference(lambda t: d_cs(closeness(t), kernel), u)),
    }
    paired = paired_case(rng)
    cases = [kernel_case(name, y, u, distances) for name, y, distances in outputs]
    return {"membership_shape": [n, k], "membership": flat(u), "terms": terms, "cases": cases, "paired": paired}


def paired_case(rng):
    """Terms without a kernel, with their gradients for the logits."""
    first = rng.normal(size=(5, 4)) * 1.5
    data = np.concatenate([first, first + rng.normal(size=(5, 4)) * 0.7])
    case = {"shape": list(data.shape), "logits": flat(data), "temperature": 0.6, "threshold": 0.6, "terms": {}}
    for name in ("consistency", "mutual_information", "self_label", "balance", "certainty"):
        logits = torch.tensor(data, requires_grad=True)
        u = torch.softmax(logits, 1)
        terms = paired_terms(logits, {"consistency_temperature": 0.6, "self_label_threshold": 0.6})
        terms["balance"] = np.log(4) - entropy(u.mean(0))
        terms["certainty"] = -(u * torch.log(u)).sum(1).mean()
        terms[name].backward()
        case["terms"][name] = {"value": terms[name].item(), "gradient": flat(logits.grad)}
    return case


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


# --- PyTorch: whole networks -----------------------------------------------------------------------------------

def conv(x, weight, bias, padding):
    """x [n, c, h, w], weight [kh, kw, in, out]."""
    if padding == "same":
        rows, columns = weight.shape[0] - 1, weight.shape[1] - 1
        x = F.pad(x, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2))
    return F.conv2d(x, weight.permute(3, 2, 0, 1), bias)


def norm(x, state, path, stats, eps):
    gamma, beta = state[path + ".gamma"], state[path + ".beta"]
    shape = (1, -1) + (1,) * (x.dim() - 2)
    dims = [d for d in range(x.dim()) if d != 1]
    if stats is None:
        mean, variance = state[path + ".mean"], state[path + ".variance"]
    else:
        mean, variance = x.mean(dims), x.var(dims, unbiased=False)
        stats.append((mean.detach(), variance.detach()))
    return (x - mean.view(shape)) / torch.sqrt(variance.view(shape) + eps) * gamma.view(shape) + beta.view(shape)


def forward(config, state, x, train):
    """x [n, h, w, c] in [0, 1]; block outputs come back channels-last."""
    stats = [] if train else None
    y, blocks, eps = x.permute(0, 3, 1, 2), [], config["batch_norm_epsilon"]
    for b, block in enumerate(config["blocks"]):
        for c in range(block["convs"]):
            y = conv(y, state[f"blocks.{b}.convs.{c}.weight"], state[f"blocks.{b}.convs.{c}.bias"], config["padding"])
            if c == block["convs"] - 1 and block["batch_norm"]:
                y = norm(y, state, f"blocks.{b}.norm", stats, eps)
            y = torch.relu(y)
        y = F.max_pool2d(y, block["pool"])
        blocks.append(y.permute(0, 2, 3, 1))
    z = torch.relu(blocks[-1].flatten(1) @ state["hidden.weight"] + state["hidden.bias"])
    if config["hidden_batch_norm"]:
        z = norm(z, state, "hidden_norm", stats, eps)
    logits = z @ state["output.weight"] + state["output.bias"]
    return blocks, z, logits, stats


def t_projector_distances(x):
    if x.shape[1] > x.shape[2]:
        x = x.transpose(1, 2)
    p = x.transpose(1, 2) @ torch.linalg.solve(x @ x.transpose(1, 2), x)
    return (p[:, None] - p[None]).square().sum((2, 3))


def t_distances(y):
    n = y.shape[0]
    if y.dim() == 2:
        return (y[:, None] - y[None]).square().sum(-1)
    return sum(t_projector_distances(y.movedim(m, 1).reshape(n, y.shape[m], -1)) for m in range(1, y.dim()))


def t_kernel(d, loss):
    return torch.exp(-d / bandwidth(d.detach().numpy(), loss["bandwidth"], loss["sigma"]))


def t_d_cs(a, kernel):
    products, k = a.T @ kernel @ a, a.shape[1]
    d = products.diagonal()
    return torch.triu(products / torch.sqrt(d[:, None] * d[None] + 1e-6), 1).sum() * 2 / (k * (k - 1))


def entropy(p):
    return -(p * torch.log(p)).sum()


def paired_terms(logits, loss):
    """Terms between the first and the second half of the rows."""
    u, half, k, t = torch.softmax(logits, 1), len(logits) // 2, logits.shape[1], loss["consistency_temperature"]
    a, b = logits[:half], logits[half:]
    cross = lambda target, x: -(torch.softmax(target.detach() / t, 1) * torch.log_softmax(x, 1)).sum(1).mean()
    joint = u[:half].T @ u[half:] / half
    joint = (joint + joint.T) / 2
    independent = joint.sum(1, keepdim=True) * joint.sum(0, keepdim=True)
    sure = u[:half].detach().max(1)
    keep = sure.values >= loss["self_label_threshold"]
    return {
        "consistency": (cross(a, b) + cross(b, a)) / 2,
        "mutual_information": np.log(k) - (joint * torch.log(joint / independent)).sum(),
        "self_label": F.cross_entropy(b[keep], sure.indices[keep]),
    }


def losses(blocks, z, logits, loss):
    """All terms by name, unweighted, for paired views when a paired term has a weight; companions see first views only."""
    u, (n, k) = torch.softmax(logits, 1), logits.shape
    kz = t_kernel(t_distances(z), loss)
    corners = torch.eye(k, dtype=u.dtype)
    m = torch.exp(-(u[:, None] - corners[None]).square().sum(-1))
    l2 = torch.triu(u @ u.T, 1).sum()
    terms = {
        "separation": t_d_cs(u, kz),
        "simplex": t_d_cs(m, kz),
        "orthogonality": l2 * 2 / (n * (n - 1)) if loss["membership_sum"] == "mean" else l2,
    }
    first = n // 2 if loss["consistency"] > 0 else n
    for i, block in enumerate(blocks):
        terms[f"companion_{i + 1}"] = t_d_cs(u[:first], t_kernel(t_distances(block[:first]), loss))
    terms["balance"] = np.log(k) - entropy(u.mean(0))
    terms["certainty"] = -(u * torch.log(u)).sum(1).mean()
    if loss["consistency"] > 0:
        terms.update(paired_terms(logits, loss))
    return terms


def weighted(terms, loss):
    weight = lambda name: loss["lambda" if name.startswith("companion") else name]
    return sum(weight(name) * value for name, value in terms.items())


def initial_state(config, channels, features, k, rng):
    state, inputs = {}, channels
    def add(name, *shape, scale=1.0, low=None):
        values = rng.normal(size=shape) * scale if low is None else rng.uniform(low, low + 1, size=shape)
        state[name] = torch.tensor(values.astype(np.float32).astype(np.float64))
    def add_norm(path, size):
        add(path + ".gamma", size, low=0.5)
        add(path + ".beta", size, low=0.3)
        add(path + ".mean", size, scale=0.3)
        add(path + ".variance", size, low=0.5)
    for b, block in enumerate(config["blocks"]):
        for c in range(block["convs"]):
            side = block["kernel"]
            add(f"blocks.{b}.convs.{c}.weight", side, side, inputs, block["filters"], scale=1.2 / np.sqrt(side * side * inputs))
            add(f"blocks.{b}.convs.{c}.bias", block["filters"], low=0.0)
            inputs = block["filters"]
        if block["batch_norm"]:
            add_norm(f"blocks.{b}.norm", inputs)
    add("hidden.weight", features, config["hidden"], scale=1 / np.sqrt(features))
    add("hidden.bias", config["hidden"], scale=0.3)
    if config["hidden_batch_norm"]:
        add_norm("hidden_norm", config["hidden"])
    add("output.weight", config["hidden"], k, scale=1.0 if config["hidden_batch_norm"] else 4.0)
    add("output.bias", k, scale=0.2)
    return state


def pictures(rng, n, size):
    """Waves of random direction and length with noise: images that a random network tells apart."""
    rows, columns, channels = np.meshgrid(*(np.arange(s) for s in size), indexing="ij")
    waves = []
    for _ in range(n):
        a, b, c, d = rng.normal(size=4)
        waves.append(np.sin(a * rows + b * columns + c * channels + d) + rng.normal(size=size) * 0.2 + 0.5 * d)
    waves = np.array(waves)
    return np.clip(waves * 60 + 120, 0, 255).astype(int)


def network_case(name, config, size, k, loss, n, seed):
    rng = np.random.default_rng(seed)
    height, width, channels = size
    images = pictures(rng, n, size)
    low, high = images.min((1, 2, 3), keepdims=True), images.max((1, 2, 3), keepdims=True)
    x = torch.tensor((images - low) / (high - low))
    probe = x.permute(0, 3, 1, 2)
    for block in config["blocks"]:
        for _ in range(block["convs"] if config["padding"] == "valid" else 0):
            probe = probe[..., block["kernel"] - 1:, block["kernel"] - 1:]
        probe = F.max_pool2d(probe, block["pool"])
    features = probe.shape[2] * probe.shape[3] * config["blocks"][-1]["filters"]
    state = initial_state(config, channels, features, k, rng)
    for parameter in state.values():
        parameter.requires_grad_(True)
    blocks, z, logits, stats = forward(config, state, x, True)
    check_against_svd(blocks)
    terms = losses(blocks, z, logits, loss)
    total = weighted(terms, loss)
    total.backward()
    with torch.no_grad():
        eval_blocks, eval_z, eval_logits, _ = forward(config, state, x, False)
    return {
        "name": name, "height": height, "width": width, "channels": channels, "clusters": k,
        "network": config, "loss": loss, "images": images.flatten().tolist(),
        "state": {key: {"shape": list(v.shape), "values": flat(v), "gradient": None if v.grad is None else flat(v.grad)}
                  for key, v in state.items()},
        "train": result(blocks, z, logits), "eval": result(eval_blocks, eval_z, eval_logits),
        "statistics": [{"mean": flat(m), "variance": flat(v)} for m, v in stats],
        "terms": {key: v.item() for key, v in terms.items() if loss["lambda" if "companion" in key else key] > 0},
        "total": total.item(),
    }


def check_against_svd(blocks):
    """The two independent routes to the distances must agree, and the unfoldings be far from losing rank."""
    for block in blocks:
        y = block.detach()
        for mode in range(1, y.dim()):
            s = torch.linalg.svdvals(y.movedim(mode, 1).reshape(y.shape[0], y.shape[mode], -1))
            condition = (s[:, -1] ** 2 / (s ** 2).mean(1)).min().item()
            assert condition > 2e-3, f"block of {tuple(y.shape)}: choose another seed ({condition:.1e})"
        error = np.abs(t_distances(y).numpy() - tensor_distances(y.numpy())).max()
        assert error < 1e-6, error


def result(blocks, z, logits):
    return {"blocks": [flat(b) for b in blocks], "embedding": flat(z), "membership": flat(torch.softmax(logits, 1))}


def networks():
    block = lambda filters, kernel, convs=2, batch_norm=True, pool=2: {
        "filters": filters, "kernel": kernel, "convs": convs, "batch_norm": batch_norm, "pool": pool}
    base = {"hidden": 6, "hidden_batch_norm": True, "batch_norm_momentum": 0.99, "batch_norm_epsilon": 1e-3}
    papers = {"blocks": [block(4, 5), block(5, 3)], "padding": "valid", **base}
    other = {"blocks": [block(3, 4, 1, False, 3), block(4, 3, 3, True, 1)], "padding": "same", **base, "hidden_batch_norm": False}
    loss = {"bandwidth": "squared", "sigma": 0.3, "membership_sum": "sum", "separation": 1.0, "orthogonality": 1.0,
            "simplex": 1.0, "lambda": 0.01, "consistency": 0.0, "consistency_temperature": 1.0,
            "mutual_information": 0.0, "overclustering": 0.0, "balance": 0.0, "certainty": 0.0, "self_label": 0.0,
            "self_label_threshold": 0.95, "self_label_start": 0.0, "ramp": 0.0}
    every = {**loss, "bandwidth": "distance", "sigma": 0.6, "membership_sum": "mean", "separation": 0.9, "orthogonality": 1.3,
             "simplex": 0.8, "lambda": 0.7, "consistency": 0.6, "consistency_temperature": 0.5,
             "mutual_information": 0.4, "balance": 0.3, "certainty": 0.2, "self_label": 0.5, "self_label_threshold": 0.5}
    return [network_case("paper", papers, (24, 26, 1), 3, loss, 6, 15),
            network_case("other", other, (13, 12, 3), 4, every, 8, 1)]


def flat(x):
    values = x.detach().numpy() if isinstance(x, torch.Tensor) else np.asarray(x)
    return [float(f"{v:.9g}") for v in values.flatten()]


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for name, data in (("kernels", kernels()), ("network", networks())):
        path = OUT / f"{name}.json"
        path.write_text(json.dumps(data, separators=(",", ":")) + "\n")
        print(path.name, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
