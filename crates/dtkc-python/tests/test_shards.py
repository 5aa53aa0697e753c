"""Shards: one whole output each, done once, the same rows as dtkc-label."""

import csv
import gzip
import io
import re
import resource
import subprocess
import tarfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

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


def _png(image):
    kept = io.BytesIO()
    Image.fromarray(image[:, :, 0]).save(kept, "PNG")
    return kept.getvalue()


def _tar(path, entries, mode="w"):
    with tarfile.open(path, mode) as archive:
        for name, content in entries:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


@pytest.fixture(scope="module")
def many(images, tmp_path_factory):
    """Shards of every kind, each with something that is easily done otherwise."""
    folder = tmp_path_factory.mktemp("many")
    pngs = [_png(image) for image in images[:12]]
    _tar(folder / "nested.tar", [("b/2.png", pngs[0]), ("a/deep/10.png", pngs[1]), ("./a/deep/9.PNG", pngs[2]), ("../up/1.png", pngs[3]), ("/abs/1.jpg", pngs[4])])
    shadows = [("x/.hidden.png", pngs[0]), (".git/1.png", pngs[1]), ("__MACOSX/x/1.png", pngs[2]), ("x/._1.png", pngs[3]), ("x/1.png", pngs[4]), ("x/notes.txt", b"no"), ("x/Thumbs.db", b"no")]
    _tar(folder / "shadows.tar", shadows)
    _tar(folder / "nameless.tar.gz", [("photo", pngs[5]), ("README", b"no image"), ("photo.bin", pngs[6]), ("x/no-end.", pngs[7])], "w:gz")
    samples = [entry for place in range(6) for entry in ((f"s{place:03}.png", pngs[place]), (f"s{place:03}.cls", b"3"), (f"s{place:03}.json", b'{"a": 1}'))]
    _tar(folder / "samples.tar", samples)
    _tar(folder / "damaged.tgz", [("1.png", pngs[0][:50]), ("2.png", b""), ("3.jpg", b"no image"), ("4.png", pngs[1]), ("4.png", pngs[2])], "w:gz")
    with tarfile.open(folder / "odd.tar", "w") as archive:
        for kind, name in ((tarfile.DIRTYPE, "d.png"), (tarfile.SYMTYPE, "link.png"), (tarfile.LNKTYPE, "hard.png"), (tarfile.FIFOTYPE, "pipe.png")):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, "real.png"
            archive.addfile(entry)
        long = tarfile.TarInfo("long/" + "x" * 300 + ".png")
        long.size = len(pngs[8])
        archive.addfile(long, io.BytesIO(pngs[8]))
    rows = [{"bytes": pngs[0], "path": "a.png"}, {"bytes": None, "path": "gone.png"}, None, {"bytes": pngs[1][:40], "path": None}, {"bytes": pngs[2], "path": "../../c.png"}]
    pq.write_table(pa.table({"image": pa.array(rows), "label": [0, 1, 2, 3, 4]}), folder / "hugging.parquet", row_group_size=2)
    pq.write_table(pa.table({"id": ["x", "y", "z"], "photo": pa.array([pngs[0], None, b""], pa.binary())}), folder / "plain.parquet", compression="zstd")
    pq.write_table(pa.table({"content": pa.array(pngs, pa.binary())}), folder / "alone.parquet", row_group_size=5)
    return folder


@pytest.mark.parametrize(
    "name",
    ["nested.tar", "shadows.tar", "nameless.tar.gz", "samples.tar", "damaged.tgz", "odd.tar", "hugging.parquet", "plain.parquet", "alone.parquet"],
)
def test_rows_are_those_of_dtkc_label(many, model, tmp_path, name):
    shard = many / name
    command = [_programs.find("dtkc-label"), "--model", "glyphs", "--input", str(shard), "--output", str(tmp_path / "theirs.parquet"), "--quiet"]
    subprocess.run(command, env=_programs.environment(), stdin=subprocess.DEVNULL, check=False)
    theirs = pq.read_table(tmp_path / "theirs.parquet")
    found = shards.find(shard)[0]
    shards.label(found, tmp_path / "ours", model)
    ours = pq.read_table(tmp_path / "ours" / f"{found.name}.parquet")
    assert len(ours) == len(theirs) > 0
    if not name.endswith(".parquet"):
        assert [f"{shard}/{path}" for path in ours["path"].to_pylist()] == theirs["path"].to_pylist()
    for column in ("cluster", "cluster_name", "confidence", "second_cluster", "second_confidence", "margin", "outlier"):
        assert ours[column].to_pylist() == theirs[column].to_pylist(), column
    for mine, other in zip(ours["error"].to_pylist(), theirs["error"].to_pylist()):
        assert (mine is None) == (other is None) and (mine or "") in (other or ""), (mine, other)


