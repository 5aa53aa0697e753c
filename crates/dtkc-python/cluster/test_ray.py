"""A cluster of Ray on this machine: nodes, workers and the driver are killed, and every image is labelled once.

Started by scripts/test-cluster.sh, not with the other tests: it takes minutes and needs Ray.
"""

import io
import os
import signal
import subprocess
import sys
import tarfile
import textwrap
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import dtkc
from dtkc import _programs, shards

SHARDS, EACH = 100, 200


def _png(image):
    kept = io.BytesIO()
    Image.fromarray(image).save(kept, "PNG")
    return kept.getvalue()


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A hundred shards, every tenth an archive, of drawn glyphs; some images are damaged, and one shard is."""
    folder = tmp_path_factory.mktemp("shards")
    _programs.run("dtkc-data", ["synth", "--kind", "glyphs", "--count", 2000, "--seed", 9, "--out", folder / "g.h5", "--quiet"])
    pngs = [_png(image[:, :, 0]) for image in dtkc.Dataset(folder / "g.h5")[:]]
    os.remove(folder / "g.h5")
    draw = np.random.default_rng(4)
    for number in range(SHARDS):
        rows = [(f"{number:03}/{place:04}.png", pngs[draw.integers(len(pngs))]) for place in range(EACH)]
        for place in draw.integers(0, EACH, 3):
            rows[place] = (rows[place][0], rows[place][1][:50])
        if number % 10 == 3:
            with tarfile.open(folder / f"shard-{number}.tar", "w") as archive:
                for name, content in rows:
                    entry = tarfile.TarInfo(name)
                    entry.size = len(content)
                    archive.addfile(entry, io.BytesIO(content))
        else:
            table = pa.table({"path": [name for name, _ in rows], "image": pa.array([content for _, content in rows], pa.binary())})
            pq.write_table(table, folder / f"shard-{number}.parquet")
    return folder


@pytest.fixture(scope="module")
def wanted(packed, tmp_path_factory):
    """What one process says, shard by shard, and dtkc-label about an archive."""
    out = tmp_path_factory.mktemp("wanted")
    model = dtkc.Model("glyphs")
    for shard in shards.find(packed):
        shards.label(shard, out, model)
    archive = packed / "shard-3.tar"
    command = [_programs.find("dtkc-label"), "--model", "glyphs", "--input", archive, "--output", out / "theirs" / "label.parquet", "--quiet"]
    (out / "theirs").mkdir()
    subprocess.run(list(map(str, command)), env=_programs.environment(), stdin=subprocess.DEVNULL, check=False)
    theirs, ours = pq.read_table(out / "theirs" / "label.parquet"), pq.read_table(out / "shard-3.parquet")
    assert theirs["path"].to_pylist() == [f"{archive}/{path}" for path in ours["path"].to_pylist()]
    for name in ("cluster", "confidence", "margin"):
        assert theirs[name].to_pylist() == ours[name].to_pylist(), name
    return out


DRIVER = """
    import sys, dtkc, dtkc.ray
    summary = dtkc.ray.label(sys.argv[1], sys.argv[2], "glyphs")
    print("images", summary.tally.images, "failed", summary.tally.failed, "skipped", summary.skipped, flush=True)
"""


def _driver(cluster, packed, out):
    environment = {**os.environ, "RAY_ADDRESS": cluster.address}
    command = [sys.executable, "-c", textwrap.dedent(DRIVER), str(packed), str(out)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _until(out, count, process):
    """Waits until so many outputs are there."""
    for _ in range(12_000):
        if len(list(out.glob("*.parquet"))) >= count:
            return
        if process.poll() is not None:
            pytest.fail(f"the driver ended: {process.stderr.read()[-2000:]}")
        time.sleep(0.05)
    pytest.fail("nothing happens")


def _same(out, wanted):
    names = sorted(path.name for path in wanted.glob("*.parquet"))
    assert sorted(path.name for path in out.glob("*.parquet")) == names and len(names) == SHARDS
    for name in names:
        assert pq.read_table(out / name).equals(pq.read_table(wanted / name)), name


def test_whatever_is_killed_every_image_is_labelled_once(cluster, packed, wanted, tmp_path):
    out = tmp_path / "labels"
    node = cluster.list_all_nodes()[-1]
    driver = _driver(cluster, packed, out)
    _until(out, 8, driver)
    _kill_worker()
    _until(out, 20, driver)
    cluster.remove_node(node, allow_graceful=False)
    _until(out, 35, driver)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    before = len(list(out.glob("*.parquet")))
    assert before < SHARDS, "it was killed in the middle"
    cluster.add_node(num_cpus=2)
    again = _driver(cluster, packed, out)
    said, errors = again.communicate(timeout=900)
    assert again.returncode == 0, errors[-3000:]
    _same(out, wanted)
    images = int(said.split("images ")[1].split()[0])
    assert images == SHARDS * EACH and int(said.split("skipped ")[1].split()[0]) >= before
    assert shards.left_over(out) >= 0 and not list(out.rglob("*.writing"))


def _kill_worker():
    """Kills a process that labels, wherever it is."""
    for _ in range(600):
        workers = subprocess.run(["pgrep", "-f", "^ray::_work"], capture_output=True, text=True).stdout.split()
        for pid in workers:
            try:
                return os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.05)
    pytest.fail("nobody labels")


@pytest.mark.parametrize("nodes", [(1, 1, 1)])
def test_nodes_of_one_cpu_go_on_after_losses(cluster, nodes, packed, wanted, tmp_path):
    out = tmp_path / "labels"
    driver = _driver(cluster, packed, out)
    for enough in (8, 30):
        _until(out, enough, driver)
        cluster.remove_node(cluster.list_all_nodes()[-1], allow_graceful=False)
        _kill_worker()
    said, errors = driver.communicate(timeout=900)
    assert driver.returncode == 0, errors[-3000:]
    assert int(said.split("images ")[1].split()[0]) == SHARDS * EACH
    _same(out, wanted)


def test_a_shard_that_cannot_be_read_is_told_and_ends_nothing(cluster, packed, tmp_path):
    some = tmp_path / "some"
    some.mkdir()
    for number in (0, 3):
        name = next(packed.glob(f"shard-{number}.*"))
        (some / name.name).write_bytes(name.read_bytes())
    (some / "damaged.parquet").write_bytes(b"PAR1 and nothing else")
    environment = {**os.environ, "RAY_ADDRESS": cluster.address}
    command = [sys.executable, "-m", "dtkc.ray", str(some), str(tmp_path / "out"), "--model", "glyphs"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 3 and "1 shards could not be labelled" in done.stderr, done.stderr
    assert f"{2 * EACH:,} images of 3 shards" in done.stdout, done.stdout
    assert "damaged" in (tmp_path / "out" / "failures.csv").read_text()
