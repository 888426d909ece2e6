"""Supervise one virtual screen and the programs on it, as a separate process that cleans up when it is left alone.

It uses the standard library alone, so that it starts in 50 ms. A separate process makes the cleanup certain: it sees
the end of the process that started it, also by `kill -9`, on a pipe and by its process descriptor, and adopts whatever
the game leaves behind. If the supervisor itself is killed, the kernel ends the screen and the game
(`PR_SET_PDEATHSIG`). The kernel sends that signal when the parent *thread* dies, not its process; the supervisor has
only one thread.

Messages are JSON, one per packet. To the supervisor: `{"run": [...], "environment": {...}, "folder": ...}` with three
file descriptors for input, output and errors; `{"end": pid}`. From the supervisor: `{"display": n}` first, then one
answer per message.
"""

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
MESSAGE_BYTES = 1 << 20
_SCREEN_TRIES = 5  # two screens that start at once can want the same number; one of them ends
_SCREEN_START_S = 45.0  # less than the process that asked for it waits
_TERMINATE_S = 2.0  # what a program gets to end by itself; Xvfb needs 10 ms
_CLEAR_ROUNDS = 3
_POLL_S = 0.005


class ScreenSupervisor:
    """The screen, the programs on it and the folder, from the first message to the last."""

    def __init__(self, control: socket.socket, folder: Path, size: str) -> None:
        self._control, self._folder, self._size = control, folder, size
        self._screen: subprocess.Popen[bytes] | None = None
        self._number = -1
        self._traces: dict[Path, int] = {}  # the screen's lock and socket, with their places on the disk

    def keep(self) -> None:
        """Start the screen and serve until the other end is gone."""
        parent = os.pidfd_open(os.getppid())
        watched: list[int] = [self._control.fileno(), parent]
        try:
            self._start_screen()
            self._answer({"display": self._number, "pid": self._screen.pid if self._screen else 0})
            while True:
                # A forked child of the parent may hold the pipe open after the parent's death: watch both.
                ready, _, _ = select.select(watched, [], [], 1.0)
                _reap()
                if parent in ready or (self._control.fileno() in ready and not self._serve()):
                    return
        except OSError as error:
            with contextlib.suppress(OSError):
                self._answer({"error": str(error)})
        finally:
            self.clear()

    def clear(self) -> None:
        """End every process below this one and remove the screen's lock, its socket and the folder."""
        screen = self._screen.pid if self._screen else 0
        _end([pid for pid in _below(os.getpid()) if pid != screen])
        for _ in range(_CLEAR_ROUNDS):  # a program can start another one while it is being ended
            _end(_below(os.getpid()))
            _reap()
        self._remove_traces()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start_screen(self) -> None:
        for _ in range(_SCREEN_TRIES):
            reading, writing = os.pipe()
            command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", f"{self._size}x24"]
            command += ["-nolisten", "tcp", "-noreset"]
            log = (self._folder / "screen.log").open("wb")
            self._screen = subprocess.Popen(  # noqa: S603 - the command is ours
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(writing,),
                start_new_session=True,
                preexec_fn=lambda: _die_with_parent(signal.SIGTERM),  # so that it can remove its lock
            )
            log.close()
            os.close(writing)
            number = _read_line(reading, _SCREEN_START_S)
            os.close(reading)
            if number.isdigit():
                self._number = int(number)
                self._note_traces()
                return
            _end([self._screen.pid])
            _reap()
        said = (self._folder / "screen.log").read_text("utf-8", errors="replace").strip()
        raise OSError(f"Xvfb did not start a screen of {self._size}: {said or 'it said nothing'}")

    def _serve(self) -> bool:
        """Do what the next message asks; return whether there was one."""
        try:
            message, descriptors, _, _ = socket.recv_fds(self._control, MESSAGE_BYTES, 3)
        except OSError:
            return False
        if not message:
            return False
        wish = json.loads(message)
        if "run" in wish:
            self._answer(self._run(wish, descriptors))
        elif "end" in wish:
            _end([pid for pid in (int(wish["end"]), *_below(int(wish["end"]))) if pid in _below(os.getpid())])
            _reap()
            self._answer({"ended": wish["end"]})
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    def _run(self, wish: dict[str, object], descriptors: list[int]) -> dict[str, object]:
        try:
            program = subprocess.Popen(  # noqa: S603 - what runs is what the profile that the user chose says
                [str(word) for word in wish["run"]],  # type: ignore[attr-defined]
                env=dict(wish["environment"]),  # type: ignore[call-overload]
                cwd=str(wish["folder"]),
                stdin=descriptors[0],
                stdout=descriptors[1],
                stderr=descriptors[2],
                start_new_session=True,
                preexec_fn=lambda: _die_with_parent(signal.SIGKILL),
            )
        except OSError as error:
            return {"error": error.strerror, "errno": error.errno}
        return {"pid": program.pid}

    def _note_traces(self) -> None:
        for name in (f"/tmp/.X{self._number}-lock", f"/tmp/.X11-unix/X{self._number}"):  # noqa: S108
            with contextlib.suppress(OSError):
                self._traces[Path(name)] = Path(name).lstat().st_ino

    def _remove_traces(self) -> None:
        """Remove what a screen leaves behind that had to be killed; never what has become another's since."""
        for file, place in self._traces.items():
            with contextlib.suppress(OSError):
                if file.lstat().st_ino == place and not _is_listening(file):
                    file.unlink()

    def _answer(self, answer: dict[str, object]) -> None:
        self._control.send(json.dumps(answer).encode())


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _die_with_parent(number: int) -> None:
    _prctl(_PR_SET_PDEATHSIG, int(number))
    for name in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(name, signal.SIG_DFL)  # what the supervisor ignores a child would inherit


