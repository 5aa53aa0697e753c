"""What does not need a cluster of what hands work out to one; the rest is in cluster/ (scripts/test-cluster.sh)."""

import os
import subprocess
import sys

import pytest

import dtkc
from dtkc.ray import _fit, _tasks


def test_cpus_are_shared_out_so_that_all_jobs_run_at_once():
    for nodes, jobs, share in (((8, 8), 1, 8), ((8, 8), 3, 4), ((8, 8), 4, 4), ((8, 8), 5, 2), ((8, 8), 16, 1), ((8, 8), 40, 1), ((1, 1), 2, 1), ((8, 2), 2, 4), ((), 3, 1)):
        assert _tasks.fair_share(nodes, jobs) == share, (nodes, jobs)


def test_keywords_are_flags():
    words = _fit._words({"restarts": 20, "no_report": True, "force": False, "preset": None, "methods": ["ddc", "dec"], "lr": 1e-3})
    assert words == ["--restarts", "20", "--no-report", "--methods", "ddc", "dec", "--lr", "0.001"]


def test_paths_are_named_in_full():
    here = os.getcwd()
    words = _fit._absolute(["--data", "a.h5", "/b.h5", "--clusters", "a", "--config=c.toml", "--out", "x", "--vary", "k=1"])
    assert words == ["--data", f"{here}/a.h5", "/b.h5", "--clusters", "a", f"--config={here}/c.toml", "--out", f"{here}/x", "--vary", "k=1"]


def test_what_restarts_would_wait_for_is_refused(tmp_path):
    for name in ("prune", "budget"):
        with pytest.raises(dtkc.Error, match=name):
            dtkc.ray.fit("a.h5", tmp_path / "run", 10, **{name: "1h"})
    with pytest.raises(dtkc.Error, match="--prune cannot"):
        _fit.fit_words("a.h5", tmp_path / "run", ["--prune"])
    with pytest.raises(dtkc.Error, match="holds no run"):
        dtkc.ray.resume(tmp_path)
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(dtkc.Error, match="other files"):
        dtkc.ray.fit("a.h5", tmp_path, 10)
    assert sorted(os.listdir(tmp_path)) == ["thesis.tex"]


def test_a_run_goes_on_only_with_what_it_was_begun_with(tmp_path):
    _fit._same_as_before(str(tmp_path / "run"), ["a.h5", "--clusters", "3"], False)
    (tmp_path / "run" / "config.toml").write_text("")
    _fit._same_as_before(str(tmp_path / "run"), ["a.h5", "--clusters", "3"], False)
    with pytest.raises(dtkc.Error, match="was begun with `a.h5 --clusters 3`, not with `a.h5 --clusters 4`"):
        _fit._same_as_before(str(tmp_path / "run"), ["a.h5", "--clusters", "4"], False)
    _fit._same_as_before(str(tmp_path / "run"), ["a.h5", "--clusters", "4"], True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.toml").write_text("")
    with pytest.raises(dtkc.Error, match="resume"):
        _fit._same_as_before(str(tmp_path / "other"), ["a.h5"], False)


def test_commands_are_explained_and_the_old_spelling_is_known():
    def said(*words):
        done = subprocess.run([sys.executable, "-m", "dtkc.ray", *words], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    code, text = said("--help")
    assert code == 0 and "dtkc.ray fit" in text and "RAY_ADDRESS" in text
    assert said("label", "a", "b")[0] == 2 and "--model" in said("a", "b")[1]
    code, text = said("no-such-file.parquet", "out", "--model", "glyphs")
    assert code == 1 and text.startswith("error: no-such-file.parquet: there is no such file") and not os.path.exists("out")
    assert said("label", "a", "b", "--model", "glyphs", "--wrong")[0] == 2
