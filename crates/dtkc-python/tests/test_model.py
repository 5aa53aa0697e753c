"""Models from Python: every form of items, the same answers as dtkc-label."""

import pickle
import signal
import threading
import time

import numpy as np
import onnxruntime
import pytest
from PIL import Image

import dtkc
from dtkc import _programs


def test_answers_are_those_of_dtkc_label(model, folder, labelled):
    files = sorted(folder.iterdir())
    answers = model.assign(files)
    for place, file in enumerate(files):
        row = labelled[file.name]
        if place in answers.errors:
            assert row["cluster"] == "" and answers.cluster[place] == -1 and np.isnan(answers.confidence[place])
            assert answers.errors[place] in row["error"]
        else:
            assert (int(row["cluster"]), int(row["second_cluster"])) == (answers.cluster[place], answers.second[place])
            # The table has all digits that tell one f32 from another.
            for name in ("confidence", "second_confidence", "margin", "outlier"):
                assert np.float32(row[name]) == getattr(answers, name)[place], name
    assert sorted(answers.errors) == [40, 41]


def test_every_form_gives_the_same_bits(model, images, folder):
    import pyarrow as pa

    files = sorted(folder.iterdir())[:40]
    wanted = model.assign(images[:40])
    contents = [file.read_bytes() for file in files]
    forms = {
        "three dimensions": images[:40, :, :, 0],
        "numbers to 1": images[:40].astype(np.float32) / 255,
        "numbers to 255": images[:40].astype(np.float64),
        "strided": np.repeat(images[:40], 2, axis=0)[::2],
        "paths": files,
        "texts": [str(file) for file in files],
        "contents": contents,
        "bytearrays": [bytearray(content) for content in contents],
        "pictures": [Image.open(file) for file in files],
        "a list of arrays": list(images[:40]),
        "PyTorch's order": np.moveaxis(images[:40], 3, 1),
        "binary": pa.array(contents),
        "large binary, chunked": pa.chunked_array([pa.array(contents[:7], pa.large_binary()), pa.array(contents[7:], pa.large_binary())]),
        "structs": pa.array([{"bytes": content, "path": "x"} for content in contents]),
        "a slice": pa.array([b"", *contents, b""])[1:41],
    }
    for name, form in forms.items():
        answers = model.assign(form)
        assert not answers.errors, (name, answers.errors)
        for part in ("cluster", "confidence", "probabilities", "embedding", "outlier"):
            np.testing.assert_array_equal(getattr(answers, part), getattr(wanted, part), err_msg=f"{name}: {part}")


def test_the_model_file_says_the_same_in_onnxruntime(model, images):
    session = onnxruntime.InferenceSession(model._inner.content())
    cluster, probabilities, *_ = session.run(["cluster", "probabilities"], {"image": images})
    answers = model.assign(images)
    np.testing.assert_array_equal(answers.cluster, cluster)
    np.testing.assert_allclose(answers.probabilities, probabilities, atol=1e-5)


def test_what_is_not_asked_for_is_not_there(model, images):
    answers = model.assign(images[:3], embedding=False, probabilities=False)
    assert answers.embedding is None and answers.probabilities is None and len(answers) == 3


def test_a_dataset_in_parts(model, glyphs, images, monkeypatch):
    monkeypatch.setattr(dtkc._items, "CHUNK", 7)
    whole, parts = model.assign(images), model.assign(glyphs)
    np.testing.assert_array_equal(whole.cluster, parts.cluster)
    np.testing.assert_array_equal(whole.embedding, parts.embedding)


def test_failures_keep_their_places_over_parts(model, folder, monkeypatch):
    import pyarrow as pa

    good, bad = (folder / "000.png").read_bytes(), b"no image"
    column = pa.array([good, None, bad, good])
    answers = model.assign(column)
    assert sorted(answers.errors) == [1, 2] and list(answers.cluster[[1, 2]]) == [-1, -1]
    assert "no image in this row" in answers.errors[1]
    with pytest.raises(dtkc.Error, match=r"item 1: .*1 more failed"):
        answers.raise_for_errors()


