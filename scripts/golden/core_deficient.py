"""Kernels of outputs whose unfoldings lack rank.

A projector jumps where the rank changes, so there the objective has no gradient. It has slopes along moves that
keep the rank of every unfolding: equal rows that move together, live channels, the slices of a constant image (which
stays a product of vectors), every entry of an image of full rank. Of these the SVD route tells the slopes; the other
directions, and all directions of a blank image, have no reference value.
"""
import numpy as np

from core_numpy import NARROW, bandwidth, conditioned, d_cs, difference, flat, grouped, slopes, tensor_distances


def ranks(y):
    """The rank of every image's unfoldings."""
    unfolded = [np.moveaxis(y, mode, 1).reshape(len(y), y.shape[mode], -1) for mode in range(1, y.ndim)]
    s = [np.linalg.svd(x, compute_uv=False) for x in unfolded]
    return [(s > np.maximum(s[:, :1] * 1e-10, 1e-300)).sum(1).tolist() for s in s]


def entries(y, *at):
    """The places of a part of y in its list of values."""
    return np.arange(y.size).reshape(y.shape)[at].ravel().tolist()


def each(y, *at):
    return [[place] for place in entries(y, *at)]


def equal_rows(y, image, axis, first, second):
    """Makes two slices of an image equal; the moves of that image."""
    rows = np.moveaxis(y[image], axis, 0)
    rows[second] = rows[first]
    places = np.moveaxis(np.array(entries(y, image)).reshape(y.shape[1:]), axis, 0)
    twice = [list(pair) for pair in zip(places[first].ravel().tolist(), places[second].ravel().tolist())]
    return twice + [[p] for row in range(len(rows)) if row not in (first, second) for p in places[row].ravel().tolist()]


def dead_channels(y, image, dead):
    y[image][..., dead] = 0
    return each(y, image, ..., [c for c in range(y.shape[-1]) if c not in dead])


def blank(y, image):
    y[image] = 0
    return []


def constant(y, image):
    """Growing one slice of ones leaves a product of vectors: rank one along every mode."""
    y[image] = 1
    places = np.array(entries(y, image)).reshape(y.shape[1:])
    return [row.ravel().tolist() for axis in range(places.ndim) for row in np.moveaxis(places, axis, 0)]


def nearly_constant(rng, y, image):
    """A neighbour of a constant image, of rank one as well, exactly so in float32; its own moves are not followed."""
    product = np.ones(())
    for side in y.shape[1:]:
        product = np.multiply.outer(product, 1 + np.round(rng.normal(size=side) * 8) / 64)
    y[image] = product
    return []


def deficient(u):
    rng, n = np.random.default_rng(27), len(u)
    cases = []

    def add(name, y, moves):
        cases.append(deficient_case(name, y, u, [m for image in range(n) for m in moves(y, image)]))

    whole = lambda y, image: each(y, image)
    near = lambda y, image: nearly_constant(rng, y, image)
    def of(kinds):
        return lambda y, image: kinds.get(image, whole)(y, image)

    channels = [[0, 4], [5], [1, 2, 3]]
    add("equal rows", grouped(rng, n, (4, 4, 3), 0.15), lambda y, i: equal_rows(y, i, 0, i % 3, 3))
    add("dead channels", grouped(rng, n, (3, 3, 6), 0.15), lambda y, i: dead_channels(y, i, channels[i % 3]))
    add("blank image", grouped(rng, n, (4, 3, 3), 0.15), of({6: blank}))
    add("constant image", grouped(rng, n, (4, 3, 3), 0.15), of({2: near, 5: constant}))
    twins = grouped(rng, n, (3, 5), 0.15)
    twins[3], twins[4] = twins[0], twins[1]
    add("equal images", twins, whole)
    columns = lambda y, i: equal_rows(y, i, 1, 0, 2)
    add("mixed matrices", grouped(rng, n, (6, 4), 0.15), of({0: columns, 2: near, 3: columns, 5: constant, 6: blank}))
    return cases


def deficient_case(name, y, u, moves):
    """Like `kernel_case`, with the slopes along moves that keep all ranks in place of the gradient."""
    here = ranks(y)
    def distances(x):
        assert ranks(x) == here, f"{name}: a move changes the rank"
        return tensor_distances(x)
    conditioned(name, y)
    d = tensor_distances(y)
    case = {"name": name, "shape": list(y.shape), "output": flat(y), "distances": flat(d), "moves": moves, "rules": {}}
    for rule, sigma in NARROW.items():
        b = bandwidth(d, rule, sigma)
        kernel = np.exp(-d / b)
        case["rules"][rule] = {
            "sigma": sigma, "bandwidth": b, "kernel": flat(kernel), "objective": d_cs(u, kernel),
            "slopes": flat(slopes(lambda x: d_cs(u, np.exp(-distances(x) / b)), y, moves)),
            "membership_gradient": flat(difference(lambda t: d_cs(t, kernel), u)),
        }
    return case
