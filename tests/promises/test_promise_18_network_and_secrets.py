"""Promise 18: no network unless a sink that needs it is switched on; its address reaches neither run folder nor log.

A child process trains with real sinks under an audit hook that writes down every use of a socket.
"""

import json
import logging
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from ludus.core.errors import ConfigError
from ludus.training.sinks import MonitoringConfig, make_sinks

TOKEN = "-".join(["nobody", "may", "read", "this"])
ON_THE_NETWORK = (
    "socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname",
    "socket.gethostbyaddr", "socket.getnameinfo", "urllib.Request", "http.client.connect", "ftplib.connect",
)  # fmt: skip

RUN = """
    import json, logging, socket, sys
    from pathlib import Path

    events = []

    def hook(event, arguments):
        if event == "socket.connect" and arguments[0].family == socket.AF_UNIX:
            return
        if event.startswith(("socket.", "urllib.", "http.client.", "ftplib.", "smtplib.")):
            events.append(event)

    sys.addaudithook(hook)
    logging.basicConfig(level=logging.DEBUG)

    from ludus.training import TrainConfig, train
    from ludus.training.callbacks import Counters, Evaluated, QuietCallback
    from ludus.training.sinks import MonitoringConfig, make_sinks

    folder, monitoring = Path(sys.argv[1]), MonitoringConfig.model_validate(json.loads(sys.argv[2]))
    config = TrainConfig.model_validate({
        "world": {"name": "duel", "num_games": 4}, "total_env_steps": 96, "opponents": "rock",
        "ppo": {"steps": 8, "batch_size": 16, "epochs": 1},
    })
    sinks = make_sinks(monitoring, folder, total_env_steps=96, title="duel", settings=config.to_json())

    class Eventful(QuietCallback):
        def on_iteration(self, iteration):
            for sink in sinks:
                sink.on_evaluation(Evaluated(iteration.counters, ({"opponent": "rock", "win_rate": 0.5},), 0.5, True))
                sink.on_message("alarm", "something to tell", iteration.counters)

    train(config, folder, [*sinks, Eventful()])
    (folder / "config.yaml").write_text(monitoring.model_dump_json())
    print(json.dumps(events))
"""


class Server(HTTPServer):
    """Counts who comes."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.visits = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def verify_request(self, request: Any, client_address: Any) -> bool:  # noqa: ARG002
        self.visits += 1
        return True


class Handler(BaseHTTPRequestHandler):
    """Takes what is posted."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def run(folder: Path, monitoring: dict[str, Any], address: str) -> tuple[list[str], str]:
    """Trains in a child; returns its audit events, and everything it printed or logged."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(RUN), str(folder), json.dumps(monitoring)],
        capture_output=True, text=True, timeout=120, check=False,
        env=os.environ | {"LUDUS_WEBHOOK": address, "OMP_NUM_THREADS": "1", "NO_PROXY": "127.0.0.1",
                          "WANDB_CACHE_DIR": str(folder.parent), "WANDB_CONFIG_DIR": str(folder.parent)},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    events: list[str] = json.loads(result.stdout.splitlines()[-1])
    return events, result.stdout + result.stderr


def assert_nowhere(folder: Path, printed: str) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 5
    for path in files:
        assert TOKEN.encode() not in path.read_bytes(), path
        assert TOKEN not in str(path)
    assert TOKEN not in printed


def test_the_usual_sinks_use_no_network(tmp_path: Path) -> None:
    events, printed = run(tmp_path / "run", {}, f"http://127.0.0.1:9/{TOKEN}")
    assert not [event for event in events if event in ON_THE_NETWORK]
    assert "[OK] evaluation at 32 steps" in printed
    assert (tmp_path / "run" / "training_curves.png").is_file()
    assert list((tmp_path / "run" / "tensorboard").iterdir())
    assert_nowhere(tmp_path / "run", printed)


def test_a_webhook_that_is_switched_on_is_seen_and_keeps_its_secret(tmp_path: Path, server: Server) -> None:
    events, printed = run(tmp_path / "run", {"webhook": {}}, f"{server.address}/{TOKEN}")
    assert "socket.connect" in events, "the hook sees what it is meant to see"
    assert server.visits == 8, "start, three times best, three alarms, end"
    assert "webhook message was lost" not in printed
    assert_nowhere(tmp_path / "run", printed)


def test_a_webhook_that_fails_keeps_its_secret_too(tmp_path: Path) -> None:
    _, printed = run(tmp_path / "run", {"webhook": {}}, f"http://127.0.0.1:9/{TOKEN}")
    assert printed.count("a webhook message was lost") == 1
    assert "[OK] duel finished at 96 of 96 steps" in printed
    assert_nowhere(tmp_path / "run", printed)


def test_wandb_offline_reaches_for_nothing_and_stores_no_key(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", (TOKEN * 2)[:40])
    for name in ("WANDB_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY"):  # its own process would come here
        monkeypatch.setenv(name, server.address)
    usual = {"console": "plain", "tensorboard": False, "curves": False}
    events, printed = run(tmp_path / "run", usual | {"wandb": {"mode": "offline"}}, "")
    assert not [event for event in events if event in ON_THE_NETWORK and event != "socket.bind"]
    assert server.visits == 0
    assert list((tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb"))
    assert "is switched off" not in printed
    assert_nowhere(tmp_path / "run", printed)


@pytest.mark.parametrize("value", [f"gopher://{TOKEN}", f"{TOKEN}", ""])
def test_a_secret_that_is_no_address_is_not_in_the_error(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("LUDUS_WEBHOOK", value)
    config = MonitoringConfig.model_validate({"webhook": {}, "console": "off", "curves": False, "tensorboard": False})
    with caplog.at_level(logging.DEBUG), pytest.raises(ConfigError, match="LUDUS_WEBHOOK") as refused:
        make_sinks(config, tmp_path, total_env_steps=1, title="duel")
    assert TOKEN not in str(refused.value) + repr(refused.value) + caplog.text
