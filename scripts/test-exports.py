"""Loads what dtkc-label exported with the tools' own packages and compares every image with labels.csv: see test-exports.sh."""

import csv
import json
import os
import random
import struct
import sys
import urllib.parse

what, work = sys.argv[1], os.path.abspath(sys.argv[2])
UNSURE = "unsure"
NAMES = {0: 'cats & "dogs"', 1: "<b>ünïcode</b>", 2: "comma, semicolon; 'quote'", 3: "{{ x }} $y %s"}
ODD = ["x y.png", "a&b <c>.png", "ü#%?+=&d=1.png", "it's \"q\".png", "..dots...png", "$1 {x}.png", "😀.jpg"]


def close(a, b):
    """Single precision, as text in the table."""
    return struct.pack("f", float(a)) == struct.pack("f", float(b))


def rows():
    """The images that were labelled, by their names below the folder: label or None, confidence, size."""
    from PIL import Image

    found = {}
    with open(f"{work}/labels.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["error"]:
                continue
            # The table protects spreadsheets from what looks like a formula.
            label = row["cluster_name"].removeprefix("'") if row["cluster_name"][1:2] in "=+-@" else row["cluster_name"]
            with Image.open(row["path"]) as image:
                size = image.size[::-1] if image.getexif().get(0x112, 1) > 4 else image.size
            name = os.path.relpath(row["path"], f"{work}/photos")
            found[name] = (None if label == UNSURE else label, row["confidence"], size)
    unsure = sum(label is None for label, _, _ in found.values())
    assert len(found) > 250 and 0 < unsure < len(found) / 2, (len(found), unsure)
    return found


def make():
    from PIL import Image, ImageDraw

    random.seed(1)
    for place in range(300):
        name = ODD[place] if place < len(ODD) else f"{place:04}.{'jpg' if place % 3 else 'png'}"
        folder = f"{work}/photos/{['', 'a', 'b/c'][place % 3]}"
        os.makedirs(folder, exist_ok=True)
        image = Image.new("L", (28 + place % 9, 28 + place % 5), 0)
        draw = ImageDraw.Draw(image)
        for _ in range(1 + place % 4):
            draw.line([random.randrange(28) for _ in range(4)], fill=255, width=1 + place % 5)
        exif = Image.Exif()
        if name.endswith("jpg") and place % 2:
            exif[0x112] = 6
        image.save(f"{folder}/{name}", exif=exif)
    with open(f"{work}/photos/broken.png", "wb") as file:
        file.write(b"no image")
    with open(f"{work}/names.csv", "w", encoding="utf-8") as file:
        file.writelines(f"{cluster},{name}\n" for cluster, name in NAMES.items())
    os.makedirs(f"{work}/cvat", exist_ok=True)


def label_studio():
    from label_studio_sdk.label_interface import LabelInterface

    with open(f"{work}/tasks.config.xml", encoding="utf-8") as file:
        interface = LabelInterface(file.read())
    interface.validate()
    with open(f"{work}/tasks.json", encoding="utf-8") as file:
        tasks = json.load(file)
    expected = rows()
    assert len(tasks) == len(expected)
    for task in tasks:
        assert interface.validate_task({"data": task["data"]})
        # As the server reads the address: the path below the document root, which is / unless it is set.
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(task["data"]["image"]).query, strict_parsing=True)
        path = "/" + query["d"][0]
        assert os.path.isfile(path), path
        label, confidence, _ = expected.pop(os.path.relpath(path, f"{work}/photos"))
        assert bool(task["predictions"]) == (label is not None)
        for prediction in task["predictions"]:
            errors = interface.validate_prediction(prediction, return_errors=True)
            assert not errors, errors
            assert prediction["result"][0]["value"]["choices"] == [label] and close(prediction["score"], confidence)
    # The check can fail.
    prediction["result"][0]["value"]["choices"] = ["no such label"]
    assert interface.validate_prediction(prediction, return_errors=True)


