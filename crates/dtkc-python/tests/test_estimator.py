"""The estimator: what scikit-learn asks of one, and what people do with it."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import dtkc
from dtkc import _programs


def test_scikit_learn_accepts_it():
    # Small, so that some sixty runs take a minute; one thread, because they are tiny.
    check_estimator(dtkc.DTKC(n_clusters=3, restarts=1, epochs=30, threads=1, verbose=False))


def test_images_from_array_to_file(images, glyphs, quick, tmp_path):
    learnt = dtkc.DTKC(n_clusters=10, **quick).fit(images)
    assert learnt.labels_.shape == (300,) and learnt.labels_.dtype == np.int64
    np.testing.assert_array_equal(learnt.predict(images), learnt.labels_)
    np.testing.assert_allclose(learnt.predict_proba(images).sum(axis=1), 1, atol=1e-5)
    assert learnt.transform(images[:4]).shape == (4, learnt.model_.about["embedding_size"])
    again = pickle.loads(pickle.dumps(learnt))
    np.testing.assert_array_equal(again.predict(images), learnt.labels_)
    learnt.save(tmp_path / "groups.onnx")
    np.testing.assert_array_equal(dtkc.Model(tmp_path / "groups.onnx").assign(glyphs).cluster, learnt.labels_)
    fresh = clone(learnt)
    assert fresh.get_params() == learnt.get_params() and not hasattr(fresh, "model_")
    np.testing.assert_array_equal(fresh.fit_predict(images), learnt.labels_)
    sizes = np.bincount(learnt.labels_, minlength=10)
    assert list(sizes) == sorted(sizes, reverse=True), "the largest group is 0"


def test_it_learns_what_the_program_learns(images, glyphs_file, quick, tmp_path):
    run = tmp_path / "run"
    _programs.run(
        "dtkc-train",
        ["fit", "--data", glyphs_file, "--clusters", 10, "--out", run, "--seed", 5, "--restarts", 1, "--epochs", 2, "--quiet", "--no-report"],
    )
    theirs = dtkc.Model(run / "model.onnx")
    ours = dtkc.DTKC(n_clusters=10, random_state=5, **quick).fit(images)
    np.testing.assert_array_equal(ours.model_.assign(images).embedding, theirs.assign(images).embedding)


def test_flat_rows_with_a_shape(images, quick):
    rows = images.reshape(300, -1)
    flat = dtkc.DTKC(n_clusters=10, shape=(28, 28), **quick).fit(rows)
    whole = dtkc.DTKC(n_clusters=10, **quick).fit(images)
    np.testing.assert_array_equal(flat.labels_, whole.labels_)
    np.testing.assert_array_equal(flat.predict(rows[:7]), whole.labels_[:7])
    # A range that was chosen by all is kept for the few: numbers that are no bytes must be read alike later.
    numbers = rows.astype(np.float64) * 3 - 100
    scaled = dtkc.DTKC(n_clusters=10, shape=(28, 28), **quick).fit(numbers)
    np.testing.assert_array_equal(scaled.predict(numbers[:7]), scaled.labels_[:7])
    with pytest.raises(dtkc.Error, match="784"):
        dtkc.DTKC(n_clusters=10, shape=(27, 28), **quick).fit(rows)


def test_points_and_sequences(blobs, quick):
    points, truth = blobs
    settings = {**quick, "epochs": 40}
    groups = dtkc.DTKC(n_clusters=3, **settings).fit(points)
    assert dtkc.metrics.accuracy(truth, groups.labels_) > 0.9
    draw = np.random.default_rng(3)
    sequences = [draw.normal(size=(draw.integers(5, 12), 2)) + 6 * (place % 2) for place in range(40)]
    found = dtkc.DTKC(n_clusters=2, **settings).fit(sequences)
    np.testing.assert_array_equal(found.predict(sequences[:9]), found.labels_[:9])
    assert found.model_.kind == "sequences"


def test_folders_paths_and_datasets(folder, glyphs, glyphs_file, quick):
    settings = {"n_clusters": 4, "size": (28, 28), **quick}
    paths = sorted(folder.iterdir())[:40]
    by_paths = dtkc.DTKC(**settings).fit(paths)
    assert by_paths.labels_.shape == (40,) and list(by_paths.predict(paths)) == list(by_paths.labels_)
    assert list(by_paths.predict([folder / "041.png"])) == [-1]
    by_folder = dtkc.DTKC(**settings).fit(str(folder))
    assert by_folder.labels_.shape == (40,), "two files that are damaged are left out"
    by_file, by_dataset = dtkc.DTKC(**settings).fit(glyphs_file), dtkc.DTKC(**settings).fit(glyphs)
    np.testing.assert_array_equal(by_file.labels_, by_dataset.labels_)


def test_mistakes_are_said_in_the_words_of_the_program(images, quick):
    with pytest.raises(dtkc.Error, match="unheard"):
        dtkc.DTKC(n_clusters=10, **quick, method="unheard").fit(images)
    with pytest.raises(dtkc.Error, match="n_clusters"):
        dtkc.DTKC(n_clusters=10, **quick).fit(images[:4])
    with pytest.raises(dtkc.Error, match="loss.nonsense"):
        dtkc.DTKC(n_clusters=10, **quick, settings={"loss.nonsense": 1}).fit(images)
    with pytest.raises(dtkc.Error, match="no such file"):
        dtkc.DTKC(n_clusters=10, **quick).fit("nowhere/")


def test_a_folder_is_for_one_run(images, quick, tmp_path):
    settings = {"n_clusters": 4, "run_dir": tmp_path / "run", **quick}
    first = dtkc.DTKC(**settings).fit(images[:100])
    again = dtkc.DTKC(**settings).fit(images[:100])
    np.testing.assert_array_equal(first.labels_, again.labels_)
    with pytest.raises(dtkc.Error, match="other items"):
        dtkc.DTKC(**settings).fit(images[100:200])
    with pytest.raises(dtkc.Error, match="n_clusters=4, not 5"):
        dtkc.DTKC(**{**settings, "n_clusters": 5}).fit(images[:100])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "run.asked.json", "run.items.h5"]


def test_in_a_pipeline(blobs):
    from sklearn.preprocessing import StandardScaler

    points, truth = blobs
    steps = make_pipeline(StandardScaler(), dtkc.DTKC(n_clusters=3, restarts=1, epochs=40, threads=1, verbose=False))
    assert dtkc.metrics.accuracy(truth, steps.fit_predict(points)) > 0.9


STOPPED = """
    import sys, numpy as np, dtkc
    images = np.load(sys.argv[1])
    groups = dtkc.DTKC(n_clusters=10, restarts=1, epochs=int(sys.argv[3]), threads=1, run_dir=sys.argv[2], verbose=True, settings={"run.checkpoint_seconds": 0})
    try:
        groups.fit(images)
    except KeyboardInterrupt as stopped:
        print("stopped:", stopped)
        sys.exit(7)
    np.save(sys.argv[4], groups.model_.assign(images).embedding)
