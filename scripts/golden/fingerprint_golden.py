"""Expected values for crates/dtkc-image/src/fingerprint: by Pillow, SciPy and the Python package imagehash.

python3 -m venv v && v/bin/pip install numpy scipy pillow imagehash && v/bin/python scripts/golden/fingerprint_golden.py
"""

import imagehash
import numpy as np
from PIL import Image
from scipy.fft import dct

CUTS = [(0, 0, 0, 0), (0.03,) * 4, (0.06,) * 4, (0.09,) * 4]
CUTS += [(0.06, 0, 0, 0), (0, 0.06, 0, 0), (0, 0, 0.06, 0), (0, 0, 0, 0.06)]
QUIET = 2.0


def picture(side, kind):
    """The same integers as `picture` in the Rust test."""
    y, x = np.mgrid[0:side, 0:side]
    return ((x * x * kind // 8 + y * y // (4 + kind) + 40 * ((x // 9 + y // 7) % 3)) % 256).astype(np.uint8)


def words(bits):
    """The lowest 8 x 8 first, row by row, then the rest; the first bit is the lowest of its word."""
    low = [bits[v, u] for v in range(16) for u in range(16) if v < 8 and u < 8]
    rest = [bits[v, u] for v in range(16) for u in range(16) if v >= 8 or u >= 8]
    flat = low + rest
    return [sum(int(b) << i for i, b in enumerate(flat[w : w + 64])) for w in range(0, 256, 64)]


def view(gray, cut):
    left, top, right, bottom = (64 * c for c in cut)
    # Floating point throughout: Pillow rounds pixels of other modes.
    part = Image.fromarray(gray.astype(np.float32), "F").resize(
        (32, 32), Image.BILINEAR, box=(left, top, 64 - right, 64 - bottom)
    )
    low = dct(dct(np.asarray(part, float), axis=0, norm="ortho"), axis=1, norm="ortho")[:16, :16]
    return low > np.median(low) + QUIET


def rust(hashes):
    return ",\n".join("    [" + ", ".join(f"0x{w:016x}" for w in h) + "]" for h in hashes)


for kind in (1, 2, 3):
    print(f"// views of picture(64, {kind})")
    print(rust(words(view(picture(64, kind), cut)) for cut in CUTS))
print("// imagehash.phash(picture(32, kind), hash_size=16, highfreq_factor=2)")
for kind in (1, 2, 3):
    hashed = imagehash.phash(Image.fromarray(picture(32, kind)), hash_size=16, highfreq_factor=2).hash
    print(rust([words(hashed)]))
