"""Promise 18: no network unless a logger that needs it is switched on; its address reaches neither run folder nor log.

A child process trains with real loggers under an audit hook that writes down every use of a socket.
"""

import json
import logging
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from ludus.core.errors import ConfigError
from ludus.training.loggers import MonitoringConfig, make_loggers

pytestmark = pytest.mark.fault

TOKEN = "-".join(["nobody", "may", "read", "this"])
ON_THE_NETWORK = (
    "socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname",
    "socket.gethostbyaddr", "socket.getnameinfo", "urllib.Request", "http.client.connect", "ftplib.connect",
)  # fmt: skip

RUN = """
    import json, logging, os, socket, sys
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
    from ludus.training.callbacks import Counters, Evaluated, BaseCallback
    from ludus.training.loggers import MonitoringConfig, curves, make_loggers, tensorboard  # once for all runs

    def run(folder, monitoring):
        config = TrainConfig.model_validate({
            "world": {"name": "duel", "num_envs": 4}, "total_env_steps": 96, "opponents": "rock",
            "ppo": {"n_steps": 8, "batch_size": 16, "n_epochs": 1},
        })
        loggers = make_loggers(monitoring, folder, total_env_steps=96, title="duel", settings=config.to_json())

        class Eventful(BaseCallback):
            def on_iteration(self, iteration):
                row = {"opponent": "rock", "win_rate": 0.5}
                for logger in loggers:
                    logger.on_evaluation(Evaluated(iteration.counters, (row,), 0.5, True))
                    logger.on_message("alarm", "something to tell", iteration.counters)

        train(config, folder, [*loggers, Eventful()])
        (folder / "config.yaml").write_text(monitoring.model_dump_json())
        print(json.dumps(events))

    for line in sys.stdin:
        order = json.loads(line)
        if child := os.fork():
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
            continue
        os.dup2(os.open(order["output"], os.O_WRONLY | os.O_CREAT, 0o600), 1)
        os.dup2(1, 2)
        os.environ.clear()
        os.environ.update(order["environment"])
        run(Path(order["folder"]), MonitoringConfig.model_validate(order["monitoring"]))
        break
"""


class Server(HTTPServer):
    """Record what is asked for; a connection without a request is none of ours, since ports are reused."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """Accept what is posted."""

    server: Server

    def parse_request(self) -> bool:
        is_valid = super().parse_request()
        self.server.requests.append(self.requestline)
        return is_valid

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


Run = Callable[[Path, dict[str, Any], str], tuple[list[str], str]]


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """Import everything once, with the secret around and under the audit hook, and fork for every run."""
    words = [sys.executable, "-c", textwrap.dedent(RUN)]
    surroundings = os.environ | {"OMP_NUM_THREADS": "1", "LUDUS_WEBHOOK": f"http://127.0.0.1:9/{TOKEN}"}
    said = tmp_path_factory.mktemp("imports") / "stderr.txt"
    with (
        said.open("w") as stderr,
        subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, bufsize=1, env=surroundings
        ) as process,
    ):
        yield process
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 0
    assert TOKEN not in said.read_text()


@pytest.fixture
def run(trainer: "subprocess.Popen[str]", tmp_path: Path) -> Run:
    """Train in a child with this process's environment; return its audit events, and all that it printed or logged."""

    def train(folder: Path, monitoring: dict[str, Any], address: str) -> tuple[list[str], str]:
        surroundings = os.environ | {
            "LUDUS_WEBHOOK": address, "OMP_NUM_THREADS": "1", "NO_PROXY": "127.0.0.1",
            "WANDB_CACHE_DIR": str(folder.parent), "WANDB_CONFIG_DIR": str(folder.parent),
        }  # fmt: skip
        output = tmp_path / "printed.txt"
        order = {"folder": str(folder), "monitoring": monitoring, "output": str(output), "environment": surroundings}
        assert trainer.stdin is not None
        assert trainer.stdout is not None
        trainer.stdin.write(json.dumps(order) + "\n")
        code, printed = trainer.stdout.readline().strip(), output.read_text()
        assert code == "0", printed
        found = [line for line in printed.splitlines() if line.startswith("[") and line.endswith("]")]
        events: list[str] = json.loads(found[-1])
        return events, printed

    return train


