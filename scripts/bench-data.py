"""The h5py half of scripts/bench-data.sh: the same random batches by fancy indexing."""

import json
import sys
import time

import h5py
import numpy as np


def main():
    path, indices, batch = sys.argv[1], np.fromfile(sys.argv[2], "<u8").astype(np.int64), int(sys.argv[3])
    total = checksum = 0
    with h5py.File(path, "r") as file:
        images = file["images"]
        start = time.perf_counter()
        for at in range(0, len(indices), batch):
            wanted = indices[at:at + batch]
            # h5py wants rising indices without repetitions, and the rows in the order that was asked for.
            unique, inverse = np.unique(wanted, return_inverse=True)
            pixels = images[unique][inverse]
            checksum += int(pixels.reshape(len(pixels), -1)[:, ::1009].sum(dtype=np.int64))
            total += pixels.size
        seconds = time.perf_counter() - start
    rate = total / 1e6 / seconds
    print(json.dumps({"what": "h5py", "seconds": seconds, "megabytes_per_second": rate, "checksum": checksum}))


main()
