#!/usr/bin/env python3
"""One training step of DDC and DTKC in PyTorch on the CPU: what `dtkc-train bench` is compared with.

The network, the loss (preset `authors`: bandwidth 0.15 x median of the squared distances, L2 as a sum), the
gradients and Adam are those of dtkc-train. Two memory layouts are timed, because which of them is faster depends on
the machine, and for DTKC two ways to get the subspaces of the tensor kernel:

  chol   Cholesky factor of the small Gram matrix, no decomposition in the backward pass (what dtkc-train does)
  eigen  eigenvectors of the Gram matrix, as published

Prints one JSON object: {"threads": .., "steps": [{"name": .., "ms": ..}, ..]}. Needs a Python with torch:
  python3 -m venv V && V/bin/pip install torch && V/bin/python scripts/bench/torch_step.py --threads 2
"""
import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F

LAMBDA = 0.01
BANDWIDTH = 0.15
FILTERS = 32
HIDDEN = 100


class Network(nn.Module):
    """Two convolution blocks, a hidden layer with batch norm, a softmax; returns every block's output too."""

    def __init__(self, size, channels, clusters):
        super().__init__()
        self.blocks = nn.ModuleList()
        for kernel in (5, 3):
            self.blocks.append(nn.ModuleList([
                nn.Conv2d(channels, FILTERS, kernel), nn.Conv2d(FILTERS, FILTERS, kernel), nn.BatchNorm2d(FILTERS)]))
            channels, size = FILTERS, (size - 2 * (kernel - 1)) // 2
        self.hidden = nn.Linear(FILTERS * size * size, HIDDEN)
        self.hidden_norm = nn.BatchNorm1d(HIDDEN)
        self.output = nn.Linear(HIDDEN, clusters)

    def forward(self, x):
        outputs = []
        for first, second, norm in self.blocks:
            x = F.max_pool2d(F.relu(norm(second(F.relu(first(x))))), 2)
            outputs.append(x)
        embedding = self.hidden_norm(F.relu(self.hidden(x.flatten(1))))
        return outputs, embedding, F.softmax(self.output(embedding), dim=1)


def gaussian(distances):
    return torch.exp(distances / (-BANDWIDTH * distances.detach().flatten().median()))


def separation(a, kernel):
    """d_cs: mean over pairs of clusters of the normalised cross term of A^T K A."""
    clusters = a.shape[1]
    n = a.T @ kernel @ a
    own = n.diagonal()
    ratio = n / torch.sqrt(torch.outer(own, own) + 1e-6)
    return torch.triu(ratio, diagonal=1).sum() * (2 / (clusters * (clusters - 1)))


def orthonormal_chol(x):
    gram = torch.bmm(x, x.mT)
    ridge = 1e-5 * gram.diagonal(dim1=1, dim2=2).mean(dim=1) + 1e-6
    factor = torch.linalg.cholesky(gram + ridge.view(-1, 1, 1) * torch.eye(x.shape[1]))
    return torch.linalg.solve_triangular(factor, x, upper=False)


def orthonormal_eigen(x):
    values, vectors = torch.linalg.eigh(torch.bmm(x, x.mT))
    return torch.bmm(vectors.mT, x) / torch.sqrt(F.relu(values) + 1e-6).unsqueeze(2)


def subspace_distances(x, orthonormal):
    """||P_a - P_b||^2 between row spaces, by the cheaper of two products."""
    if x.shape[1] > x.shape[2]:
        x = x.mT
    n, rank, width = x.shape
    v = orthonormal(x)
    if rank * rank <= width:
        rows = v.reshape(n * rank, width)
        overlap = torch.square(rows @ rows.T).view(n, rank, n, rank).sum(dim=(1, 3))
    else:
        projectors = torch.bmm(v.mT, v).flatten(1)
        overlap = projectors @ projectors.T
    return F.relu(2 * (rank - overlap))


def companion(y, membership, orthonormal):
    unfoldings = (y.flatten(2), y.transpose(1, 2).flatten(2), y.permute(0, 3, 1, 2).flatten(2))
    distances = sum(subspace_distances(u, orthonormal) for u in unfoldings)
    return separation(membership, gaussian(distances))


def loss(output, orthonormal):
    blocks, z, u = output
    square = torch.square(z).sum(dim=1)
    kernel = gaussian(F.relu(square[:, None] + square[None, :] - 2 * (z @ z.T)))
    corners = torch.exp(2 * u - torch.square(u).sum(dim=1, keepdim=True) - 1)
    total = separation(u, kernel) + torch.triu(u @ u.T, diagonal=1).sum() + separation(corners, kernel)
    if orthonormal is not None:
        total = total + LAMBDA * sum(companion(y, u, orthonormal) for y in blocks)
    return total


def measure(options, orthonormal, layout):
    torch.manual_seed(0)
    network = Network(options.size, options.channels, options.clusters).to(memory_format=layout)
    images = torch.rand(options.batch, options.channels, options.size, options.size).to(memory_format=layout)
    adam = torch.optim.Adam(network.parameters(), lr=1e-3)
    times = []
    for _ in range(options.warmup + options.steps):
        begin = time.perf_counter()
        value = loss(network(images), orthonormal)
        adam.zero_grad()
        value.backward()
        adam.step()
        times.append(time.perf_counter() - begin)
    return 1000 * statistics.median(times[options.warmup:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    defaults = {"threads": 2, "batch": 120, "size": 28, "channels": 1, "clusters": 10, "steps": 15, "warmup": 3}
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--eigen", action="store_true", help="also time the published eigendecomposition (slow)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    plain, last = torch.contiguous_format, torch.channels_last
    cases = [("ddc", None, plain), ("ddc channels-last", None, last),
             ("dtkc chol", orthonormal_chol, plain), ("dtkc chol channels-last", orthonormal_chol, last)]
    if options.eigen:
        cases.append(("dtkc eigen", orthonormal_eigen, plain))
    steps = [{"name": name, "ms": measure(options, way, layout)} for name, way, layout in cases]
    print(json.dumps({"threads": torch.get_num_threads(), "torch": torch.__version__, "steps": steps}))


if __name__ == "__main__":
    main()
