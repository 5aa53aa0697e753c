"""The wheel beside a loop of Python and beside dtkc-label, in one run, as ratios: scripts/bench-python.sh starts it.

    python python_assign.py DATASET.h5 WORK [ROUNDS]

The same images as a folder of PNG files, as one tar, as Parquet shards and as an array; model `mnist`; all threads. Each round runs every way once; the
ratio of each round is to that round's plain loop, and the median of the rounds is told.
"""

import io
import os
import statistics
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

import dtkc
from dtkc import _programs, arrow


def make(images, work):
    folder = work / "files"
    folder.mkdir(parents=True)
    pngs = []
    for place, image in enumerate(images):
        kept = io.BytesIO()
        Image.fromarray(image[:, :, 0]).save(kept, "PNG")
        pngs.append(kept.getvalue())
        (folder / f"{place:06}.png").write_bytes(pngs[-1])
    with tarfile.open(work / "all.tar", "w") as archive:
        for place, content in enumerate(pngs):
            entry = tarfile.TarInfo(f"{place:06}.png")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    each = -(-len(pngs) // 4)
    for shard in range(4):
        part = pngs[shard * each : (shard + 1) * each]
        structs = [{"bytes": content, "path": f"{shard * each + place:06}.png"} for place, content in enumerate(part)]
        pq.write_table(pa.table({"image": pa.array(structs)}), work / f"part-{shard}.parquet", row_group_size=1000)


def plain_loop(files, content):
    """What people write: Pillow, NumPy, onnxruntime; decoding in threads, batches of 256."""
    session = onnxruntime.InferenceSession(content)
    found = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for start in range(0, len(files), 256):
            pixels = list(pool.map(lambda file: np.asarray(Image.open(file).convert("L")), files[start : start + 256]))
            found.append(session.run(["cluster"], {"image": np.stack(pixels)[..., None]})[0])
    return np.concatenate(found)


def program(*inputs):
    out = inputs[0].parent / "labels.csv"
    command = [_programs.find("dtkc-label"), "--model", "mnist", "--output", out, "--quiet", "--force"]
    for path in inputs:
        command += ["--input", path]
    subprocess.run(list(map(str, command)), env=_programs.environment(), check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main():
    data, work = dtkc.Dataset(sys.argv[1]), Path(sys.argv[2])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    images = data[:20_000]
    if not (work / "all.tar").exists():
        make(images, work)
    files, model = sorted((work / "files").iterdir()), dtkc.Model("mnist")
    tables = sorted(work.glob("part-*.parquet"))
    plain = {"embedding": False, "probabilities": False}
    ways = {
        "a loop of Pillow and onnxruntime, files": lambda: plain_loop(files, model._inner.content()),
        "dtkc.Model.assign, files": lambda: model.assign(files, **plain),
        "dtkc.Model.assign, array": lambda: model.assign(images, **plain),
        "dtkc.arrow.label, Parquet": lambda: [arrow.label(batch, model) for table in tables for batch in pq.ParquetFile(table).iter_batches(1024)],
        "dtkc-label, folder": lambda: program(work / "files"),
        "dtkc-label, tar": lambda: program(work / "all.tar"),
        "dtkc-label, Parquet": lambda: program(*tables),
    }
    np.testing.assert_array_equal(ways["a loop of Pillow and onnxruntime, files"](), model.assign(files).cluster)
    took = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            begun = time.monotonic()
            way()
            took[name].append(time.monotonic() - begun)
    base = took["a loop of Pillow and onnxruntime, files"]
    print(f"{len(images):,} images, {rounds} rounds, {os.cpu_count()} cores")
    print("| way | images a second (median) | times as fast as the loop (median, least, most) |\n|---|---|---|")
    for name, times in took.items():
        ratios = [b / t for b, t in zip(base, times)]
        print(f"| {name} | {len(images) / statistics.median(times):,.0f} | {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |")


if __name__ == "__main__":
    main()