def test_nothing_gives_nothing(model):
    assert len(model.assign([])) == 0
    assert len(model.assign(np.zeros((0, 28, 28), np.uint8))) == 0


def test_images_of_another_size_and_colour(model, images):
    large = np.repeat(np.repeat(images[:5], 3, axis=1), 3, axis=2)
    colour = np.repeat(large, 3, axis=3)
    answers = model.assign(colour)
    assert not answers.errors and answers.cluster.shape == (5,)


def test_what_cannot_be_used_is_said(model, tmp_path):
    with pytest.raises(dtkc.Error, match="-7 to 3"):
        model.assign(np.linspace(-7, 3, 28 * 28).reshape(1, 28, 28))
    with pytest.raises(dtkc.Error, match="no numbers"):
        model.assign(np.full((1, 28, 28), np.nan))
    with pytest.raises(dtkc.Error, match="dimensions"):
        model.assign(np.zeros(3))
    with pytest.raises(dtkc.Error, match="list of paths"):
        model.assign("a.png")
    answers = model.assign([tmp_path / "gone.png"])
    assert "gone" in answers.errors[0] or "no such file" in answers.errors[0].lower()
    with pytest.raises(dtkc.Error, match="nowhere.onnx"):
        dtkc.Model(tmp_path / "nowhere.onnx")
    (tmp_path / "damaged.onnx").write_bytes(b"damaged")
    with pytest.raises(dtkc.Error):
        dtkc.Model(tmp_path / "damaged.onnx")
    with pytest.raises(dtkc.Error, match="bundled"):
        dtkc.Model("no-such-model")
    with pytest.raises(TypeError):
        dtkc.Model(7)
    with pytest.raises(dtkc.Error):
        dtkc.Model("glyphs", device="abacus")


def test_a_model_goes_through_pickle(model, images):
    again = pickle.loads(pickle.dumps(model))
    assert again.fingerprint == model.fingerprint and again.n_clusters == model.n_clusters
    np.testing.assert_array_equal(again.assign(images).embedding, model.assign(images).embedding)


def test_several_threads_may_ask_at_once(model, images):
    wanted = model.assign(images).cluster
    found = [None] * 4
    def ask(place):
        found[place] = model.assign(images).cluster
    threads = [threading.Thread(target=ask, args=(place,)) for place in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    for clusters in found:
        np.testing.assert_array_equal(clusters, wanted)


def test_the_interpreter_is_free_and_ctrl_c_is_heard(model, images):
    many = np.repeat(images, 2000, axis=0)  # minutes of work, 470 MB
    ticks = []

    def tick():
        for _ in range(10):
            ticks.append(time.monotonic())
            time.sleep(0.05)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=tick)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        model.assign(many, embedding=False, probabilities=False)
    thread.join()
    assert len(ticks) == 10, "another thread ran meanwhile"
    assert len(model.assign(images[:3])) == 3, "the model can still be used"


def test_saving_and_names(model, images, tmp_path):
    model.save(tmp_path / "copy.onnx")
    copy = dtkc.Model(tmp_path / "copy.onnx")
    assert copy.fingerprint == model.fingerprint and copy.name == "copy"
    assert copy.names == model.names and copy.kind == "images" and "glyphs" in dtkc.bundled_models()
    assert [path.name for path in tmp_path.iterdir()] == ["copy.onnx"]


def test_programs_come_with_the_package():
    for name in ("dtkc-data", "dtkc-train", "dtkc-label", "dtkc-serve"):
        assert name in _programs.run(name, ["--version"])
    with pytest.raises(dtkc.Error, match="nowhere"):
        _programs.run("dtkc-data", ["info", "nowhere.h5"])
