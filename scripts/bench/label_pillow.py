"""Labels a folder of images with Pillow and onnxruntime: what scripts/bench-label.sh compares with.

    label_pillow.py MODEL FOLDER OUT.csv THREADS [BATCH]

Written as one would: images are decoded on THREADS threads (Pillow lets go of the interpreter lock while it
decodes), while the main thread runs the model on batches with THREADS threads. Prints images per second, without
the time for imports and for loading the model.
"""

import collections
import csv
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


def main():
    model, folder, out = sys.argv[1:4]
    threads = int(sys.argv[4])
    batch = int(sys.argv[5]) if len(sys.argv) > 5 else 64
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    height, width, channels = session.get_inputs()[0].shape[1:]
    mode = "L" if channels == 1 else "RGB"

    start = time.perf_counter()
    paths = sorted(os.path.join(folder, name) for name in os.listdir(folder))
    chunks = [paths[i:i + batch] for i in range(0, len(paths), batch)]
    with ThreadPoolExecutor(threads) as pool, open(out, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "cluster", "confidence"])

        def submit(chunk):
            return chunk, [pool.submit(prepare, path, mode, (width, height)) for path in chunk]

        # A few batches ahead, so that decoding and the model overlap.
        waiting = collections.deque(submit(chunk) for chunk in chunks[:4])
        ahead = iter(chunks[4:])
        while waiting:
            chunk, futures = waiting.popleft()
            images = np.stack([future.result() for future in futures]).reshape(len(chunk), height, width, channels)
            for following in ahead:
                waiting.append(submit(following))
                break
            clusters, probabilities = session.run(["cluster", "probabilities"], {"image": images})
            for path, cluster, row in zip(chunk, clusters, probabilities):
                writer.writerow([path, int(cluster), float(row[cluster])])
    seconds = time.perf_counter() - start
    print(f"{len(paths) / seconds:.1f}")


main()
