"""Messages to a chat: a Discord-compatible webhook, posted from its own thread.

The address is a secret. It comes from an environment variable, is kept where no `repr` shows it, and no message,
warning or exception ever holds it: urllib's own errors quote addresses, so only their type is logged.
"""

import json
import logging
import os
import queue
import threading
import time
import urllib.parse
import urllib.request

from pydantic import SecretStr

from ludus.core.errors import ConfigError
from ludus.training.callbacks import BaseCallback, Counters, Evaluated, Iteration
from ludus.training.config import WebhookConfig
from ludus.training.loggers.progress import Watch, end_line, evaluation_line, plain

logger = logging.getLogger(__name__)

_LONGEST = 1900  # letters; Discord refuses messages of more than 2,000
_WAITING = 32  # messages that may wait for the network; more are dropped
_CLOSE_WAIT_S = 5.0
_HEADERS = {"Content-Type": "application/json", "User-Agent": "Ludus/1"}  # Discord refuses urllib's own name


class WebhookLogger(BaseCallback):
    """Posts the start, evaluations that are best, alarms and the end."""

    def __init__(
        self, address: SecretStr, *, title: str, total_env_steps: int, timeout_s: float = 5.0, waiting: int = _WAITING
    ) -> None:
        self._watch = Watch(title, total_env_steps)
        self._post = _Post(address, timeout_s, waiting)

    @classmethod
    def from_environment(cls, config: WebhookConfig, *, title: str, total_env_steps: int) -> "WebhookLogger":
        """Make the logger with the address that the environment holds.

        Raises:
            ConfigError: The variable is not set, or holds no http or https address; the error does not say what.
        """
        name = config.address_env
        address = os.environ.get(name, "").strip()
        if not address:
            raise ConfigError(
                f"monitoring.webhook is switched on, but the environment variable {name} is not set; "
                "set it to the webhook's address, or leave monitoring.webhook out"
            )
        if not _is_web_address(address):
            raise ConfigError(
                f"the environment variable {name} must hold an address that begins with https:// or http://"
            )
        return cls(SecretStr(address), title=title, total_env_steps=total_env_steps, timeout_s=config.timeout_s)

    def on_training_start(self, counters: Counters) -> None:
        """Post that training starts or resumes."""
        self._watch.start(counters)
        how = "resumes at" if counters.env_steps else "starts at"
        self._say(f"{how} {counters.env_steps:,} of {self._watch.total_env_steps:,} steps")

    def on_iteration(self, iteration: Iteration) -> None:
        """Only follows."""
        self._watch.iteration(iteration)

    def on_evaluation(self, evaluated: Evaluated) -> None:
        """Post it if it is the best so far."""
        self._watch.evaluated(evaluated)
        if evaluated.is_best:
            self._say(evaluation_line(evaluated))

    def on_message(self, level: str, text: str, counters: Counters) -> None:
        """Post alarms."""
        if level == "alarm":
            self._say(f"alarm at {counters.env_steps:,} steps: {plain(text)}")

    def on_training_end(self, counters: Counters) -> None:
        """Post how far it got, and wait briefly for unsent messages."""
        self._watch.counters = counters
        self._post.put(end_line(self._watch))
        self.close()

    def close(self) -> None:
        """Wait a few seconds at most for unsent messages; may be called twice."""
        self._post.close(_CLOSE_WAIT_S)

    def _say(self, text: str) -> None:
        self._post.put(f"{plain(self._watch.title)}: {text}")


class _Post:
    """A thread that posts one message after the other; the run never waits for it."""

    def __init__(self, address: SecretStr, timeout_s: float, waiting: int) -> None:
        self._address, self._timeout_s = address, timeout_s
        self._queue: queue.Queue[str | None] = queue.Queue(waiting)
        self._has_warned = False
        self._is_closed = False
        self._opener = urllib.request.OpenerDirector()
        # Neither redirects nor files nor ftp: what is posted goes to the given address by http(s), or nowhere.
        for handler in (urllib.request.ProxyHandler(), urllib.request.HTTPHandler(), urllib.request.HTTPSHandler()):
            self._opener.add_handler(handler)
        self._thread = threading.Thread(target=self._work, name="ludus-webhook", daemon=True)
        self._thread.start()

    def put(self, text: str) -> None:
        if self._is_closed:
            return
        try:
            self._queue.put_nowait(text[:_LONGEST])
        except queue.Full:
            self._warn("too many messages are waiting")

    def close(self, wait_s: float) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        deadline_s = time.monotonic() + wait_s
        try:
            self._queue.put(None, timeout=wait_s)
        except queue.Full:
            return
        self._thread.join(max(deadline_s - time.monotonic(), 0.0))

    def _work(self) -> None:
        while (text := self._queue.get()) is not None:
            try:
                status = self._send(text)
            except Exception as error:  # a chat that cannot be reached must not disturb a run
                self._warn(type(error).__name__)
            else:
                if not 200 <= status < 300:
                    self._warn(f"the server answered with status {status}")

    def _send(self, text: str) -> int:
        data = json.dumps({"content": text}).encode("ascii")
        request = urllib.request.Request(  # noqa: S310 - the scheme was checked
            self._address.get_secret_value(), data=data, headers=_HEADERS, method="POST"
        )
        with self._opener.open(request, timeout=self._timeout_s) as answer:
            return int(answer.status)

    def _warn(self, reason: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning("[WARN] a webhook message was lost: %s; training continues, later losses are silent", reason)


def _is_web_address(address: str) -> bool:
    try:
        parts = urllib.parse.urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)
