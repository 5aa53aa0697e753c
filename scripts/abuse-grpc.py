"""Hostile gRPC clients against a running dtkc-serve: abuse-grpc.py URL HOST:PORT PID MODEL KEY. Started by test-grpc.sh.

Two hundred connections with sixteen calls each: answers that nobody reads, bodies in frames of one byte, bodies that never
end. Passes when health checks were answered within a second, memory stayed within the bound and all of it came back."""

import re
import socket
import struct
import sys
import threading
import time
import urllib.request

from h2.config import H2Configuration
from h2.connection import H2Connection

url, address, pid, model, key = sys.argv[1:]
host, port = address.rsplit(":", 1)
CONNECTIONS, CALLS, PATIENCE = 200, 16, 90


def metric(name):
    text = urllib.request.urlopen(f"{url}/metrics", timeout=30).read().decode()
    return float(re.search(rf"^{name} (\S+)$", text, re.MULTILINE).group(1))


def peak():
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1)) << 10


def number(value):
    """A number as protobuf writes it."""
    out = b""
    while value >= 128:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def field(tag, content):
    return number(tag << 3 | 2) + number(len(content)) + content


def framed(message):
    return b"\0" + struct.pack(">I", len(message)) + message


described = urllib.request.Request(f"{url}/v2/models/{model}", headers={"x-api-key": key})
size = [int(n) for n in re.search(rb'"shape":\[-1,([\d,]+)\]', urllib.request.urlopen(described).read()).group(1).split(b",")]
pixels = size[0] * size[1] * size[2]
shape = b"".join(number(n) for n in (20, *size))
tensor = field(1, b"image") + field(2, b"UINT8") + field(3, shape)
request = framed(field(1, model.encode()) + field(5, tensor) + field(7, bytes(20 * pixels)))
endless = b"\0" + struct.pack(">I", 1 << 24)


def head(*more):
    path = "/inference.GRPCInferenceService/ModelInfer"
    fixed = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost")]
    return [*fixed, ("content-type", "application/grpc"), ("te", "trailers"), ("x-api-key", key), *more]


def unread(h2, stream):
    h2.send_headers(stream, head(("x-long", "y" * 5000)))
    if h2.local_flow_control_window(stream) >= len(request):
        for start in range(0, len(request), 16384):
            h2.send_data(stream, request[start : start + 16384])
        h2.end_stream(stream)


def crumbs(h2, stream):
    h2.send_headers(stream, head())
    h2.send_data(stream, endless)
    for _ in range(200):
        h2.send_data(stream, b"x")


def never_ending(h2, stream):
    h2.send_headers(stream, head())
    h2.send_data(stream, endless)
    h2.send_data(stream, b"x" * min(h2.local_flow_control_window(stream), 4000))


def attack(kind):
    line = socket.create_connection((host, int(port)), timeout=20)
    h2 = H2Connection(H2Configuration(client_side=True, header_encoding=None))
    h2.initiate_connection()
    for _ in range(CALLS):
        kind(h2, h2.get_next_available_stream_id())
    line.sendall(h2.data_to_send())
    return line


slowest, over = 0.0, threading.Event()


def probe():
    global slowest
    while not over.is_set():
        started = time.monotonic()
        urllib.request.urlopen(f"{url}/healthz", timeout=30).read()
        slowest = max(slowest, time.monotonic() - started)
        over.wait(0.05)


probing = threading.Thread(target=probe)
probing.start()
try:
    held = [attack((unread, crumbs, never_ending)[n % 3]) for n in range(CONNECTIONS)]
    time.sleep(2)
    most = metric("dtkc_buffered_bytes")
    assert most > 0, "nothing was held: these are no attacks"
    until = time.monotonic() + PATIENCE
    while metric("dtkc_buffered_bytes") > 0:
        assert time.monotonic() < until, "memory was not given back"
        time.sleep(1)
finally:
    over.set()
    probing.join()
bound = metric("dtkc_memory_bound_bytes")
print(f"{len(held)} connections: {peak() >> 20} MiB of a bound of {bound / (1 << 20):.0f}, slowest health check {slowest * 1e3:.0f} ms")
assert peak() < bound and slowest < 1
