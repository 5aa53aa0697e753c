"""Precision and recall of `dtkc-label --duplicates` on copies of real images that it makes itself.

scripts/duplicates.sh [--half even|odd] [--coil coil.h5] [--svhn svhn.h5] [--plain mnist.h5 ..] [--model M] -- FLAGS

Photos come with scikit-image, scikit-learn and matplotlib: each as a whole and cut into tiles of 160 x 160. Images with
odd numbers are reported on; thresholds were chosen on the even ones (--half even). FLAGS go to dtkc-label.
"""

import argparse
import collections
import csv
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
from PIL import Image, ImageEnhance

SKIMAGE = """hubble_deep_field.jpg retina.jpg rocket.jpg coffee.png camera.png astronaut.png gravel.png brick.png
motorcycle_left.png page.png moon.png grass.png ihc.png chelsea.png coins.png""".split()


def photos(half):
    import matplotlib
    import skimage
    import sklearn

    places = [os.path.join(os.path.dirname(skimage.__file__), "data", name) for name in SKIMAGE]
    places += [os.path.join(os.path.dirname(sklearn.__file__), "datasets/images", n) for n in ("flower.jpg", "china.jpg")]
    places.append(os.path.join(os.path.dirname(matplotlib.__file__), "mpl-data/sample_data/grace_hopper.jpg"))
    for place in places[half::2]:
        image = Image.open(place).convert("RGB")
        name = os.path.splitext(os.path.basename(place))[0]
        yield name, image
        for y in range(0, image.height - 159, 160):
            for x in range(0, image.width - 159, 160):
                yield f"{name}-{x}-{y}", image.crop((x, y, x + 160, y + 160))


def rows(path, numbers):
    import h5py

    with h5py.File(path) as file:
        images = file["images"]
        for number in numbers:
            pixels = images[number]
            yield f"{number:06}", Image.fromarray(pixels if pixels.shape[2] == 3 else pixels[:, :, 0])


def objects(path):
    """Rows of COIL-100 by object and angle."""
    import h5py

    with h5py.File(path) as file:
        paths = [p.decode() for p in file["paths"][:]]
    found = collections.defaultdict(dict)
    for number, text in enumerate(paths):
        thing, angle = os.path.splitext(os.path.basename(text))[0].split("__")
        found[int(thing.removeprefix("obj"))][int(angle)] = number
    return found


def copies(image, rng):
    """Every kind of copy: name, image, quality (None for PNG)."""
    width, height = image.size

    def scaled(factor, how):
        return image.resize((max(1, round(width * factor)), max(1, round(height * factor))), how)

    def cut(left, top, right, bottom):
        return image.crop(
            (round(width * left), round(height * top), width - round(width * right), height - round(height * bottom))
        )

    yield "size 50 %", scaled(0.5, Image.LANCZOS), None
    yield "size 150 %", scaled(1.5, Image.BICUBIC), None
    for quality in (90, 60, 30):
        yield f"JPEG {quality}", image, quality
    for part in (2, 4, 6, 8):
        yield f"cut {part} % of each side", cut(*[part / 100] * 4), None
    yield "cut 2-8 % of each, unequal", cut(*rng.uniform(0.02, 0.08, 4)), None
    yield "cut 8 % of one side", cut(*(np.eye(4)[rng.integers(4)] * 0.08)), None
    for name, change in (("brightness", ImageEnhance.Brightness), ("contrast", ImageEnhance.Contrast)):
        yield f"{name} +20 %", change(image).enhance(1.2), None
        yield f"{name} -20 %", change(image).enhance(0.8), None
    both = ImageEnhance.Brightness(scaled(0.7, Image.BILINEAR)).enhance(rng.uniform(0.8, 1.2))
    part = rng.uniform(0.01, 0.04, 4)
    box = (both.width * part[0], both.height * part[1], both.width * (1 - part[2]), both.height * (1 - part[3]))
    yield "all at once (70 %, JPEG 50)", both.crop(tuple(round(v) for v in box)), 50


def write(image, path, quality):
    if quality is None:
        image.save(path + ".png")
    else:
        image.save(path + ".jpg", quality=quality)


