"""Training on a cluster of Ray on this machine: a node is killed in the middle, and the result is that of one process, byte for byte."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from dtkc import _programs

#: Some epochs with a checkpoint after every step.
SHORT = ["--epochs", "6", "--seed", "5", "--checkpoint-every", "0s"]


def _local(arguments):
    return _programs.run("dtkc-train", [*arguments, "--quiet"])


def _start(cluster, *words):
    environment = {**os.environ, "RAY_ADDRESS": cluster.address}
    command = [sys.executable, "-m", "dtkc.ray", *map(str, words)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _ended(process, code=0):
    said, errors = process.communicate(timeout=1500)
    assert process.returncode == code, errors[-3000:]
    return said, errors


def _until(true, process):
    while not true():
        if process.poll() is not None:
            pytest.fail(f"the driver ended: {process.stderr.read()[-2000:]}")
        time.sleep(0.05)


def _begun(run):
    """Parts that have a checkpoint."""
    return {path.parent.parent.name for path in run.glob("parts/*/checkpoints/*.last.ckpt")}


def _trainers(run):
    """Processes that train parts of a run."""
    return [int(pid) for pid in subprocess.run(["pgrep", "-f", f"dtkc-train part {run}/?"], capture_output=True, text=True).stdout.split()]


def _untimed(text):
    return [line.split(',"seconds":')[0] for line in text.splitlines()]


def _same(run, wanted):
    """All files of two runs, wall times apart."""
    names = sorted(path.relative_to(wanted) for path in wanted.rglob("*") if path.is_file() and not path.name.startswith("."))
    assert names == sorted(path.relative_to(run) for path in run.rglob("*") if path.is_file() and not path.name.startswith("."))
    assert (run / "model.onnx").read_bytes() == (wanted / "model.onnx").read_bytes()
    for name in names:
        if name.suffix == ".ckpt":
            assert (run / name).read_bytes() == (wanted / name).read_bytes(), name
    figures = [json.loads((folder / "summary.json").read_text()) for folder in (run, wanted)]
    assert figures[0]["restarts"] == figures[1]["restarts"] and figures[0]["warnings" if "warnings" in figures[0] else "seed"] is not None
    return names


def test_a_node_is_lost_and_the_result_is_that_of_one_process(cluster, glyphs, tmp_path):
    wanted, run = tmp_path / "wanted", tmp_path / "run"
    _local(["fit", "--data", glyphs, "--out", wanted, "--clusters", 10, "--runs", 4, "--no-prune", "--threads", 1, *SHORT])
    node = cluster.list_all_nodes()[-1]
    driver = _start(cluster, "fit", glyphs, run, "--clusters", 10, "--runs", 4, *SHORT)
    _until(lambda: len(_begun(run)) >= 3, driver)
    # A machine that dies takes everything with it: here also processes that would have time to save.
    lost = _trainers(run)
    assert lost, "parts are trained"
    cluster.remove_node(node, allow_graceful=False)
    for pid in lost:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    said, errors = _ended(driver)
    assert "handed out again" in errors, errors
    assert "4 restarts" in said and "model" not in errors.lower().replace("model.onnx", ""), said
    _same(run, wanted)
    assert _untimed((run / "log.jsonl").read_text()) == _untimed((wanted / "log.jsonl").read_text())
    assert not (run / "parts").exists()


def test_ctrl_c_keeps_what_was_done_and_the_same_command_goes_on(cluster, glyphs, tmp_path):
    wanted, run = tmp_path / "wanted", tmp_path / "run"
    _local(["fit", "--data", glyphs, "--out", wanted, "--clusters", 10, "--runs", 2, "--no-prune", "--threads", 1, *SHORT])
    words = ["fit", glyphs, run, "--clusters", 10, "--runs", 2, *SHORT]
    driver = _start(cluster, *words)
    _until(lambda: len(_begun(run)) == 2, driver)
    driver.send_signal(signal.SIGINT)
    _, errors = _ended(driver, 130)
    assert "the same command goes on" in errors
    _gone(run)
    # One that is killed leaves nobody at work either.
    driver = _start(cluster, *words)
    _until(lambda: _trainers(run), driver)
    driver.kill()
    driver.wait()
    _gone(run)
    other = _start(cluster, "fit", glyphs, run, "--clusters", 9, "--runs", 2, *SHORT)
    assert "was begun with" in _ended(other, 1)[1]
    _ended(_start(cluster, *words))
    _same(run, wanted)


def _gone(run):
    """Waits until nobody trains."""
    for _ in range(1200):
        if not _trainers(run):
            return
        time.sleep(0.1)
    pytest.fail("somebody trains on")


@pytest.mark.parametrize("nodes", [(1, 1)])
def test_nodes_of_one_cpu_find_the_number_of_clusters_although_one_is_lost(cluster, nodes, glyphs, tmp_path):
    wanted, run = tmp_path / "wanted", tmp_path / "run"
    flags = ["--clusters", "auto", "--k-range", "3..5", "--preset", "authors", "--runs", 2, "--epochs", 2, "--seed", 5, "--set", "run.trial_steps=40"]
    _local(["fit", "--data", glyphs, "--out", wanted, "--no-prune", "--threads", 1, *flags])
    driver = _start(cluster, "fit", glyphs, run, *flags)
    _until(lambda: len(_trainers(run)) >= 2, driver)
    cluster.remove_node(cluster.list_all_nodes()[-1], allow_graceful=False)
    _ended(driver)
    _same(run, wanted)
    assert (run / "clusters.jsonl").read_bytes() == (wanted / "clusters.jsonl").read_bytes()


def test_points_of_a_sweep_are_tasks(cluster, glyphs, tmp_path):
    words = ["--data", glyphs, "--vary", "loss.sigma=0.15,0.3", "--runs", 2, "--epochs", 2, "--method", "ddc", "--preset", "authors"]
    _local(["sweep", *words, "--out", tmp_path / "wanted", "--threads", 1])
    script = """
        import sys, dtkc.ray
        flags = dict(runs=2, epochs=2, method="ddc", preset="authors", progress=False)
        print(dtkc.ray.sweep(sys.argv[1], sys.argv[2], {"loss.sigma": [0.15, 0.3]}, **flags))
    """
    environment = {**os.environ, "RAY_ADDRESS": cluster.address}
    command = [sys.executable, "-c", textwrap.dedent(script), str(glyphs), str(tmp_path / "found")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "loss.sigma" in done.stdout or "0.15" in done.stdout, done.stdout
    checkpoints = sorted(path.relative_to(tmp_path / "wanted") for path in (tmp_path / "wanted").rglob("*.best.ckpt"))
    assert len(checkpoints) == 4
    for name in checkpoints:
        assert (tmp_path / "found" / name).read_bytes() == (tmp_path / "wanted" / name).read_bytes(), name
    tables = [(tmp_path / name / "sweep.json").exists() for name in ("wanted", "found")]
    assert tables == [True, True]


def test_what_cannot_be_is_told_in_a_sentence_and_leaves_nothing(cluster, glyphs, tmp_path):
    for words, text in (
        (["fit", glyphs, tmp_path / "a", "--clusters", 10, "--prune"], "--prune cannot be used"),
        (["fit", tmp_path / "gone.h5", tmp_path / "a", "--clusters", 10], "gone.h5"),
        (["fit", glyphs, tmp_path / "a", "--clusters", 10, "--no-such-flag"], "--no-such-flag"),
        (["fit", glyphs, tmp_path / "a", "--clusters", 10, "--threads", 64], "threads=64"),
        (["resume", tmp_path], "holds no run"),
        (["sweep", "--data", glyphs, "--vary", "loss.sigmo=1", "--out", tmp_path / "a"], "sigmo"),
    ):
        done = _start(cluster, *words)
        _, errors = done.communicate(timeout=300)
        assert done.returncode == 1 and text in errors and "Traceback" not in errors, (words, errors)
        assert not (tmp_path / "a").exists(), words
