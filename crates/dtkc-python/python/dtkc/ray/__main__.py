"""``python -m dtkc.ray label|fit|resume|sweep|compare``"""

import argparse
import os
import sys

from .. import _training
from .._dtkc import Error
from . import _fit, _label

_EXAMPLES = """examples:
  python -m dtkc.ray label /shared/images /shared/labels --model groups.onnx
  python -m dtkc.ray fit /shared/photos.h5 /shared/run --clusters 10 --runs 20 --seed 1
  python -m dtkc.ray fit /shared/photos.h5 /shared/run --clusters auto --k-range 5..15
  python -m dtkc.ray sweep --data /shared/usps.h5 --vary loss.lambda=1,0.1,0 --runs 20 --out /shared/sweep
  python -m dtkc.ray compare --data /shared/usps.h5 --methods ddc kmeans --out /shared/table
  python -m dtkc.ray resume /shared/run

fit, sweep and compare take the flags of `dtkc-train fit`, `sweep` and `compare` beside those below. What was stopped or lost goes on with the same command.
A cluster is found through RAY_ADDRESS; without one Ray is started on this machine."""


def _arguments():
    parser = argparse.ArgumentParser(
        prog="python -m dtkc.ray",
        description="Labels shards of images, and trains, on a Ray cluster whose nodes share a file system.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    label = commands.add_parser("label", help="label shards, one Parquet file for each (the command where none is named)")
    label.add_argument("input", nargs="+", help="shards (.parquet, .tar, .tar.gz), folders of them, or patterns")
    label.add_argument("output", help="folder for the tables")
    label.add_argument("--model", required=True, help="model file, or the name of a bundled one")
    label.add_argument("--column", help="the column that holds the images")
    label.add_argument("--keep-images", action="store_true", help="keep the images in the tables")
    label.add_argument("--embedding", action="store_true", help="add the embedding")
    label.add_argument("--workers", type=int, help="shards at a time at the most [default: as many as there are CPUs for]")
    label.add_argument("--threads", type=int, default=1, help="CPUs of a task")
    fit = commands.add_parser("fit", help="train restarts, each a task (flags of dtkc-train fit follow)", allow_abbrev=False)
    fit.add_argument("data", help="dataset (HDF5, from dtkc-data)")
    fit.add_argument("out", help="run directory")
    resume = commands.add_parser("resume", help="go on with a run of `dtkc-train fit --no-prune`", allow_abbrev=False)
    resume.add_argument("run", help="run directory")
    cells = [commands.add_parser(name, help=f"dtkc-train {name}, every restart a task (its flags follow)", allow_abbrev=False) for name in ("sweep", "compare")]
    for command in (fit, resume, *cells):
        command.add_argument("--threads", type=int, help="CPUs of a task [default: the cluster's, shared out evenly]")
        command.add_argument("--gpus", type=float, default=0, help="GPUs of a task")
        command.add_argument("--quiet", action="store_true", help="no progress")
    return parser


def main(arguments=None):
    words = list(sys.argv[1:] if arguments is None else arguments)
    known = ("label", "fit", "resume", "sweep", "compare")
    # Before there were several commands, there was one without a name.
    if words and words[0] not in (*known, "-h", "--help"):
        words.insert(0, "label")
    parser = _arguments()
    given, rest = parser.parse_known_args(words)
    given = vars(given)
    command = given.pop("command")
    if rest and command in ("label", "resume"):
        parser.error(f"unknown: {' '.join(rest)}")
    try:
        return _label_all(given) if command == "label" else _train(command, given, rest)
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except _training.Stopped as stopped:
        print(f"stopped: what was done is saved in {stopped.run}; the same command goes on", file=sys.stderr)
        return 130
    except KeyboardInterrupt:
        print("stopped: the same command goes on", file=sys.stderr)
        return 130


def _train(command, given, words):
    options = {"threads": given["threads"], "gpus": given["gpus"], "progress": not given["quiet"]}
    if command in ("sweep", "compare"):
        print(_fit.cells_words(command, words, **options), end="")
        return 0
    fitted = _fit.resume(given["run"], **options) if command == "resume" else _fit.fit_words(given["data"], given["out"], words, **options)
    summary = fitted.summary
    best = next(restart for restart in summary["restarts"] if restart["restart"] == summary["best_restart"])
    scores = f", ACC {best['acc']:.3f}, NMI {best['nmi']:.3f}" if "acc" in best else ""
    print(f"{len(summary['restarts'])} restarts in {fitted.seconds:.0f} s; restart {best['restart']} is kept (loss {best['loss']:.4f}{scores}): {fitted.run}")
    for warning in summary.get("warnings", []):
        print(f"warning: {warning}", file=sys.stderr)
    return 0


def _label_all(given):
    summary = _label.label(**given)
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
