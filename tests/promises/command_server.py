"""Forks a `ludus` command, or a user's program, for every order; run as a program by the fixture `commands`.

It imports everything once and loads the kernels, so that a command is up in a fraction of a second. What it forks is a
real process with signals, an exit code and children of its own; only its interpreter is not taken down at the end.
Every worker of pytest-xdist connects to the same server, which forks a process that follows the orders of this worker.
"""

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

import torch

from ludus.cli.main import command_line, main
from ludus.training import TrainConfig, train

# What commands import when they run: forked processes have them already.
IMPORTED = (
    "encodings.unicode_escape",
    "html.entities",
    "importlib.readers",
    "importlib.resources.readers",
    "ludus.envs.check",
    "ludus.envs.replay",
    "ludus.evaluation.evaluate",
    "ludus.evaluation.live_match",
    "ludus.evaluation.trajectory",
    "ludus.reports.doctor",
    "ludus.reports.page",
    "ludus.reports.page.document",
    "ludus.training.loggers.console",
    "ludus.training.preflight",
    "ludus.training.preset_advice",
    "ludus.training.session",
    "ludus.training.summary",
    "rich.progress_bar",
    "rich.table",
    "typer._adapters",
    "typer._click.decorators",
)
PPO: dict[str, Any] = {"n_steps": 4, "sequence_length": 4, "batch_size": 8, "n_epochs": 1}


def warm_up() -> None:
    """Loads the kernels and libraries that the commands need; threads would not survive a fork."""
    torch.set_num_threads(1)
    command_line()  # which keeps what it builds
    with tempfile.TemporaryDirectory() as folder:
        for name, settings in (("brawl", {"threads": 1, "step_limit": 30}), ("duel", {})):
            world = {"name": name, "num_envs": 2, "settings": settings}
            rest = {"ppo": PPO, "opponents": "random", "evaluation": {"matches": 2}, "total_env_steps": 16}
            train(TrainConfig.model_validate({"world": world} | rest), Path(folder) / name)


def become(order: dict[str, Any]) -> None:
    """Makes this process a command: its arguments, environment, folder, output and process group."""
    os.setpgid(0, 0)
    os.chdir(order["folder"])
    os.environ.update(order["environment"])
    files = os.open(os.devnull, os.O_RDONLY), os.open(order["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for target, source in enumerate((files[0], files[1], files[1])):
        os.dup2(source, target)
    for file in files:
        os.close(file)
    given = order["arguments"]
    sys.argv = given if given[0].endswith(".py") else ["ludus", *given]


def accept(server: socket.socket) -> socket.socket | None:
    """Fork a process for every client; returns the connection there, and None here once the standard input ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for these processes
    while server in select.select([server, sys.stdin], [], [])[0]:
        connection, _ = server.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return connection
        connection.close()
    return None


def serve(connection: socket.socket) -> bool:
    """Follows orders until there are none; returns whether this process is a command now."""
    orders = connection.makefile("rb")

    def answer(number: int) -> None:
        connection.sendall(f"{number}\n".encode())

    answer(os.getpid())
    while line := orders.readline():
        order = json.loads(line)
        if "wait" in order:
            answer(os.waitstatus_to_exitcode(os.waitpid(order["wait"], 0)[1]))
            continue
        process = os.fork()
        if process == 0:
            orders.close()
            connection.close()
            become(order)
            return True
        answer(process)
    return False


def command() -> None:
    """Runs the command that this process has become, or the program of a user, and ends it."""
    code: object = 1
    try:
        if sys.argv[0].endswith(".py"):
            runpy.run_path(sys.argv[0], run_name="__main__")
        else:
            main()
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:  # as the interpreter would
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    warm_up()
    gc.freeze()  # a collection in a command would copy every page that it shares with this process
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(sys.argv[1])
        listener.listen()
        os.write(1, b"ready\n")
        client = accept(listener)
    if client is not None:
        with Path(os.devnull).open("r+b") as nothing:  # whoever started the server waits for the ends of its pipes
            os.dup2(nothing.fileno(), 0)
            os.dup2(nothing.fileno(), 1)
        if serve(client):
            command()
        os._exit(0)
