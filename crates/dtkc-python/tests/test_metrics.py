"""Figures against scikit-learn's and SciPy's."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn import metrics as theirs

import dtkc
from dtkc import metrics


@pytest.fixture
def drawn():
    draw = np.random.default_rng(7)
    truth = draw.integers(0, 5, 400)
    return truth, np.where(draw.random(400) < 0.6, truth, draw.integers(0, 7, 400))


def test_figures_are_those_of_scikit_learn(drawn):
    truth, clusters = drawn
    counts = theirs.cluster.contingency_matrix(truth, clusters)
    rows, columns = linear_sum_assignment(-counts)
    assert metrics.accuracy(truth, clusters) == pytest.approx(counts[rows, columns].sum() / 400)
    assert metrics.nmi(truth, clusters) == pytest.approx(theirs.normalized_mutual_info_score(truth, clusters))
    geometric = theirs.normalized_mutual_info_score(truth, clusters, average_method="geometric")
    assert metrics.nmi(truth, clusters, "geometric") == pytest.approx(geometric)
    assert metrics.ari(truth, clusters) == pytest.approx(theirs.adjusted_rand_score(truth, clusters))
    points = np.random.default_rng(1).normal(size=(400, 3)) + truth[:, None]
    assert metrics.silhouette(points, clusters) == pytest.approx(theirs.silhouette_score(points.astype(np.float32), clusters), abs=1e-5)


def test_names_negatives_and_nonsense(drawn):
    truth, clusters = drawn
    names = np.array(list("vwxyz"))[truth]
    assert metrics.scores(names, clusters) == metrics.scores(truth, clusters)
    some = clusters.copy()
    some[:100] = -1
    assert metrics.scores(truth, some)["counted"] == 300
    assert dict(metrics.matching([0, 0, 1], [5, 5, 3])) == {5: 0, 3: 1}
    with pytest.raises(dtkc.Error):
        metrics.accuracy([1, 2], [1])
    with pytest.raises(dtkc.Error, match="arithmetic"):
        metrics.nmi(truth, clusters, "harmonic")
