#!/usr/bin/env python3
"""Reference values for the statistics of dtkc-metrics, from NumPy and SciPy.

Needs NumPy and SciPy. Use, from the repository's root:

    python3 scripts/golden/statistics_golden.py

writes crates/dtkc-metrics/tests/statistics.json.
"""
import json
import pathlib

import numpy as np
from scipy import stats

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/dtkc-metrics/tests/statistics.json"


def sample(name, values):
    values = np.asarray(values, dtype=np.float64)
    intervals = []
    for level in [0.5, 0.9, 0.95, 0.999]:
        low, high = stats.t.interval(level, len(values) - 1, loc=values.mean(), scale=stats.sem(values))
        intervals.append({"level": level, "low": float(low), "high": float(high)})
    return {"name": name, "values": values.tolist(), "mean": float(values.mean()), "sd": float(values.std(ddof=1)),
            "intervals": intervals}


def pair(name, a, b):
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return {"name": name, "a": a.tolist(), "b": b.tolist(), "spearman": float(stats.spearmanr(a, b).statistic)}


def main():
    rng = np.random.default_rng(11)
    loss, acc = rng.normal(size=20), rng.random(20)
    samples = [
        sample("two", [0.1, 0.4]),
        sample("three", [0.912, 0.887, 0.954]),
        sample("twenty differences", rng.normal(0.01, 0.05, 20)),
        sample("two hundred", rng.normal(-3, 2, 200)),
        sample("far from zero", 1e6 + rng.random(12)),
    ]
    pairs = [
        pair("same order", [1, 2, 3, 4], [0.1, 0.2, 5, 9]),
        pair("reversed", [1, 2, 3, 4], [9, 5, 0.2, 0.1]),
        pair("independent", loss, acc),
        pair("falling with noise", loss, -loss + rng.normal(size=20)),
        pair("ties in one", [1, 1, 2, 3, 3, 3, 4], [0.3, 0.1, 0.5, 0.2, 0.9, 0.7, 0.8]),
        pair("ties in both", rng.integers(0, 4, 30), rng.integers(0, 3, 30)),
        pair("two", [0.3, 0.1], [5, 6]),
    ]
    degrees = [0.5, 1, 2, 3, 4, 9, 19, 30, 99, 1000, 1e5]
    chances = [1e-6, 0.01, 0.025, 0.4, 0.5, 0.75, 0.9, 0.975, 0.995, 0.9999]
    quantiles = [{"p": p, "df": df, "t": float(stats.t.ppf(p, df))} for df in degrees for p in chances]
    golden = {"samples": samples, "pairs": pairs, "quantiles": quantiles}
    OUT.write_text(json.dumps(golden, separators=(",", ":")) + "\n")
    print(OUT.name, OUT.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
