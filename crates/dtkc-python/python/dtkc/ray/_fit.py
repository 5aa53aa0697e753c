"""Training on a cluster: the parts of runs as tasks.

A part (a restart, a number of clusters that `auto` looks at) is the program `dtkc-train part` on a run directory that all nodes see. It writes its
checkpoints there; whoever has it next goes on with them. This process only hands parts out: it trains nothing, and may be anywhere in the cluster.
"""

import json
import os
import sys
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from .. import _programs, _training
from .._dtkc import Error
from .._estimator import _toml
from .._model import Model, write
from ._tasks import Job, Lost, Pool, check_threads, connect

#: How long a part waits for one that was lost with its machine: so long may a file server take it for alive.
_WAIT = "5m"
#: Flags whose values are paths.
_PATHS = ("--data", "--out", "--backbone", "--features", "--config", "--pretrained", "--onnxruntime")
#: What a run was asked for, in its folder.
_ASKED = ".asked.json"
#: Seconds between two lines that tell how far parts are.
_TELL = 15.0


@dataclass
class Fitted:
    """What came of a run."""

    #: The run directory: model.onnx, report.html, summary.json.
    run: str
    #: summary.json: every restart with its loss.
    summary: dict
    seconds: float

    @property
    def model(self):
        """The model, to assign items with."""
        return Model(os.path.join(self.run, "model.onnx"))

    @property
    def machines(self):
        """The kinds of machines that restarts were trained on. Of one kind they give the bits that it gives alone."""
        return sorted({kind for restart in self.summary["restarts"] for kind in restart.get("machines", [])})


@dataclass
class _Run:
    """A run directory on its way."""

    name: str
    folder: str
    #: Words of dtkc-train that make it, and that end it.
    prepare: list
    finish: list
    #: Parts that are not done yet.
    left: set = field(default_factory=set)

    def job(self, step, threads, part=None):
        """A step on its way, as a job: `prepare`, `parts` (what is left?), every `part`, `parts` again, and `finish`."""
        words = {
            "prepare": self.prepare,
            "parts": ["parts", self.folder, "--wait", _WAIT],
            "part": ["part", self.folder, part, "--quiet", "--wait", _WAIT],
            "finish": [*self.finish, "--json"],
        }[step]
        called = {"prepare": "its beginning", "parts": "its list of parts", "part": part, "finish": "its end"}[step]
        # Looking at a folder takes no more than one; a backbone that describes images, a restart and an export take what they get.
        light = step == "parts" or (step == "prepare" and "--backbone" not in words)
        return Job(f"{self.name}: {called}" if self.name else called, (step, self.folder, words, part), self, 1 if light else threads)

    def after(self, job, text, threads):
        """What follows a job that has printed `text`."""
        step, part = job.arguments[0], job.arguments[3]
        if step == "parts":
            self.left = set(text.split())
            return [self.job("part", threads, part) for part in text.split()] or [self.job("finish", threads)]
        self.left.discard(part)
        return [] if step == "finish" or self.left else [self.job("parts", threads)]


def fit(data, out, clusters, *, threads=None, gpus=0, settings=None, progress=True, **flags):
    """Trains restarts on the dataset `data` (HDF5) into the run directory `out`, one task for each; gives :class:`Fitted`.

    `clusters` is a number or "auto"; `flags` are those of ``dtkc-train fit`` (``restarts=20, seed=1, preset="paper", backbone="net.onnx"``), `settings` any
    of config.toml. `threads` is how many CPUs a task takes (default: the cluster's, shared out evenly), `gpus` how many GPUs. All restarts are trained
    to their end: pruning and a budget would need them to wait for each other. The result is that of ``dtkc-train fit --no-prune`` with the same
    seed, to the bit where machines are of the same kind; ``Fitted.machines`` and the summary's warnings tell where they are not. The same call again goes on with
    what was stopped or lost.
    """
    for name in ("prune", "budget"):
        if flags.pop(name, None):
            raise Error(f"{name}= needs restarts that wait for each other, which tasks on a cluster do not; leave it out")
    words = ["--clusters", str(clusters), *_words(flags), *(word for name, value in (settings or {}).items() for word in ("--set", f"{name}={_toml(value)}"))]
    return fit_words(data, out, words, threads=threads, gpus=gpus, progress=progress)


