"""A local S3 server for tests: moto's, on a free port of 127.0.0.1. It says where it is and ends with its input."""
import logging
import sys

from moto.server import ThreadedMotoServer

logging.disable(logging.CRITICAL)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
print(f"{host}:{port}", flush=True)
sys.stdin.read()
server.stop()
