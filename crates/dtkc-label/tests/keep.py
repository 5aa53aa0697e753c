"""Tables with columns of every kind, and whether they came through: `keep.py make FOLDER PHOTO COUNT..` and `keep.py compare OUT IN..`.

Exits with 3 where Python has no pyarrow.
"""

import datetime
import decimal
import sys

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    sys.exit(3)


def columns(rows, photo):
    """A column of every kind. Most miss a value in every fifth row."""

    def some(kind, value):
        return pa.array([None if row % 5 == 2 else value(row) for row in rows], kind)

    element = pa.struct([("c", pa.string())])
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    at_start = datetime.datetime(2020, 1, 1)
    return {
        "image": some(image, lambda i: {"bytes": photo if i % 7 else b"no image", "path": f"{i}.png"}),
        "path": pa.array([f"given/{i}" for i in rows]),
        "large": some(pa.large_string(), lambda i: f'wörd "{i}"'),
        "u8": some(pa.uint8(), lambda i: i % 256),
        "u64": some(pa.uint64(), lambda i: 2**63 + i),
        "flag": some(pa.bool_(), lambda i: i % 2 == 0),
        "f": some(pa.float32(), lambda i: i / 7),
        "d": some(pa.float64(), lambda i: float("nan") if i == 11 else i / 7),
        "list": some(pa.list_(pa.int32()), lambda i: [None if j == 1 else j * i for j in range(i % 4)]),
        "lists": some(
            pa.list_(pa.list_(pa.string())),
            lambda i: [None if j == 2 else [f"a{k}" for k in range(j)] for j in range(i % 4)],
        ),
        "pair": pa.array([[i, i + 1] for i in rows], pa.list_(pa.float64(), 2)),
        "struct": some(
            pa.struct([("a", pa.int16()), ("b", pa.list_(element))]),
            lambda i: {"a": None if i % 3 else i, "b": [{"c": "x" * (i % 3)}] * (i % 3)},
        ),
        "map": some(pa.map_(pa.string(), pa.int64()), lambda i: [(f"k{j}", j) for j in range(i % 3)]),
        "zoned": some(pa.timestamp("us", "Europe/Berlin"), lambda i: at_start + datetime.timedelta(seconds=i)),
        "ns": some(pa.timestamp("ns"), lambda i: i * 1000003),
        "day": some(pa.date32(), lambda i: at_start.date() + datetime.timedelta(days=i)),
        "clock": some(pa.time64("us"), lambda i: i * 1000),
        "span": some(pa.duration("ms"), lambda i: i),
        "decimal": some(pa.decimal128(12, 2), lambda i: decimal.Decimal(i) / 4),
        "kind": some(pa.string(), lambda i: ["cat", "dog", "eel"][i % 3]).dictionary_encode(),
        "fixed": some(pa.binary(7), lambda i: bytes([i % 256] * 7)),
        "blob": some(pa.binary(), lambda i: bytes([i % 256]) * (i % 50)),
        "nothing": pa.nulls(len(rows)),
    }


def make(folder, photo, counts):
    with open(photo, "rb") as file:
        photo = file.read()
    start = 0
    for shard, count in enumerate(counts):
        rows = range(start, start + count)
        table = pa.table(columns(rows, photo))
        # Columns that are never missing have one level less.
        whole = pa.array([{"p": i, "q": [i] * (i % 3)} for i in rows], pa.struct([pa.field("p", pa.int32(), False), ("q", pa.list_(pa.int32()))]))
        table = table.append_column(pa.field("id", pa.int64(), False), pa.array(rows, pa.int64()))
        table = table.append_column(pa.field("whole", whole.type, False), whole)
        pq.write_table(
            table.replace_schema_metadata({"huggingface": '{"info": {}}', "other": "x"}),
            f"{folder}/s-{shard}.parquet",
            row_group_size=[37, 1000, 10][shard % 3],
            compression=["snappy", "zstd", "gzip"][shard % 3],
            data_page_size=[500, None][shard % 2],
            data_page_version=["1.0", "2.0"][shard % 2],
            use_dictionary=shard % 3 != 1,
        )
        start += count


def values(column):
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    # NaN is not equal to itself.
    return [repr(value) for value in column.to_pylist()]


def compare(out, inputs):
    made = pq.read_table(out)
    given = pa.concat_tables([pq.read_table(path) for path in inputs])
    assert made.num_rows == given.num_rows, (made.num_rows, given.num_rows)
    for name in made.schema.names[: made.schema.names.index("index")]:
        assert made[name].type == given[name].type, (name, made[name].type, given[name].type)
        assert values(made[name]) == values(given[name]), name
    assert made["index"].to_pylist() == list(range(given.num_rows))
    # A label or a reason, in every row.
    for cluster, confidence, error in zip(*(made[name].to_pylist() for name in ("cluster", "confidence", "error"))):
        assert (cluster is None) == (confidence is None) == (error is not None)
    assert made.schema.metadata == {b"huggingface": b'{"info": {}}'}, made.schema.metadata
    print(",".join(made.schema.names))


if sys.argv[1] == "make":
    make(sys.argv[2], sys.argv[3], [int(count) for count in sys.argv[4:]])
else:
    compare(sys.argv[2], sys.argv[3:])
