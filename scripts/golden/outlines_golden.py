#!/usr/bin/env python3
"""Values for the test in crates/dtkc-methods/src/nearest/outlines.rs, by NumPy in double precision.

Use: python3 scripts/golden/outlines_golden.py
"""
import numpy as np

PARTS, DIRECTIONS, FLOOR = 8, 8, 0.1


def outlines(x):
    """x: [height, width, channels]."""
    x = (x - x.min()) / max(x.max() - x.min(), 1e-9)
    height, width, _ = x.shape
    p = np.pad(x, ((1, 1), (1, 1), (0, 0)), mode="edge")
    dx, dy = p[1:-1, 2:] - p[1:-1, :-2], p[2:, 1:-1] - p[:-2, 1:-1]
    strength = np.hypot(dx, dy)
    best = strength.argmax(2)[..., None]
    dx, dy, strength = (np.take_along_axis(t, best, 2)[..., 0] for t in (dx, dy, strength))
    turn = (np.arctan2(dy, dx) % np.pi) / np.pi * DIRECTIONS
    maps = np.zeros((height, width, DIRECTIONS))
    first, part = np.floor(turn).astype(int), turn - np.floor(turn)
    y, x = np.indices(turn.shape)
    np.add.at(maps, (y, x, first % DIRECTIONS), strength * (1 - part))
    np.add.at(maps, (y, x, (first + 1) % DIRECTIONS), strength * part)

    def weights(side):
        middles = (np.arange(PARTS) + 0.5) * side / PARTS
        return np.maximum(0, 1 - np.abs(np.arange(side)[None] + 0.5 - middles[:, None]) / (side / PARTS))

    cells = np.einsum("yxd,iy,jx->ijd", maps, weights(height), weights(width))
    energy = (cells**2).sum(2, keepdims=True)
    cells = np.sqrt(cells / np.sqrt(energy + FLOOR * energy.mean() + 1e-12))
    return (cells / max(np.linalg.norm(cells), 1e-9)).ravel()


def main():
    at = np.arange(16 * 12 * 2)
    found = outlines(((at * at * 7 + at * 13) % 251).astype(float).reshape(16, 12, 2))
    places = range(0, len(found), 37)
    print("    const GOLDEN: [(usize, f32); %d] = [" % len(places))
    for start in range(0, len(places), 4):
        print("        " + " ".join(f"({i}, {found[i]:.7})," for i in places[start : start + 4]))
    print("    ];")


if __name__ == "__main__":
    main()
