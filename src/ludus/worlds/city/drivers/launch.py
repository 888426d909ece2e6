"""Start a game on a virtual screen and talk to its prompt."""

import contextlib
import errno
import itertools
import os
import platform
import select
import shutil
import time
from pathlib import Path

from ludus.core.errors import ConfigError, GameLostError, GameNotFoundError
from ludus.core.files import wrap_disk_errors, write_text_atomic
from ludus.worlds.city.drivers.game_data import copy_data
from ludus.worlds.city.profile_schema import GameProfile, Prompt
from ludus.worlds.city.screen.session import ScreenSession

_ANSWER_S = 30.0
_CHUNK_BYTES = 65_536
_SHOWN = 200


class GamePrompt:
    """The prompt of one running game.

    Attributes:
        terminal: The game's end of the terminal, to be its input and output; closed by `wait_until_ready`.
    """

    def __init__(self, style: Prompt) -> None:
        """Open a terminal for a game that is about to be started."""
        self._style = style
        import tty  # POSIX only, as the virtual screens are

        self._ours, self.terminal = os.openpty()
        tty.setraw(self.terminal)  # no echo of what we write
        os.set_blocking(self._ours, False)
        self._marks = itertools.count(1)

    def wait_until_ready(self, timeout_s: float) -> None:
        """Wait for the first prompt of the game that was started; raise GameLostError if it does not come."""
        os.close(self.terminal)  # our copy of the game's end, so that we notice when the game closes its own
        self.terminal = -1
        self._read_until_ready(timeout_s, "its first prompt")

    def ask(self, command: str) -> str:
        """Return the answer to a command; raise GameLostError if the game is gone or does not understand it."""
        self.drain()
        mark = f"<{next(self._marks)}>"
        line = self._style.answer.replace("{mark}", mark).replace("{command}", command)
        content = line.encode() + b"\n"
        try:
            while content:
                select.select([], [self._ours], [], _ANSWER_S)
                content = content[os.write(self._ours, content) :]
        except OSError as error:
            raise GameLostError("the game's prompt is gone; restart the game") from error
        parts = self._read_until_ready(_ANSWER_S, f"an answer to {command!r}").split(mark)
        if len(parts) < 3:
            raise GameLostError(f"the game did not understand {command!r}; it printed: {parts[0].strip()[-_SHOWN:]!r}")
        return parts[1]

    def drain(self) -> None:
        """Forget what the game has written by itself; a full terminal would stop it."""
        with contextlib.suppress(BlockingIOError):
            while self._read():
                pass

    def close(self) -> None:
        """Close the terminal; may be called twice."""
        for descriptor in (self._ours, self.terminal):
            if descriptor >= 0:
                os.close(descriptor)
        self._ours = self.terminal = -1

    def _read_until_ready(self, timeout_s: float, what: str) -> str:
        give_up, text = time.monotonic() + timeout_s, ""
        while not text.rstrip().endswith(self._style.ready):
            if not select.select([self._ours], [], [], max(give_up - time.monotonic(), 0.0))[0]:
                raise GameLostError(f"{what} did not come within {timeout_s:g} s; the game printed: {text[-_SHOWN:]!r}")
            part = self._read()
            if not part:
                raise GameLostError(f"the game ended before {what}; it printed: {text[-_SHOWN:]!r}")
            text += part.decode("utf-8", errors="replace")
        return text

    def _read(self) -> bytes:
        """Return available bytes; nothing if the game closed its end."""
        try:
            return os.read(self._ours, _CHUNK_BYTES)
        except OSError as error:
            if error.errno == errno.EIO:  # how a terminal reports that
                return b""
            raise


_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where the kernel has it


def check_installed(profile: GameProfile) -> None:
    """Raise GameNotFoundError if a game or a program that it needs is not installed; name the packages."""
    program, folder = profile.launch.command[0], profile.launch.copy_of
    missing = [] if shutil.which(program) is not None else [program]
    missing += [folder] if folder is not None and not Path(folder).is_dir() else []
    missing += [] if shutil.which("Xvfb") is not None else ["Xvfb"]
    if missing:
        raise GameNotFoundError(
            f"{profile.title} cannot be played here: there is no {', no '.join(missing)}; "
            f"install it with: apt-get install {' '.join((*profile.packages, 'xvfb'))}"
        )


def clock_library() -> Path | None:
    """Return the library that makes a program's clock run faster (libfaketime), if it is installed."""
    folders = Path("/usr/lib").glob(f"{platform.machine()}-linux-gnu*/faketime")
    return next((file for folder in folders if (file := folder / "libfaketimeMT.so.1").is_file()), None)


def clock_speed(profile: GameProfile) -> float:
    """Return the speed-up of a game's clock on this machine."""
    return profile.launch.clock_speed if clock_library() is not None else 1.0


def start_game(session: ScreenSession, profile: GameProfile, seed: int) -> GamePrompt | None:
    """Start a game on a screen, replacing a running one; return its prompt if it has one."""
    launch, home = profile.launch, session.screen.folder / "home"
    session.end()
    with wrap_disk_errors(home):
        if home.exists():
            shutil.rmtree(home)  # leftovers of an earlier start could change this one
        home.mkdir()
    if launch.copy_of is not None:
        copy_data(Path(launch.copy_of), home / "game")
    for name, content in launch.files.items():
        file = (home / name).resolve()
        if not file.is_relative_to(home.resolve()):
            raise ConfigError(f"launch.files: {name!r} is outside the game's home folder; use a path below it")
        write_text_atomic(file, content)
    width, height = profile.screen
    words = {"{seed}": str(seed), "{width}": str(width), "{height}": str(height), "{home}": str(home)}
    command = [_filled(word, words) for word in launch.command]
    environment = {name: _filled(value, words) for name, value in launch.environment.items()}
    if (speed := clock_speed(profile)) > 1.0:
        environment |= {"LD_PRELOAD": str(clock_library()), "FAKETIME": f"+0 x{speed:g}"}
    folder = _filled(launch.folder, words) if launch.folder is not None else None
    if launch.prompt is None:
        session.start(command, environment, folder, None)
        return None
    prompt = GamePrompt(launch.prompt)
    try:
        session.start(command, environment, folder, prompt.terminal)
        prompt.wait_until_ready(launch.timeout_s)
        forget_clock(session.pid)
        for line in launch.prompt.first:
            prompt.ask(line)
    except BaseException:
        prompt.close()
        raise
    return prompt


def forget_clock(pid: int) -> None:
    """Remove the names of what libfaketime shares between programs; it would leave them if the game is killed."""
    for name in ("faketime_shm", "sem.faketime_sem"):
        (_SHARED_MEMORY / f"{name}_{pid}").unlink(missing_ok=True)


def _filled(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text
