#!/usr/bin/env python3
"""Parquet files with lists, as pyarrow writes them (snappy, dictionaries, several row groups), and what they hold.

Needs pyarrow. Use, from the repository's root:

    python3 scripts/golden/parquet_golden.py

writes lists.parquet, nested.parquet and lists.json to crates/dtkc-formats/tests/fixtures.
"""
import json
import pathlib

import pyarrow
import pyarrow.parquet

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/dtkc-formats/tests/fixtures"
# 0.1 is no number of 32 bits: what comes back is the nearest one.
X = [[1.0, 2.0, 3.0], [0.1], [], [4.0, None], [5.0, 6.0, 7.0, 8.0], [1.0, 1.0]]
Y = [[10, 20, 30], [40], [], [50, 60], [70, 80, 90, 100], [2, 2]]
LABEL = ["up", "down", None, "up", "down", "up"]


def main():
    table = pyarrow.table({
        "id": [f"s{row}" for row in range(len(X))],
        "x": pyarrow.array(X, pyarrow.list_(pyarrow.float32())),
        "y": pyarrow.array(Y, pyarrow.large_list(pyarrow.int64())),
        "label": LABEL,
    })
    pyarrow.parquet.write_table(table, OUT / "lists.parquet", row_group_size=4)
    steps = [list(map(list, zip(x, y))) for x, y in zip(X, Y)]
    nested = pyarrow.table({"steps": pyarrow.array(steps, pyarrow.list_(pyarrow.list_(pyarrow.float64())))})
    pyarrow.parquet.write_table(nested, OUT / "nested.parquet", row_group_size=2, data_page_version="2.0", use_dictionary=False)
    (OUT / "lists.json").write_text(json.dumps({"steps": steps, "labels": LABEL}) + "\n")


if __name__ == "__main__":
    main()
