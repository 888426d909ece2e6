"""A real browser for tests: headless Chromium, driven over two pipes by its own debugging protocol."""

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_TIMEOUT_S = 60.0


class Browser:
    """One tab. Everything that the page complains of or asks the network for is kept.

    Attributes:
        complaints: Exceptions, console errors and refusals, in order.
        requests: Addresses that the page asked for beside itself.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", to_browser: int, from_browser: int) -> None:
        self._process, self._to, self._from = process, to_browser, from_browser
        self._waiting, self._number, self._session = b"", 0, ""
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self._call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = self._call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable", {})

    def open(self, page: Path, fragment: str = "", *, width: int = 1280, height: int = 900, dark: bool = False) -> Self:
        """Opens a file and waits until it has loaded; `fragment` comes after the `#`."""
        self._call("Emulation.setDeviceMetricsOverride",
                   {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", {"features": [scheme]})
        self._call("Page.navigate", {"url": "about:blank"})  # another fragment alone would not load the page anew
        self._call("Page.navigate", {"url": page.resolve().as_uri() + (f"#{fragment}" if fragment else "")})
        deadline = time.monotonic() + _TIMEOUT_S
        while self.run("document.readyState") != "complete" or self.run("location.protocol") != "file:":
            assert time.monotonic() < deadline, "the page did not load"
            time.sleep(0.02)
        return self

    def run(self, script: str) -> Any:
        """Returns what an expression in the page gives."""
        given = {"expression": script, "returnByValue": True, "awaitPromise": True}
        answer = self._call("Runtime.evaluate", given)
        assert "exceptionDetails" not in answer, f"{script}: {answer['exceptionDetails']}"
        return answer["result"].get("value")

    def wait(self, script: str) -> None:
        """Waits until an expression in the page is true."""
        deadline = time.monotonic() + _TIMEOUT_S
        while not self.run(f"Boolean({script})"):
            assert time.monotonic() < deadline, f"never came true: {script}"
            time.sleep(0.02)

    def move(self, x: float, y: float) -> None:
        """Moves the mouse."""
        self._call("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})

    def press(self, x: float, y: float) -> None:
        """Presses the left button of the mouse and keeps it down."""
        self._call(
            "Input.dispatchMouseEvent", {"type": "mousePressed", "x": x, "y": y, "button": "left", "clickCount": 1}
        )

    def let_go(self, x: float, y: float) -> None:
        """Lets go of the button."""
        self._call(
            "Input.dispatchMouseEvent", {"type": "mouseReleased", "x": x, "y": y, "button": "left", "clickCount": 1}
        )

    def hold(self, code: str) -> None:
        """Presses a key, such as `KeyD` or `Space`, and keeps it down."""
        self._call("Input.dispatchKeyEvent", {"type": "rawKeyDown", "code": code})

    def release(self, code: str) -> None:
        """Lets go of a key."""
        self._call("Input.dispatchKeyEvent", {"type": "keyUp", "code": code})

    def touch(self, *places: tuple[float, float]) -> None:
        """Puts fingers on these places of the screen and takes all others away."""
        points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(places)]
        self._call("Input.dispatchTouchEvent", {"type": "touchStart" if places else "touchEnd", "touchPoints": points})

    def emulate_touch(self, *, enabled: bool) -> None:
        """Has a touch screen from now on, or none."""
        self._call("Emulation.setTouchEmulationEnabled", {"enabled": enabled, "maxTouchPoints": 5})

    @contextmanager
    def before_load(self, script: str) -> Iterator[None]:
        """Runs a script in pages that are opened meanwhile, before their own."""
        added = self._call("Page.addScriptToEvaluateOnNewDocument", {"source": script})
        try:
            yield
        finally:
            self._call("Page.removeScriptToEvaluateOnNewDocument", {"identifier": added["identifier"]})

    def save_downloads(self, folder: Path) -> None:
        """Saves downloads into a folder from now on."""
        self._call("Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})

    def picture(self, file: Path, *, whole: bool = False) -> None:
        """Saves what is seen, or the whole page, as PNG."""
        answer = self._call("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole} | (
            {"clip": {"x": 0, "y": 0, "width": self.run("innerWidth"), "scale": 1,
                      "height": self.run("document.documentElement.scrollHeight")}} if whole else {}))  # fmt: skip
        file.write_bytes(base64.b64decode(answer["data"]))

    def printed(self) -> bytes:
        """Returns the page as PDF."""
        answer = self._call("Page.printToPDF", {"printBackground": True})
        return base64.b64decode(answer["data"])

    def _call(self, method: str, given: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": given}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._waiting:
            part = os.read(self._from, 1 << 20)
            assert part, "the browser has ended"
            self._waiting += part
        message, _, self._waiting = self._waiting.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def _note(self, event: dict[str, Any]) -> None:
        method, given = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(given["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(given["args"]))
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.complaints.append(given["entry"]["text"])
        elif method == "Network.requestWillBeSent" and given["type"] != "Document":
            self.requests.append(given["request"]["url"])


@contextmanager
def open_browser(profile: Path) -> Iterator[Browser]:
    """Starts Chromium with a profile folder of its own; skips the test where there is none."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        pytest.skip("needs a browser: apt-get install chromium")
    to_browser, from_browser = os.pipe(), os.pipe()
    command = [
        program, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
        "--disable-extensions", "--disable-dev-shm-usage", f"--user-data-dir={profile}",
        # What Chromium does for itself at its start: updates, synchronization, audio, predictions.
        "--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-sync",
        "--no-default-browser-check", "--mute-audio", "--disable-features=Translate,OptimizationHints,MediaRouter",
        "about:blank",
    ]  # fmt: skip
    given = (to_browser[0], from_browser[1])
    renumber = f'exec "$@" 3<&{given[0]} 4>&{given[1]}'  # Chromium reads from 3 and writes to 4
    process = subprocess.Popen(
        ["bash", "-c", renumber, "browser", *command],
        pass_fds=given,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser[0])
    os.close(from_browser[1])
    try:
        yield Browser(process, to_browser[1], from_browser[0])
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(to_browser[1])
        os.close(from_browser[0])
