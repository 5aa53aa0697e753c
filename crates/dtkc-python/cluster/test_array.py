"""Array jobs: the scripts and manifests of deploy/, run as Slurm and Kubernetes run them, give what one process gives."""

import io
import os
import signal
import subprocess
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from PIL import Image

import dtkc
from dtkc import _programs

DEPLOY = Path(__file__).parents[3] / "deploy"
PARTS = 5


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A folder on the path with the programs, as every machine of a cluster has them."""
    folder = tmp_path_factory.mktemp("bin")
    for name in ("dtkc-label", "dtkc-train"):
        (folder / name).symlink_to(_programs.find(name))
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture(scope="module")
def images(glyphs, tmp_path_factory):
    """Seven tables, with a damaged image in each."""
    folder = tmp_path_factory.mktemp("images")
    pngs = []
    for image in dtkc.Dataset(glyphs)[:]:
        kept = io.BytesIO()
        Image.fromarray(image[:, :, 0]).save(kept, "PNG")
        pngs.append(kept.getvalue())
    for number in range(7):
        rows = pngs[number * 80 : (number + 1) * 80]
        rows[number] = rows[number][:40]
        pq.write_table(pa.table({"id": [f"{number}-{n}" for n in range(80)], "image": pa.array(rows, pa.binary())}), folder / f"shard-{number}.parquet", row_group_size=30)
    return folder


def _slurm(script, number, count, path, *words):
    """A task as Slurm starts it, here in the order in which it may."""
    told = {"SLURM_ARRAY_TASK_ID": str(number), "SLURM_ARRAY_TASK_COUNT": str(count), "SLURM_CPUS_PER_TASK": "1"}
    return [str(DEPLOY / script), *map(str, words)], {**_programs.environment(), **told, "PATH": path}


def _kubernetes(manifest, index, path, **values):
    """A pod as Kubernetes starts it: its command, its environment and its index."""
    job = yaml.safe_load((DEPLOY / manifest).read_text())
    assert job["kind"] == "Job" and job["spec"]["completionMode"] == "Indexed"
    container = job["spec"]["template"]["spec"]["containers"][0]
    told = {one["name"]: one["value"] for one in container["env"]} | {name: str(value) for name, value in values.items()}
    assert set(values) <= {one["name"] for one in container["env"]}
    return container["command"], {**_programs.environment(), **told, "JOB_COMPLETION_INDEX": str(index), "PATH": path}


def _run(command, environment):
    subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=True, timeout=900)


@pytest.mark.parametrize("engine", ["slurm", "kubernetes"])
def test_parts_of_an_array_job_join_to_the_bytes_of_one_run(engine, images, path, tmp_path):
    pattern, out = f"{images}/*.parquet", tmp_path / "labels"
    _programs.run("dtkc-label", ["--model", "glyphs", "--input", pattern, "--output", tmp_path / "whole.parquet", "--quiet"])
    for number in (3, 1, 5, 2, 4):
        if engine == "slurm":
            started = _slurm("label.slurm", number, PARTS, path, "glyphs", pattern, out)
        else:
            started = _kubernetes("label-job.yaml", number - 1, path, MODEL="glyphs", INPUT=pattern, OUT=out, PARTS=PARTS)
        if number == 5:
            # Lost at some moment, and started again.
            lost = subprocess.Popen(started[0], env=started[1], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.1)
            lost.send_signal(signal.SIGKILL)
            lost.wait()
        _run(*started)
    # A part that is started once more has nothing to do.
    _run(*started)
    parts = sorted(out.glob("part-*.parquet"))
    assert len(parts) == PARTS
    _programs.run("dtkc-label", ["merge", *parts, "--output", tmp_path / "joined.parquet", "--quiet"])
    assert (tmp_path / "joined.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


@pytest.mark.parametrize("engine", ["slurm", "kubernetes"])
def test_restarts_of_an_array_job_are_the_run_of_one_process(engine, glyphs, path, tmp_path):
    flags = ["--data", glyphs, "--clusters", 10, "--runs", 2, "--epochs", 3, "--seed", 5, "--no-prune", "--threads", 1]
    _programs.run("dtkc-train", ["fit", *flags, "--out", tmp_path / "whole", "--quiet", "--no-report"])
    _programs.run("dtkc-train", ["fit", *flags, "--out", tmp_path / "run", "--prepare"])
    for number in (1, 0):
        if engine == "slurm":
            _run(*_slurm("train.slurm", number, 2, path, tmp_path / "run"))
        else:
            _run(*_kubernetes("train-job.yaml", number, path, RUN=tmp_path / "run", THREADS=1))
    _programs.run("dtkc-train", ["resume", tmp_path / "run", "--quiet", "--no-report"])
    assert (tmp_path / "run" / "model.onnx").read_bytes() == (tmp_path / "whole" / "model.onnx").read_bytes()
