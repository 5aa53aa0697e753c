#!/usr/bin/env python3
"""Writes crates/dtkc-train/src/outliers/golden.json: distances of a small training set, by NumPy.

    outliers_golden.py OUT

Three clusters of uneven size and spread in four dimensions. The covariance is NumPy's, distances are solved for and not
whitened, quantiles are NumPy's: only the order of steps is that of the program.
"""

import json
import sys

import numpy

SHRINK, LEAST, ROUNDS, STRETCHES, THRESHOLD, FINEST = 0.01, 1e-4, 10, 32, 0.99, 0.1

random = numpy.random.default_rng(7)
sizes, width = [60, 30, 10], 4
centres = random.normal(size=(3, width)) * 3
spread = random.normal(size=(width, width))
clusters = random.permutation(numpy.repeat(numpy.arange(3), sizes))
items = (centres[clusters] + random.normal(size=(len(clusters), width)) @ spread).astype(numpy.float32).astype(float)

counted = numpy.arange(len(items)) % 4 == 3
used, of = items[~counted], clusters[~counted]
apart = used - numpy.stack([used[of == cluster].mean(0) for cluster in of])
covariance = (1 - SHRINK) * numpy.cov(apart.T, bias=True)
covariance += numpy.eye(width) * (SHRINK * apart.var(0).mean() + LEAST * used.var(0).mean())


def squares(rows, points):
    """Squared Mahalanobis distances of every row to every point."""
    differences = rows[:, None] - points[None]
    return numpy.einsum("ijk,ijk->ij", differences, numpy.linalg.solve(covariance, differences.reshape(-1, width).T).T.reshape(differences.shape))


wanted = min(256, len(used) // 4)
begin = []
for cluster in range(3):
    members = numpy.flatnonzero(of == cluster)
    count = max(1, wanted * len(members) // len(used))
    begin += [members[i * len(members) // count] for i in range(count)]
points = used[begin]
for _ in range(ROUNDS):
    nearest = squares(used, points).argmin(1)
    points = numpy.stack([used[nearest == i].mean(0) if (nearest == i).any() else points[i] for i in range(len(points))])

distance = lambda rows: numpy.sqrt(squares(rows, points).min(1))
knots = numpy.quantile(distance(items[counted]), THRESHOLD * numpy.arange(1, STRETCHES + 1) / STRETCHES)
knots[-1] = max(knots[-1], FINEST * width**0.5)
probes = numpy.concatenate([items[:6], random.normal(size=(6, width)) * 8])
probes = probes.astype(numpy.float32).astype(float)
at = distance(probes)
share = numpy.interp(at, numpy.concatenate([[0], knots]), numpy.arange(STRETCHES + 1) / STRETCHES)
values = THRESHOLD * share + (1 - THRESHOLD) * (1 - knots[-1] / numpy.maximum(at, knots[-1]))

json.dump(
    {
        "width": width,
        "embedding": items.ravel().tolist(),
        "clusters": clusters.tolist(),
        "items": int(counted.sum()),
        "points": len(points),
        "knots": [0.0] + knots.tolist(),
        "probes": probes.tolist(),
        "values": values.tolist(),
    },
    open(sys.argv[1], "w"),
)
