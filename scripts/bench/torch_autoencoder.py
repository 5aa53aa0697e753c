#!/usr/bin/env python3
"""A training step of the 500-500-2000-10 autoencoder in PyTorch: forward, squared error, backward, Adam. Prints JSON."""
import argparse
import json
import statistics
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=256)
parser.add_argument("--pixels", type=int, default=784)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--steps", type=int, default=30)
args = parser.parse_args()
torch.set_num_threads(args.threads)
torch.manual_seed(0)

sizes = [args.pixels, 500, 500, 2000, 10]
layers = []
for ends in (sizes, sizes[::-1]):
    for i, (a, b) in enumerate(zip(ends, ends[1:])):
        layers.append(torch.nn.Linear(a, b))
        if i + 2 < len(ends):
            layers.append(torch.nn.ReLU())
network = torch.nn.Sequential(*layers)
optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
x = torch.rand(args.batch, args.pixels)

times = []
for step in range(5 + args.steps):
    start = time.perf_counter()
    optimizer.zero_grad()
    ((network(x) - x) ** 2).mean().backward()
    optimizer.step()
    if step >= 5:
        times.append(time.perf_counter() - start)
print(json.dumps({"torch": torch.__version__, "ms": statistics.median(times) * 1e3}))
