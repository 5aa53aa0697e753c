"""Groups from unlabelled images and sequences.

>>> import dtkc
>>> groups = dtkc.DTKC(n_clusters=10).fit(images)           # uint8 [n, h, w], [n, h, w, c], paths, PIL images ...
>>> groups.labels_, groups.predict(more_images)
>>> groups.save("groups.onnx")
>>> dtkc.Model("groups.onnx").assign(["a.jpg", "b.png"]).cluster

- :class:`DTKC` learns groups: an estimator as scikit-learn's.
- :class:`Model` assigns items to the groups of a model file, as ``dtkc-label`` does, bit for bit.
- :class:`Dataset` opens, makes and iterates dataset files.
- :mod:`dtkc.metrics` compares groups with labels.
- :mod:`dtkc.arrow` labels tables, :mod:`dtkc.shards` files of them; :mod:`dtkc.ray` does so on many machines, and trains there.

The programs ``dtkc-data``, ``dtkc-train``, ``dtkc-label`` and ``dtkc-serve`` come with the package.
"""

from importlib import import_module as _import_module
from importlib.metadata import PackageNotFoundError as _NotFound
from importlib.metadata import version as _version

from ._dataset import Dataset
from ._dtkc import Error
from ._model import Assignments, Model, bundled_models

try:
    __version__ = _version("dtkc")
except _NotFound:  # run from the source folder
    __version__ = "0"

__all__ = ["DTKC", "Assignments", "Dataset", "Error", "Model", "arrow", "bundled_models", "metrics", "ray", "shards"]

# These import other packages (scikit-learn, pyarrow, ray), which who only assigns items does not need.
_LATER = {"DTKC": "._estimator", "metrics": None, "arrow": None, "ray": None, "shards": None}


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError(f"module 'dtkc' has no attribute {name!r}")
    module = _import_module(_LATER[name] or f".{name}", __name__)
    value = getattr(module, name) if _LATER[name] else module
    globals()[name] = value
    return value


def __dir__():
    return sorted(__all__)
