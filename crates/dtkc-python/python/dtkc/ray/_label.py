"""Labelling on a cluster: shards as tasks, one file of output for each, whole or not at all."""

import csv
import os
import time
from contextlib import closing
from dataclasses import dataclass

from .. import shards
from .._dtkc import Error
from .._model import Model
from ._tasks import Job, Pool, Progress, check_threads, connect


@dataclass
class Summary:
    """What came of a job."""

    tally: shards.Tally
    #: Names of the clusters.
    names: list
    shards: int
    #: Those that were done before this call.
    skipped: int
    #: Shards that cannot be read at all, with the reason.
    unreadable: dict
    seconds: float

    def table(self):
        """As dtkc-label prints it."""
        lines = [f"{'cluster':>7}  {'name':<{self._width()}}  {'images':>9}   {'share':>6}  confidence"]
        whole = max(self.tally.images - self.tally.failed, 1)
        for place, name in enumerate(self.names):
            count = self.tally.counts[place] if place < len(self.tally.counts) else 0
            mean = f"{self.tally.confidence[place] / count:.3f}" if count else "-"
            lines.append(f"{place:>7}  {name:<{self._width()}}  {count:>9,}  {100 * count / whole:>5.1f} %  {mean:>10}")
        return "\n".join(lines)

    def _width(self):
        return max(4, *(len(name) for name in self.names))


def label(input, output, model, *, column=None, keep_images=False, embedding=False, workers=None, threads=1, progress=True):
    """Labels every shard (Parquet, tar) that `input` names into `output`, one Parquet file each; gives a :class:`Summary`.

    `column` holds the images where a table does not say; `workers` is how many shards are worked on at a time at the most (default: as many as the cluster has
    CPUs for), `threads` how many CPUs each takes. `output` also holds the model, and failures.csv lists the images that could not be labelled.
    """
    begun = time.monotonic()
    found = shards.find(input)
    output = os.path.abspath(os.fspath(output))
    options = shards.Options(column, keep_images, embedding)
    loaded = model if isinstance(model, Model) else Model(model)
    os.makedirs(output, exist_ok=True)
    skipped = sum(shards.done(shard, output, loaded) is not None for shard in found)
    unreadable = _hand_out(found, output, loaded, options, workers, threads, progress)
    tally = shards.Tally()
    for shard in found:
        if shard.name not in unreadable:
            tally.add(shards.done(shard, output, loaded))
    _failures(found, output, unreadable)
    return Summary(tally, loaded.names, len(found), skipped, unreadable, time.monotonic() - begun)


def _hand_out(found, output, model, options, workers, threads, progress):
    """Until every shard has its output or is known to be unreadable."""
    ray = connect()
    check_threads(ray, threads)
    # Beside the outputs, which every node sees: what lies in Ray's own store is lost with a node.
    path = os.path.join(output, "model.onnx")
    model.save(path)
    left = [shard for shard in found if shards.done(shard, output, model) is None]
    show = Progress(len(found), "shards", progress)
    show.done(len(found) - len(left))
    pool = Pool(ray, _work, show, most=workers)
    for shard in left:
        pool.add(Job(shard.path, (shard, output, path, model.fingerprint, options), shard, threads))
    unreadable = {}
    with closing(pool.results()) as results:
        for job, error in results:
            if error:
                unreadable[job.about.name] = error
            show.one()
    return unreadable


def _work(threads, shard, output, path, fingerprint, options):
    """What a task does: labels a shard. One that is damaged must not end a job of a thousand."""
    try:
        shards.label(shard, output, _loaded(path, fingerprint, threads), options)
    except Error as refused:
        return str(refused)
    return None


#: The model of this process. Ray gives a process one task after the other, so that it is loaded once.
_kept = {}


def _loaded(path, fingerprint, threads):
    key = (fingerprint, threads)
    if key not in _kept:
        _kept.clear()
        _kept[key] = Model(path, threads=threads)
    return _kept[key]


def _failures(found, output, unreadable):
    """A list of what could not be labelled, in the order of the shards."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    beside = os.path.join(output, "failures.csv.writing")
    with open(beside, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["shard", "row", "path", "error"])
        for shard in found:
            if shard.name in unreadable:
                rows.writerow([shard.name, "", "", unreadable[shard.name]])
                continue
            path = shards.output_of(shard, output)
            names = pq.read_schema(path).names
            table = pq.read_table(path, columns=["error", *(["path"] if "path" in names else [])])
            for row in pc.indices_nonzero(pc.is_valid(table["error"])).to_pylist():
                named = table["path"][row].as_py() if "path" in names else ""
                rows.writerow([shard.name, row, named, table["error"][row].as_py()])
    os.replace(beside, os.path.join(output, "failures.csv"))
