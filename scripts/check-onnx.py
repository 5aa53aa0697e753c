#!/usr/bin/env python3
"""Checks a model file with ONNX's own tools.

    check-onnx.py MODEL [IMAGES EXPECTED]
    check-onnx.py MODEL [VALUES LENGTHS EXPECTED]

Runs onnx.checker with full checks and strict shape inference, and compares every shape that the file states. With
IMAGES (raw u8 pixels) and EXPECTED (raw f64: probabilities, embedding and, where the
model has that output, outlier of each image) the model is also run by
ONNX's reference implementation and must agree to 1e-5. With VALUES (raw f32: sequences one after the other), LENGTHS
(raw i64) and EXPECTED a model for sequences is run by ONNX Runtime, alone and in a batch that is filled up with zeros,
huge numbers and NaN: all must agree to 1e-5, and the batches with each other to the last bit. Exit code 0 good, 1 bad, 3 when
Python has no onnx package, or no onnxruntime.
"""

import sys

try:
    import numpy
    import onnx
    import onnx.reference
    import onnxruntime
except ImportError as missing:
    print(f"check-onnx.py: {missing} (scripts/setup.sh --tests installs it)", file=sys.stderr)
    sys.exit(3)


def check_structure(model):
    onnx.checker.check_model(model, full_check=True)
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    del bare.graph.value_info[:]
    inferred = onnx.shape_inference.infer_shapes(bare, check_type=True, strict_mode=True, data_prop=True)
    stated = {value.name: value.type for value in model.graph.value_info}
    # What ONNX cannot follow through a range of numbers gets a name of its own; ours is "time".
    for value in inferred.graph.value_info:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param.startswith("unk__"):
                dim.dim_param = "time"
    found = {value.name: value.type for value in inferred.graph.value_info}
    if stated != found:
        wrong = sorted(name for name in stated.keys() | found.keys() if stated.get(name) != found.get(name))
        raise ValueError("stated and inferred shapes differ: " + ", ".join(wrong))


def check_answers(model, images, expected):
    height, width, channels = (dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim[1:])
    pixels = numpy.fromfile(images, numpy.uint8).reshape(-1, height, width, channels)
    compare(*onnx.reference.ReferenceEvaluator(model).run(None, {"image": pixels}), expected=expected)


def compare(cluster, probabilities, *more, expected):
    wanted = numpy.fromfile(expected, numpy.float64).reshape(len(cluster), -1)
    answers = numpy.concatenate([probabilities] + [part.reshape(len(cluster), -1) for part in more], axis=1)
    difference = numpy.abs(answers - wanted).max()
    if not difference < 1e-5:
        raise ValueError(f"the answers differ from the expected ones by up to {difference}")
    if not (cluster == wanted[:, : probabilities.shape[1]].argmax(axis=1)).all():
        raise ValueError("the clusters differ from the expected ones")


def check_sequences(model, values, lengths, expected):
    lengths = numpy.fromfile(lengths, numpy.int64)
    steps = numpy.fromfile(values, numpy.float32).reshape(lengths.sum(), -1)
    sequences = numpy.split(steps, lengths.cumsum()[:-1])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    run = lambda batch, lengths: session.run(None, {"values": batch, "lengths": lengths})
    alone = [run(sequence[None], numpy.array([len(sequence)])) for sequence in sequences]
    alone = [numpy.concatenate(parts) for parts in zip(*alone)]
    compare(*alone, expected=expected)
    first = None
    for filler in (0, 1e30, numpy.nan, numpy.inf):
        for extra in (0, 5):
            batch = numpy.full((len(lengths), lengths.max() + extra, steps.shape[1]), filler, numpy.float32)
            for row, sequence in zip(batch, sequences):
                row[: len(sequence)] = sequence
            together = run(batch, lengths)
            first = first or together
            compare(*together, expected=expected)
            if not all(numpy.array_equal(a, b) for a, b in zip(first, together)):
                raise ValueError(f"{filler} and {extra} steps behind the sequences change the answers")


def main(arguments):
    if len(arguments) not in (1, 3, 4):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        model = onnx.load(arguments[0])
        check_structure(model)
        if len(arguments) == 3:
            check_answers(model, arguments[1], arguments[2])
        if len(arguments) == 4:
            check_sequences(model, *arguments[1:])
    except Exception as error:  # whatever a broken file provokes is a failed check
        print(f"check-onnx.py: {arguments[0]}: {error}", file=sys.stderr)
        return 1
    print(f"{arguments[0]}: good")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
