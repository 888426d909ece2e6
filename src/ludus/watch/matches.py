"""Matches of the newest agents, played by another process: this one knows neither torch nor the worlds.

The command line names the program that plays. It reads one request per line of its input and answers each with one
line: a trajectory log and the script that draws it, or why there is none. It ends with its input, so with this process.
"""

import contextlib
import json
import logging
import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ludus.core.files import JSON
from ludus.core.tables import Signature, signature_of
from ludus.watch.runs import WatchedRun

logger = logging.getLogger(__name__)

MOST_KEPT = 40  # runs whose last match is remembered
_SHARE = 0.01  # of the time of one core that matches of a running run may take
_LEAST_S = 20.0  # between two matches of a running run
_IDLE_S = 300.0  # after which the program is ended; it holds some hundred MB
_MOST_ANSWER_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Match:
    """The last match of a run: a trajectory log with the script that draws it, or an error."""

    number: int
    content: dict[str, JSON]  # for the page: `key`, and `strip` or `error`
    source: tuple[str, Signature]  # the checkpoint or replay file that it was made of


class MatchMaker:
    """Plays a match of a run that a page shows whenever its agent is newer than that of the last match.

    Args:
        command: The program; None plays nothing.
    """

    def __init__(self, command: Sequence[str] | None) -> None:
        self._command = None if command is None else list(command)
        self._matches: dict[str, Match] = {}
        self._next_s: dict[str, float] = {}
        self._painters: dict[str, str] = {}
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        self._used_s = 0.0
        self._number = 0

    def want(self, run: WatchedRun) -> Match | None:
        """Return the last match of a run, and start a newer one in the background if it is time for that."""
        with self._lock:
            known = self._matches.get(run.id)
            if self._command is None or (self._thread is not None and self._thread.is_alive()):
                return known
            now_s = time.monotonic()
            if now_s < self._next_s.get(run.id, 0.0):
                return known
            self._next_s[run.id] = now_s + 2.0
            newest = newest_source(run.folder)
            if newest is not None and (known is None or known.source != newest):
                self._thread = threading.Thread(target=self._play, args=(run, newest), daemon=True)
                self._thread.start()
            return known

    def painter(self, world: str) -> str | None:
        """Return the script that draws a world, if a match of it was played."""
        return self._painters.get(world)

    def rest(self) -> None:
        """End the program if it was not used for long."""
        with self._lock:
            is_busy = self._thread is not None and self._thread.is_alive()
            if not is_busy and self._process is not None and time.monotonic() - self._used_s > _IDLE_S:
                self._end()

    def close(self) -> None:
        """End the program."""
        self._end()

    def _play(self, run: WatchedRun, source: tuple[str, Signature]) -> None:
        started_s = time.monotonic()
        request = {"run": str(run.folder), "name": run.name, "source": source[0], "seed": self._number}
        answer = self._ask(request)
        strip, painter = answer.get("strip"), answer.get("painter")
        self._used_s = time.monotonic()
        error = answer.get("error") or "the program that plays matches gave no answer"
        content: dict[str, JSON] = {"error": str(error)}
        if isinstance(strip, dict) and isinstance(painter, str):
            content = {"strip": strip}
            self._painters[str(strip.get("world"))] = painter
        cpu_s = answer.get("cpu_s")
        spent_s = cpu_s if isinstance(cpu_s, int | float) else self._used_s - started_s
        pause_s = max(_LEAST_S, spent_s / _SHARE) if run.is_running else 0.0
        with self._lock:
            self._number += 1
            self._matches.pop(run.id, None)
            self._matches[run.id] = Match(self._number, {"key": repr(source), **content}, source)
            self._next_s[run.id] = time.monotonic() + pause_s
            while len(self._matches) > MOST_KEPT:
                del self._matches[next(iter(self._matches))]

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        process = self._process
        if process is None or process.poll() is not None:
            process = self._process = self._start()
        if process is None or process.stdin is None or process.stdout is None:
            return {"error": "the program that plays matches cannot be started"}
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline(_MOST_ANSWER_BYTES))
        except (OSError, ValueError, RecursionError):
            self._end()
            return {}
        return answer if isinstance(answer, dict) else {}

    def _start(self) -> "subprocess.Popen[bytes] | None":
        # One thread and no GPU: they belong to the training.
        spare = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        try:
            return subprocess.Popen(  # noqa: S603 - the command line's own program
                self._command or [],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=os.environ | spare,
                start_new_session=True,
            )
        except OSError as error:
            logger.warning("[WARN] no matches can be played: %s", error.strerror)
            return None

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()  # first: a pipe that another thread reads from cannot be closed before
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def newest_source(folder: Path) -> tuple[str, Signature] | None:
    """Return the newest checkpoint or replay file of a run, by its path in the run folder; links are left out."""
    found: list[tuple[int, str, Signature]] = []
    for place, suffix in (("checkpoints", "manifest.json"), ("replays", "")):
        if (folder / place).is_symlink():
            continue
        try:
            entries = [entry.name for entry in os.scandir(folder / place) if not entry.name.startswith(".")]
        except OSError:
            continue
        for name in entries:
            path = folder / place / name
            seen = None if path.is_symlink() else signature_of(path / suffix if suffix else path)
            if seen is not None:
                found.append((seen[2], f"{place}/{name}", seen))
    return None if not found else max(found)[1:]
