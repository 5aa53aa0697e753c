"""What the tests share: drawn glyphs, as a dataset, as arrays and as files."""

import os
import signal
import subprocess

import numpy as np
import pytest
from PIL import Image

import dtkc
from dtkc import _programs

# Whoever runs the tests in the background of a script has Ctrl-C ignored, here and in all that is started from here.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def glyphs_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "glyphs.h5"
    _programs.run("dtkc-data", ["synth", "--kind", "glyphs", "--count", 300, "--seed", 3, "--out", path, "--quiet"])
    return path


@pytest.fixture(scope="session")
def glyphs(glyphs_file):
    return dtkc.Dataset(glyphs_file)


@pytest.fixture(scope="session")
def images(glyphs):
    """uint8 [300, 28, 28, 1]"""
    return glyphs[:]


@pytest.fixture(scope="session")
def model():
    return dtkc.Model("glyphs")


@pytest.fixture(scope="session")
def folder(images, tmp_path_factory):
    """Forty of them as PNG files, and two that are damaged."""
    folder = tmp_path_factory.mktemp("files")
    for place, image in enumerate(images[:40]):
        Image.fromarray(image[:, :, 0]).save(folder / f"{place:03}.png")
    (folder / "040.png").write_bytes(b"this is no image")
    (folder / "041.png").write_bytes((folder / "000.png").read_bytes()[:60])
    return folder


@pytest.fixture(scope="session")
def labelled(folder, tmp_path_factory):
    """What dtkc-label says about the folder: rows by name."""
    import csv

    out = tmp_path_factory.mktemp("labels") / "labels.csv"
    command = [_programs.find("dtkc-label"), "--model", "glyphs", "--input", str(folder), "--output", str(out), "--quiet"]
    subprocess.run(command, env=_programs.environment(), check=False, stdin=subprocess.DEVNULL)
    with open(out, newline="") as file:
        return {os.path.basename(row["path"]): row for row in csv.DictReader(file)}


@pytest.fixture
def quick():
    """Settings with which training takes seconds."""
    return {"restarts": 1, "epochs": 2, "threads": 1, "verbose": False}


@pytest.fixture(scope="session")
def blobs():
    """Points in three heaps, float64 [60, 4], and which heap each is of."""
    draw = np.random.default_rng(0)
    centres = np.array([[0, 0, 0, 0], [9, 0, 9, 0], [0, 9, 0, 9]])
    truth = np.repeat(np.arange(3), 20)
    return centres[truth] + draw.normal(size=(60, 4)), truth