def test_other_columns_stay_beside_their_images(images, model, tmp_path):
    """More rows than come at a time, in groups and pages of other sizes."""
    pngs = [_png(image) for image in images]
    count = 2 * shards._ROWS + 17
    table = pa.table({"number": range(count), "image": pa.array([pngs[n % 300] for n in range(count)], pa.binary()), "tags": [[str(n)] * (n % 3) for n in range(count)]})
    pq.write_table(table, tmp_path / "big.parquet", row_group_size=700, data_page_size=4096)
    shards.label(shards.find(tmp_path / "big.parquet")[0], tmp_path / "out", model, shards.Options(keep_images=True))
    found = pq.read_table(tmp_path / "out" / "big.parquet")
    assert found.select(["number", "image", "tags"]).equals(table)
    wanted = model.assign(pngs, embedding=False, probabilities=False).cluster
    assert found["cluster"].to_pylist() == [wanted[n % 300] for n in range(count)]


def test_what_claims_too_much_is_refused_before_it_is_unpacked(images, model, tmp_path):
    png = _png(images[0])
    # A tar whose entry says that it has more bytes than an image may, and ends before.
    entry = tarfile.TarInfo("big.png")
    entry.size = 1 << 40
    (tmp_path / "claims.tar").write_bytes(entry.tobuf() + png)
    # A gzip of nothing that unpacks to 300 MB.
    with gzip.open(tmp_path / "bomb.tar.gz", "wb") as file:
        entry.size = 300 << 20
        file.write(entry.tobuf())
        for _ in range(300):
            file.write(bytes(1 << 20))
        file.write(bytes(1024))
    # Pages that say they take 128 MiB each when unpacked: more than the room that all have together.
    text = ["x" * (1 << 20)]
    columns = {"image": pa.array([png], pa.binary())} | {f"text{n}": text for n in range(9)}
    pq.write_table(pa.table(columns), tmp_path / "pages.parquet", use_dictionary=False, write_statistics=False)
    content = (tmp_path / "pages.parquet").read_bytes()
    forged, count = re.subn(rb"\x15\x00\x15[\x80-\xff]{3}[\x01-\x7f]", b"\x15\x00\x15\xfe\xff\xff\x7f", content)
    assert count == 9
    (tmp_path / "pages.parquet").write_bytes(forged)
    # A text of 1 MiB that a thousand rows share takes a page, and a gigabyte where each row has its own.
    pq.write_table(pa.table({"image": pa.array([png] * 1000, pa.binary()), "text": text * 1000}), tmp_path / "shared.parquet")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name, reason in (("claims.tar", "cut off"), ("pages.parquet", "pages would take"), ("shared.parquet", "'text' take 1000 MiB")):
        with pytest.raises(dtkc.Error, match=reason):
            shards.label(shards.find(tmp_path / name)[0], tmp_path / "out", model)
    tally = shards.label(shards.find(tmp_path / "bomb.tar.gz")[0], tmp_path / "out", model)
    assert (tally.images, tally.failed) == (1, 1)
    assert "more than the limit" in pq.read_table(tmp_path / "out" / "bomb.parquet")["error"][0].as_py()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10, "in KiB"


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
    from dtkc.ray import _label

    found = shards.find(packed / "part-10.parquet")
    shards.label(found[0], tmp_path, model)
    _label._failures(found, tmp_path, {})
    with open(tmp_path / "failures.csv", newline="") as file:
        assert [row["row"] for row in csv.DictReader(file)] == ["12", "13"]
