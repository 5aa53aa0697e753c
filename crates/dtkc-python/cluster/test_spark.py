"""Spark runs the same step: a cluster of two workers on this machine, processes of their own."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import dtkc
from dtkc import _programs, arrow

pyspark = pytest.importorskip("pyspark")


@pytest.fixture(scope="module")
def session():
    from pyspark.sql import SparkSession

    try:
        # Two workers of one core and 1 GiB each, as separate processes.
        builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("dtkc").config("spark.ui.enabled", "false")
        session = builder.config("spark.executorEnv.PYTHONPATH", ":".join(__import__("sys").path)).getOrCreate()
    except Exception as error:  # noqa: BLE001 - whatever keeps Java from starting
        pytest.skip(f"Spark does not start (Java is needed): {error}")
    yield session
    session.stop()


def test_spark_gives_the_same_table(session, tmp_path):
    _programs.run("dtkc-data", ["synth", "--kind", "glyphs", "--count", 400, "--seed", 2, "--out", tmp_path / "g.h5", "--quiet"])
    contents = []
    for image in dtkc.Dataset(tmp_path / "g.h5")[:]:
        kept = io.BytesIO()
        Image.fromarray(image[:, :, 0]).save(kept, "PNG")
        contents.append(kept.getvalue())
    contents[7] = contents[7][:40]
    table = pa.table({"number": np.arange(400), "image": pa.array(contents, pa.binary())})
    pq.write_table(table, tmp_path / "images.parquet", row_group_size=50)
    wanted = arrow.label(table, dtkc.Model("glyphs"))

    frame = session.read.parquet(str(tmp_path / "images.parquet")).repartition(8)
    schema = arrow.schema(table.schema, outlier=True)
    from pyspark.sql.pandas.types import from_arrow_schema

    labelled = frame.mapInArrow(arrow.mapper("glyphs"), from_arrow_schema(schema))
    rows = sorted(labelled.collect(), key=lambda row: row["number"])
    for name in ("number", "cluster", "cluster_name", "confidence", "margin", "error"):
        found = [row[name] for row in rows]
        assert found == wanted[name].to_pylist(), name
