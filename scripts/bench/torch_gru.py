#!/usr/bin/env python3
"""The peer of scripts/bench-gru.sh: PyTorch's nn.GRU over packed sequences, forward and backward. One line of JSON.

Use: torch_gru.py BATCH LEAST LONGEST DIM UNITS LAYERS THREADS SECONDS
"""
import json
import sys
import time

import torch
from torch.nn.utils.rnn import pack_sequence


def median_times(gru, x, seconds):
    times = []
    begin = time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begin < seconds:
        gru.zero_grad(set_to_none=True)
        start = time.perf_counter()
        _, last = gru(x)
        forward = time.perf_counter() - start
        (last[-2:] ** 2).sum().backward()
        times.append((time.perf_counter() - start, forward))
    return sorted(times)[len(times) // 2]


def main():
    batch, least, longest, dim, units, layers, threads, seconds = map(int, sys.argv[1:9])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    lengths = [least + i * 7919 % batch * (longest - least) // max(batch - 1, 1) for i in range(batch)]
    gru = torch.nn.GRU(dim, units, num_layers=layers, bidirectional=True)
    x = [2 * torch.rand(length, dim) - 1 for length in lengths]
    packed, forward = median_times(gru, pack_sequence(x, enforce_sorted=False), seconds)
    # As if all were as long as the longest: what a padded batch costs without packing.
    padded, padded_forward = median_times(gru, 2 * torch.rand(max(lengths), batch, dim) - 1, seconds)
    print(json.dumps({
        "torch": torch.__version__, "steps": sum(lengths), "ms": packed * 1e3, "forward_ms": forward * 1e3,
        "padded_ms": padded * 1e3, "padded_forward_ms": padded_forward * 1e3,
    }))


if __name__ == "__main__":
    main()
