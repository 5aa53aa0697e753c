"""Dataset files: opened, made, iterated."""

import os
from dataclasses import dataclass

import numpy as np

from . import _dtkc, _items, _programs
from ._dtkc import Error


@dataclass
class Batch:
    """Some items of a dataset."""

    #: Images: uint8 ``[n, h, w, c]``; sequences: a list of float32 ``[steps, dim]``; features: float32 ``[n, values]``.
    items: object
    #: Where they are in the dataset.
    indices: np.ndarray
    #: Their labels, where there are any; -1 where an item has none.
    labels: np.ndarray | None

    def __len__(self):
        return len(self.indices)


class Dataset:
    """A dataset file (HDF5, as ``dtkc-data`` makes it), opened and checked. Items are read when they are asked for.

    Examples
    --------
    >>> photos = dtkc.Dataset.from_files("photos/", "photos.h5", size=(32, 32))
    >>> len(photos), photos.kind, photos.shape
    >>> photos[0].shape, photos[10:20].shape
    >>> for batch in photos.batches(256):
    ...     batch.items, batch.labels
    """

    def __init__(self, path):
        self.path = os.fspath(path)
        self._inner = _dtkc.Dataset(self.path)

    def __repr__(self):
        return f"dtkc.Dataset({self.path!r}, {len(self)} {self.kind})"

    def __reduce__(self):
        return (Dataset, (self.path,))

    def __len__(self):
        return len(self._inner)

    @property
    def kind(self):
        """"images", "sequences" or "features"."""
        return self._inner.kind

    @property
    def shape(self):
        """Of one item: ``(height, width, channels)``; ``(dim,)`` of a step of a sequence."""
        return tuple(self._inner.shape)

    @property
    def name(self):
        return self._inner.name

    @property
    def source(self):
        """Where it came from, in words."""
        return self._inner.source

    @property
    def labels(self):
        """int64, -1 where an item has none; None where the set has none."""
        return self._inner.labels()

    @property
    def label_names(self):
        """The class names by label, or None."""
        return self._inner.label_names()

    def paths(self, start=0, stop=None):
        """The names that items had, or None."""
        return self._inner.paths(start, len(self) if stop is None else stop)

    def fingerprint(self):
        """SHA-256 of what it holds: the same for the same content."""
        return self._inner.fingerprint()

    def __getitem__(self, where):
        """One item, a slice of them, or those at a list of places."""
        if isinstance(where, slice):
            return self.read(np.arange(*where.indices(len(self)), dtype=np.int64))
        if isinstance(where, (int, np.integer)):
            place = int(where) + (len(self) if where < 0 else 0)
            return self.read(np.array([place], dtype=np.int64))[0]
        return self.read(np.asarray(where, dtype=np.int64))

    def read(self, places):
        """The items at these places, in this order."""
        values, offsets = self._inner.read(np.ascontiguousarray(places, dtype=np.int64))
        if offsets is None:
            return values
        return [values[begin:end] for begin, end in zip(offsets[:-1], offsets[1:])]

    def batches(self, size=256, shuffle=None):
        """All items once, `size` at a time, in order; in an order drawn with the seed `shuffle` where one is given."""
        order = np.arange(len(self), dtype=np.int64)
        if shuffle is not None:
            np.random.default_rng(shuffle).shuffle(order)
        labels = self.labels
        for start in range(0, len(order), size):
            places = order[start : start + size]
            yield Batch(self.read(places), places, None if labels is None else labels[places])

    def __iter__(self):
        for batch in self.batches():
            yield from batch.items

    @classmethod
    def from_files(cls, sources, out, size=None, force=False, **flags):
        """Makes a dataset of whatever ``dtkc-data import`` reads: folders, archives, tables, arrays of other programs.

        `size` is ``(height, width)``; further flags as the program has them: ``color="gray"``, ``limit=1000``, ``labels_from="folder"``.
        """
        sources = [sources] if _items.is_path(sources) else list(sources)
        arguments = ["import", *map(os.fspath, sources), "--out", os.fspath(out), "--quiet"]
        if size is not None:
            arguments += ["--size", f"{size[0]}x{size[1]}"]
        if force:
            arguments.append("--force")
        for name, value in flags.items():
            flag = "--" + name.replace("_", "-")
            arguments += [flag] if value is True else [] if value in (None, False) else [flag, str(value)]
        _programs.run("dtkc-data", arguments)
        return cls(out)

    @classmethod
    def from_items(cls, items, out, labels=None, label_names=None, paths=None, name=None, size=None, shape=None):
        """Makes a dataset of arrays, a list of paths, PIL images or sequences; see :meth:`dtkc.Model.assign`.

        `size` ``(height, width)`` or ``(height, width, channels)`` is what files of images are brought to (32x32 in colour without it). What cannot be
        read is an error that names it.
        """
        understood = _items.understand(items, shape=shape)
        return _write(understood, out, labels, label_names, paths, name, size)


def _write(items, out, labels=None, label_names=None, paths=None, name=None, size=None):
    """The dataset of items that are understood."""
    if len(items) == 0:
        raise Error("there are no items")
    labels = None if labels is None else np.ascontiguousarray(labels, dtype=np.int64)
    shape = _shape(items, size)
    writer = _dtkc.Writer(os.fspath(out), list(shape), name or _items.name_of(out), "given from Python", paths is not None, label_names)

    def beside(values, start, stop):
        return None if values is None else values[start:stop]

    if isinstance(items, _items.Sequences):
        writer.sequences(items.values, items.offsets, labels, None if paths is None else list(paths))
    else:
        failed = {}
        place = 0
        for chunk, failures in _chunks(items, shape):
            failed.update({place + at: reason for at, _, reason in failures})
            writer.images(chunk, beside(labels, place, place + len(chunk)), beside(paths, place, place + len(chunk)))
            place += len(chunk)
        if failed:
            at, reason = next(iter(failed.items()))
            more = f" ({len(failed) - 1} more cannot)" if len(failed) > 1 else ""
            raise Error(f"item {at} cannot be used: {reason}{more}; leave such items out")
    writer.finish()
    return Dataset(out)


def _shape(items, size):
    if isinstance(items, _items.Sequences):
        return (items.values.shape[1],)
    height, width, *channels = size or (None, None)
    if isinstance(items, _items.Pixels):
        own = items.shape
        return (height or own[0], width or own[1], *(channels or [own[2] if own[2] in (1, 3) else 3]))
    return (height or 32, width or 32, *(channels or [3]))


def _chunks(items, shape):
    """Bytes `[n, *shape]` of all items, some at a time, with what failed among them."""
    height, width, channels = shape
    maker = _dtkc.Images(height, width, "gray" if channels == 1 else "rgb")
    if isinstance(items, _items.Pixels):
        for chunk in items.chunks():
            yield (chunk, []) if chunk.shape[1:] == tuple(shape) else maker.pixels(chunk)
    elif isinstance(items, _items.Column):
        yield maker.column(items.data, items.offsets, items.missing)
    else:
        for start in range(0, len(items), _items.CHUNK):
            yield maker.files(items.files[start : start + _items.CHUNK])
