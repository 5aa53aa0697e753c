"""Labelling on many machines with Ray Data.

>>> dtkc.ray.label("/shared/images/*.parquet", "/shared/labels", "groups.onnx")

or ``python -m dtkc.ray /shared/images /shared/labels --model groups.onnx``. An existing cluster is found through ``RAY_ADDRESS``; without one Ray is
started on this machine. Inputs, outputs and their paths must be the same on all nodes.

One file of output for every shard, whole or not at all: a job that was killed is started again with the same command and goes on; so it also
survives what Ray does not.
"""

import argparse
import csv
import logging
import os
import sys
import time
from dataclasses import dataclass

from . import shards
from ._dtkc import Error
from ._model import Model

__all__ = ["Summary", "label"]

#: How often the shards that are left are handed out again after Ray has given up.
_ATTEMPTS = 5


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


class _Labeller:
    """What an actor is: a model that is loaded once, and shards that it labels one after the other."""

    def __init__(self, model, output, options, threads):
        self._model = Model(model, threads=threads)
        self._output, self._options = output, options

    def __call__(self, batch):
        results = {"name": [], "error": []}
        for path, name in zip(batch["path"], batch["name"]):
            shard, error = shards.Shard(str(path), str(name)), ""
            try:
                shards.label(shard, self._output, self._model, self._options)
            except Error as refused:
                # One shard that is damaged must not end a job of a thousand.
                error = str(refused)
            results["name"].append(shard.name)
            results["error"].append(error)
        return results


def label(input, output, model, *, column=None, keep_images=False, embedding=False, workers=None, threads=1, progress=True):
    """Labels every shard (Parquet, tar) that `input` names into `output`, one Parquet file each; gives a :class:`Summary`.

    `column` holds the images where a table does not say; `workers` is how many actors there are at the most (default: one for every CPU of the cluster), `threads`
    how many CPUs each takes. `output` also holds the model, and failures.csv lists the images that could not be labelled.
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
    ray = _ray()
    unreadable = {}

    def left_over():
        return [shard for shard in found if shard.name not in unreadable and shards.done(shard, output, model) is None]

    # Beside the outputs, which every node sees: what lies in Ray's own store is lost with a node.
    path = os.path.join(output, "model.onnx")
    model.save(path)
    show = _Progress(len(found), progress)
    for attempt in range(_ATTEMPTS):
        left = left_over()
        show.done(len(found) - len(left))
        if not left:
            break
        try:
            for row in _job(ray, left, path, output, options, workers, threads):
                if row["error"]:
                    unreadable[row["name"]] = row["error"]
                show.one()
        except ray.exceptions.RayError as error:
            # A node that is lost at the wrong moment ends Ray's job, not ours: what has its output stays done.
            show.note(f"Ray gave up ({_first_line(error)}); what is left is handed out again")
            time.sleep(min(2**attempt, 30))
    show.end()
    left = left_over()
    if left:
        raise Error(f"{len(left)} of {len(found)} shards are not labelled, {left[0].path} the first; run the same command again once the cluster is well")
    return unreadable


def _job(ray, left, model, output, options, workers, threads):
    """One pass over what is left. Shards are named to Ray as rows, not listed by it: a node that is lost while Ray lists files ends a job."""
    import ray.data as data

    context = data.DataContext.get_current()
    context.enable_progress_bars = False
    # A worker that dies takes its shard with it, which another one then has from the beginning.
    context.max_errored_blocks = -1
    rows = data.from_items([{"path": shard.path, "name": shard.name} for shard in left], override_num_blocks=len(left))
    cpus = int(ray.cluster_resources().get("CPU", 1))
    most = max(1, min(workers or max(1, cpus // threads), len(left)))
    labelled = rows.map_batches(
        _Labeller,
        fn_constructor_args=(model, output, options, threads),
        batch_size=1,
        compute=data.ActorPoolStrategy(min_size=1, max_size=most),
        num_cpus=threads,
    )
    yield from labelled.iter_rows()


def _ray():
    try:
        import ray
        import ray.data  # noqa: F401
    except ImportError as error:
        raise Error(f"Ray Data is not installed ({error}); pip install 'dtkc[ray]'") from error
    # Ray tells every step of its own; what it gives up for is told by us.
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    if not ray.is_initialized():
        ray.init(address=os.environ.get("RAY_ADDRESS") or None, log_to_driver=False, logging_level="ERROR")
    return ray


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


def _first_line(error):
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__


class _Progress:
    """Shards that are done, and how long the rest may take."""

    def __init__(self, total, shown):
        self._total, self._shown, self._begun = total, shown, time.monotonic()
        self._done, self._new, self._told = 0, 0, 0.0

    def done(self, count):
        self._done = count

    def one(self):
        self._done, self._new = self._done + 1, self._new + 1
        now = time.monotonic()
        if self._shown and (now - self._told > 2 or self._done == self._total):
            self._told = now
            left = (self._total - self._done) * (now - self._begun) / self._new
            self.note(f"{self._done} of {self._total} shards, about {left:.0f} s left")

    def note(self, text):
        if self._shown:
            print(text, file=sys.stderr, flush=True)

    def end(self):
        self._shown = False


def main(arguments=None):
    """``python -m dtkc.ray``"""
    parser = argparse.ArgumentParser(prog="python -m dtkc.ray", description="Labels shards of images on a Ray cluster, one Parquet file for each.")
    parser.add_argument("input", nargs="+", help="shards (.parquet, .tar, .tar.gz), folders of them, or patterns")
    parser.add_argument("output", help="folder for the tables")
    parser.add_argument("--model", required=True, help="model file, or the name of a bundled one")
    parser.add_argument("--column", help="the column that holds the images")
    parser.add_argument("--keep-images", action="store_true", help="keep the images in the tables")
    parser.add_argument("--embedding", action="store_true", help="add the embedding")
    parser.add_argument("--workers", type=int, help="actors at the most [default: one for every CPU]")
    parser.add_argument("--threads", type=int, default=1, help="CPUs of an actor")
    given = vars(parser.parse_args(arguments))
    try:
        summary = label(**given)
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(summary.table())
    rate = summary.tally.images / max(summary.seconds, 1e-9)
    print(f"\n{summary.tally.images:,} images of {summary.shards:,} shards in {summary.seconds:.0f} s ({rate:,.0f} per second) to {given['output']}")
    if summary.skipped:
        print(f"{summary.skipped:,} shards were done already")
    failed = summary.tally.failed + len(summary.unreadable)
    if failed:
        where = os.path.join(given["output"], "failures.csv")
        print(f"warning: {summary.tally.failed:,} images and {len(summary.unreadable):,} shards could not be labelled; listed in {where}", file=sys.stderr)
    return 0 if not failed else 3


if __name__ == "__main__":
    sys.exit(main())
