"""Peak memory from Python over many images: flat, whatever their number?

    python python_memory.py WORK [COUNT]

Makes COUNT (a million) PNGs of 28x28 in Parquet shards of 50,000 below WORK, some 600 MB for a million, and labels a tenth of them and all of them in each way, each time in a new process,
which asks the system (Linux) for its peak memory. Ends with 1 where all of them take more than 1.2 times what a tenth takes. Needs the wheel of scripts/wheel.sh, pyarrow and
pillow. Other work on the machine changes no figure.
"""

import io
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import dtkc
from dtkc import _programs, arrow, shards

EACH = 50_000
BATCH = 4096


def make(work, count):
    """Drawn glyphs, of which there are 20,000, again and again."""
    from PIL import Image

    if len(list(work.glob("shard-*.parquet"))) * EACH >= count:
        return
    _programs.run("dtkc-data", ["synth", "--kind", "glyphs", "--count", 20_000, "--seed", 1, "--out", work / "glyphs.h5", "--quiet"])
    pngs = []
    for image in dtkc.Dataset(work / "glyphs.h5")[:]:
        kept = io.BytesIO()
        Image.fromarray(image[:, :, 0]).save(kept, "PNG")
        pngs.append(kept.getvalue())
    for shard in range(-(-count // EACH)):
        places = range(shard * EACH, min(count, (shard + 1) * EACH))
        table = pa.table({"id": [f"{place:07}" for place in places], "image": pa.array([pngs[place % len(pngs)] for place in places], pa.binary())})
        # Without dictionaries, which would keep few images of many.
        pq.write_table(table, work / f"shard-{shard:03}.parquet", row_group_size=5000, use_dictionary=["id"])


def batches(files):
    for file in files:
        yield from pq.ParquetFile(file.path).iter_batches(BATCH, columns=["image"])


def assign(model, files, _work):
    return sum(len(model.assign(batch.column("image"), embedding=False, probabilities=False)) for batch in batches(files))


def label_arrow(model, files, _work):
    return sum(found.num_rows for found in arrow.label_batches(batches(files), model))


def label_shards(model, files, work):
    out = work / f"out-{os.getpid()}"
    return sum(shards.label(file, out, model).images for file in files)


WAYS = {"dtkc.Model.assign, a batch of 4,096 at a time": assign, "dtkc.arrow.label, the same": label_arrow, "dtkc.shards.label": label_shards}


def one(way, work, count):
    files = shards.find(f"{work}/shard-*.parquet")[: -(-count // EACH)]
    assert WAYS[way](dtkc.Model("glyphs"), files, work) == count
    # Not what `wait4` tells of a child: that begins with the memory of its parent.
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    print(status["VmHWM"].split()[0])


def measured(way, work, count):
    done = subprocess.run([sys.executable, __file__, "--one", way, str(work), str(count)], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {way} ended with status {done.returncode}")
    return int(done.stdout) * 1024 / 1e6


def main():
    if sys.argv[1:2] == ["--one"]:
        return one(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
    work, count = Path(sys.argv[1]).absolute(), int((sys.argv[2:] or ["1000000"])[0])
    work.mkdir(parents=True, exist_ok=True)
    make(work, count)
    missed = False
    for way in WAYS:
        tenth, whole = (measured(way, work, number) for number in (count // 10, count))
        missed = missed or whole > 1.2 * tenth
        print(f"{way}: {tenth:.0f} MB for {count // 10:,} images, {whole:.0f} MB for {count:,}", flush=True)
        for folder in work.glob("out-*"):
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