def _reap() -> None:
    """Take the exit status of everything that ended, also of what programs left to us, so that no zombie stays."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _read_line(descriptor: int, timeout_s: float) -> str:
    give_up, text = time.monotonic() + timeout_s, b""
    while not text.endswith(b"\n"):
        if not select.select([descriptor], [], [], max(give_up - time.monotonic(), 0.0))[0]:
            return ""
        part = os.read(descriptor, 64)
        if not part:
            return ""
        text += part
    return text.decode().strip()


def status(pid: int) -> tuple[str, int]:
    """Return the kernel's letter for what a process does, and its parent; empty and 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return "", 0
    return fields[0], int(fields[1])


def _below(pid: int) -> list[int]:
    """Return all processes below one, the nearest first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            children.setdefault(status(int(entry.name))[1], []).append(int(entry.name))
    found = list(children.get(pid, ()))
    for child in found:  # grows while it is read
        found += children.get(child, ())
    return found


def _is_listening(file: Path) -> bool:
    """Return whether a server listens on a socket; a leftover lock is none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        try:
            caller.connect(str(file))
        except OSError:
            return False
    return True


def _is_running(pid: int) -> bool:
    return status(pid)[0] not in ("", "Z", "X")


def _end(pids: list[int]) -> None:
    """Terminate processes, then kill those that remain; a stopped one is resumed first, or it could not end."""
    for wanted, patience_s in ((signal.SIGTERM, _TERMINATE_S), (signal.SIGKILL, _TERMINATE_S)):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, wanted)
                os.kill(pid, signal.SIGCONT)
        give_up = time.monotonic() + patience_s
        while any(map(_is_running, pids)) and time.monotonic() < give_up:
            time.sleep(_POLL_S)
        pids = [pid for pid in pids if _is_running(pid)]


def main() -> None:
    """Supervise a screen: `supervisor.py DESCRIPTOR FOLDER WIDTHxHEIGHT`."""
    for name in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(name, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    descriptor, folder, size = sys.argv[1:]
    with socket.socket(fileno=int(descriptor)) as control:
        ScreenSupervisor(control, Path(folder), size).keep()


if __name__ == "__main__":
    main()
