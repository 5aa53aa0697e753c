"""What the tests share: a cluster of Ray on this machine, a dataset."""

import pytest
import ray
from ray.cluster_utils import Cluster

from dtkc import _programs


@pytest.fixture(scope="session")
def glyphs(tmp_path_factory):
    """Drawn glyphs, as a dataset."""
    path = tmp_path_factory.mktemp("data") / "glyphs.h5"
    _programs.run("dtkc-data", ["synth", "--kind", "glyphs", "--count", 600, "--seed", 3, "--out", path, "--quiet"])
    return path


@pytest.fixture
def nodes():
    """How many CPUs the two nodes have; a test that wants others says so with `pytest.mark.parametrize`."""
    return 2, 2


@pytest.fixture
def cluster(nodes):
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": nodes[0], "include_dashboard": False})
    for cpus in nodes[1:]:
        cluster.add_node(num_cpus=cpus)
    cluster.wait_for_nodes()
    yield cluster
    ray.shutdown()
    cluster.shutdown()
