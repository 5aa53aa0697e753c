"""Shards of images in, tables of groups out: one file of output for every file of input, whatever engine hands them out.

An output appears whole or not at all, and a shard that has one is done: a job can be killed at any moment and started again, on other machines, with
another engine, and nothing is labelled twice or lost.

>>> for shard in dtkc.shards.find("images/*.parquet"):
...     dtkc.shards.label(shard, "labels/", dtkc.Model("groups.onnx"))
"""

import glob
import json
import os
import re
import uuid
from dataclasses import asdict, dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from . import _dtkc, _items, arrow
from ._dtkc import Error

__all__ = ["Options", "Shard", "Tally", "done", "find", "label", "left_over"]

#: Rows that are labelled at a time, and bytes of images at which fewer are.
_ROWS = 1024
_BYTES = 64 << 20
#: Bytes that a column beside the images may have in these rows.
_MOST_BESIDE = 512 << 20
_MARK = b"dtkc"


@dataclass(frozen=True)
class Shard:
    """A file of images: a table (Parquet) or an archive (tar, WebDataset)."""

    path: str
    #: What its output is called, without ending; may hold folders.
    name: str


@dataclass(frozen=True)
class Options:
    """How tables are labelled; see :func:`dtkc.arrow.label`."""

    column: str | None = None
    keep_images: bool = False
    embedding: bool = False


@dataclass
class Tally:
    """What came of some images."""

    images: int = 0
    failed: int = 0
    #: Images, and the sum of their confidence, of every cluster.
    counts: list = field(default_factory=list)
    confidence: list = field(default_factory=list)

    def add(self, other):
        self.images += other.images
        self.failed += other.failed
        width = max(len(self.counts), len(other.counts))
        for name in ("counts", "confidence"):
            mine, theirs = getattr(self, name), getattr(other, name)
            setattr(self, name, [sum(pair) for pair in zip(mine + [0] * (width - len(mine)), theirs + [0] * (width - len(theirs)))])


def find(inputs):
    """The shards that paths, folders and patterns name, in natural order (`shard-2` before `shard-10`)."""
    inputs = [inputs] if isinstance(inputs, (str, os.PathLike)) else list(inputs)
    paths = []
    for text in map(os.fspath, inputs):
        if os.path.isdir(text):
            found = [os.path.join(folder, name) for folder, _, names in os.walk(text) for name in names if _kind(name) and not name.startswith(".")]
        elif glob.has_magic(text) and not os.path.exists(text):
            found = [path for path in glob.glob(text, recursive=True) if os.path.isfile(path)]
        elif os.path.isfile(text):
            found = [text]
        else:
            raise Error(f"{text}: there is no such file or folder")
        if not found:
            raise Error(f"{text}: there is no shard (.parquet, .tar, .tar.gz); images in folders are for dtkc-label, or pack them into shards")
        paths += sorted(found, key=_natural)
    unknown = [path for path in paths if not _kind(path)]
    if unknown:
        raise Error(f"{unknown[0]}: a shard is a .parquet, .tar or .tar.gz file")
    if len(set(map(os.path.abspath, paths))) < len(paths):
        raise Error("a shard is named twice; name each once")
    return _named(paths)


def _named(paths):
    """Names are those of the files; with folders, as far as these differ."""
    whole = [os.path.abspath(path) for path in paths]
    root = os.path.dirname(whole[0]) if len(whole) == 1 else os.path.commonpath([os.path.dirname(path) for path in whole])
    names = [re.sub(r"\.(parquet|tar|tar\.gz|tgz)$", "", os.path.relpath(path, root)) for path in whole]
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise Error(f"two shards would have the output {twice}.parquet; rename one of them")
    return [Shard(path, name) for path, name in zip(whole, names)]


def _kind(path):
    if path.endswith(".parquet"):
        return "parquet"
    return "tar" if path.endswith((".tar", ".tar.gz", ".tgz")) else None


def _natural(text):
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", text)]


def output_of(shard, output):
    return os.path.join(os.fspath(output), shard.name + ".parquet")


def done(shard, output, model=None):
    """The tally of a shard that has its output; nothing where it has none. An output of another model is an error."""
    path = output_of(shard, output)
    if not os.path.exists(path):
        return None
    said = (pq.read_metadata(path).metadata or {}).get(_MARK)
    if said is None:
        raise Error(f"{path}: this file is there already and is no output of dtkc; choose another folder")
    said = json.loads(said)
    if model is not None and said["model"] != model.fingerprint:
        raise Error(f"{path}: this was made with another model; choose another folder, or delete it")
    return Tally(**said["tally"])


