"""Forks the worker processes of a Ray cluster; run as a program by `forked_workers`.

A worker of Ray spends four to five seconds of a core on imports, most of them torch's, and tests start and kill many.
This process imports them once. A raylet runs `worker_client.py` in the place of Ray's own start script, which hands
its arguments, environment and output over; a fork then runs Ray's worker program with them. It is a worker like any
other, except that the raylet is not its parent: Ray tells it the raylet's process id, by which it notices its end.
"""

import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ADDRESS = "LUDUS_TEST_WORKER_SERVER"  # environment variable with the path of the server's socket
CLIENT = Path(__file__).with_name("worker_client.py")
# Not Ray itself: it reads its environment, which is another one for each worker, when it is imported.
_IMPORTED = (
    *(
        "ludus.training.preflight",
        "ludus.scale.runs",
        "ludus.scale.league_workers",
        "ludus.scale.spread",
        "ludus.envs.tiny",
    ),
    *("fsspec", "jsonschema", "pandas", "requests", "yaml"),  # what Ray and Tune import
)
_OF_START_SCRIPT = ("--language", "--serialized-runtime-env-context")  # all others are the worker's
_MOST_BYTES = 1_000_000
_LIMIT_S = 120.0


@contextmanager
def forked_workers() -> Iterator[dict[str, str]]:
    """Run a server, and yield the arguments with which Ray's nodes start their workers by it."""
    with tempfile.TemporaryDirectory(prefix="ludus-workers-") as folder:
        os.environ[ADDRESS] = str(Path(folder) / "socket")
        server = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            yield {"setup_worker_path": str(CLIENT)}
        finally:
            server.communicate(timeout=_LIMIT_S)  # it ends with its standard input
            del os.environ[ADDRESS]


def warm_up() -> None:
    """Train for a moment, for what is imported and made at the first use; threads would not survive a fork."""
    import torch

    from ludus.training import TrainConfig, train

    torch.set_num_threads(1)
    world: dict[str, Any] = {"name": "duel", "num_envs": 2}
    rest = {"ppo": {"n_steps": 4, "batch_size": 8, "n_epochs": 1}, "opponents": {"self": 1}, "total_env_steps": 16}
    logs = {"monitoring": {"console": "off", "tensorboard": False}, "evaluation": {"matches": 2, "opponents": ["rock"]}}
    with tempfile.TemporaryDirectory() as folder:
        train(TrainConfig.model_validate({"world": world} | rest | logs), Path(folder) / "run")


def serve() -> None:
    """Fork a worker for every client until the standard input ends; returns in workers alone."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.environ[ADDRESS])
        server.listen()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for workers
        print("ready", flush=True)
        os.set_blocking(0, False)
        server.settimeout(0.2)
        while _is_wanted():
            try:
                client, _ = server.accept()
            except TimeoutError:
                continue
            with client:
                content, files, _, _ = socket.recv_fds(client, _MOST_BYTES, 2)
                while not content.endswith(b"\n"):
                    content += client.recv(_MOST_BYTES)
                if os.fork() == 0:
                    become(json.loads(content), files)
                    return
                for file in files:
                    os.close(file)
    os._exit(0)


def _is_wanted() -> bool:
    """Return whether the process that started this one still holds its standard input open."""
    try:
        return os.read(0, 1) != b""
    except BlockingIOError:
        return True


def become(order: dict[str, Any], files: list[int]) -> None:
    """Make this process a worker: its arguments, environment, folder, output and session."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for target, source in enumerate(files, start=1):
        os.dup2(source, target)
        os.close(source)
    sys.argv = [word for word in order["arguments"] if not word.startswith(_OF_START_SCRIPT)]


if __name__ == "__main__":
    for name in _IMPORTED:
        importlib.import_module(name)
    warm_up()
    gc.freeze()  # a collection in a worker would copy every page that it shares with this process
    serve()
    runpy.run_path(sys.argv[0], run_name="__main__")
