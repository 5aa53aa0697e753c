"""Whole networks in PyTorch float64."""
import numpy as np
import torch
import torch.nn.functional as F

from core_numpy import bandwidth, flat, tensor_distances


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
    fine = z @ state["fine.weight"] + state["fine.bias"] if train and "fine.weight" in state else None
    return blocks, z, logits, fine, stats


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
    u, half, t = torch.softmax(logits, 1), len(logits) // 2, loss["consistency_temperature"]
    a, b = logits[:half], logits[half:]
    cross = lambda target, x: -(torch.softmax(target.detach() / t, 1) * torch.log_softmax(x, 1)).sum(1).mean()
    sure = u[:half].detach().max(1)
    keep = sure.values >= loss["self_label_threshold"]
    return {
        "consistency": (cross(a, b) + cross(b, a)) / 2,
        "mutual_information": t_information(u),
        "self_label": F.cross_entropy(b[keep], sure.indices[keep]),
    }


def t_information(u):
    """log k minus the mutual information between the first and the second half of the rows."""
    half, k = len(u) // 2, u.shape[1]
    joint = u[:half].T @ u[half:] / half
    joint = (joint + joint.T) / 2
    independent = joint.sum(1, keepdim=True) * joint.sum(0, keepdim=True)
    return np.log(k) - (joint * torch.log(joint / independent)).sum()


def paired(loss):
    return any(loss[name] > 0 for name in ("consistency", "mutual_information", "self_label"))


def losses(blocks, z, logits, fine, loss):
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
    first = n // 2 if paired(loss) else n
    for i, block in enumerate(blocks):
        terms[f"companion_{i + 1}"] = t_d_cs(u[:first], t_kernel(t_distances(block[:first]), loss))
    terms["balance"] = np.log(k) - entropy(u.mean(0))
    terms["certainty"] = -(u * torch.log(u)).sum(1).mean()
    if paired(loss):
        terms.update(paired_terms(logits, loss))
        if fine is not None:
            terms["overclustering"] = t_information(torch.softmax(fine, 1))
    return {name: value for name, value in terms.items() if weight(name, loss) > 0}


def weight(name, loss):
    return loss["lambda" if name.startswith("companion") else name]


def weighted(terms, loss):
    return sum(weight(name, loss) * value for name, value in terms.items())


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
    if config.get("fine", 0) > 1:
        add("fine.weight", config["hidden"], config["fine"] * k, scale=1.5)
        add("fine.bias", config["fine"] * k, scale=0.3)
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


def groups_of(rng, n, size, groups):
    """Images that repeat a few waves with noise, image i wave i % groups: near ones for narrow kernels, and second
    views where `groups` divides the number of pairs."""
    waves = pictures(rng, groups, size)[np.arange(n) % groups]
    return np.clip(waves + rng.normal(size=waves.shape) * 4, 0, 255).astype(int)


def network_case(name, config, size, k, loss, n, seed, groups=None):
    rng = np.random.default_rng(seed)
    height, width, channels = size
    images = pictures(rng, n, size) if groups is None else groups_of(rng, n, size, groups)
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
    blocks, z, logits, fine, stats = forward(config, state, x, True)
    check_against_svd(blocks)
    terms = losses(blocks, z, logits, fine, loss)
    total = weighted(terms, loss)
    total.backward()
    with torch.no_grad():
        eval_blocks, eval_z, eval_logits, _, _ = forward(config, state, x, False)
    return {
        "name": name, "height": height, "width": width, "channels": channels, "clusters": k,
        "network": config, "loss": loss, "images": images.flatten().tolist(),
        "state": {key: {"shape": list(v.shape), "values": flat(v), "gradient": None if v.grad is None else flat(v.grad)}
                  for key, v in state.items()},
        "train": result(blocks, z, logits, fine), "eval": result(eval_blocks, eval_z, eval_logits),
        "statistics": [{"mean": flat(m), "variance": flat(v)} for m, v in stats],
        "terms": {key: v.item() for key, v in terms.items()},
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


def result(blocks, z, logits, fine=None):
    found = {"blocks": [flat(b) for b in blocks], "embedding": flat(z), "membership": flat(torch.softmax(logits, 1))}
    return found if fine is None else {**found, "fine": flat(torch.softmax(fine, 1))}


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
    small = {"blocks": [block(3, 3, 1), block(4, 3, 2)], "padding": "same", **base, "hidden": 5}
    both = {**every, "sigma": 0.15, "consistency": 0.0, "mutual_information": 0.0, "self_label": 0.0}
    fine = {**every, "sigma": 0.15, "overclustering": 0.9}
    # Only the information between views: the gradient of a network is that of the fine clusters, and little else.
    fine_only = {**loss, "separation": 0.0, "orthogonality": 0.0, "simplex": 0.0, "lambda": 0.0,
                 "mutual_information": 0.01, "overclustering": 1.0}
    return [network_case("paper", papers, (24, 26, 1), 3, loss, 6, 15),
            network_case("other", other, (13, 12, 3), 4, every, 8, 1),
            network_case("narrow, distance", small, (12, 13, 1), 3, both, 8, 25, 3),
            network_case("narrow, squared", small, (12, 13, 1), 3, {**both, "bandwidth": "squared"}, 8, 25, 3),
            network_case("fine", {**small, "fine": 3}, (12, 12, 2), 3, fine, 12, 49, 3),
            network_case("fine alone", {**small, "fine": 4}, (12, 12, 1), 2, fine_only, 10, 4, 5)]
