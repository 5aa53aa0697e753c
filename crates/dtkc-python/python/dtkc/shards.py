"""Shards of images in, tables of groups out: one file of output for every file of input, whatever engine hands them out.

An output appears whole or not at all, and a shard that has one is done: a job can be killed at any moment and started again, on other machines, with
another engine, and nothing is labelled twice or lost.

>>> for shard in dtkc.shards.find("images/*.parquet"):
...     dtkc.shards.label(shard, "labels/", dtkc.Model("groups.onnx"))
"""

import glob
import io
import json
import os
import re
import tarfile
import uuid
from dataclasses import asdict, dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from . import arrow
from ._dtkc import Error

__all__ = ["Options", "Shard", "Tally", "done", "find", "label", "left_over"]

#: Rows that are labelled at a time, and bytes of images at which fewer are.
_ROWS = 1024
_BYTES = 64 << 20
#: What dtkc-label takes for an image by its name.
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".pnm", ".pbm", ".pgm", ".ppm", ".pam")
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
            found = arrow.label(part, model, **asdict(options))
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
    """The images of a shard as record batches, some at a time."""
    try:
        yield from _table(shard, options) if _kind(shard.path) == "parquet" else _archive(shard.path)
    except (OSError, EOFError, tarfile.TarError, pa.ArrowInvalid) as error:
        raise Error(f"{shard.path}: it cannot be read ({error})") from error


def _table(shard, options):
    with pq.ParquetFile(shard.path) as file:
        arrow.column_of_images(file.schema_arrow, options.column)
        rows, size = file.metadata.num_rows, sum(file.metadata.row_group(place).total_byte_size for place in range(file.metadata.num_row_groups))
        # So many rows as are expected to stay within the bytes.
        at_once = max(1, min(_ROWS, rows * _BYTES // max(size, 1) or 1))
        yield from file.iter_batches(batch_size=at_once)


_ARCHIVED = pa.schema([("path", pa.string()), ("image", pa.binary())])


def _archive(path):
    names, contents, size = [], [], 0

    def batch():
        return pa.RecordBatch.from_arrays([pa.array(names, pa.string()), pa.array(contents, pa.binary())], schema=_ARCHIVED)

    # Read as a stream: a compressed archive need not be unpacked twice.
    with tarfile.open(path, "r|*", bufsize=io.DEFAULT_BUFFER_SIZE * 16) as archive:
        for entry in archive:
            parts = entry.name.split("/")
            hidden = any(part.startswith(".") and part not in (".", "..") or part == "__MACOSX" for part in parts)
            if not entry.isreg() or hidden or not entry.name.lower().endswith(_IMAGES):
                continue
            if len(names) == _ROWS or size + entry.size > _BYTES and names:
                yield batch()
                names, contents, size = [], [], 0
            # What claims to be larger than any image may be is not read: its row says so.
            contents.append(archive.extractfile(entry).read() if entry.size <= _BYTES else b"")
            names.append("/".join(part for part in parts if part not in ("", ".", "..")))
            size += entry.size
    if names:
        yield batch()


def left_over(output):
    """Deletes what workers that were killed have left behind half-written; says how many files. Only when nobody works there."""
    found = glob.glob(os.path.join(glob.escape(os.fspath(output)), "**", "*.writing"), recursive=True)
    for path in found:
        os.remove(path)
    return len(found)
