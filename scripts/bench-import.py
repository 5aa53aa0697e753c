"""The Python half of bench-import.sh: makes the test files, runs both sides in turn and compares."""

import gzip
import os
import statistics
import struct
import subprocess
import sys
import time
import zlib

import h5py
import numpy as np

program, folder = sys.argv[1], sys.argv[2]
rounds = int(os.environ.get("ROUNDS", "5"))
pngs = int(os.environ.get("PNGS", "100000"))
# The job that dtkc-data is compared with, in a process of its own, as a user would run it.
JOB = """
import gzip, sys
import h5py, numpy as np
source, out = sys.argv[1], sys.argv[2]
def idx(path):
    data = gzip.open(path).read()
    axes = data[3]
    shape = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(axes)]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)
images = idx(source + "/train-images-idx3-ubyte.gz")
labels = idx(source + "/train-labels-idx1-ubyte.gz")
with h5py.File(out, "w") as file:
    file.attrs["dtkc_schema"] = 1
    file.create_dataset("images", data=images[..., None], chunks=(334, 28, 28, 1))
    file.create_dataset("labels", data=labels.astype(np.int64))
"""


def make_idx(target):
    """Glyphs in the format of MNIST, for machines without it."""
    os.makedirs(target, exist_ok=True)
    source = os.path.join(folder, "glyphs.h5")
    subprocess.run([program, "synth", "--count", "60000", "--quiet", "--force", "--out", source], check=True)
    with h5py.File(source) as file:
        images, labels = file["images"][:], file["labels"][:].astype(np.uint8)
    with gzip.open(f"{target}/train-images-idx3-ubyte.gz", "wb", 6) as out:
        out.write(b"\0\0\x08\x03" + struct.pack(">III", *images.shape[:3]) + images.tobytes())
    with gzip.open(f"{target}/train-labels-idx1-ubyte.gz", "wb", 6) as out:
        out.write(b"\0\0\x08\x01" + struct.pack(">I", len(labels)) + labels.tobytes())


def png(pixels):
    """A gray PNG, written by hand because Pillow is not needed for anything else."""
    height, width = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels], axis=1).tobytes()
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")


def make_pngs(target):
    """A folder of small PNG files in a hundred folders."""
    random = np.random.default_rng(0)
    for start in range(0, pngs, 1000):
        sub = f"{target}/{start // 1000:03d}"
        os.makedirs(sub, exist_ok=True)
        images = random.integers(0, 256, (min(1000, pngs - start), 28, 28), np.uint8) & 0xC0
        for i, image in enumerate(images):
            with open(f"{sub}/{start + i}.png", "wb") as out:
                out.write(png(image))


def seconds(command):
    started = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - started


def compare_idx():
    source = os.environ.get("MNIST") or os.path.join(folder, "idx")
    if not os.path.exists(f"{source}/train-images-idx3-ubyte.gz"):
        make_idx(source)
    ours = [program, "import", f"{source}/train-images-idx3-ubyte.gz", "--quiet", "--force", "--out", f"{folder}/ours.h5"]
    theirs = [sys.executable, "-c", JOB, source, f"{folder}/theirs.h5"]
    times = {"dtkc-data": [], "python": []}
    for _ in range(rounds):
        times["dtkc-data"].append(seconds(ours))
        times["python"].append(seconds(theirs))
    with h5py.File(f"{folder}/ours.h5") as a, h5py.File(f"{folder}/theirs.h5") as b:
        same = np.array_equal(a["images"][:], b["images"][:]) and np.array_equal(a["labels"][:], b["labels"][:])
    medians = {name: statistics.median(values) for name, values in times.items()}
    ratio = medians["python"] / medians["dtkc-data"]
    print(f"60000 images from IDX, median of {rounds}: dtkc-data {medians['dtkc-data']:.2f} s, "
          f"python with h5py {medians['python']:.2f} s: {ratio:.1f} times as fast, same content: {same}")
    return same and ratio >= 1.0


def measure_memory():
    source = os.path.join(folder, "pngs")
    if not os.path.exists(source):
        print(f"writing {pngs} PNG files ...", flush=True)
        make_pngs(source)
    command = [program, "import", source, "--labels-from-folders", "--quiet", "--force", "--out", f"{folder}/pngs.h5"]
    started, peak = time.perf_counter(), 0
    child = subprocess.Popen(command)
    # The high-water mark of the system itself; what wait() reports would include our own memory at the fork.
    while child.poll() is None:
        try:
            status = open(f"/proc/{child.pid}/status").read()
            peak = max(peak, int(status.split("VmHWM:")[1].split()[0]))
        except (OSError, IndexError):
            pass
        time.sleep(0.01)
    took = time.perf_counter() - started
    if child.returncode:
        sys.exit(1)
    with h5py.File(f"{folder}/pngs.h5") as file:
        count = len(file["images"])
    megabytes = peak * 1024 / 1e6
    print(f"{count} PNG files: {took:.1f} s ({count / took:.0f} images/s), peak {megabytes:.0f} MB of memory")
    return count == pngs and megabytes < 300


good = compare_idx()
if pngs:
    good = measure_memory() and good
sys.exit(0 if good else 1)