def label(options, source, folder):
    """Groups as lists of paths, the one to keep first; and the rows of the table."""
    out = os.path.join(folder, "labels.csv")
    line = [options.program, "--model", options.model, "--input", source, "--output", out, "--duplicates", "--force", "-q"]
    started = time.time()
    subprocess.run(line + options.flags, check=True)
    with open(out + ".duplicates.csv", newline="") as file:
        table = list(csv.DictReader(file))
    groups = collections.OrderedDict()
    for row in table:
        groups.setdefault(row["group"], []).append(row)
    return list(groups.values()), time.time() - started


def measure(options, title, images):
    """One folder with originals and all copies."""
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "in")
        os.mkdir(source)
        kinds, count = [], 0
        for name, image in images:
            count += 1
            write(image, os.path.join(source, f"{name}@original"), None)
            kinds = []
            for kind, copy, quality in copies(image, rng):
                kinds.append(kind)
                write(copy, os.path.join(source, f"{name}@{len(kinds) - 1}"), quality)
        groups, seconds = label(options, source, folder)
    stem = lambda row: os.path.splitext(os.path.basename(row["path"]))[0].split("@")
    right = wrong = 0
    together = collections.Counter()
    for group in groups:
        kept = stem(group[0])[0]
        same = sum(stem(row)[0] == kept for row in group[1:])
        right, wrong = right + same, wrong + len(group) - 1 - same
        originals = {stem(row)[0] for row in group if stem(row)[1] == "original"}
        for row in group:
            name, kind = stem(row)
            if kind != "original" and name in originals:
                together[int(kind)] += 1
    print(f"\n{title}: {count} images, {count * len(kinds)} copies, {seconds:.0f} s")
    print(f"  precision {right / max(1, right + wrong):.4f} ({wrong} of {right + wrong} wrong)")
    print(f"  recall    {sum(together.values()) / (count * len(kinds)):.4f}, of each kind:")
    for number, kind in enumerate(kinds):
        print(f"    {kind:<28} {together[number] / count:.3f}")


def plain(options, path):
    """A set without copies: what is found in it?"""
    with tempfile.TemporaryDirectory() as folder:
        groups, seconds = label(options, path, folder)
    surplus = sum(len(group) - 1 for group in groups)
    largest = max([len(group) for group in groups], default=0)
    print(f"\n{path} without copies: {surplus} images in {len(groups)} groups, the largest of {largest}, {seconds:.0f} s")


def views(options, half):
    """All views of COIL's objects: which angles are taken for copies?"""
    found = objects(options.coil)
    things = sorted(found)[half::2]
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "in")
        os.mkdir(source)
        for thing in things:
            angles = sorted(found[thing])
            for angle, (_, image) in zip(angles, rows(options.coil, [found[thing][a] for a in angles])):
                image.save(os.path.join(source, f"{thing}@{angle}.png"))
        groups, seconds = label(options, source, folder)
    steps, others = collections.Counter(), 0
    for group in groups:
        stems = [os.path.splitext(os.path.basename(row["path"]))[0].split("@") for row in group]
        for thing, angle in stems[1:]:
            turn = abs(int(angle) - int(stems[0][1])) % 360
            if thing == stems[0][0]:
                steps[min(turn, 360 - turn)] += 1
            else:
                others += 1
    total = sum(len(found[thing]) for thing in things)
    print(f"\nCOIL-100, all views of {len(things)} objects: {total} images, {seconds:.0f} s")
    print(f"  taken for a copy of another view: {sum(steps.values())}; by angle: {dict(sorted(steps.items()))}")
    print(f"  taken for a copy of another object: {others}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("even", "odd"), default="odd")
    parser.add_argument("--coil")
    parser.add_argument("--svhn")
    parser.add_argument("--plain", nargs="*", default=[])
    parser.add_argument("--model", default="mnist")
    parser.add_argument("--program", default="dtkc-label")
    parser.add_argument("--no-photos", action="store_true")
    parser.add_argument("flags", nargs="*")
    options = parser.parse_args()
    half = int(options.half == "odd")
    if not options.no_photos:
        measure(options, "photos and tiles of photos", photos(half))
    if options.coil:
        found = objects(options.coil)
        numbers = [next(iter(found[thing].values())) for thing in sorted(found)[half::2]]
        measure(options, "COIL-100, a view of every object", rows(options.coil, numbers))
        views(options, half)
    if options.svhn:
        measure(options, "SVHN, 500 images", rows(options.svhn, range(half, 1000, 2)))
    for path in options.plain:
        plain(options, path)
    sys.stdout.flush()


main()
