"""Tasks on a cluster of Ray, handed out so that nothing depends on what Ray remembers.

Plain tasks and no actors, and Ray repeats none of them by itself: whoever is lost with its worker or its node comes back here as an error and is handed
out again. So a cluster whose nodes have one CPU each goes on after a loss, too, where pools of actors wait for a place that is no more.
"""

import collections
import logging
import os
import socket
import sys
import time
from dataclasses import dataclass, field

from .._dtkc import Error

#: How often one task may be lost with its worker or node before that is called its own fault.
_LOSSES = 5
#: Seconds between two looks at what runs, and that tasks which are asked to stop are given.
_LOOK, _STOPPING = 1.0, 120.0


def connect():
    """Ray, connected to the cluster that RAY_ADDRESS names, or started on this machine."""
    try:
        import ray
    except ImportError as error:
        raise Error(f"Ray is not installed ({error}); pip install 'dtkc[ray]'") from error
    # Ray tells every step of its own; what is lost is told by us.
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    if not ray.is_initialized():
        address = os.environ.get("RAY_ADDRESS") or None
        try:
            _knock(address)
            ray.init(address=address, log_to_driver=False, logging_level="CRITICAL")
        except OSError as error:
            raise Error(f"there is no Ray cluster at RAY_ADDRESS={address} ({error}); start one (`ray start --head`), or unset the variable") from error
    return ray


def _knock(address):
    """Fails at once where nobody listens; Ray itself tries for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def cpus(ray):
    """The CPUs of every node that is alive."""
    return [int(node.get("Resources", {}).get("CPU", 0)) for node in ray.nodes() if node.get("Alive")]


def check_threads(ray, threads):
    """Refuses tasks that would wait for ever."""
    most = max(cpus(ray), default=0)
    if most == 0:
        raise Error("the cluster has no CPUs; start a node that has some")
    if threads is not None and not 1 <= threads <= most:
        raise Error(f"threads={threads}, but nodes have 1 to {most} CPUs; a task cannot have more than its node")


def fair_share(nodes, jobs):
    """The most CPUs with which so many jobs run at the same time; 1 where they are more than there are CPUs."""
    shares = range(max(nodes, default=1), 0, -1)
    return next((share for share in shares if sum(node // share for node in nodes) >= jobs), 1)


@dataclass
class Job:
    """Something to do: a function's arguments, and what it is called in a sentence."""

    name: str
    arguments: tuple
    #: Whatever whoever gave it wants to know when it is done.
    about: object = None
    #: CPUs that it takes; nothing for a fair share of the cluster's.
    cpus: int | None = None
    lost: int = field(default=0, compare=False)


class Lost(Exception):
    """A task was lost by no fault of its own; what a function raises to be handed out again."""


class Pool:
    """Runs jobs as tasks; more may be added while their results are looked at.

    >>> pool = Pool(ray, function, tell)
    >>> pool.add(Job("restart-0", (...)))
    >>> with closing(pool.results()) as results:
    ...     for job, result in results: ...

    The function is given the CPUs that its task has, and the job's arguments.
    """

    def __init__(self, ray, function, tell, gpus=0, most=None):
        self._ray, self._function, self._tell, self._gpus, self._most = ray, ray.remote(max_retries=0)(function), tell, gpus, most
        self._waiting, self._running = collections.deque(), {}

    def add(self, job):
        self._waiting.append(job)

    def __len__(self):
        return len(self._waiting) + len(self._running)

    def results(self):
        """Jobs with their results, in the order of their ends. Whoever stops listening stops all tasks at a safe place."""
        try:
            while self:
                self._hand_out()
                done, _ = self._ray.wait(list(self._running), num_returns=1, timeout=_LOOK)
                self._tell.look()
                for task in done:
                    job = self._running.pop(task)
                    found = self._result(job, task)
                    if found is not None:
                        yield job, found[0]
        finally:
            self._stop()

    def _hand_out(self):
        # More than run at a time, so that no node waits for us; few enough for a job of a million.
        nodes = cpus(self._ray) if self._waiting else []
        most = self._most or 2 * sum(nodes) + 4
        while self._waiting and len(self._running) < most:
            each = fair_share(nodes, len(self))
            job = self._waiting.popleft()
            task = self._function.options(num_cpus=job.cpus or each, num_gpus=self._gpus)
            self._running[task.remote(job.cpus or each, *job.arguments)] = job

    def _result(self, job, task):
        """The result in a tuple; nothing where the task was lost and is handed out again."""
        errors = self._ray.exceptions
        try:
            return (self._ray.get(task),)
        except errors.RayError as error:
            if isinstance(error, errors.RayTaskError) and not isinstance(error.cause, Lost):
                # The function itself failed, which would happen again.
                raise Error(f"{job.name}: {_first_line(error.cause or error)}") from error
            error = getattr(error, "cause", None) or error
            job.lost += 1
            if job.lost > _LOSSES:
                raise Error(f"{job.name} was lost {job.lost} times, the last time because {_first_line(error)}; see to the cluster (memory?) and run the same command again") from error
            self._tell.note(f"{job.name} was lost ({_first_line(error)}); it is handed out again")
            self._waiting.append(job)
            return None

    def _stop(self):
        """Asks what still runs to stop, and waits until it has: checkpoints are written then."""
        if not self._running:
            return
        running = list(self._running)
        self._running.clear()
        try:
            for task in running:
                self._ray.cancel(task, force=False)
            self._ray.wait(running, num_returns=len(running), timeout=_STOPPING)
        except Exception:  # noqa: BLE001 - a cluster that is gone needs no stopping
            return


def _first_line(error):
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    return lines[0][:200] if lines else type(error).__name__


class Progress:
    """Jobs that are done, and how long the rest may take."""

    def __init__(self, total, unit, shown):
        self._total, self._unit, self._shown, self._begun = total, unit, shown, time.monotonic()
        self._done, self._new, self._told = 0, 0, 0.0

    def done(self, count):
        self._done = count

    def one(self):
        self._done, self._new = self._done + 1, self._new + 1
        now = time.monotonic()
        if now - self._told > 2 or self._done == self._total:
            self._told = now
            left = (self._total - self._done) * (now - self._begun) / self._new
            self.note(f"{self._done} of {self._total} {self._unit}, about {left:.0f} s left")

    def look(self):
        pass

    def note(self, text):
        if self._shown:
            print(text, file=sys.stderr, flush=True)