def label_studio_service():
    """The service itself: a project with our interface, the folder as local storage, our tasks imported, every image shown."""
    import time

    import requests

    server = sys.argv[3]
    session = requests.Session()
    session.headers["Authorization"] = f"Token {os.environ['TOKEN']}"
    for _ in range(600):
        try:
            if session.get(f"{server}/health", timeout=5).ok:
                break
        except requests.ConnectionError:
            pass
        time.sleep(0.5)

    def post(path, **more):
        answer = session.post(f"{server}/api/{path}", **more)
        assert answer.status_code == 201, (path, answer.status_code, answer.text)
        return answer.json()

    with open(f"{work}/tasks.config.xml", encoding="utf-8") as file:
        project = post("projects", json={"title": "groups", "label_config": file.read()})["id"]
    post("storages/localfiles", json={"project": project, "path": f"{work}/photos", "use_blob_urls": True, "title": "photos"})
    expected = rows()
    with open(f"{work}/tasks.json", "rb") as file:
        counted = post(f"projects/{project}/import", files={"tasks.json": file})
    labelled = sum(label is not None for label, _, _ in expected.values())
    assert (counted["task_count"], counted["prediction_count"]) == (len(expected), labelled), counted
    tasks = session.get(f"{server}/api/tasks", params={"project": project, "page_size": 1000, "fields": "all"}).json()["tasks"]
    for task in tasks:
        name = os.path.relpath(task["data"]["path"], f"{work}/photos")
        label, confidence, _ = expected.pop(name)
        said = [(prediction["result"][0]["value"]["choices"], prediction["score"]) for prediction in task["predictions"]]
        assert [choices for choices, _ in said] == ([] if label is None else [[label]]), (name, said)
        assert all(close(score, confidence) for _, score in said), (name, said)
        shown = session.get(server + task["data"]["image"])
        with open(task["data"]["path"], "rb") as file:
            assert shown.status_code == 200 and shown.content == file.read(), (name, shown.status_code)
    assert not expected, list(expected)


def compare(dataset, attribute):
    """A dataset of Datumaro with the table."""
    labels = dataset.categories()[dataset_label()]
    expected = {os.path.splitext(name)[0]: row for name, row in rows().items()}
    for item in dataset:
        label, confidence, (width, height) = expected.pop(item.id)
        assert os.path.isfile(item.media.path) and item.media.size == (height, width), (item.id, item.media.size)
        said = [(labels[annotation.label].name, annotation.attributes[attribute]) for annotation in item.annotations]
        assert [name for name, _ in said] == ([] if label is None else [label]), (item.id, said)
        assert all(close(score, confidence) for _, score in said), (item.id, said, confidence)
    assert not expected, list(expected)


def dataset_label():
    from datumaro.components.annotation import AnnotationType

    return AnnotationType.label


def coco():
    import datumaro

    compare(datumaro.Dataset.import_from(f"{work}/coco", "coco_labels"), "score")


def cvat():
    import datumaro
    from cvat_sdk import models

    images = f"{work}/cvat/images"
    if not os.path.islink(images):
        os.symlink(f"{work}/photos", images)
    compare(datumaro.Dataset.import_from(f"{work}/cvat/annotations.xml", "cvat"), "confidence")
    # The labels are such as CVAT's own client sends when a task is made.
    with open(f"{work}/cvat/annotations.labels.json", encoding="utf-8") as file:
        for label in json.load(file):
            attributes = [
                models.AttributeRequest(**(attribute | {"input_type": models.InputTypeEnum(attribute["input_type"])}))
                for attribute in label.pop("attributes")
            ]
            models.PatchedLabelRequest(**label, attributes=attributes)


def fiftyone():
    import fiftyone as fo

    expected = rows()
    dataset = fo.Dataset.from_dir(
        dataset_type=fo.types.FiftyOneImageClassificationDataset,
        labels_path=f"{work}/fiftyone.json",
        label_field="cluster",
    )
    for sample in dataset:
        label, confidence, _ = expected.pop(os.path.relpath(sample.filepath, f"{work}/photos"))
        assert os.path.isfile(sample.filepath)
        said = sample["cluster"]
        assert (said and said.label) == label, (sample.filepath, said, label)
        assert said is None or close(said.confidence, confidence) and said["cluster"] >= 0
    assert not expected, list(expected)
    assert set(NAMES.values()) <= set(dataset.default_classes)
    dataset.delete()


globals()[what.replace("-", "_")]()
print(f"{what}: done")
