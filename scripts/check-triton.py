"""The stock Triton client against a running dtkc-serve: check-triton.py HOST:PORT MODEL. Started by check-triton.sh."""

import json
import sys
import urllib.request

import numpy as np
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

address, model = sys.argv[1:]
client = triton.InferenceServerClient(address, concurrency=4)

assert client.is_server_live() and client.is_server_ready() and client.is_model_ready(model)
assert not client.is_model_ready("no-such-model")
assert client.is_model_ready(model, "1") and not client.is_model_ready(model, "2")
assert "binary_tensor_data" in client.get_server_metadata()["extensions"]
metadata = client.get_model_metadata(model)
(declared,) = metadata["inputs"]
assert (declared["name"], declared["datatype"]) == ("image", "UINT8"), declared
_, *size = declared["shape"]
widths = {output["name"]: output["shape"][1:] for output in metadata["outputs"]}
print("metadata:", declared, widths)

images = np.random.default_rng(1).integers(0, 256, (5, *size), dtype=np.uint8)


def infer(binary_in, binary_out, names=("cluster", "probabilities", "embedding"), **options):
    given = triton.InferInput("image", images.shape, "UINT8")
    given.set_data_from_numpy(images, binary_data=binary_in)
    wanted = None if names is None else [triton.InferRequestedOutput(name, binary_data=binary_out) for name in names]
    return client.infer(model, [given], outputs=wanted, request_id="42", **options)


first = infer(True, True)
assert first.get_response()["id"] == "42" and first.get_response()["model_name"] == model
clusters, probabilities = first.as_numpy("cluster"), first.as_numpy("probabilities")
assert clusters.shape == (5,) and clusters.dtype == np.int64
assert probabilities.shape == (5, *widths["probabilities"]) and probabilities.dtype == np.float32
assert first.as_numpy("embedding").shape == (5, *widths["embedding"])
np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
np.testing.assert_array_equal(probabilities.argmax(axis=1), clusters)

for binary_in in (True, False):
    for binary_out in (True, False):
        for packing in (None, "gzip", "deflate"):
            other = infer(binary_in, binary_out, request_compression_algorithm=packing, response_compression_algorithm=packing)
            for name in widths:
                np.testing.assert_allclose(other.as_numpy(name), first.as_numpy(name), rtol=1e-6, atol=1e-7)
default = infer(True, True, names=None)
np.testing.assert_array_equal(default.as_numpy("cluster"), clusters)
only = infer(True, True, names=("cluster",))
assert only.as_numpy("embedding") is None
versioned = infer(True, True, model_version="1")
np.testing.assert_array_equal(versioned.as_numpy("cluster"), clusters)
print("infer: JSON and binary, plain and compressed, agree")

requests = [client.async_infer(model, [wrapped]) for wrapped in [triton.InferInput("image", images.shape, "UINT8")] * 8
            if wrapped.set_data_from_numpy(images)]
for request in requests:
    np.testing.assert_array_equal(request.get_result().as_numpy("cluster"), clusters)
print("async_infer: 8 at once agree")


def refused(shape, datatype, data, **options):
    given = triton.InferInput("image", shape, datatype)
    given.set_data_from_numpy(data)
    try:
        client.infer(options.pop("model", model), [given], **options)
    except InferenceServerException as error:
        return str(error)
    raise AssertionError(f"{shape} {datatype} was accepted")


print("refused:", refused([1, *size[:-1], 9], "UINT8", np.zeros((1, *size[:-1], 9), np.uint8)))
print("refused:", refused([1, *size], "FP32", np.full((1, *size), np.nan, np.float32)))
print("refused:", refused([1, *size], "UINT8", images[:1], model="no-such-model"))
print("refused:", refused([1, *size], "UINT8", images[:1], outputs=[triton.InferRequestedOutput("nothing")]))

served = json.load(urllib.request.urlopen(f"http://{address}/v1/models/{model}"))
assert served["k"] == widths["probabilities"][0]
print("tritonclient: all checks passed")
