"""Datasets from Python, read again by h5py-free means: the program and the arrays themselves."""

import json

import numpy as np
import pytest
from PIL import Image

import dtkc
from dtkc import _programs


def test_what_was_given_comes_back(tmp_path, images):
    labels = np.arange(300) % 7
    paths = [f"glyph {place}" for place in range(300)]
    made = dtkc.Dataset.from_items(images, tmp_path / "a.h5", labels=labels, paths=paths, label_names=list("abcdefg"))
    again = dtkc.Dataset(tmp_path / "a.h5")
    np.testing.assert_array_equal(again[:], images)
    np.testing.assert_array_equal(again.labels, labels)
    assert again.paths(3, 5) == ["glyph 3", "glyph 4"] and again.label_names == list("abcdefg")
    assert again.kind == "images" and again.shape == (28, 28, 1) and len(made) == 300
    np.testing.assert_array_equal(again[-1], images[-1])
    np.testing.assert_array_equal(again[[5, 2]], images[[5, 2]])
    with pytest.raises(IndexError):
        again[300]
    text = _programs.run("dtkc-data", ["info", tmp_path / "a.h5", "--json"])
    assert json.loads(text)["count"] == 300


def test_numbers_become_the_bytes_that_the_program_makes(tmp_path, images):
    for name, array in {
        "unit": images.astype(np.float32) / 255,
        "signed": images.astype(np.float32) / 127.5 - 1,
        "wide": images.astype(np.float64) * 3.7 - 11,
        "words": images.astype(np.uint16) * 200,
    }.items():
        np.save(tmp_path / f"{name}.npy", array)
        theirs = dtkc.Dataset.from_files(tmp_path / f"{name}.npy", tmp_path / f"{name}-1.h5")
        ours = dtkc.Dataset.from_items(array, tmp_path / f"{name}-2.h5")
        np.testing.assert_array_equal(theirs[:], ours[:], err_msg=name)


def test_files_become_the_pixels_that_the_program_makes(tmp_path, images):
    folder = tmp_path / "files"
    folder.mkdir()
    draw = np.random.default_rng(1)
    for place in range(9):
        Image.fromarray(draw.integers(0, 256, (20 + place, 31, 3), dtype=np.uint8)).save(folder / f"{place}.png")
    theirs = dtkc.Dataset.from_files(folder, tmp_path / "1.h5", size=(24, 16))
    ours = dtkc.Dataset.from_items(sorted(folder.iterdir()), tmp_path / "2.h5", size=(24, 16))
    np.testing.assert_array_equal(theirs[:], ours[:])
    pictures = dtkc.Dataset.from_items([Image.open(file) for file in sorted(folder.iterdir())], tmp_path / "3.h5", size=(24, 16))
    np.testing.assert_array_equal(theirs[:], pictures[:])
    gray = dtkc.Dataset.from_items(sorted(folder.iterdir()), tmp_path / "4.h5", size=(24, 16, 1))
    assert gray.shape == (24, 16, 1)


def test_sequences_of_several_lengths(tmp_path):
    draw = np.random.default_rng(2)
    given = [draw.normal(size=(length, 3)).astype(np.float32) for length in (4, 1, 9)]
    made = dtkc.Dataset.from_items(given, tmp_path / "s.h5", labels=[0, 1, -1])
    assert made.kind == "sequences" and made.shape == (3,) and len(made) == 3
    for ours, theirs in zip(given, made):
        np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(dtkc.Error, match="one dim"):
        dtkc.Dataset.from_items([given[0], given[1][:, :2]], tmp_path / "t.h5")
    assert not (tmp_path / "t.h5").exists()


def test_batches_hold_every_item_once(glyphs, images):
    seen = [batch for batch in glyphs.batches(64, shuffle=5)]
    assert [len(batch) for batch in seen] == [64, 64, 64, 64, 44]
    order = np.concatenate([batch.indices for batch in seen])
    assert sorted(order) == list(range(300)) and list(order) != sorted(order)
    np.testing.assert_array_equal(np.concatenate([batch.items for batch in seen]), images[order])
    np.testing.assert_array_equal(np.concatenate([batch.labels for batch in seen]), glyphs.labels[order])


def test_nothing_half_written_is_left(tmp_path, folder):
    with pytest.raises(dtkc.Error, match=r"item 40 cannot be used: .*1 more cannot"):
        dtkc.Dataset.from_items(sorted(folder.iterdir()), tmp_path / "bad.h5", size=(28, 28, 1))
    with pytest.raises(dtkc.Error, match="2 labels"):
        dtkc.Dataset.from_items(np.zeros((3, 8, 8), np.uint8), tmp_path / "bad.h5", labels=[1, 2])
    with pytest.raises(dtkc.Error, match="no items"):
        dtkc.Dataset.from_items([], tmp_path / "bad.h5")
    with pytest.raises(dtkc.Error, match="there is no such file"):
        dtkc.Dataset.from_files(tmp_path / "gone", tmp_path / "bad.h5")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(dtkc.Error, match="gone.h5"):
        dtkc.Dataset(tmp_path / "gone.h5")
