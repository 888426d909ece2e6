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
_CLEAR_S = 6.0  # in which everything on a screen has to end
_POLL_S = 0.005


class ScreenSupervisor:
    """The screen, the programs on it and the folder, from the first message to the last."""

    def __init__(self, control: socket.socket, folder: Path, size: str) -> None:
        self._control, self._folder, self._size = control, folder, size
        self._screen = 0  # its process
        self._traces: dict[Path, int] = {}  # the screen's lock and socket, with their places on the disk

    def keep(self) -> None:
        """Start the screen and serve until the other end is gone."""
        parent = os.pidfd_open(os.getppid())
        try:
            self._answer({"display": self._start_screen(), "pid": self._screen})
            while True:
                # A forked child of the parent may hold the pipe open after the parent's death: watch both.
                ready, _, _ = select.select([self._control.fileno(), parent], [], [], 1.0)
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
        _end([pid for pid in _below(os.getpid()) if pid != self._screen])
        give_up = time.monotonic() + _CLEAR_S
        # A program can start another one while it is being ended; one with threads can be reaped only after the last.
        while (left := _below(os.getpid())) and time.monotonic() < give_up:
            _end(left)
            time.sleep(_POLL_S)
            _reap()
        for file, place in self._traces.items():  # of a screen that had to be killed; never what is another's by now
            with contextlib.suppress(OSError):
                if file.lstat().st_ino == place and not _is_listening(file):
                    file.unlink()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start_screen(self) -> int:
        """Start the screen and return its number."""
        for _ in range(_SCREEN_TRIES):
            reading, writing = os.pipe()
            command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", f"{self._size}x24"]
            with (self._folder / "screen.log").open("wb") as log:
                self._screen = subprocess.Popen(  # noqa: S603 - the command is ours
                    [*command, "-nolisten", "tcp", "-noreset"],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(writing,),
                    start_new_session=True,
                    preexec_fn=lambda: _die_with_parent(signal.SIGTERM),  # so that it can remove its lock
                ).pid
            os.close(writing)
            with os.fdopen(reading) as answer:
                number = answer.readline().strip() if select.select([answer], [], [], _SCREEN_START_S)[0] else ""
            if number.isdigit():
                for file in (Path(f"/tmp/.X{number}-lock"), Path(f"/tmp/.X11-unix/X{number}")):  # noqa: S108
                    with contextlib.suppress(OSError):
                        self._traces[file] = file.lstat().st_ino
                return int(number)
            _end([self._screen])
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
            self._answer(_run(wish["run"], wish["environment"], wish["folder"], descriptors))
        elif "end" in wish:
            _end([pid for pid in (int(wish["end"]), *_below(int(wish["end"]))) if pid in _below(os.getpid())])
            _reap()
            self._answer({"ended": wish["end"]})
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    def _answer(self, answer: dict[str, object]) -> None:
        self._control.send(json.dumps(answer).encode())


def _run(command: list[str], environment: dict[str, str], folder: str, streams: list[int]) -> dict[str, object]:
    try:
        program = subprocess.Popen(  # noqa: S603 - what runs is what the profile that the user chose says
            command,
            env=environment,
            cwd=folder,
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            start_new_session=True,
            preexec_fn=lambda: _die_with_parent(signal.SIGKILL),
        )
    except OSError as error:
        return {"error": error.strerror, "errno": error.errno}
    return {"pid": program.pid}


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


def status(pid: int) -> tuple[str, int]:
    """Return the kernel's letter for what a process does (`R`, `S`, `T` stopped ...), and its parent.

    The letter is empty once it has ended, and the parent 0 once nothing is left of it. Read from /proc directly: this
    is asked before every gesture, and psutil takes 20 times as long.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return "", 0
    return "" if fields[0] in "ZX" else fields[0], int(fields[1])


def _below(pid: int) -> list[int]:
    """Return all processes below one, the nearest first."""
    children: dict[int, list[int]] = {}
    for other in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        children.setdefault(status(other)[1], []).append(other)
    found = list(children.get(pid, ()))
    for child in found:  # grows while it is read
        found += children.get(child, ())
    return found


def _is_listening(file: Path) -> bool:
    """Return whether a server listens on a socket; a leftover lock is none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        return caller.connect_ex(str(file)) == 0


def _end(pids: list[int]) -> None:
    """Terminate processes, then kill those that remain; a stopped one is resumed first, or it could not end."""
    for wanted in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, wanted)
                os.kill(pid, signal.SIGCONT)
        give_up = time.monotonic() + _TERMINATE_S
        while (pids := [pid for pid in pids if status(pid)[0]]) and time.monotonic() < give_up:
            time.sleep(_POLL_S)


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