def fit_words(data, out, words, *, threads=None, gpus=0, progress=True):
    """:func:`fit` with the flags of dtkc-train as they are."""
    refused = next((word for word in words if word.split("=")[0] in ("--prune", "--budget", "--out", "--data", "--prepare")), None)
    if refused:
        raise Error(f"{refused} cannot be used on a cluster: restarts are tasks of their own, and data and folder are named first")
    data, out, words = os.path.abspath(os.fspath(data)), os.path.abspath(os.fspath(out)), _absolute(words)
    force = "--force" in words
    words = [word for word in words if word not in ("--force", "--no-prune")]
    after, words = _split(words, ("--no-export", "--no-report"))
    _same_as_before(out, [data, *words], force)
    prepare = ["fit", "--data", data, "--out", out, "--no-prune", *words, *(["--force"] if force else [])]
    run = _Run("", out, prepare, ["resume", out, *after])
    try:
        return _train([run], threads, gpus, progress)[0]
    except Error:
        if not _training.is_run(out):
            # Refused before there was anything: nothing stays.
            os.remove(os.path.join(out, _ASKED))
            with suppress(OSError):
                os.rmdir(out)
        raise


def resume(run, *, threads=None, gpus=0, progress=True):
    """Goes on with a run that was begun by ``dtkc-train fit --no-prune``, on this cluster."""
    run = os.path.abspath(os.fspath(run))
    if not _training.is_run(run):
        raise Error(f"{run} holds no run (there is no config.toml in it)")
    return _train([_Run("", run, [], ["resume", run])], threads, gpus, progress)[0]


def sweep(data, out, vary, *, threads=None, gpus=0, settings=None, progress=True, **flags):
    """``dtkc-train sweep`` with restarts of all points as tasks: `vary` is a dict of settings and their values. Gives the text of sweep.md."""
    words = [word for name, values in vary.items() for word in ("--vary", f"{name}={','.join(map(_toml, values))}")]
    return _table("sweep", data, out, words, settings, flags, threads, gpus, progress)


def compare(data, out, methods="all", *, threads=None, gpus=0, settings=None, progress=True, **flags):
    """``dtkc-train compare`` with restarts of all cells as tasks: `methods` is a list of methods and variants of them. Gives the text of compare.md."""
    methods = [methods] if isinstance(methods, str) else list(methods)
    return _table("compare", data, out, ["--methods", *methods], settings, flags, threads, gpus, progress)


def _table(command, data, out, words, settings, flags, threads, gpus, progress):
    data = [data] if isinstance(data, (str, os.PathLike)) else list(data)
    sets = [word for name, value in (settings or {}).items() for word in ("--set", f"{name}={_toml(value)}")]
    names = [os.path.abspath(os.fspath(path)) for path in data]
    words = ["--data", *names, "--out", os.path.abspath(os.fspath(out)), *words, *sets, *_words(flags)]
    return cells_words(command, words, threads=threads, gpus=gpus, progress=progress)


def cells_words(command, words, *, threads=None, gpus=0, progress=True):
    """A table of runs, in words of ``dtkc-train compare`` and ``sweep``; gives the table as these print it."""
    words = _absolute(words)
    while True:
        ready = json.loads(_programs.run("dtkc-train", [command, *words, "--ready"]))
        if not ready:
            return _programs.run("dtkc-train", [command, *words, "--tables"])
        try:
            _train([_Run(cell["name"], cell["run"], cell["prepare"], cell["finish"]) for cell in ready], threads, gpus, progress)
        except Error:
            # What others have found is in the tables all the same.
            _programs.run("dtkc-train", [command, *words, "--tables", "--quiet"])
            raise


def _words(flags):
    """Keyword arguments as flags of a program."""
    words = []
    for name, value in flags.items():
        name = "--" + name.replace("_", "-")
        if value is True:
            words.append(name)
        elif isinstance(value, (list, tuple)):
            words += [name, *map(str, value)]
        elif value is not None and value is not False:
            words += [name, str(value)]
    return words


def _absolute(words):
    """Flags with the paths that they name in full: tasks begin in folders of their own."""
    found, flag = [], None
    for word in words:
        name, is_joined, value = word.partition("=")
        if name in _PATHS and is_joined:
            word = f"{name}={os.path.abspath(value)}"
        elif flag in _PATHS and not word.startswith("--"):
            word = os.path.abspath(word)
        flag = word if word.startswith("--") else flag
        found.append(word)
    return found


def _split(words, wanted):
    return [word for word in words if word in wanted], [word for word in words if word not in wanted]


