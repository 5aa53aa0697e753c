"""Distances, kernels and losses in NumPy float64, with projectors from an SVD and gradients by central differences."""
import numpy as np

# Factors of the median by rule; .15 is that of the presets.
RULES = {"distance": 0.6, "squared": 0.30}
NARROW = {"distance": 0.15, "squared": 0.15}


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
    return slopes(f, x, [[at] for at in range(x.size)], step).reshape(x.shape)


def slopes(f, x, moves, step=1e-5):
    """Slopes of f at x, by central differences of fourth order, when the entries of one move all grow alike."""
    def slope(move):
        def shifted(by):
            moved = x.copy()
            moved.ravel()[move] += by
            return f(moved)
        return (8 * (shifted(step) - shifted(-step)) - (shifted(2 * step) - shifted(-2 * step))) / (12 * step)
    return np.array([slope(move) for move in moves])


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def grouped(rng, n, shape, spread):
    """Three groups of outputs. At 15 % of the median only near outputs see each other: among far ones every kernel
    would be the identity, whatever the code does."""
    centres = rng.normal(size=(3, *shape))
    return single(centres[np.arange(n) % 3] + rng.normal(size=(n, *shape)) * spread)


def single(x):
    """As float32 has it: what the Rust code reads is what is differentiated here."""
    return x.astype(np.float32).astype(np.float64)


def conditioned(name, y):
    """The singular values that are not zero must be far above the ridge of the Rust code."""
    for mode in range(1, y.ndim):
        for x in np.moveaxis(y, mode, 1).reshape(len(y), y.shape[mode], -1):
            s = np.linalg.svd(x, compute_uv=False)
            live = s[s > s[0] * 1e-10]
            assert not len(live) or live[-1] ** 2 / (s ** 2).mean() > 5e-2, f"{name}: choose another seed"


def flat(x):
    values = x.detach().numpy() if hasattr(x, "detach") else np.asarray(x)
    return [float(f"{v:.9g}") for v in values.flatten()]
