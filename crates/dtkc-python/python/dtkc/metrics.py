"""How well groups agree with labels, and with themselves.

A negative label means unlabelled and a negative cluster not assigned; such items are left out.
"""

import numpy as np

from . import _dtkc

__all__ = ["accuracy", "ari", "matching", "nmi", "scores", "silhouette"]


def _labels(values):
    values = np.asarray(values)
    if values.dtype.kind not in "iub":
        # Names of classes: numbered by their order.
        values = np.unique(values, return_inverse=True)[1]
    return np.ascontiguousarray(values, dtype=np.int64).ravel()


def accuracy(truth, clusters):
    """Part of the items whose cluster is matched with their class, under the best one-to-one matching."""
    return _dtkc.accuracy(_labels(truth), _labels(clusters))


def nmi(truth, clusters, normalisation="arithmetic"):
    """Normalised mutual information, by the arithmetic or the geometric mean of both entropies."""
    return _dtkc.nmi(_labels(truth), _labels(clusters), normalisation)


def ari(truth, clusters):
    """The adjusted Rand index."""
    return _dtkc.ari(_labels(truth), _labels(clusters))


def scores(truth, clusters):
    """``acc``, ``nmi``, ``ari``, and how many items were ``counted``."""
    return _dtkc.scores(_labels(truth), _labels(clusters))


def silhouette(embedding, clusters, max_samples=10_000, seed=0):
    """Mean silhouette coefficient; above `max_samples` items, of a random sample of them."""
    return _dtkc.silhouette(np.ascontiguousarray(embedding, dtype=np.float32), _labels(clusters), max_samples, seed)


def matching(truth, clusters):
    """The class that each cluster is matched with: pairs ``(cluster, class)``."""
    return _dtkc.matching(_labels(truth), _labels(clusters))
