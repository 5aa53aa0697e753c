"""Training: the program `dtkc-train`, watched.

It is a process of its own. It needs no lock of the interpreter, its memory is given back to the last byte, what kills it does not kill a notebook, and
what it computes is what the command line computes, to the bit.
"""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from . import _programs
from ._dtkc import Error

#: How often the log is looked at, in seconds.
_LOOK = 0.2


class Stopped(KeyboardInterrupt):
    """Training was stopped by Ctrl-C; what it had learnt is kept in `run`."""

    def __init__(self, run):
        super().__init__(f"training was stopped; `fit` with run_dir={str(run)!r} goes on where it was")
        self.run = run


class Killed(Error):
    """Somebody has killed the program; it has not failed by itself."""


def train(run, arguments, progress):
    """Trains in the folder `run`, or goes on there; gives the summary. Ctrl-C stops at a safe place and keeps the checkpoint."""
    watch = Watch(run, progress)
    try:
        return json.loads(work(run, [*arguments, "--json"], watch.look))
    finally:
        watch.end()


def work(run, arguments, look=lambda: None):
    """Runs dtkc-train for the folder `run` to its end and gives what it printed; `look` is called meanwhile."""
    command = [_programs.find("dtkc-train"), *map(str, arguments), "--stop-with-input"]
    # A session of its own: a Ctrl-C in the terminal reaches us alone, and we say once that it must stop. It also stops where we are no more,
    # because its standard input ends then.
    process = subprocess.Popen(
        command,
        env=_programs.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    printed, said = _Reader(process.stdout), _Reader(process.stderr)
    try:
        while process.poll() is None:
            look()
            time.sleep(_LOOK)
    except KeyboardInterrupt:
        process.stdin.close()
        _wait(process)
        raise Stopped(run) from None
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        if not process.stdin.closed:
            process.stdin.close()
    text, errors = printed.text(), said.text()
    if process.returncode < 0:
        raise Killed(f"dtkc-train was killed by signal {-process.returncode}, which the system does where memory runs out; what it had saved is kept in {run}")
    if process.returncode != 0:
        raise Error(_programs.last_sentence(errors) or f"dtkc-train ended with {process.returncode}")
    return text


def _wait(process):
    """Until the process has ended; a second Ctrl-C does not wait for it."""
    try:
        process.wait()
    except KeyboardInterrupt:
        process.kill()
        process.wait()


class _Reader:
    """Reads a pipe to its end, so that the process never waits for us."""

    def __init__(self, pipe):
        self._parts = []
        self._thread = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._thread.start()

    def _read(self, pipe):
        with pipe:
            for line in pipe:
                self._parts.append(line)
                # The last lines tell what went wrong; a log of days must not fill memory.
                if len(self._parts) > 10_000:
                    del self._parts[:5_000]

    def text(self):
        self._thread.join()
        return "".join(self._parts)


class Watch:
    """Follows log.jsonl of a run and shows how far it is."""

    def __init__(self, run, progress):
        self._log, self._config = Path(run) / "log.jsonl", Path(run) / "config.toml"
        self._progress = progress
        self._read, self._begun, self._seen = 0, time.monotonic(), 0
        self._total = None

    def look(self):
        if self._progress is None:
            return
        if self._total is None:
            self._total = self._epochs()
        try:
            with open(self._log, "rb") as log:
                log.seek(self._read)
                new = log.read()
        except OSError:
            return
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if record.get("stage") is None:
                self._seen += 1
            self._progress.show(self._sentence(record))

    def _epochs(self):
        import tomllib

        try:
            plan = tomllib.loads(self._config.read_text())["plan"]
            return plan["restarts"], plan["epochs"]
        except (OSError, ValueError, KeyError):
            return None

    def _sentence(self, record):
        restarts, epochs = self._total or (None, None)
        parts = [f"restart {record['restart'] + 1}" + (f"/{restarts}" if restarts else "")]
        stage = record.get("stage")
        parts.append((f"{stage} " if stage else "") + f"epoch {record['epoch']}" + (f"/{epochs}" if epochs and not stage else ""))
        if record.get("loss") is not None:
            parts.append(f"loss {record['loss']:.4g}")
        parts.append(f"{record['used_clusters']} clusters used")
        if restarts and self._seen:
            left = restarts * epochs - (record["restart"] * epochs + record["epoch"])
            seconds = left * (time.monotonic() - self._begun) / self._seen
            parts.append(f"at most {_duration(seconds)} left")
        return ", ".join(parts)

    def end(self):
        if self._progress is not None:
            self.look()
            self._progress.end()


def _duration(seconds):
    minutes = int(seconds) // 60
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {int(seconds) % 60} s"


def progress_of(verbose):
    """Where progress is shown: a notebook's cell, a terminal's line; nowhere in a log unless it is asked for."""
    if verbose is False or verbose == 0:
        return None
    if _notebook() is not None:
        return _Cell()
    if sys.stderr is not None and sys.stderr.isatty():
        return _Line()
    return _Lines() if verbose is True or (isinstance(verbose, int) and verbose > 0) else None


def _notebook():
    """The shell of a notebook, which has a kernel; nothing elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell if hasattr(shell, "kernel") else None


class _Cell:
    """A notebook: one line below the cell that is replaced."""

    def __init__(self):
        from IPython.display import display

        self._handle = display({"text/plain": "training begins"}, raw=True, display_id=True)

    def show(self, text):
        self._handle.update({"text/plain": text}, raw=True)

    def end(self):
        pass


class _Line:
    """A terminal: one line that is replaced."""

    def __init__(self):
        self._width = 0

    def show(self, text):
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def end(self):
        if self._width:
            sys.stderr.write("\n")
            self._width = 0


class _Lines:
    """A log: a line for every epoch."""

    def show(self, text):
        print(text, file=sys.stderr, flush=True)

    def end(self):
        pass


def is_run(folder):
    """Whether a folder holds a run that can go on."""
    return os.path.exists(os.path.join(folder, "config.toml"))
