"""Tables of images in, the same tables with groups out: one step that any engine can run on its batches.

>>> model = dtkc.Model("groups.onnx")
>>> dtkc.arrow.label(batch, model)                 # a RecordBatch or Table of Arrow
>>> spark_table.mapInArrow(dtkc.arrow.mapper("groups.onnx"), schema=dtkc.arrow.schema(spark_arrow_schema))
"""

import numpy as np
import pyarrow as pa

from . import _items
from ._dtkc import Error
from ._model import Model

__all__ = ["label", "label_batches", "mapper", "schema"]

#: Columns that hold images, the likeliest first, where none is named.
_NAMES = ("image", "img", "images", "picture", "photo", "bytes", "content", "data", "jpg", "jpeg", "png", "webp")
#: What is added to a table: the columns that dtkc-label writes.
_ADDED = (
    ("cluster", pa.int32()),
    ("cluster_name", pa.string()),
    ("confidence", pa.float32()),
    ("second_cluster", pa.int32()),
    ("second_confidence", pa.float32()),
    ("margin", pa.float32()),
    ("outlier", pa.float32()),
    ("error", pa.string()),
    ("embedding", pa.list_(pa.float32())),
)


def column_of_images(table_schema, column=None):
    """The name of the column that holds images."""
    names = table_schema.names
    if column is not None:
        if column not in names:
            raise Error(f"there is no column {column!r}; there are {', '.join(names)}")
        return column
    fit = [name for name in names if _holds_images(table_schema.field(name).type)]
    for name in _NAMES:
        for candidate in fit:
            if candidate.lower() == name:
                return candidate
    if len(fit) == 1:
        return fit[0]
    found = f"several columns could ({', '.join(fit)})" if fit else f"no column is binary or a struct with `bytes` (there are {', '.join(names)})"
    raise Error(f"which column holds the images is not clear: {found}; name it with column=")


def _holds_images(kind):
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_struct(kind):
        return any(kind.field(place).name == "bytes" for place in range(kind.num_fields))
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def schema(table_schema, column=None, keep_images=False, embedding=False, outlier=False):
    """The columns of what :func:`label` gives for a table with these."""
    images = column_of_images(table_schema, column)
    kept = [field for field in table_schema if keep_images or field.name != images]
    return _with_added(pa.schema(kept), embedding, outlier)


def _with_added(kept, embedding, outlier):
    left_out = {"embedding": not embedding, "outlier": not outlier}
    added = [pa.field(name, kind) for name, kind in _ADDED if not left_out.get(name)]
    clash = {field.name for field in kept} & {field.name for field in added}
    if clash:
        raise Error(f"the table has a column {min(clash)!r} already; rename it first")
    return pa.schema([*kept, *added])


def label(table, model, column=None, keep_images=False, embedding=False):
    """A RecordBatch or Table with its columns and, behind them, those that dtkc-label writes: `cluster`, `cluster_name`, `confidence`, `second_cluster`,
    `second_confidence`, `margin`, `outlier` where the model tells it, `error` (null where all went well), and `embedding` where it is asked for. The
    images themselves are left out unless `keep_images`.

    What dtkc-label says about the same files, bit for bit; a row that cannot be read has a null cluster and says why.
    """
    images = column_of_images(table.schema, column)
    kept = table if keep_images else table.select([name for name in table.schema.names if name != images])
    return labelled(kept, _items.column_of(table.column(images)), model, embedding)


def labelled(table, images, model, embedding, errors=None):
    """A table with the groups of images that lie elsewhere behind its columns; `errors` says why some rows have no image."""
    wanted = _with_added(table.schema, embedding, model.about["outlier"] is not None)
    answers = model._assign(images, embedding, False)
    answers.errors.update(errors or {})
    columns = _columns(answers, model)
    columns |= {name: table.column(name) for name in table.schema.names if name not in columns}
    return type(table).from_arrays([columns[name] for name in wanted.names], schema=wanted)


def _columns(answers, model):
    """What is added, by name."""
    failed = np.zeros(len(answers), dtype=bool)
    failed[list(answers.errors)] = True

    def numbers(values, kind):
        return None if values is None else pa.array(values, kind, mask=failed)

    names = pa.array(model.names, pa.string())
    found = {
        "cluster": numbers(answers.cluster.astype(np.int32), pa.int32()),
        "confidence": numbers(answers.confidence, pa.float32()),
        "second_cluster": numbers(answers.second.astype(np.int32), pa.int32()),
        "second_confidence": numbers(answers.second_confidence, pa.float32()),
        "margin": numbers(answers.margin, pa.float32()),
        "outlier": numbers(answers.outlier, pa.float32()),
        "error": pa.array([answers.errors.get(place) for place in range(len(answers))], pa.string()),
        "embedding": None if answers.embedding is None else _lists(answers.embedding, failed),
    }
    found["cluster_name"] = names.take(found["cluster"])
    return {name: values for name, values in found.items() if values is not None}


def _lists(matrix, failed):
    width = matrix.shape[1]
    offsets = pa.array(np.arange(len(matrix) + 1, dtype=np.int32) * width)
    return pa.ListArray.from_arrays(offsets, pa.array(matrix.ravel()), mask=pa.array(failed))


def label_batches(batches, model, **options):
    """The same for batches that come one after the other."""
    for batch in batches:
        yield label(batch, model, **options)


def mapper(source, threads=1, **options):
    """A function from batches to batches for engines that ship it to other machines, as Spark's `mapInArrow`: the model file goes with it, and is
    loaded once in every process."""
    content = Model(source)._inner.content() if not isinstance(source, bytes) else source

    def run(batches):
        yield from label_batches(batches, _loaded(content, threads), **options)

    return run


_kept = {}


def _loaded(content, threads):
    key = (hash(content), threads)
    if key not in _kept:
        _kept.clear()
        _kept[key] = Model(content, threads=threads)
    return _kept[key]
