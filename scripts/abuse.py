"""The clients of scripts/abuse.sh. Standard library only."""

import argparse
import contextlib
import gzip
import io
import json
import socket
import struct
import sys
import threading
import time
import urllib.request
import zipfile
import zlib

KEY = "abuse-key"
# Every status that docs/service.md names; 0 stands for a connection that was closed without an answer.
DOCUMENTED = {0, 200, 400, 401, 403, 404, 405, 408, 412, 413, 415, 421, 422, 429, 431, 503, 504}


class Target:
    def __init__(self, address, process, model):
        host, port = address.rsplit(":", 1)
        self.host, self.port, self.process, self.model = host, int(port), process, model
        with urllib.request.urlopen(f"http://{address}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        self.bound = next(float(line.split()[1]) for line in lines if line.startswith("dtkc_memory_bound_bytes "))

    def connect(self, source=None, timeout=60):
        return socket.create_connection((self.host, self.port), timeout, (source, 0) if source else None)

    def memory(self, field="VmRSS"):
        for line in open(f"/proc/{self.process}/status"):
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
        return 0


def head(method, path, body=None, **headers):
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", f"x-api-key: {KEY}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if body is not None:
        lines.append(f"content-length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def status_of(connection):
    """The status of the next answer; 0 where the connection ends without one."""
    data = b""
    try:
        while b"\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                return 0
            data += piece
    except (ConnectionError, TimeoutError):
        return 0
    status = int(data.split(b" ")[1])
    return status if status != 100 else status_of(connection)


class Seen:
    """The answers to one kind of attack."""

    def __init__(self):
        self.counts = {}
        self.lock = threading.Lock()

    def note(self, status):
        with self.lock:
            self.counts[status] = self.counts.get(status, 0) + 1


def ask(target, seen, method, path, body=b"", source=None, **headers):
    try:
        with target.connect(source) as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(head(method, path, body, **headers) + body)
            seen.note(status_of(connection))
    except OSError:
        seen.note(0)


def together(count, work):
    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def silent(target, seen, count, seconds, sources, first):
    """Connections that send something and then nothing."""
    held = []
    for n in range(count):
        try:
            connection = target.connect(sources[n % len(sources)], 5)
            connection.sendall(first)
            held.append(connection)
        except OSError:
            seen.note(0)
    time.sleep(seconds)
    for connection in held:
        connection.settimeout(0.01)
        with contextlib.suppress(TimeoutError):
            seen.note(status_of(connection))
        connection.close()


def progressive_jpeg(side, scans):
    """A gray progressive JPEG of nothing: one DC scan, then empty AC scans that still go over every block."""
    blocks = (side // 8) ** 2

    def segment(marker, content):
        return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content

    out = b"\xff\xd8" + segment(0xDB, bytes([0]) + bytes([1] * 64))
    out += segment(0xC2, struct.pack(">BHHB", 8, side, side, 1) + bytes([1, 0x11, 0]))
    # One code of one bit each: DC difference 0; AC "end of band for 2^14 + 14 bits more blocks".
    out += segment(0xC4, bytes([0x00, 1] + [0] * 15 + [0x00])) + segment(0xC4, bytes([0x10, 1] + [0] * 15 + [0xE0]))
    out += segment(0xDA, bytes([1, 1, 0x00, 0, 0, 0])) + b"\x00" * (blocks // 8)
    runs, left = "", blocks
    while left > 0:
        run = min(left, (1 << 15) - 1)
        run = max(run, 1 << 14)
        runs += "0" + format(run - (1 << 14), "014b")
        left -= run
    runs += "1" * (-len(runs) % 8)
    band = bytes(int(runs[i : i + 8], 2) for i in range(0, len(runs), 8)).replace(b"\xff", b"\xff\x00")
    for n in range(scans):
        out += segment(0xDA, bytes([1, 1, 0x00, 1 + n % 63, 1 + n % 63, 0])) + band
    return out + b"\xff\xd9"


def png(side, chunks=b""):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = zlib.compress(b"".join(b"\x00" + b"\x40" * side for _ in range(side)))
    profile = chunk(b"iCCP", b"x\x00\x00" + chunks) if chunks else b""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + profile + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def zip_of(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return out.getvalue()


def zeros(count, unit=b"\x00"):
    """`count` times `unit`, compressed with zlib, without holding it."""
    packer, block = zlib.compressobj(9), unit * (1 << 20)
    return b"".join(packer.compress(block) for _ in range(count >> 20)) + packer.flush()


def attacks(target, seconds):
    many = [f"127.0.{n // 200}.{1 + n % 200}" for n in range(1, 2000)]
    assign = "/v1/assign"
    image = png(28)

    def spellings(seen):
        for path in ["/%761/models", "//v1/models", "/v1/./models", "/V1/models", "/v1%2fmodels", "/docs/../v1/models"]:
            with target.connect() as connection:
                connection.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
                seen.note(status_of(connection))

    def outputs(seen):
        wanted = [{"name": "embedding"}] * 20_000
        shape = [1000, 28, 28, 1]
        body = {"inputs": [{"name": "image", "shape": shape, "datatype": "UINT8", "data": [0] * 784_000}], "outputs": wanted}
        body = gzip.compress(json.dumps(body).encode())
        path = f"/v2/models/{target.model}/infer"
        ask(target, seen, "POST", path, body, content_type="application/json", content_encoding="gzip")

    def empty_strings(seen):
        body = gzip.compress(b'{"images": [' + b'"",' * 10_800_000 + b'""]}')
        together(6, lambda n: ask(target, seen, "POST", assign, body, content_type="application/json", content_encoding="gzip"))

    def deep_json(seen):
        body = gzip.compress(b'{"images": ' + b"[" * 30_000_000)
        together(4, lambda n: ask(target, seen, "POST", assign, body, content_type="application/json", content_encoding="gzip"))

    def scans(seen):
        jpeg = progressive_jpeg(8192, 100)
        body = zip_of([(f"{n}.jpg", jpeg) for n in range(64)])
        together(4, lambda n: ask(target, seen, "POST", assign, body, many[n], content_type="application/zip"))

    def profiles(seen):
        body = png(28, zeros(1 << 30))
        together(4, lambda n: ask(target, seen, "POST", assign, body, content_type="image/png"))

    def bombs(seen):
        body = zip_of([(f"{n}.png", b"\x00" * (31 << 20)) for n in range(64)])
        together(4, lambda n: ask(target, seen, "POST", assign, body, content_type="application/zip"))

    def many_parts(seen):
        part = b'--b\r\ncontent-disposition: form-data; name="i"; filename="x"\r\n\r\nx\r\n'
        body = part * 200_000 + b"--b--\r\n"
        together(4, lambda n: ask(target, seen, "POST", assign, body, content_type="multipart/form-data; boundary=b"))

    def chunked_silence(seen):
        first = head("POST", assign, content_type="image/png", transfer_encoding="chunked") + b"5\r\nhello\r\n"
        silent(target, seen, 4200, seconds, ["127.0.0.1"], first)

    def silence_from_everywhere(seen):
        first = head("POST", assign, content_type="image/png", transfer_encoding="chunked") + b"5\r\nhello\r\n"
        silent(target, seen, 4200, seconds, many, first)

    def half_heads(seen):
        silent(target, seen, 2000, seconds, many, b"GET /v1/models HTTP/1.1\r\nx-a: ")

    def readers(seen):
        body = zip_of([(f"{n}.png", image) for n in range(1000)])
        first = head("POST", assign + "?embedding=true", body, content_type="application/zip") + body
        silent(target, seen, 64, seconds, many, first)

    def garbage(seen):
        for first in [b"\x00" * 4096, b"\x16\x03\x01" * 99, b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 99_999, b"A" * 300_000]:
            with target.connect() as connection:
                with contextlib.suppress(ConnectionError):
                    connection.sendall(first + b"\r\n\r\n")
                seen.note(status_of(connection))

    def pipeline(seen):
        with target.connect() as connection, contextlib.suppress(OSError):
            connection.settimeout(5)
            connection.sendall(head("GET", "/v1/models", b"") * 20_000)
            seen.note(status_of(connection))

    def guesses(seen):
        for n in range(100):
            with target.connect("127.0.7.7") as connection:
                connection.sendall(f"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nx-api-key: {n}\r\n\r\n".encode())
                seen.note(status_of(connection))

    def strangers(seen):
        ask(target, seen, "POST", f"/v1/models/{target.model}/reload", origin="https://evil.example")
        with target.connect() as connection:
            connection.sendall(f"GET /v1/models HTTP/1.1\r\nhost: evil.example\r\nx-api-key: {KEY}\r\n\r\n".encode())
            seen.note(status_of(connection))

    def leavers(seen):
        body = zip_of([(f"{n}.png", image) for n in range(1000)])
        for n in range(200):
            with contextlib.suppress(OSError), target.connect(many[n]) as connection:
                connection.sendall(head("POST", assign, body, content_type="application/zip") + body)
        seen.note(0)

    return [
        spellings, outputs, empty_strings, deep_json, scans, profiles, bombs, many_parts, chunked_silence,
        silence_from_everywhere, half_heads, readers, garbage, pipeline, guesses, strangers, leavers,
    ]


class Probe(threading.Thread):
    """Asks for health from an address of its own, over a new connection each time."""

    def __init__(self, target):
        super().__init__(daemon=True)
        self.target, self.worst, self.failed, self.asked, self.ended = target, 0.0, 0, 0, False

    def run(self):
        while not self.ended:
            started = time.monotonic()
            try:
                with self.target.connect("127.9.9.9", 30) as connection:
                    connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: probe\r\nconnection: close\r\n\r\n")
                    good = status_of(connection) == 200
            except OSError:
                good = False
            self.asked += 1
            self.failed += not good
            self.worst = max(self.worst, time.monotonic() - started)
            time.sleep(0.2)

    def take(self):
        taken = self.worst, self.failed
        self.worst, self.failed = 0.0, 0
        return taken


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("process")
    parser.add_argument("model")
    parser.add_argument("--seconds", type=float, default=20)
    arguments = parser.parse_args()
    target = Target(arguments.address, arguments.process, arguments.model)
    probe = Probe(target)
    probe.start()
    held = True
    print(f"bound {target.bound / 2**20:.0f} MiB, at the start {target.memory() / 2**20:.0f} MiB")
    for attack in attacks(target, arguments.seconds):
        seen, started = Seen(), time.monotonic()
        attack(seen)
        time.sleep(0.3)
        (slowest, failed), memory = probe.take(), target.memory("VmHWM")
        wrong = set(seen.counts) - DOCUMENTED
        fine = not wrong and slowest <= 1.0 and failed == 0 and memory <= target.bound
        held &= fine
        answers = ", ".join(f"{count} x {status or 'closed'}" for status, count in sorted(seen.counts.items()))
        mark = "ok  " if fine else "FAIL"
        print(
            f"{mark} {attack.__name__:24} {time.monotonic() - started:5.1f} s, probe {slowest * 1000:4.0f} ms"
            f"{f' ({failed} failed)' if failed else ''}, highest {memory / 2**20:4.0f} MiB: {answers}",
            flush=True,
        )
    probe.ended = True
    seen = Seen()
    ask(target, seen, "POST", "/v1/assign", png(28), content_type="image/png")
    held &= seen.counts == {200: 1}
    print(f"afterwards an image is answered {seen.counts}, {target.memory() / 2**20:.0f} MiB; {probe.asked} probes")
    sys.exit(0 if held else 1)


main()
