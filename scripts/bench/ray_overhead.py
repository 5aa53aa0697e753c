"""Ray on one machine beside dtkc-label: the same shards, in one run, as ratios.

    python ray_overhead.py DATASET.h5 WORK [ROUNDS]

DATASET: gray images, at least 60,000. Needs an environment with the wheel of scripts/wheel.sh, pillow and Ray. Ray is started before the clock is; its workers are not.
"""

import io
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import ray
from PIL import Image

import dtkc
import dtkc.ray
from dtkc import _programs


def make(data, work):
    for shard in range(12):
        contents = []
        for image in data[shard * 5000 : (shard + 1) * 5000]:
            kept = io.BytesIO()
            Image.fromarray(image[:, :, 0]).save(kept, "PNG")
            contents.append(kept.getvalue())
        pq.write_table(pa.table({"image": pa.array(contents, pa.binary())}), work / f"s-{shard}.parquet", row_group_size=1000)


def main():
    work, rounds = Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 3
    work.mkdir(parents=True, exist_ok=True)
    make(dtkc.Dataset(sys.argv[1]), work)
    shards, out = str(work / "s-*.parquet"), work / "out"
    ray.init(log_to_driver=False, logging_level="ERROR", include_dashboard=False, num_cpus=os.cpu_count())
    label = [_programs.find("dtkc-label"), "--model", "mnist", "--input", shards, "--output", str(work / "labels.csv"), "--force", "--quiet"]
    for _ in range(rounds):
        begun = time.monotonic()
        subprocess.run(label, env=_programs.environment(), check=True, stdin=subprocess.DEVNULL)
        alone = time.monotonic() - begun
        shutil.rmtree(out, ignore_errors=True)
        begun = time.monotonic()
        dtkc.ray.label(shards, out, "mnist", progress=False)
        both = time.monotonic() - begun
        print(f"dtkc-label {alone:.1f} s, Ray {both:.1f} s: {both / alone:.2f} times as long", flush=True)


if __name__ == "__main__":
    main()
