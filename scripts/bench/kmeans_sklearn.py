"""Lloyd's iterations of scikit-learn, for scripts/bench-kmeans.sh.

    kmeans_sklearn.py make POINTS CENTRES N WIDTH K     writes points and first centres (little-endian f32)
    kmeans_sklearn.py run POINTS CENTRES WIDTH N        runs N iterations on as many threads as OMP_NUM_THREADS says

The points lie along twenty random directions and have no clusters, so that the iterations do not end early.
"""
import json
import sys
import time

import numpy as np


def make(points, centres, n, width, k):
    random = np.random.default_rng(7)
    directions = random.standard_normal((20, width), dtype=np.float32) * 0.1
    values = 0.5 + random.standard_normal((n, 20), dtype=np.float32) @ directions
    values = np.clip(values + 0.1 * random.standard_normal((n, width), dtype=np.float32), 0, 1).astype("<f4")
    values.tofile(points)
    values[random.choice(n, k, replace=False)].tofile(centres)


def run(points, centres, width, iterations):
    from sklearn.cluster import KMeans

    values = np.fromfile(points, "<f4").reshape(-1, width)
    first = np.fromfile(centres, "<f4").reshape(-1, width)
    model = KMeans(len(first), init=first, n_init=1, max_iter=iterations, tol=0, algorithm="lloyd")
    begin = time.perf_counter()
    model.fit(values)
    seconds = time.perf_counter() - begin
    print(json.dumps({"seconds": seconds, "iterations": int(model.n_iter_), "inertia": float(model.inertia_)}))


if sys.argv[1] == "make":
    make(sys.argv[2], sys.argv[3], *map(int, sys.argv[4:7]))
else:
    run(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
