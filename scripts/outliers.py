#!/usr/bin/env python3
"""How well a model file tells images that are unlike those it was trained on. scripts/outliers.sh runs it.

The file is run by plain ONNX Runtime. Printed for every set of outliers: the area under the ROC curve against the normal images
(the chance that an outlier has a higher value than a normal image, ties half), and the shares of both above the threshold.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

import h5py
import numpy
import onnxruntime


def values(model, path):
    """The output `outlier` for all images of a dataset, and the threshold."""
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    threshold = json.loads(session.get_modelmeta().custom_metadata_map["dtkc.outlier"])["threshold"]
    with h5py.File(path) as file:
        images = file["images"]
        runs = [session.run(["outlier"], {"image": images[at : at + 500]})[0] for at in range(0, len(images), 500)]
    return numpy.concatenate(runs), numpy.float32(threshold)


def area(normal, outliers):
    """Of all pairs, those in which the outlier is farther; ties count half."""
    normal = numpy.sort(normal)
    below, upto = (numpy.searchsorted(normal, outliers, side=side) for side in ("left", "right"))
    return (below + upto).mean() / (2 * len(normal))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--model", default="models/mnist.onnx")
    parser.add_argument("--train", required=True)
    parser.add_argument("--normal", required=True)
    parser.add_argument("--outliers", nargs="+", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "model.onnx"
        subprocess.run([arguments.program, "outliers", arguments.model, "--data", arguments.train, "--out", model], check=True)
        normal, threshold = values(model, arguments.normal)
        print(f"{arguments.normal}: {(normal > threshold).mean():.4f} of {len(normal)} above the threshold {threshold}")
        for path in arguments.outliers:
            found, _ = values(model, path)
            print(f"{path}: AUROC {area(normal, found):.4f}, {(found > threshold).mean():.4f} of {len(found)} above the threshold")


main()
