"""The stock Triton client against a running dtkc-serve: check-triton-grpc.py HOST:PORT MODEL KEY. Started by test-grpc.sh."""

import queue
import sys

import numpy as np
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

address, model, key = sys.argv[1:]
client = triton.InferenceServerClient(address)
keys = {"x-api-key": key}

assert client.is_server_live() and client.is_server_ready()
assert client.is_model_ready(model, headers=keys) and client.is_model_ready(model, "1", headers=keys)
assert not client.is_model_ready("no-such-model", headers=keys) and not client.is_model_ready(model, "2", headers=keys)
server = client.get_server_metadata(headers=keys)
assert server.name == "dtkc-serve" and list(server.extensions) == ["model_repository"], server
metadata = client.get_model_metadata(model, headers=keys)
(declared,) = metadata.inputs
assert (declared.name, declared.datatype) == ("image", "UINT8"), declared
_, *size = declared.shape
widths = {output.name: list(output.shape[1:]) for output in metadata.outputs}
print("metadata:", declared.name, size, widths)

images = np.random.default_rng(1).integers(0, 256, (5, *size), dtype=np.uint8)


def infer(images, names=("cluster", "probabilities", "embedding"), **options):
    given = triton.InferInput("image", images.shape, "UINT8")
    given.set_data_from_numpy(images)
    wanted = None if names is None else [triton.InferRequestedOutput(name) for name in names]
    return client.infer(model, [given], outputs=wanted, request_id="42", headers=options.pop("headers", keys), **options)


first = infer(images)
assert first.get_response().id == "42" and first.get_response().model_name == model
clusters, probabilities = first.as_numpy("cluster"), first.as_numpy("probabilities")
assert clusters.shape == (5,) and clusters.dtype == np.int64
assert probabilities.shape == (5, *widths["probabilities"]) and probabilities.dtype == np.float32
assert first.as_numpy("embedding").shape == (5, *widths["embedding"])
np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
np.testing.assert_array_equal(probabilities.argmax(axis=1), clusters)
default = infer(images, names=None, model_version="1", client_timeout=30)
np.testing.assert_array_equal(default.as_numpy("embedding"), first.as_numpy("embedding"))
only = infer(images, names=("cluster",), headers={"authorization": f"Bearer {key}"})
np.testing.assert_array_equal(only.as_numpy("cluster"), clusters)
assert only.as_numpy("embedding") is None
many = infer(np.tile(images, (200, 1, 1, 1)))
np.testing.assert_array_equal(many.as_numpy("cluster"), np.tile(clusters, 200))
print("infer: five and a thousand images agree")

done = queue.Queue()
for _ in range(40):
    given = triton.InferInput("image", images.shape, "UINT8")
    given.set_data_from_numpy(images)
    client.async_infer(model, [given], lambda result, error: done.put((result, error)), headers=keys)
for _ in range(40):
    result, error = done.get(timeout=60)
    assert error is None, error
    np.testing.assert_array_equal(result.as_numpy("cluster"), clusters)
print("async_infer: 40 at once agree")


def refused(status, images, **options):
    try:
        infer(images, **options)
    except InferenceServerException as error:
        assert error.status() == f"StatusCode.{status}", error
        print("refused:", error)
        return
    raise AssertionError(f"{images.shape} {options} was accepted")


refused("UNAUTHENTICATED", images, headers={})
refused("UNAUTHENTICATED", images, headers={"x-api-key": "guess"})
refused("INVALID_ARGUMENT", np.zeros((1, *size[:-1], 9), np.uint8))
refused("INVALID_ARGUMENT", images, names=("nothing",))
refused("NOT_FOUND", images, model_version="2")
refused("RESOURCE_EXHAUSTED", np.tile(images, (201, 1, 1, 1)))
# The client has learned that the server takes no compressed messages, and sends it plain.
np.testing.assert_array_equal(infer(images, compression_algorithm="gzip").as_numpy("cluster"), clusters)

assert [m.state for m in client.get_model_repository_index(headers=keys).models] == ["READY"]
client.unload_model(model, headers=keys)
assert not client.is_model_ready(model, headers=keys)
refused("UNAVAILABLE", images)
client.load_model(model, headers=keys)
np.testing.assert_array_equal(infer(images).as_numpy("cluster"), clusters)
print("tritonclient over gRPC: all checks passed")
