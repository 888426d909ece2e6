"""What a raylet runs to start a worker: hands everything over to `worker_server.py`, which forks it."""

import json
import os
import socket
import sys

if __name__ == "__main__":
    order = {"arguments": sys.argv[1:], "environment": dict(os.environ), "folder": os.getcwd()}  # noqa: PTH109 - quick
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(os.environ["LUDUS_TEST_WORKER_SERVER"])
        socket.send_fds(server, [json.dumps(order).encode() + b"\n"], [1, 2])
