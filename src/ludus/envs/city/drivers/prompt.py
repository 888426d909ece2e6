"""A game's prompt on a terminal: questions and their answers. For truth, audits and resets; never for an agent."""

import contextlib
import errno
import itertools
import os
import select
import time
import tty

from ludus.core.errors import GameLostError
from ludus.envs.city.profile_file import Prompt

_ANSWER_S = 30.0
_CHUNK_BYTES = 65_536
_SHOWN = 200


class GamePrompt:
    """The prompt of one running game.

    Attributes:
        terminal: The game's end of the terminal, to be its input and output; closed by `handed_over`.
    """

    def __init__(self, style: Prompt) -> None:
        """Opens a terminal for a game that is about to be started."""
        self._style = style
        self._ours, self.terminal = os.openpty()
        tty.setraw(self.terminal)  # what we write is not to come back to us
        os.set_blocking(self._ours, False)
        self._marks = itertools.count(1)

    def handed_over(self) -> None:
        """Closes our copy of the game's end, now that the game has its own: its end is then seen on ours."""
        os.close(self.terminal)
        self.terminal = -1

    def wait_until_ready(self, timeout_s: float) -> None:
        """Waits for the first prompt.

        Raises:
            GameLostError: It did not come.
        """
        self._read_until(self._style.ready, timeout_s, "its first prompt")

    def ask(self, command: str) -> str:
        """Returns the game's answer to a command.

        Raises:
            GameLostError: The game is gone or does not understand the command.
        """
        self.drain()
        mark = f"<{next(self._marks)}>"
        line = self._style.answer.replace("{mark}", mark).replace("{command}", command)
        self._write(line.encode() + b"\n")
        text = self._read_until(self._style.ready, _ANSWER_S, f"an answer to {command!r}")
        before, found, rest = text.partition(mark)
        answer, closed, _ = rest.partition(mark)
        if not found or not closed:
            raise GameLostError(f"the game did not understand {command!r}; it said: {before.strip()[-_SHOWN:]!r}")
        return answer

    def drain(self) -> str:
        """Returns and forgets what the game has written by itself; a full terminal would stop it."""
        text = b""
        with contextlib.suppress(BlockingIOError):
            while part := self._read():
                text += part
        return text.decode("utf-8", errors="replace")

    def close(self) -> None:
        """Closes the terminal; may be called twice."""
        for descriptor in (self._ours, self.terminal):
            if descriptor >= 0:
                os.close(descriptor)
        self._ours = self.terminal = -1

    def _read_until(self, ending: str, timeout_s: float, what: str) -> str:
        give_up, text = time.monotonic() + timeout_s, ""
        while not text.rstrip().endswith(ending):
            if not select.select([self._ours], [], [], max(give_up - time.monotonic(), 0.0))[0]:
                raise GameLostError(f"{what} did not come in {timeout_s:g} s; the game said: {text[-_SHOWN:]!r}")
            part = self._read()
            if not part:
                raise GameLostError(f"the game ended before {what} came; it said: {text[-_SHOWN:]!r}")
            text += part.decode("utf-8", errors="replace")
        return text

    def _read(self) -> bytes:
        """Returns some of what there is to read; nothing if the game's end is closed."""
        try:
            return os.read(self._ours, _CHUNK_BYTES)
        except OSError as error:
            if error.errno == errno.EIO:  # how a terminal says so
                return b""
            raise

    def _write(self, content: bytes) -> None:
        try:
            while content:
                select.select([], [self._ours], [], _ANSWER_S)
                content = content[os.write(self._ours, content) :]
        except OSError as error:
            raise GameLostError("the game's prompt is gone; start the game anew") from error