def label(shard, output, model, options=Options()):
    """Labels a shard into `output`/NAME.parquet and gives its :class:`Tally`; one that is done already is not read again."""
    finished = done(shard, output, model)
    if finished is not None:
        return finished
    path = output_of(shard, output)
    if os.path.abspath(path) == shard.path:
        raise Error(f"{path}: the output would replace the shard itself; choose another folder")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    # A name of its own: two workers that were given the same shard do not write into one file.
    beside = f"{path}.{uuid.uuid4().hex}.writing"
    tally = Tally(counts=[0] * model.n_clusters, confidence=[0.0] * model.n_clusters)
    try:
        _write(beside, batches(shard, options), tally, model, options)
        with open(beside, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        if os.path.exists(beside):
            os.remove(beside)
    return tally


def _write(path, parts, tally, model, options):
    writer = None
    try:
        for part in parts:
            found = arrow.labelled(part.beside, part.images, model, options.embedding, part.errors)
            _count(tally, found)
            if writer is None:
                writer = pq.ParquetWriter(path, found.schema, compression="zstd")
            writer.write_batch(found)
        if writer is None:
            raise Error("there are no images in it")
        said = {"model": model.fingerprint, "tally": asdict(tally)}
        writer.add_key_value_metadata({_MARK: json.dumps(said)})
    finally:
        if writer is not None:
            writer.close()


def _count(tally, found):
    clusters = found.column("cluster")
    valid = clusters.drop_null().to_numpy()
    tally.images += found.num_rows
    tally.failed += clusters.null_count
    confidence = found.column("confidence").drop_null().to_numpy()
    counts = np.bincount(valid, minlength=len(tally.counts))
    sums = np.bincount(valid, weights=confidence, minlength=len(tally.counts))
    tally.counts = [int(a + b) for a, b in zip(tally.counts, counts)]
    tally.confidence = [float(a + b) for a, b in zip(tally.confidence, sums)]


def batches(shard, options=Options()):
    """The images of a shard as :class:`Batch`, some at a time: in the order, under the names and within the bounds of dtkc-label."""
    opened = _dtkc.Shard(shard.path, options.column, options.keep_images, _ROWS, _BYTES)
    try:
        rows = _Beside(shard.path, opened.column, options.keep_images) if opened.column is not None else None
        for names, data, offsets, errors in opened:
            images = _items.Column(data, offsets)
            if rows is not None:
                yield Batch(rows.take(len(names)), images, dict(errors))
                continue
            columns = {"path": pa.array(names, pa.string())}
            if options.keep_images:
                columns["image"] = _binary(data, offsets)
            yield Batch(pa.record_batch(columns), images, dict(errors))
    except (OSError, pa.ArrowInvalid) as error:
        raise Error(f"{shard.path}: it cannot be read ({error})") from error


@dataclass
class Batch:
    """Some rows of a shard."""

    #: The columns that go to the output as they are.
    beside: pa.RecordBatch
    images: _items.Column
    #: Why rows have no image, by their places.
    errors: dict


def _binary(data, offsets):
    buffers = [None, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers).cast(pa.binary())


def _size(array):
    """Bytes of the texts of a column where every row has its own; 0 where it holds none."""
    if not pa.types.is_dictionary(array.type):
        return 0
    lengths = pc.binary_length(array.dictionary)
    return pc.sum(lengths.take(array.indices).cast(pa.int64())).as_py() or 0


class _Beside:
    """The columns of a table that its output keeps, so many rows at a time. Their pages were looked at before; what rows share is shared until it is known
    how much it takes where every row has its own."""

    def __init__(self, path, images, keep_images):
        # Read as a stream, page by page, and not a row group at a time.
        schema = pq.read_schema(path)
        self._schema = pa.schema([field for field in schema if keep_images or field.name != images])
        texts = [field.name for field in self._schema if field.type in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())]
        file = pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20, read_dictionary=texts)
        self._batches = file.iter_batches(batch_size=_ROWS, columns=self._schema.names, use_threads=False) if len(self._schema) else None
        self._path, self._left = path, None

    def take(self, count):
        """The next `count` rows."""
        if self._batches is None:
            return pa.RecordBatch.from_arrays([], names=[])
        parts = []
        while count:
            if self._left is None or not self._left.num_rows:
                self._left = next(self._batches, None)
                if self._left is None:
                    raise Error("its columns have different numbers of rows; it is damaged, copy or save it again")
            part = self._left.slice(0, count)
            self._left = self._left.slice(part.num_rows)
            parts.append(part)
            count -= part.num_rows
        columns = [self._plain(field, [part.column(field.name) for part in parts]) for field in self._schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _plain(self, field, parts):
        """A column as it is in the file."""
        size = sum(_size(part) for part in parts)
        if size > _MOST_BESIDE:
            raise Error(f"{self._path}: some rows of the column {field.name!r} take {size >> 20} MiB, more than the {_MOST_BESIDE >> 20} that are allowed; leave it out of the file")
        return pa.concat_arrays([part.cast(field.type) for part in parts])


def left_over(output):
    """Deletes what workers that were killed have left behind half-written; says how many files. Only when nobody works there."""
    found = glob.glob(os.path.join(glob.escape(os.fspath(output)), "**", "*.writing"), recursive=True)
    for path in found:
        os.remove(path)
    return len(found)
