"""The estimator: learns groups of images or sequences, as scikit-learn's do."""

import json
import numbers
import os
import shutil
import tempfile
import weakref

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _dataset, _items, _training
from ._dtkc import Error
from ._model import Model, write


#: Images with a side below this are enlarged before they are learnt from.
_SMALLEST = 28


class DTKC(ClusterMixin, TransformerMixin, BaseEstimator):
    """Learns groups of images or sequences with no labels; new items are sorted into the same groups.

    A small network is trained end to end so that its output is the group of an item (Deep Divergence-based Clustering, the default, or Deep
    Tensor Kernel Clustering, or any other method of ``dtkc-train``). The same seed gives the same bits on one machine, and the same as the program.

    Parameters
    ----------
    n_clusters : int or "auto", default=10
        How many groups. "auto" looks for a number from 2 to 15.
    shape : tuple, optional
        ``(height, width)`` or ``(height, width, channels)`` of images that are given as flat rows. Without it rows are taken as what they are: points.
    size : tuple, optional
        What images are brought to, ``(height, width)`` or ``(height, width, channels)``. Without it files become 32x32 in colour, and arrays keep their
        size, except that small ones (a side below 28) are enlarged.
    method : str, optional
        "ddc" (default), "dtkc", "kmeans", "spectral", "dec", "idec", "dcn", "spectralnet", "dbc".
    preset : str, optional
        Where the method's settings start from; see ``dtkc-train fit --help``.
    restarts, epochs, batch : int, optional
        Without them the program chooses by the number of items.
    random_state : int, RandomState or None, default=0
        Seed of everything random.
    backbone : path, optional
        A trained network (ONNX) that describes the images; for photographs.
    settings : dict, optional
        Any setting of ``config.toml``: ``{"loss.sigma": 0.3}``.
    budget : str, optional
        Limit of the training time, such as "30m".
    threads : int, default=0
        0 takes all cores; the result does not depend on it.
    device : str, default="cpu"
        Where training runs, where the program was built for it.
    run_dir : path, optional
        Folder that keeps the run: checkpoints, log, ``report.html``, ``model.onnx``. A `fit` that was stopped goes on there when it is called again with the
        same data and parameters. Without it the folder is temporary.
    verbose : bool or "auto", default="auto"
        Progress in a notebook and on a terminal; ``True`` also in a log, ``False`` nowhere.

    Attributes
    ----------
    labels_ : ndarray of int64
        The group of every item; groups are numbered by size, the largest is 0.
    model_ : dtkc.Model
        The model file that was learnt; ``save(path)`` writes it.
    n_clusters_ : int
    summary_ : dict
        What the program says about the run: every restart with its loss, and scores.
    run_dir_ : str or None
        The folder of the run, where it was kept.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> digits = load_digits()
    >>> groups = dtkc.DTKC(n_clusters=10).fit(digits.images)
    >>> groups.labels_[:10]
    """

    def __init__(
        self,
        n_clusters=10,
        *,
        shape=None,
        size=None,
        method=None,
        preset=None,
        restarts=None,
        epochs=None,
        batch=None,
        random_state=0,
        backbone=None,
        settings=None,
        budget=None,
        threads=0,
        device="cpu",
        run_dir=None,
        verbose="auto",
    ):
        self.n_clusters = n_clusters
        self.shape = shape
        self.size = size
        self.method = method
        self.preset = preset
        self.restarts = restarts
        self.epochs = epochs
        self.batch = batch
        self.random_state = random_state
        self.backbone = backbone
        self.settings = settings
        self.budget = budget
        self.threads = threads
        self.device = device
        self.run_dir = run_dir
        self.verbose = verbose

    def fit(self, X, y=None):
        """Learns groups.

        `X`: images ``[n, h, w]`` or ``[n, h, w, c]`` (uint8, or numbers that become bytes), flat rows with `shape`, a list of paths or PIL images, a list of
        sequences ``[steps, dim]``, rows ``[n, d]`` of points, a column of Arrow, a :class:`dtkc.Dataset`, or the path of a dataset, a folder or an archive.
        `y` is not looked at. Ctrl-C stops at a safe place and keeps the checkpoint.
        """
        folder, keeps = self._folder()
        try:
            self._fit(X, folder, keeps)
        finally:
            if not keeps:
                shutil.rmtree(folder, ignore_errors=True)
        return self

    def _fit(self, X, folder, keeps):
        run = os.path.join(folder, "run") if not keeps else folder
        given, items = self._understood(X)
        if keeps:
            self._same_as_before(run)
        data = given if given is not None else self._written(items, run)
        self.summary_ = _training.train(run, self._arguments(run, data.path), _training.progress_of(self.verbose))
        with open(os.path.join(run, "model.onnx"), "rb") as file:
            self.model_ = Model(file.read(), threads=self.threads)
        self.n_clusters_ = 1 if self.n_clusters == 1 else self.model_.n_clusters
        self.run_dir_ = run if keeps else None
        found = self.model_.assign(data, embedding=False, probabilities=False)
        self.labels_ = self._joined(found.cluster)

    def _written(self, items, run):
        """The dataset of the items: beside the run, and kept with it, because who resumes must find it."""
        path = f"{run.rstrip(os.sep)}.items.h5"
        size = self.size or _enlarged(items)
        if not os.path.exists(path):
            return _dataset._write(items, path, size=size)
        with tempfile.TemporaryDirectory(prefix="dtkc-") as other:
            again = _dataset._write(items, os.path.join(other, "items.h5"), size=size)
            before = _dataset.Dataset(path)
            if again.fingerprint() != before.fingerprint():
                raise Error(f"{run} holds a run on other items; choose another run_dir, or delete it and {path}")
        return before

    def _same_as_before(self, run):
        """Refuses to go on with a run that was begun with other parameters; writes down those of a new one."""
        path = f"{run.rstrip(os.sep)}.asked.json"
        free = ("run_dir", "verbose", "threads", "device")
        asked = {name: value if isinstance(value, (int, float, bool)) or value is None else str(value) for name, value in self.get_params().items() if name not in free}
        if not _training.is_run(run):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write(path, json.dumps(asked).encode())
            return
        if not os.path.exists(path):
            raise Error(f"{run} holds a run that was not begun here; `dtkc-train resume` goes on with it, or choose another run_dir")
        with open(path, "rb") as file:
            before = json.load(file)
        other = next((name for name in asked if asked[name] != before.get(name)), None)
        if other is not None:
            raise Error(f"{run} holds a run with {other}={before.get(other)!r}, not {asked[other]!r}; choose another run_dir, or delete it")

    def _joined(self, clusters):
        """One group is all that there is: a network needs two to be trained, which are taken for one."""
        return np.minimum(clusters, 0) if self.n_clusters_ == 1 else clusters

    def _folder(self):
        if self.run_dir is None:
            return tempfile.mkdtemp(prefix="dtkc-"), False
        return os.path.abspath(os.fspath(self.run_dir)), True

    def _understood(self, X):
        """The dataset that was given, or the items."""
        for name in ("scale_", "n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                delattr(self, name)
        if isinstance(X, _dataset.Dataset) or _items.is_path(X):
            given = X if isinstance(X, _dataset.Dataset) else self._opened(os.fspath(X))
            if given.kind == "features":
                raise Error(f"{given.path} holds features of images; give the images themselves, and the network with backbone=")
            return given, None
        X = self._checked(X, reset=True)
        items = _items.understand(X, shape=self.shape)
        if isinstance(items, _items.Pixels):
            self.scale_ = items.scale
        self._enough(items)
        return None, items

    def _opened(self, path):
        """A dataset by its path, or one made of a folder, an archive or a table."""
        if os.path.isfile(path) and path.endswith((".h5", ".hdf5")):
            return _dataset.Dataset(path)
        kept = tempfile.mkdtemp(prefix="dtkc-import-")
        weakref.finalize(self, shutil.rmtree, kept, True)
        size = self.size[:2] if self.size else None
        return _dataset.Dataset.from_files(path, os.path.join(kept, _items.name_of(path) + ".h5"), size=size)

    def _checked(self, X, reset):
        """Rows of numbers, as scikit-learn checks them; whatever else is left as it is."""
        if _is_rows(X):
            kinds = [np.uint8, np.float32, np.float64] if self.shape is not None else [np.float32, np.float64]
            return validate_data(self, X, reset=reset, dtype=kinds, ensure_min_samples=2 if reset else 1)
        if reset and len(getattr(X, "shape", ())) > 1:
            self.n_features_in_ = int(np.prod(X.shape[1:]))
        return X

    def _enough(self, items):
        if isinstance(self.n_clusters, numbers.Integral) and len(items) < self.n_clusters:
            raise Error(f"n_samples={len(items)} should be >= n_clusters={self.n_clusters}")

    def _arguments(self, run, data):
        if _training.is_run(run):
            return ["resume", run, "--data", data]
        arguments = ["fit", "--data", data, "--clusters", 2 if self.n_clusters == 1 else self.n_clusters, "--out", run, "--seed", _seed(self.random_state)]
        flags = {
            "method": self.method,
            "preset": self.preset,
            "restarts": self.restarts,
            "epochs": self.epochs,
            "batch": self.batch,
            "backbone": self.backbone,
            "budget": self.budget,
            "threads": self.threads,
            "device": self.device,
        }
        for name, value in flags.items():
            if value is not None:
                arguments += [f"--{name}", value]
        for name, value in (self.settings or {}).items():
            arguments += ["--set", f"{name}={_toml(value)}"]
        if self.run_dir is None:
            arguments.append("--no-report")
        return arguments

    def _assigned(self, X, **wanted):
        check_is_fitted(self, "model_")
        if isinstance(X, _dataset.Dataset) or _items.is_path(X):
            data = X if isinstance(X, _dataset.Dataset) else self._opened(os.fspath(X))
            return self.model_.assign(data, **wanted)
        X = self._checked(X, reset=False)
        scale = getattr(self, "scale_", "fixed")
        items = _items.understand(X, shape=self.shape, kind=self.model_.kind if self.shape is None else None, scale=scale)
        return self.model_._assign(items, wanted.get("embedding", True), wanted.get("probabilities", True))

    def predict(self, X):
        """The group of every item; -1 where one cannot be read."""
        return self._joined(self._assigned(X, embedding=False, probabilities=False).cluster)

    def predict_proba(self, X):
        """Probabilities of all groups, ``[n, n_clusters]``."""
        found = self._assigned(X, embedding=False).probabilities
        return found.sum(axis=1, keepdims=True) if self.n_clusters_ == 1 else found

    def transform(self, X):
        """The embedding of every item, ``[n, width]``: what the last layer before the groups says."""
        return self._assigned(X, probabilities=False).embedding

    def fit_predict(self, X, y=None):
        """Learns groups; gives that of every item."""
        return self.fit(X).labels_

    def save(self, path):
        """Writes the model file: for ``dtkc-label``, ``dtkc-serve``, :class:`dtkc.Model` and every ONNX runtime."""
        check_is_fitted(self, "model_")
        if self.n_clusters_ == 1:
            raise Error("there is one group, to which every item belongs; that needs no model file")
        write(path, self.model_._inner.content())

    @property
    def _n_features_out(self):
        return self.model_.about["embedding_size"]

    def __sklearn_is_fitted__(self):
        return hasattr(self, "model_")


def _enlarged(items):
    """For images that are too small for a network of two blocks, the smallest multiple of their size that is not; nothing for others."""
    if not isinstance(items, _items.Pixels) or min(items.shape[:2]) >= _SMALLEST:
        return None
    times = -(-_SMALLEST // min(items.shape[:2]))
    return (times * items.shape[0], times * items.shape[1])


def _is_rows(X):
    """Whether scikit-learn is the one to say what is wrong with it: a matrix, a table of pandas, lists of numbers, a sparse matrix."""
    if isinstance(X, np.ndarray):
        return X.ndim == 2 or (X.ndim < 2 and X.dtype != object)
    if isinstance(X, (list, tuple)):
        return len(X) == 0 or isinstance(X[0], numbers.Number) or (isinstance(X[0], (list, tuple)) and np.ndim(X[0]) == 1)
    return not _items.is_arrow(X) and len(getattr(X, "shape", (0, 0))) <= 2


def _seed(state):
    if state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(state, numbers.Integral):
        return int(state)
    return int(state.randint(2**31 - 1))


def _toml(value):
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
