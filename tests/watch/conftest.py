"""A watching server, and a browser that visits it."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browser import Browser
from tests.reports.page.conftest import browser, make_run

from ludus.watch.server import WatchServer

__all__ = ["browser", "make_run"]

LIMIT_S = 60.0


def visit(browser: Browser, address: str, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
    """Opens an address and waits until the page has shown the first document."""
    browser._call("Emulation.setDeviceMetricsOverride",
                  {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})  # fmt: skip
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser._call("Emulation.setEmulatedMedia", {"features": [scheme]})
    browser._call("Page.navigate", {"url": "about:blank"})
    browser.wait("location.protocol === 'about:'")
    browser.complaints.clear()  # of the page before
    browser._call("Page.navigate", {"url": address})
    browser.wait("location.protocol === 'http:' && document.documentElement?.dataset.ready")


@pytest.fixture
def serve() -> Iterator[Callable[..., WatchServer]]:
    """Starts servers: `serve(folder, host="127.0.0.1")`; all are closed at the end."""
    servers: list[tuple[WatchServer, threading.Thread]] = []

    def start(root: Path, **options: Any) -> WatchServer:
        server = WatchServer(root, **{"port": 0} | options)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        servers.append((server, thread))
        return server

    yield start
    for server, thread in servers:
        server.shutdown()
        server.server_close()
        thread.join(10)


def eventually(check: Callable[[], Any]) -> Any:
    """Waits until a function returns something true, and returns that."""
    limit_s = time.monotonic() + LIMIT_S
    while not (found := check()):
        assert time.monotonic() < limit_s, "it never came true"
        time.sleep(0.02)
    return found


def append(folder: Path, iterations: int, *, since: int) -> None:
    """Appends metrics as a run does: iteration i ends at 100 * i env steps, and its return is i."""
    with (folder / "metrics.jsonl").open("a") as file:
        for i in range(since + 1, since + iterations + 1):
            file.write(json.dumps({"iteration": i, "env_steps": 100 * i, "episode_return": i, "entropy": 1 / i}) + "\n")
