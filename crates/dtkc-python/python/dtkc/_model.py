"""Model files: items in, groups out."""

import json
import os
from dataclasses import dataclass, fields

import numpy as np

from . import _dtkc, _items, _programs
from ._dtkc import Error


@dataclass
class Assignments:
    """What a model says about items, in their order.

    An item that could not be used has cluster -1 and NaN elsewhere; ``errors`` says why.
    """

    #: The most probable cluster of each, int64; -1 where there is none.
    cluster: np.ndarray
    #: Its probability.
    confidence: np.ndarray
    #: The second most probable cluster, and its probability.
    second: np.ndarray
    second_confidence: np.ndarray
    #: How much more probable the first is.
    margin: np.ndarray
    #: ``[n, clusters]``; nothing where it was not asked for.
    probabilities: np.ndarray | None
    #: ``[n, width]``; likewise.
    embedding: np.ndarray | None
    #: From 0 to 1: how far each is from everything in the training set; nothing where the model does not tell.
    outlier: np.ndarray | None
    #: For the place of every item that could not be used, why.
    errors: dict

    def __len__(self):
        return len(self.cluster)

    def raise_for_errors(self):
        """Raises :class:`dtkc.Error` where an item could not be used."""
        if self.errors:
            place, reason = next(iter(self.errors.items()))
            more = f" ({len(self.errors) - 1} more failed)" if len(self.errors) > 1 else ""
            raise Error(f"item {place}: {reason}{more}")
        return self


class Model:
    """A model file, ready to assign items; the same answers as ``dtkc-label`` gives, bit for bit.

    Parameters
    ----------
    source : path, name of a bundled model ("mnist", "glyphs"), or the file's content as bytes.
    threads : how many work at a time; 0 takes all cores. Answers do not depend on it.
    device : "cpu", "cuda:0", "tensorrt:0"; a GPU needs ``onnxruntime-gpu``.

    Examples
    --------
    >>> model = dtkc.Model("mnist")
    >>> answers = model.assign(["a.png", "b.jpg"])
    >>> answers.cluster, answers.confidence, answers.errors
    """

    def __init__(self, source, threads=0, device="cpu"):
        if isinstance(source, (bytearray, memoryview)):
            source = bytes(source)
        if not isinstance(source, (bytes, str, os.PathLike)):
            raise TypeError(f"a model is a path, a name or bytes, not {type(source).__name__}")
        _programs.offer_models()
        self._threads, self._device = threads, device
        self._inner = _dtkc.Model(source, threads, device, _programs.onnxruntime())
        self._about = json.loads(self._inner.about())

    def __repr__(self):
        return f"dtkc.Model({self.name!r}, {self.n_clusters} clusters of {self.kind})"

    def __reduce__(self):
        # The content and not the path: on another machine the file may lie elsewhere.
        return (_from_content, (self._inner.content(), self._threads, self._device))

    @property
    def name(self):
        """The file's name without its ending."""
        return self._inner.name

    @property
    def fingerprint(self):
        """SHA-256 of the file."""
        return self._inner.fingerprint

    @property
    def kind(self):
        """"images" or "sequences"."""
        return self._about["input"]["kind"]

    @property
    def n_clusters(self):
        return len(self._about["clusters"])

    @property
    def clusters(self):
        """For each cluster its id, name, size and share of the training items."""
        return self._about["clusters"]

    @property
    def names(self):
        """The names of the clusters by id."""
        return [cluster["name"] for cluster in self.clusters]

    @property
    def about(self):
        """What the file says about itself: input, clusters, provenance, metrics, outlier, edits."""
        return self._about

    def assign(self, items, embedding=True, probabilities=True):
        """The groups of items, as :class:`Assignments`.

        Images: arrays ``[n, h, w]`` or ``[n, h, w, c]`` of bytes (numbers from 0 to 1 or 0 to 255 become bytes), of any size; a list of paths, contents of
        files or PIL images; a column of Arrow. Sequences: a list of arrays ``[steps, dim]``, or rows ``[n, dim]`` for sequences of one step.
        Also a :class:`dtkc.Dataset`. What cannot be read fails alone.
        """
        from ._dataset import Dataset

        if isinstance(items, Dataset):
            return self._dataset(items, embedding, probabilities)
        items = _items.understand(items, kind=self.kind, scale="fixed")
        return self._assign(items, embedding, probabilities)

    def _assign(self, items, embedding, probabilities):
        """The same for items that are understood."""
        wanted = (embedding, probabilities)
        if isinstance(items, _items.Pixels):
            parts = [self._inner.pixels(chunk, wanted) for chunk in items.chunks()]
            return _joined(parts, _items.CHUNK) if parts else self._assign(_items.Files([]), embedding, probabilities)
        if isinstance(items, _items.Column):
            return _answers(*self._inner.column(items.data, items.offsets, items.missing, wanted))
        if isinstance(items, _items.Sequences):
            return _answers(*self._inner.sequences(items.values, items.offsets, wanted))
        return _answers(*self._inner.files(items.files, wanted))

    def _dataset(self, dataset, embedding, probabilities):
        parts = []
        for batch in dataset.batches(_items.CHUNK):
            items = _items.Pixels(batch.items) if dataset.kind == "images" else _items.sequences_of(batch.items)
            parts.append(self._assign(items, embedding, probabilities))
        return _all(parts, _items.CHUNK)

    def save(self, path):
        """Writes the model file; nothing half-written is ever there."""
        write(path, self._inner.content())


def _from_content(content, threads, device):
    return Model(content, threads, device)


def write(path, content):
    """A file that is there whole or not at all."""
    beside = f"{os.fspath(path)}.writing"
    with open(beside, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


def _answers(answers, failures):
    return Assignments(**answers, errors={place: reason for place, _, reason in failures})


def _joined(parts, each):
    return _all([_answers(*part) for part in parts], each)


def _all(parts, each):
    """Answers of parts of `each` items, one after the other."""
    if len(parts) == 1:
        return parts[0]

    def join(name):
        values = [getattr(part, name) for part in parts]
        return None if not values or values[0] is None else np.concatenate(values)

    names = [field.name for field in fields(Assignments) if field.name != "errors"]
    errors = {number * each + place: reason for number, part in enumerate(parts) for place, reason in part.errors.items()}
    return Assignments(**{name: join(name) for name in names}, errors=errors)


def bundled_models():
    """The names of the models that come with the package."""
    _programs.offer_models()
    return _dtkc.bundled()