def _same_as_before(out, asked, force):
    """Refuses to go on with a run that was begun with other words; writes down those of a new one."""
    path = os.path.join(out, _ASKED)
    if _training.is_run(out) and not force:
        if not os.path.exists(path):
            raise Error(f"{out} holds a run that was not begun here; `python -m dtkc.ray resume {out}` goes on with it")
        before = json.loads(Path(path).read_bytes())
        if before != asked:
            raise Error(f"{out} holds a run that was begun with `{' '.join(before)}`, not with `{' '.join(asked)}`; ask for the same, or choose another folder")
        return
    if os.path.isdir(out) and not _training.is_run(out) and any(not name.startswith(".") for name in os.listdir(out)):
        raise Error(f"{out} holds other files and no run; choose a new or empty folder")
    os.makedirs(out, exist_ok=True)
    write(path, json.dumps(asked).encode())


def _train(runs, threads, gpus, progress):
    """Brings all runs to their ends, their parts at the same time; gives what came of each. One that fails does not stop the others."""
    ray = connect()
    check_threads(ray, threads)
    begun, done, failed = time.monotonic(), {}, {}
    tell = _Tell(runs, progress)
    pool = Pool(ray, _work, tell, gpus)
    for run in runs:
        pool.add(run.job("prepare", threads))
    try:
        with closing(pool.results()) as results:
            for job, (text, error) in results:
                run = job.about
                if error:
                    where = [run.name, job.arguments[3]]
                    failed[run.name] = ": ".join([*filter(None, where), error])
                if run.name in failed:
                    continue
                if job.arguments[0] == "finish":
                    done[run.name] = Fitted(run.folder, json.loads(text), time.monotonic() - begun)
                tell.done(job)
                for next_job in run.after(job, text, threads):
                    pool.add(next_job)
                tell.parts(job)
    except KeyboardInterrupt:
        raise _training.Stopped(runs[0].folder if len(runs) == 1 else os.path.dirname(os.path.dirname(runs[0].folder))) from None
    if failed:
        raise Error("; ".join(failed.values()))
    return [done[run.name] for run in runs]


def _work(threads, step, folder, words, _part):
    """What a task does: runs the program, and gives what it printed, or its sentence where it fails."""
    if step == "prepare":
        # Also where another task had made it and was lost before it could say so.
        if not words or (_training.is_run(folder) and "--force" not in words):
            return "", None
        words = [*words, "--prepare"]
    elif step == "finish":
        words = [*words, *(["--threads", str(max(1, int(threads)))] if "--threads" not in words else [])]
    elif step == "part":
        words = [*words, "--threads", str(max(1, int(threads)))]
    try:
        if step == "parts":
            return _programs.run("dtkc-train", words), None
        return _training.work(folder, words), None
    except _training.Killed as killed:
        raise Lost(str(killed)) from None
    except Error as error:
        return "", str(error)


class _Tell:
    """How far runs are, in a log: what ended, and now and then where every part is."""

    def __init__(self, runs, shown):
        self._runs, self._shown, self._told = runs, shown, time.monotonic()

    def note(self, text):
        if self._shown:
            print(text, file=sys.stderr, flush=True)

    def parts(self, job):
        run = job.about
        if job.arguments[0] == "parts" and run.left:
            self.note(f"{run.name or run.folder}: {len(run.left)} parts to do ({', '.join(sorted(run.left, key=_number))})")

    def done(self, job):
        run, step = job.about, job.arguments[0]
        if step == "part":
            self.note(f"{job.name} is done")
        elif step == "finish":
            self.note(f"{run.name or run.folder} is complete")

    def look(self):
        now = time.monotonic()
        if not self._shown or now - self._told < _TELL:
            return
        self._told = now
        for run in self._runs:
            for part in sorted(run.left, key=_number):
                line = _last_line(os.path.join(run.folder, "parts", part, "log.jsonl"))
                if line is not None:
                    stage = f"{line['stage']} " if line.get("stage") else ""
                    loss = f", loss {line['loss']:.4g}" if line.get("loss") is not None else ""
                    self.note(f"{run.name}{': ' if run.name else ''}{part}: {stage}epoch {line['epoch']}{loss}")


def _number(part):
    name, _, number = part.partition("-")
    return name, int(number or 0)


def _last_line(path):
    """The last whole line of a log."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 65_536))
            lines = file.read().split(b"\n")
        return json.loads(lines[-2]) if len(lines) > 1 else None
    except (OSError, ValueError):
        return None
