"""The webhook: what is posted to a local server, what happens when it fails, and that its address stays a secret."""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pydantic import SecretStr

from ludus.core.errors import ConfigError
from ludus.training.callbacks import Counters, Evaluated, Iteration
from ludus.training.config import WebhookConfig
from ludus.training.loggers.webhook import WebhookLogger

TOKEN = "-".join(["very", "private"])


class Server(ThreadingHTTPServer):
    """Remembers what was posted to it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = 204
        self.delay_s = 0.0
        self.posts: list[tuple[str, dict[str, str], Any]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/api/webhooks/1/{TOKEN}"


class Handler(BaseHTTPRequestHandler):
    """Takes a post."""

    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.posts.append((self.path, dict(self.headers), body))
        time.sleep(self.server.delay_s)
        self.send_response(self.server.status)
        self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def make_sink(address: str, timeout_s: float = 5.0, waiting: int = 32) -> WebhookLogger:
    return WebhookLogger(SecretStr(address), title="duel", total_env_steps=10_000, timeout_s=timeout_s, waiting=waiting)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_it_posts_the_start_best_evaluations_alarms_and_the_end(
    server: Server, make_iteration: Callable[..., Iteration], make_evaluated: Callable[..., Evaluated]
) -> None:
    logger = make_sink(server.address)
    logger.on_training_start(Counters())
    logger.on_iteration(make_iteration(1))
    logger.on_evaluation(make_evaluated(1, 0.8))
    logger.on_evaluation(make_evaluated(2, 0.7, is_best=False))
    logger.on_message("warning", "not for everybody", Counters(2000))
    logger.on_message("alarm", "no progress", Counters(2000))
    logger.on_training_end(Counters(10_000, 10, 80))
    contents = [body["content"] for _, _, body in server.posts]
    assert contents[:3] == [
        "duel: starts at 0 of 10,000 steps",
        "duel: evaluation at 1,000 steps: score 0.8 (best): based 80 % (67-89)",
        "duel: alarm at 2,000 steps: no progress",
    ]
    assert contents[3].startswith("duel finished at 10,000 of 10,000 steps after ")
    assert contents[3].endswith(", best score 0.8")
    assert len(contents) == 4
    path, headers, body = server.posts[0]
    assert path == f"/api/webhooks/1/{TOKEN}"
    assert headers["Content-Type"] == "application/json"
    assert not headers["User-Agent"].startswith("Python-urllib")
    assert set(body) == {"content"}


def test_long_messages_are_cut(server: Server) -> None:
    logger = make_sink(server.address)
    logger.on_message("alarm", "x" * 5000, Counters())
    logger.close()
    assert len(server.posts[0][2]["content"]) == 1900


@pytest.mark.parametrize("status", [404, 429, 500, 302])
def test_a_server_that_refuses_is_warned_of_once_and_never_followed(
    server: Server, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    server.status = status
    logger = make_sink(server.address)
    logger.on_training_start(Counters())
    logger.on_training_end(Counters())
    assert len(server.posts) == 2
    assert warnings(caplog) == [
        f"[WARN] a webhook message was lost: the server answered with status {status}; "
        "training continues, later losses are silent"
    ]
    assert TOKEN not in caplog.text


@pytest.mark.parametrize(
    "address", [f"http://127.0.0.1:9/{TOKEN}", f"http://127.0.0.1:99999/{TOKEN}", f"http://[::1/{TOKEN}",
                f"http://127.0.0.1/with a space/{TOKEN}"],
    ids=["closed port", "no such port", "half an address", "a space"],
)  # fmt: skip
def test_a_server_that_cannot_be_reached_is_warned_of_once_without_its_address(
    address: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    logger = make_sink(address)
    logger.on_training_start(Counters())
    logger.on_training_end(Counters())
    assert len(warnings(caplog)) == 1
    assert warnings(caplog)[0].startswith("[WARN] a webhook message was lost: ")
    assert TOKEN not in caplog.text


def test_a_slow_server_delays_nobody(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.delay_s = 0.5
    logger = make_sink(server.address, timeout_s=0.1, waiting=2)
    started_s = time.perf_counter()
    for _ in range(50):
        logger.on_message("alarm", "again", Counters())
    assert time.perf_counter() - started_s < 2.5, "the caller waited for the server"  # 0.1 s for each of 50 messages
    logger.close()
    logger.on_message("alarm", "after the end", Counters())
    logger.close()
    assert time.perf_counter() - started_s < 4.0
    assert 1 <= len(server.posts) <= 4, "the queue is bounded"
    assert len(warnings(caplog)) == 1


def test_the_address_is_in_no_repr() -> None:
    logger = make_sink(f"http://127.0.0.1:1/{TOKEN}")
    logger.close()
    shown = repr(logger) + repr(vars(logger)) + repr(vars(logger._post))
    assert TOKEN not in shown


def test_the_address_comes_from_the_named_variable(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_HOOK", f"  {server.address}\n")
    logger = WebhookLogger.from_environment(WebhookConfig(address_env="MY_HOOK"), title="duel", total_env_steps=10)
    logger.on_training_end(Counters())
    assert len(server.posts) == 1


@pytest.mark.parametrize(
    "value", [None, "", "  ", f"file:///{TOKEN}", f"ftp://host/{TOKEN}", TOKEN, f"http:///{TOKEN}"]
)
def test_a_variable_without_an_address_is_an_error_that_names_only_the_variable(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LUDUS_WEBHOOK", raising=False)
    if value is not None:
        monkeypatch.setenv("LUDUS_WEBHOOK", value)
    with pytest.raises(ConfigError, match=r"environment variable LUDUS_WEBHOOK (is not set|must hold)") as refused:
        WebhookLogger.from_environment(WebhookConfig(), title="duel", total_env_steps=10)
    assert TOKEN not in str(refused.value)
