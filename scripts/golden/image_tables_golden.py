#!/usr/bin/env python3
"""Parquet files and tars of images as Hugging Face's datasets, pyarrow and webdataset write them, and what they hold.

Needs pyarrow, datasets, webdataset, pillow and numpy. Use, from the repository's root:

    python3 scripts/golden/image_tables_golden.py

writes the folder crates/dtkc-formats/tests/fixtures/tables.
"""
import hashlib
import io
import json
import pathlib

import datasets
import numpy
import pyarrow
import pyarrow.parquet
import webdataset
from PIL import Image

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/dtkc-formats/tests/fixtures/tables"
NAMES = ["cat", "dog", "eel"]
LABELS = [2, 0, 1, 0, -1, 2, 1]


def encoded(number, form="PNG"):
    """A small image that is like no other."""
    pixels = numpy.random.default_rng(number).integers(0, 256, (6, 5, 3), dtype=numpy.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, form)
    return out.getvalue()


def facts(images, labels, classes, names):
    """What a reader must find."""
    sums = [hashlib.sha256(image).hexdigest() if image is not None else None for image in images]
    return {"images": sums, "labels": labels, "classes": classes, "names": names}


def hugging_face(golden):
    """Two shards with embedded images; classes have names; one image has no path."""
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=NAMES)})
    images = [encoded(number) for number in range(len(LABELS))]
    paths = [f"photo-{number}.png" if number != 3 else None for number in range(len(LABELS))]
    rows = {"image": [{"bytes": i, "path": p} for i, p in zip(images, paths)], "label": LABELS}
    whole = datasets.Dataset.from_dict(rows, features=features)
    for shard, part in enumerate([range(4), range(4, 7)]):
        name = f"train-0000{shard}-of-00002.parquet"
        whole.select(part).to_parquet(OUT / name, batch_size=3)
        shown = [paths[row] or str(row - part[0]) for row in part]
        golden[name] = facts([images[row] for row in part], [LABELS[row] for row in part], NAMES, shown)


def plain(golden):
    """Plain columns of bytes, in every compression, versions of pages and with or without dictionaries."""
    images = [encoded(number, "JPEG" if number % 2 else "PNG") for number in range(5)]
    words = ["up", "down", None, "up", "sideways"]
    kinds = [("none", {}), ("snappy", {"data_page_version": "2.0"}), ("zstd", {}), ("zstd", {"data_page_version": "2.0"})]
    kinds += [("gzip", {}), ("gzip", {"data_page_version": "2.0"}), ("lz4", {"use_dictionary": False})]
    for number, (compression, options) in enumerate(kinds):
        name = f"plain-{number}-{compression}.parquet"
        table = pyarrow.table({"file_name": [f"scans/{i}.png" for i in range(5)], "jpg": images, "class": words})
        pyarrow.parquet.write_table(table, OUT / name, compression=compression, row_group_size=3, **options)
        labels = [-1 if word is None else ["down", "sideways", "up"].index(word) for word in words]
        golden[name] = facts(images, labels, ["down", "sideways", "up"], [f"scans/{i}.png" for i in range(5)])


def holes(golden):
    """Rows without an image: nothing at all, only a path, a struct that is null, bytes that are no image."""
    kind = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    rows = [{"bytes": encoded(1), "path": None}, {"bytes": None, "path": "/data/cats/1.png"}, None, {"bytes": None, "path": None}]
    rows += [{"bytes": b"", "path": "../../etc/passwd"}, {"bytes": encoded(2), "path": "a\x1b[31m/b.png"}]
    table = pyarrow.table({"picture": pyarrow.array(rows, kind), "label": pyarrow.array([5, 7, None, 5, 7, 5], pyarrow.uint8())})
    pyarrow.parquet.write_table(table, OUT / "holes.parquet", compression="zstd")
    names = ["0", "data/cats/1.png", "2", "3", "etc/passwd", "a\ufffd[31m/b.png"]
    images = [encoded(1), None, None, None, b"", encoded(2)]
    golden["holes.parquet"] = facts(images, [5, 7, -1, 5, 7, 5], None, names)


def web(golden):
    """A tar of samples; images with classes as numbers, as facts, and one without."""
    images = [encoded(number, "JPEG") for number in range(5)]
    with webdataset.TarWriter(str(OUT / "web.tar.gz"), compress=True, mtime=0) as writer:
        writer.write({"__key__": "a/000", "jpg": images[0], "cls": 4})
        writer.write({"__key__": "a/001", "jpg": images[1], "json": {"label": 7, "more": [1]}, "txt": "a caption"})
        writer.write({"__key__": "a/002", "jpg": images[2], "cls": 11, "json": {"label": 3}})
        writer.write({"__key__": "b/003", "left.jpg": images[3], "right.jpg": images[4], "cls": 4})
        writer.write({"__key__": "b/004", "png": encoded(9)})
    names = ["a/000.jpg", "a/001.jpg", "a/002.jpg", "b/003.left.jpg", "b/003.right.jpg", "b/004.png"]
    golden["web.tar.gz"] = facts(images + [encoded(9)], [4, 7, 11, 4, 4, -1], None, names)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    golden = {}
    for make in (hugging_face, plain, holes, web):
        make(golden)
    (OUT / "tables.json").write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
