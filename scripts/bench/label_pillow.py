"""Labels a folder of images with Pillow and onnxruntime: what scripts/bench-label.sh compares with.

    label_pillow.py WAY MODEL FOLDER OUT.csv THREADS [BATCH]

WAY is `loop`, the usual script: read a batch of images one after the other, then run the model on it with THREADS
threads. Or `pool`, as good as it gets: images are decoded on THREADS threads (Pillow lets go of the interpreter lock
while it decodes), and meanwhile the model runs on the batch before, with THREADS threads, too. Prints images per
second and images per CPU second, without the time for imports and for loading the model.
"""

import collections
import csv
import functools
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnxruntime
from PIL import Image


def prepare(path, mode, size):
    with Image.open(path) as image:
        image = image.convert(mode)
        if image.size != size:
            image = image.resize(size, Image.Resampling.BILINEAR)
        return np.asarray(image)


def one_after_the_other(chunks, prepare_one):
    for chunk in chunks:
        yield chunk, [prepare_one(path) for path in chunk]


def ahead_on_threads(chunks, prepare_one, threads):
    with ThreadPoolExecutor(threads) as pool:
        waiting = collections.deque()
        for chunk in chunks:
            waiting.append((chunk, [pool.submit(prepare_one, path) for path in chunk]))
            if len(waiting) > 3:
                chunk, futures = waiting.popleft()
                yield chunk, [future.result() for future in futures]
        for chunk, futures in waiting:
            yield chunk, [future.result() for future in futures]


def main():
    way, model, folder, out = sys.argv[1:5]
    threads = int(sys.argv[5])
    batch = int(sys.argv[6]) if len(sys.argv) > 6 else 64
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    height, width, channels = session.get_inputs()[0].shape[1:]
    mode = "L" if channels == 1 else "RGB"

    start, used = time.perf_counter(), time.process_time()
    paths = sorted(os.path.join(folder, name) for name in os.listdir(folder))
    chunks = [paths[i:i + batch] for i in range(0, len(paths), batch)]
    prepare_one = functools.partial(prepare, mode=mode, size=(width, height))
    prepared = {"loop": one_after_the_other, "pool": functools.partial(ahead_on_threads, threads=threads)}[way]
    with open(out, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "cluster", "confidence"])
        for chunk, images in prepared(chunks, prepare_one):
            images = np.stack(images).reshape(len(chunk), height, width, channels)
            clusters, probabilities = session.run(["cluster", "probabilities"], {"image": images})
            for path, cluster, row in zip(chunk, clusters, probabilities):
                writer.writerow([path, int(cluster), float(row[cluster])])
    seconds, used = time.perf_counter() - start, time.process_time() - used
    print(f"{len(paths) / seconds:.0f} {len(paths) / used:.0f}")


main()
