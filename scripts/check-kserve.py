"""KServe's own client against a running dtkc-serve: check-kserve.py URL MODEL [HOST:PORT of gRPC] [KEY]. Started by check-kserve.sh
and, with gRPC, by test-grpc.sh."""

import asyncio
import sys

import grpc
import httpx
import numpy as np
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig
from kserve.protocol.grpc import grpc_predict_v2_pb2 as messages
from kserve.protocol.grpc.grpc_predict_v2_pb2_grpc import GRPCInferenceServiceStub
from kserve.protocol.infer_type import RequestedOutput

url, model, grpc_address, key = (sys.argv[1:] + ["", "", ""])[:4]
HEADERS = {"x-api-key": key} if key else {}
METADATA = tuple(HEADERS.items())
NAMES = ("cluster", "probabilities", "embedding")


def request(images, binary_in=False, binary_out=None, names=NAMES, model=model):
    given = InferInput("image", list(images.shape), "UINT8")
    given.set_data_from_numpy(images, binary_data=binary_in)
    parameters = {} if binary_out is None else {"binary_data": binary_out}
    wanted = [RequestedOutput(name, parameters=dict(parameters)) for name in names]
    return InferRequest(model, [given], request_id="42", request_outputs=wanted)


def check(answer, images, widths):
    """What an answer must be; gives its outputs."""
    assert (answer.id, answer.model_name) == ("42", model), answer
    found = {name: answer.get_output_by_name(name).as_numpy() for name in NAMES}
    assert found["cluster"].shape == (len(images),) and found["cluster"].dtype == np.int64
    for name in NAMES[1:]:
        assert found[name].shape == (len(images), widths[name]) and found[name].dtype == np.float32
    np.testing.assert_allclose(found["probabilities"].sum(axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(found["probabilities"].argmax(axis=1), found["cluster"])
    return found


def same(one, other):
    for name in NAMES:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-6, atol=1e-7)


async def rest():
    client = InferenceRESTClient(RESTConfig(protocol="v2"))
    assert await client.is_server_live(url) is True
    assert await client.is_server_ready(url) is True
    assert await client.is_model_ready(url, model, headers=HEADERS) is True
    assert await client.is_model_ready(url, "no-such-model", headers=HEADERS) is False
    # The client has no call for metadata.
    described = httpx.get(f"{url}/v2/models/{model}", headers=HEADERS).json()
    (declared,) = described["inputs"]
    widths = {output["name"]: output["shape"][-1] for output in described["outputs"]}
    images = np.random.default_rng(1).integers(0, 256, (5, *declared["shape"][1:]), dtype=np.uint8)
    first = None
    for binary_in in (False, True):
        for binary_out in (None, False, True):
            answer = await client.infer(url, request(images, binary_in, binary_out), model_name=model, headers=dict(HEADERS))
            found = check(answer, images, widths)
            first = first or found
            same(found, first)
    for wrong, status in [
        (request(images[:, 1:]), 400),
        (request(images, names=("nothing",)), 400),
        (request(images, model="no-such-model"), 404),
    ]:
        try:
            await client.infer(url, wrong, model_name=wrong.model_name, headers=dict(HEADERS))
        except httpx.HTTPStatusError as error:
            assert error.response.status_code == status, error
            print("refused:", error)
        else:
            raise AssertionError("accepted")
    await client.close()
    print("KServe's REST client: all checks passed")
    return images, widths, first


async def over_grpc(address, images, widths, first):
    client = InferenceGRPCClient(url=address)
    assert await client.is_server_live() and await client.is_server_ready()
    assert await client.is_model_ready(model, headers=METADATA)
    assert not await client.is_model_ready("no-such-model", headers=METADATA)
    for binary in (False, True):
        same(check(await client.infer(request(images, binary), headers=METADATA), images, widths), first)
    try:
        await client.infer(request(images[:, 1:]), headers=METADATA)
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
        print("refused:", error.details())
    else:
        raise AssertionError("accepted")
    await client.close()
    async with grpc.aio.insecure_channel(address) as channel:
        stub = GRPCInferenceServiceStub(channel)
        described = await stub.ModelMetadata(messages.ModelMetadataRequest(name=model), metadata=METADATA)
        assert {output.name: output.shape[-1] for output in described.outputs} == widths, described
        assert (await stub.ServerMetadata(messages.ServerMetadataRequest(), metadata=METADATA)).name == "dtkc-serve"
        unloaded = await stub.RepositoryModelUnload(messages.RepositoryModelUnloadRequest(model_name=model), metadata=METADATA)
        assert unloaded.model_name == model, unloaded
        assert not (await stub.ModelReady(messages.ModelReadyRequest(name=model), metadata=METADATA)).ready
        loaded = await stub.RepositoryModelLoad(messages.RepositoryModelLoadRequest(model_name=model), metadata=METADATA)
        assert loaded.isLoaded, loaded
        assert (await stub.ModelReady(messages.ModelReadyRequest(name=model), metadata=METADATA)).ready
    print("KServe's gRPC client: all checks passed")


async def main():
    seen = await rest()
    if grpc_address:
        await over_grpc(grpc_address, *seen)


asyncio.run(main())
