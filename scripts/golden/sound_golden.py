#!/usr/bin/env python3
"""Spectra and cepstral coefficients of a short sound, by NumPy and SciPy.

    python3 scripts/golden/sound_golden.py > crates/dtkc-formats/src/sequences/sound/golden.json
"""
import json

import numpy as np
from scipy.fft import dct
from scipy.signal import spectrogram

RATE, WINDOW, HOP, NFFT, BANDS, COEFFICIENTS = 8000, 200, 80, 256, 26, 13


def sound():
    """A rising tone, a low tone and some noise."""
    time = np.arange(480) / RATE
    noise = np.random.default_rng(1).normal(size=time.size)
    values = 0.5 * np.sin(2 * np.pi * (300 + 4000 * time) * time) + 0.2 * np.sin(2 * np.pi * 110 * time) + 0.02 * noise
    return np.round(values * 32768).astype(np.int16)


def mel_filters():
    """Triangles, evenly apart on the mel scale, by linear interpolation."""
    top = 2595 * np.log10(1 + RATE / 2 / 700)
    edges = 700 * (10 ** (np.linspace(0, top, BANDS + 2) / 2595) - 1)
    frequencies = np.linspace(0, RATE / 2, NFFT // 2 + 1)
    return np.stack([np.interp(frequencies, edges[i : i + 3], [0, 1, 0], 0, 0) for i in range(BANDS)])


samples = sound()
_, _, magnitudes = spectrogram(
    samples / 32768, RATE, "hann", WINDOW, WINDOW - HOP, NFFT, detrend=False, scaling="spectrum", mode="magnitude"
)
energies = mel_filters() @ magnitudes**2
mfcc = dct(np.log(np.maximum(energies, 1e-10)), type=2, norm="ortho", axis=0)[:COEFFICIENTS]
shortened = lambda table: [[float(f"{value:.9g}") for value in row] for row in table.T]
print(
    json.dumps(
        {"rate": RATE, "samples": samples.tolist(), "spectrogram": shortened(magnitudes), "mfcc": shortened(mfcc)}
    )
)
