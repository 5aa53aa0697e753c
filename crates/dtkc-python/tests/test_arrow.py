"""Tables with groups: columns kept, rows that fail alone, the same bits as the model gives."""

import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dtkc
from dtkc import _programs, arrow


@pytest.fixture(scope="module")
def table(folder):
    files = sorted(folder.iterdir())
    structs = [{"bytes": file.read_bytes(), "path": file.name} for file in files]
    return pa.table({"image": pa.array(structs), "number": pa.array(range(len(files))), "word": pa.array([file.stem for file in files])})


def test_a_table_keeps_its_columns(table, model, folder):
    answers = model.assign(sorted(folder.iterdir()))
    found = arrow.label(table, model)
    assert found.column_names == ["number", "word", "cluster", "cluster_name", "confidence", "second_cluster", "second_confidence", "margin", "outlier", "error"]
    assert found["cluster"].to_pylist() == [None if cluster < 0 else int(cluster) for cluster in answers.cluster]
    np.testing.assert_array_equal(found["confidence"].to_numpy()[:40], answers.confidence[:40])
    assert found["error"].null_count == 40 and found["number"].to_pylist() == list(range(42))
    assert found.schema == arrow.schema(table.schema, outlier=True)


def test_batches_and_embeddings(table, model):
    batches = list(arrow.label_batches(table.to_batches(max_chunksize=10), model, embedding=True, keep_images=True))
    whole = pa.Table.from_batches(batches)
    wanted = arrow.label(table, model, embedding=True, keep_images=True)
    assert whole.equals(wanted)
    first = np.array(whole["embedding"][0].as_py(), np.float32)
    np.testing.assert_array_equal(first, model.assign([table["image"][0].as_py()["bytes"]]).embedding[0])
    assert whole["embedding"][41].as_py() is None and whole["image"].type == table["image"].type


def test_the_labeller_keeps_the_same_columns(table, model, tmp_path):
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=10)
    command = [_programs.find("dtkc-label"), "--model", "glyphs", "--input", "in.parquet", "--output", "out.parquet", "--keep-columns", "--embedding", "--quiet"]
    subprocess.run(command, env=_programs.environment(), check=True, stdin=subprocess.DEVNULL, cwd=tmp_path)
    found = pq.read_table(tmp_path / "out.parquet")
    wanted = arrow.label(table, model, embedding=True)
    # The labeller says where a row came from, too.
    assert [name for name in found.column_names if name not in ("index", "path")] == wanted.column_names
    for name in set(wanted.column_names) - {"error"}:
        assert found[name].to_pylist() == wanted[name].to_pylist(), name
    # And by which code a failure is known.
    assert [error and error.split(": ", 1)[1] for error in found["error"].to_pylist()] == wanted["error"].to_pylist()


def test_which_column_is_found_or_asked_for(table, model):
    plain = pa.table({"photo": table["image"].combine_chunks().field("bytes"), "thumb": table["image"].combine_chunks().field("bytes")})
    assert arrow.label(plain, model).column_names[0] == "thumb"
    assert arrow.label(plain, model, column="thumb").column_names[0] == "photo"
    unclear = plain.rename_columns(["a", "b"])
    with pytest.raises(dtkc.Error, match=r"several columns could \(a, b\)"):
        arrow.label(unclear, model)
    with pytest.raises(dtkc.Error, match="there is no column 'c'"):
        arrow.label(plain, model, column="c")
    with pytest.raises(dtkc.Error, match="no column is binary"):
        arrow.label(table.select(["number", "word"]), model)
    with pytest.raises(dtkc.Error, match="'cluster' already"):
        arrow.label(table.append_column("cluster", table["number"]), model)


def test_nothing_in_nothing_out(table, model):
    assert arrow.label(table.slice(0, 0), model).num_rows == 0


def test_the_step_goes_elsewhere(table, model):
    import cloudpickle

    step = cloudpickle.loads(cloudpickle.dumps(arrow.mapper("glyphs")))
    found = pa.Table.from_batches(list(step(iter(table.to_batches(max_chunksize=16)))))
    assert found["cluster"].to_pylist() == arrow.label(table, model)["cluster"].to_pylist()
