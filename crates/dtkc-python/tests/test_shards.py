"""Shards: one whole output each, done once, the same rows as dtkc-label."""

import csv
import io
import subprocess
import tarfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dtkc
from dtkc import _programs, shards


@pytest.fixture(scope="module")
def packed(folder, tmp_path_factory):
    """The folder as three tables and one archive."""
    packed = tmp_path_factory.mktemp("packed")
    files = sorted(folder.iterdir())
    for number, start in ((1, 0), (2, 14), (10, 28)):
        part = files[start : start + 14]
        table = pa.table({"image": pa.array([{"bytes": file.read_bytes(), "path": file.name} for file in part]), "name": [file.name for file in part]})
        pq.write_table(table, packed / f"part-{number}.parquet", row_group_size=5)
    with tarfile.open(packed / "all.tar.gz", "w:gz") as archive:
        for file in files:
            archive.add(file, f"glyphs/{file.name}")
            note = tarfile.TarInfo(f"glyphs/{file.stem}.cls")
            note.size = 1
            archive.addfile(note, io.BytesIO(b"3"))
        archive.add(files[0], "glyphs/.hidden.png")
    return packed


def test_shards_are_found_in_natural_order(packed, tmp_path):
    assert [shard.name for shard in shards.find(packed)] == ["all", "part-1", "part-2", "part-10"]
    assert [shard.name for shard in shards.find(str(packed / "part-*.parquet"))] == ["part-1", "part-2", "part-10"]
    for wrong, reason in ((tmp_path / "gone", "no such"), (tmp_path, "there is no shard"), ([packed / "all.tar.gz"] * 2, "named twice")):
        with pytest.raises(dtkc.Error, match=reason):
            shards.find(wrong)


def test_rows_are_those_of_dtkc_label(packed, model, tmp_path):
    archive = packed / "all.tar.gz"
    command = [_programs.find("dtkc-label"), "--model", "glyphs", "--input", str(archive), "--output", str(tmp_path / "theirs.parquet"), "--quiet"]
    subprocess.run(command, env=_programs.environment(), stdin=subprocess.DEVNULL, check=False)
    theirs = pq.read_table(tmp_path / "theirs.parquet")
    shards.label(shards.find(archive)[0], tmp_path / "ours", model)
    ours = pq.read_table(tmp_path / "ours" / "all.parquet")
    assert [f"{archive}/{path}" for path in ours["path"].to_pylist()] == theirs["path"].to_pylist()
    for name in ("cluster", "cluster_name", "confidence", "second_cluster", "second_confidence", "margin", "outlier"):
        assert ours[name].to_pylist() == theirs[name].to_pylist(), name
    for mine, other in zip(ours["error"].to_pylist(), theirs["error"].to_pylist()):
        assert (mine is None) == (other is None) and (mine or "") in (other or "")


def test_what_is_done_is_not_done_again(packed, model, tmp_path, monkeypatch):
    shard = shards.find(packed / "part-2.parquet")[0]
    tally = shards.label(shard, tmp_path, model)
    assert (tally.images, tally.failed, sum(tally.counts)) == (14, 0, 14)
    before = (tmp_path / "part-2.parquet").read_bytes()
    monkeypatch.setattr(shards, "batches", lambda *_: pytest.fail("it was read again"))
    assert shards.label(shard, tmp_path, model) == tally
    assert (tmp_path / "part-2.parquet").read_bytes() == before
    assert pq.read_table(tmp_path / "part-2.parquet").column_names[0] == "name"
    with pytest.raises(dtkc.Error, match="another model"):
        shards.label(shard, tmp_path, dtkc.Model("mnist"))


def test_nothing_half_written_stays(packed, model, tmp_path):
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes((packed / "part-1.parquet").read_bytes()[:400])
    cut = tmp_path / "cut.tar"
    cut.write_bytes(b"\0" * 100 + b"no archive" * 100)
    for path in (damaged, cut):
        with pytest.raises(dtkc.Error, match=path.name):
            shards.label(shards.find(path)[0], tmp_path / "out", model)
    shard = shards.find(packed / "part-1.parquet")[0]
    with pytest.raises(dtkc.Error, match="no output of dtkc"):
        shards.label(shard, packed, model)
    assert [path.name for path in (tmp_path / "out").rglob("*")] == []
    (tmp_path / "out" / "x.parquet.123.writing").write_bytes(b"")
    assert shards.left_over(tmp_path / "out") == 1


def test_columns_are_named_where_they_are_not_clear(packed, model, tmp_path):
    shard = shards.find(packed / "part-1.parquet")[0]
    with pytest.raises(dtkc.Error, match="there is no column 'photo'"):
        shards.label(shard, tmp_path, model, shards.Options(column="photo"))
    shards.label(shard, tmp_path, model, shards.Options(column="image", embedding=True, keep_images=True))
    assert {"image", "embedding"} <= set(pq.read_schema(tmp_path / "part-1.parquet").names)


def test_failures_are_listed_row_by_row(packed, model, tmp_path):
    pytest.importorskip("ray", reason="Ray is tested by scripts/test-cluster.sh")
    from dtkc import ray

    found = shards.find(packed / "part-10.parquet")
    shards.label(found[0], tmp_path, model)
    ray._failures(found, tmp_path, {})
    with open(tmp_path / "failures.csv", newline="") as file:
        assert [row["row"] for row in csv.DictReader(file)] == ["12", "13"]
