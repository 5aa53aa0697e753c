"""Runs a model file over pixels that are in memory already: what scripts/bench-backbone.sh compares with.

    backbone_loop.py MODEL THREADS BATCH SECONDS

The model runs on batches of BATCH random images of its own size for about SECONDS, with THREADS threads. Prints images per
second and images per CPU second, without the time for imports and for loading the model.
"""

import os
import sys
import time

import numpy as np
import onnxruntime

model, threads, batch, seconds = sys.argv[1], *map(int, sys.argv[2:5])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
entry = session.get_inputs()[0]
if entry.type != "tensor(uint8)" or len(entry.shape) != 4:
    sys.exit(f"{model} takes no images: its input is {entry.type} {entry.shape}")
pixels = np.random.default_rng(0).integers(0, 256, (batch, *entry.shape[1:]), dtype=np.uint8)
outputs = ["cluster", "probabilities"]
session.run(outputs, {entry.name: pixels})


def used():
    times = os.times()
    return times.user + times.system


images, start, before = 0, time.perf_counter(), used()
while time.perf_counter() - start < seconds:
    session.run(outputs, {entry.name: pixels})
    images += batch
print(f"{images / (time.perf_counter() - start):.1f} {images / (used() - before):.1f}")