def assert_nowhere(folder: Path, printed: str) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 5
    for path in files:
        assert TOKEN.encode() not in path.read_bytes(), path
        assert TOKEN not in str(path)
    assert TOKEN not in printed


def test_the_usual_sinks_use_no_network(run: Run, tmp_path: Path) -> None:
    events, printed = run(tmp_path / "run", {}, f"http://127.0.0.1:9/{TOKEN}")
    assert not [event for event in events if event in ON_THE_NETWORK]
    assert "[OK] evaluation at 32 steps" in printed
    assert (tmp_path / "run" / "training_curves.png").is_file()
    assert list((tmp_path / "run" / "tensorboard").iterdir())
    assert_nowhere(tmp_path / "run", printed)


def test_a_webhook_that_is_switched_on_is_seen_and_keeps_its_secret(run: Run, tmp_path: Path, server: Server) -> None:
    events, printed = run(tmp_path / "run", {"webhook": {}}, f"{server.address}/{TOKEN}")
    assert "socket.connect" in events, "the hook sees what it is meant to see"
    assert len(server.requests) == 8, "start, three times best, three alarms, end"
    assert "webhook message was lost" not in printed
    assert_nowhere(tmp_path / "run", printed)


def test_a_webhook_that_fails_keeps_its_secret_too(run: Run, tmp_path: Path) -> None:
    _, printed = run(tmp_path / "run", {"webhook": {}}, f"http://127.0.0.1:9/{TOKEN}")
    assert printed.count("a webhook message was lost") == 1
    assert "[OK] duel finished at 96 of 96 steps" in printed
    assert_nowhere(tmp_path / "run", printed)


@pytest.mark.parametrize("telemetry", [None, "true"])
def test_wandb_offline_reaches_for_nothing_and_stores_no_key(
    telemetry: str | None, run: Run, tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    if telemetry is not None:
        monkeypatch.setenv(
            "WANDB_ERROR_REPORTING", telemetry
        )  # switched on by the user: offline is offline all the same
    monkeypatch.setenv("WANDB_API_KEY", (TOKEN * 2)[:40])
    for name in ("WANDB_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY"):  # its own process would come here
        monkeypatch.setenv(name, server.address)
    usual = {"console": "plain", "tensorboard": False, "curves": False}
    events, printed = run(tmp_path / "run", usual | {"wandb": {"mode": "offline"}}, "")
    assert not [event for event in events if event in ON_THE_NETWORK and event != "socket.bind"]
    assert server.requests == []
    assert list((tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb"))
    assert "is switched off" not in printed
    assert_nowhere(tmp_path / "run", printed)


def test_reading_text_off_a_screen_reports_to_nobody(server: Server) -> None:
    """ONNX Runtime sends telemetry a few seconds after its start and at exit, through a proxy if there is one."""
    pytest.importorskip("rapidocr")
    program = "import ludus; import rapidocr; rapidocr.RapidOCR(params={'Global.log_level': 'error'})"
    proxies = {"HTTPS_PROXY": server.address, "HTTP_PROXY": server.address}
    subprocess.run([sys.executable, "-c", program], env=os.environ | proxies, timeout=600, check=True)
    assert server.requests == []


@pytest.mark.parametrize("value", [f"gopher://{TOKEN}", f"{TOKEN}", ""])
def test_a_secret_that_is_no_address_is_not_in_the_error(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("LUDUS_WEBHOOK", value)
    config = MonitoringConfig.model_validate({"webhook": {}, "console": "off", "curves": False, "tensorboard": False})
    with caplog.at_level(logging.DEBUG), pytest.raises(ConfigError, match="LUDUS_WEBHOOK") as refused:
        make_loggers(config, tmp_path, total_env_steps=1, title="duel")
    assert TOKEN not in str(refused.value) + repr(refused.value) + caplog.text
