"""A virtual screen of our own (Xvfb), the programs that run on it, and the certainty that none of it is left behind."""

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from ludus.core.errors import GameLostError, GameNotFoundError
from ludus.envs.city.screen.resources import ResourceUse, process_state, resource_use

KEEPER_FILE = Path(__file__).with_name("keeper.py")
_START_S = 60.0
_ANSWER_S = 30.0
_END_S = 30.0
_MESSAGE_BYTES = 1 << 20
_KEEPER_LOG = "keeper.log"
_SHOWN_LOG = 500


class VirtualScreen:
    """A screen that nobody else uses: every instance has its own number, folder and processes.

    Attributes:
        width: In pixels.
        height: In pixels.
        display: Its name, such as `:7`.
        folder: A temporary folder for what the programs write; gone with the screen.
    """

    def __init__(self, width: int, height: int) -> None:
        """Starts a screen.

        Raises:
            GameNotFoundError: Xvfb is not installed; names the package.
            GameLostError: It did not start.
        """
        if shutil.which("Xvfb") is None:
            raise GameNotFoundError("a virtual screen needs Xvfb; install it with: apt-get install xvfb")
        self.width, self.height = width, height
        self.folder = Path(tempfile.mkdtemp(prefix="ludus-screen-"))
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-I", "-S", str(KEEPER_FILE), str(theirs.fileno())]
        with theirs, (self.folder / _KEEPER_LOG).open("wb") as log:  # who reads our output must not wait for the keeper
            self._keeper = subprocess.Popen(  # noqa: S603 - the command is ours
                [*command, str(self.folder), f"{width}x{height}"],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is ours to handle: the keeper goes when we go
            )
        try:
            started = self._receive(_START_S)
        except BaseException:
            self.close()
            raise
        self.display = f":{started['display']}"
        self.pid = int(started["pid"])

    def run(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path | str | None = None,
        terminal: int | None = None,
    ) -> int:
        """Starts a program on this screen and returns its process id.

        Args:
            command: The program and its arguments.
            environment: Added to a bare environment: `PATH`, the screen's `DISPLAY`, and `HOME` and `TMPDIR` in the
                screen's folder, so that a game neither reads nor writes what belongs to the user.
            folder: Where it runs; the screen's folder if none is given.
            terminal: A descriptor to be its input, output and errors; without one they go to `program.log`.

        Raises:
            GameNotFoundError: There is no such program.
            GameLostError: It could not be started.
        """
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        bare = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        bare |= {"DISPLAY": self.display, "HOME": str(home), "TMPDIR": str(self.folder), **environment}
        wish = {"run": list(command), "environment": bare, "folder": str(folder or self.folder)}
        log = os.open(self.folder / "program.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        try:
            streams = [nothing, log, log] if terminal is None else [terminal] * 3
            answer = self._ask(wish, streams)
        finally:
            os.close(log)
            os.close(nothing)
        if answer.get("errno") in (errno.ENOENT, errno.EACCES, errno.ENOTDIR):
            raise GameNotFoundError(f"{command[0]} cannot be run in {wish['folder']}: {answer['error']}")
        if "pid" not in answer:
            raise GameLostError(f"{command[0]} could not be started: {answer.get('error')}")
        return int(answer["pid"])

    def end(self, pid: int) -> None:
        """Ends a program that `run` started, with everything below it."""
        self._ask({"end": pid}, [])

    @property
    def is_alive(self) -> bool:
        """Whether the screen is there."""
        return self._keeper.poll() is None and bool(process_state(self.pid))

    def resource_use(self) -> ResourceUse:
        """Returns what the screen and everything on it takes now."""
        return resource_use(self._keeper.pid)

    def close(self) -> None:
        """Ends the screen and everything on it, and removes its folder; may be called twice."""
        self._control.close()
        try:
            self._keeper.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._keeper.kill()  # the kernel then ends what it had started
            self._keeper.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, wish: Mapping[str, object], descriptors: Sequence[int]) -> dict[str, Any]:
        try:
            socket.send_fds(self._control, [json.dumps(wish).encode()], list(descriptors))
        except OSError as error:
            raise GameLostError(f"the screen {self.display} is gone: {error.strerror}") from error
        return self._receive(_ANSWER_S)

    def _receive(self, timeout_s: float) -> dict[str, Any]:
        self._control.settimeout(timeout_s)
        try:
            answer = self._control.recv(_MESSAGE_BYTES)
        except OSError as error:
            raise GameLostError(f"the keeper of a screen said nothing for {timeout_s:g} s") from error
        if not answer:
            raise GameLostError(f"the keeper of a screen ended; is the machine out of memory? It said: {self._said()}")
        content: dict[str, Any] = json.loads(answer)
        if set(content) == {"error"}:
            raise GameLostError(str(content["error"]))
        return content

    def _said(self) -> str:
        """Returns the last that the keeper wrote, which is nothing unless it failed."""
        try:
            text = (self.folder / _KEEPER_LOG).read_text("utf-8", errors="replace")
        except OSError:
            return "nothing"
        return text[-_SHOWN_LOG:].strip() or "nothing"