"""


def _start(tmp_path, run, epochs, out):
    arguments = [tmp_path / "images.npy", run, epochs, out]
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(STOPPED), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_ctrl_c_keeps_what_was_learnt(images, tmp_path):
    np.save(tmp_path / "images.npy", images)
    first = _start(tmp_path, tmp_path / "run", 6, tmp_path / "stopped.npy")
    # Once it tells of an epoch there is something to keep.
    seen = ""
    for line in first.stderr:
        seen += line
        if "epoch 2" in line:
            break
    first.send_signal(signal.SIGINT)
    said, more = first.communicate(timeout=120)
    assert first.returncode == 7 and "goes on where it was" in said, (seen, said, more)
    second = _start(tmp_path, tmp_path / "run", 6, tmp_path / "resumed.npy")
    _, more = second.communicate(timeout=240)
    assert second.returncode == 0, more
    whole = _start(tmp_path, tmp_path / "whole", 6, tmp_path / "whole.npy")
    _, more = whole.communicate(timeout=240)
    assert whole.returncode == 0, more
    np.testing.assert_array_equal(np.load(tmp_path / "resumed.npy"), np.load(tmp_path / "whole.npy"))
    assert (tmp_path / "run" / "report.html").exists()


def test_training_ends_with_whoever_asked_for_it(images, tmp_path):
    np.save(tmp_path / "images.npy", images)
    asker = _start(tmp_path, tmp_path / "run", 4000, tmp_path / "never.npy")
    for line in asker.stderr:
        if "epoch 1" in line:
            break
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(asker.pid)], capture_output=True, text=True).stdout.split()
    assert children
    asker.kill()
    asker.wait()
    for _ in range(1200):
        if not os.path.exists(f"/proc/{children[0]}"):
            break
        __import__("time").sleep(0.05)
    else:
        pytest.fail("training goes on though nobody waits for it")
