"""The runs below a folder: found without following links, summarised from the ends of their files, read on demand."""

import contextlib
import hashlib
import json
import math
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from ludus.core.files import JSON, read_end, read_small
from ludus.core.tables import GrowingTable, Signature, TailedFile, signature_of
from ludus.core.text import page_text
from ludus.reports import run_data as files
from ludus.reports.page.runs import TABLES, Run
from ludus.reports.run_data import read_settings
from ludus.watch.status import RUNNING, read_status

MOST_DEPTH = 4  # folders below the watched one in which runs are looked for
MOST_FOLDERS = 20_000
MOST_RUNS = 2000
_LOOK_EVERY_S = 0.8  # at runs that train
_SCAN_EVERY_S = 4.0  # for new runs, and at those that have ended
_SCAN_SHARE = 0.005  # of the time may be spent on looking for runs
_END_BYTES = 64 << 10  # of a file, enough for its last lines
_SMALL_BYTES = 4 << 20  # of run.json and config.yaml
_RATE_ROWS = 24  # rows of resources.csv over which the present speed is measured
_MOST_STEPS = 10**18
_LONGEST = 300  # letters of a text in the list
_MOST_GONE = 100
_FORGET_S = 120.0  # after which the tables of a run that nobody looks at are released
_SKIPPED = {"checkpoints", "snapshots", "tensorboard", "replays", "videos", "analysis", "node_modules", "__pycache__"}
_OF_LIST = (files.RUN, files.LOCK, files.METRICS, files.EVALUATIONS, files.RESOURCES, files.CONFIG)
# As `dump_yaml` writes it; reading the YAML of hundreds of runs would take a minute.
_TOTAL = re.compile(rb"^total_env_steps: *(\d{1,18}) *$", re.MULTILINE)


class WatchedRun:
    """One run folder.

    Attributes:
        id: Name in addresses; it says nothing about the path.
        name: Path below the watched folder.
        folder: The folder itself, without links in its path.
        color: Number of its colour.
        summary: What the list of runs shows.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder, self.color = folder, 0
        path = folder.name if folder == root else str(folder.relative_to(root))
        self.id = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
        self.name = page_text(path, _LONGEST)
        self.summary: dict[str, JSON] = {}
        self.run: Mapping[str, Any] = {}
        self._seen: tuple[Signature | None, ...] = ()
        self._total: int | None = None
        self._scores = _Scores(folder / files.EVALUATIONS)
        self._tables: dict[str, GrowingTable] = {}
        self._config: tuple[Signature | None, Mapping[str, Any]] = (None, {})
        self._used_s = 0.0

    @property
    def is_there(self) -> bool:
        """Whether the folder still is where it was found, and is no link."""
        return os.path.realpath(self.folder) == str(self.folder) and self.folder.is_dir()

    @property
    def is_running(self) -> bool:
        """Whether a process trains in it."""
        return self.summary.get("status") == RUNNING

    def refresh(self) -> bool:
        """Look whether anything changed, and read what did; return whether the summary is another one."""
        seen = tuple(signature_of(self.folder / name) for name in _OF_LIST)
        if seen == self._seen and not self.is_running:
            return False
        before = dict(zip(_OF_LIST, self._seen, strict=False))
        now = dict(zip(_OF_LIST, seen, strict=True))
        if now[files.RUN] != before.get(files.RUN):
            self.run = _read_json(self.folder / files.RUN)
        if now[files.CONFIG] != before.get(files.CONFIG):
            self._total = _read_total(self.folder / files.CONFIG)
        self._seen = seen
        shown, self.summary = self.summary, self._summarise(now[files.METRICS])
        if self._used_s and time.monotonic() - self._used_s > _FORGET_S:
            self._tables, self._used_s = {}, 0.0
        return shown != self.summary

    def read(self) -> tuple[Run, bool]:
        """Return the content of the run's files, of which only what is new is read, and whether anything changed."""
        self._used_s = time.monotonic()
        if not self._tables:
            self._tables = {name: GrowingTable(self.folder / files.TABLES[name]) for name in TABLES}
        changed = [table.refresh() for table in self._tables.values()]
        seen = signature_of(self.folder / files.CONFIG)
        if seen != self._config[0]:
            self._config = seen, read_settings(self.folder / files.CONFIG) if seen else {}
            changed.append(True)
        folder = self.folder if self._is_closed() else Path(os.devnull) / "left out"
        status = str(self.summary.get("status", ""))
        run = Run(folder, self._config[1], self.run, **self._tables, name=self.name, status=status, color=self.color)
        return run, any(changed)

    def _is_closed(self) -> bool:
        """Return whether what the report reads beside the tables is in the folder itself, not behind links."""
        inner = ("checkpoints/best/manifest.json", "analysis/analysis.json", files.EPISODES)
        here = os.path.realpath(self.folder)
        return all(os.path.realpath(self.folder / name) == os.path.join(here, *name.split("/")) for name in inner)  # noqa: PTH118

    def _summarise(self, written: Signature | None) -> dict[str, JSON]:
        last = _last_record(self.folder / files.METRICS)
        env_steps, total = _count(last.get("env_steps")), self._total
        run = Run(self.folder, {}, self.run)
        status, reason = read_status(self.folder, self.run, is_complete=total is not None and env_steps >= total)
        session = run.sessions[-1] if run.sessions else {}
        machine = session.get("machine")
        started_s = _seconds(session.get("started"))
        rate: float | None = None
        wall_s: float | None = None
        with contextlib.suppress(ValueError, TypeError, ArithmeticError):  # numbers that no run of ours writes
            rate = self._present_rate(env_steps, session, started_s, written) if status == RUNNING else run.steps_per_s
            wall_s = _finite(run.wall_s)
        left_s = (total - env_steps) / rate if status == RUNNING and rate and total is not None else None
        best, latest = self._scores.read()
        return {
            "id": self.id,
            "name": self.name,
            "color": self.color,
            "status": status,
            "reason": page_text(reason, _LONGEST),
            "world": page_text(str(self.run.get("world") or ""), _LONGEST),
            "seed": _count(run.seed) if run.seed is not None else None,
            "env_steps": env_steps,
            "total_env_steps": total,
            "steps_per_s": None if rate is None else float(f"{rate:.3g}"),
            "left_s": None if left_s is None else round(max(left_s, 0.0)),
            "best_score": best,
            "last_score": latest,
            "device": page_text(str(machine.get("device") or ""), _LONGEST) if isinstance(machine, dict) else "",
            "started_s": started_s,
            "written_s": None if written is None else round(written[2] / 1e9),
            "wall_s": None if wall_s is None else round(wall_s),
        }

    def _present_rate(
        self, env_steps: int, session: Mapping[str, Any], started_s: float | None, written: Signature | None
    ) -> float | None:
        """Return env steps per second of late, with evaluations; over the whole session if it wrote no resources."""
        rows = _resources(self.folder / files.RESOURCES)
        if len(rows) > 1 and rows[-1][1] > rows[0][1]:
            return _finite((rows[-1][0] - rows[0][0]) / (rows[-1][1] - rows[0][1]))
        start = session.get("start_env_steps")
        if started_s is None or written is None or not isinstance(start, int) or written[2] / 1e9 <= started_s:
            return None
        return max(env_steps - start, 0) / (written[2] / 1e9 - started_s) or None


class _Scores:
    """Best and last score of a run's evaluations, without keeping their rows."""

    def __init__(self, path: Path) -> None:
        self._file = TailedFile(path)
        self._place: int | None = None
        self._best: float | None = None
        self._last: float | None = None

    def read(self) -> tuple[float | None, float | None]:
        restarted, lines = self._file.read()
        if restarted:
            self._place = self._best = self._last = None
        for line in lines:
            cells = line.rstrip("\r").split(",")  # names may hold commas: the score is counted from the end
            if self._place is None:
                self._place = cells.index("score") - len(cells) if "score" in cells else 0
                continue
            try:
                score = _finite(float(cells[self._place])) if self._place else None
            except (ValueError, IndexError):
                continue
            if score is not None:
                self._last = score
                self._best = score if self._best is None else max(self._best, score)
        return self._best, self._last


class Catalogue:
    """All runs below a folder; every method may be called by any thread.

    Attributes:
        root: The watched folder, without links in its path.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.lock = threading.RLock()
        self.gone: list[str] = []  # names of runs that were there and are not any more
        self._runs: dict[Path, WatchedRun] = {}
        self._next_scan_s = self._next_look_s = 0.0
        self._colors: dict[str, int] = {}  # by name, so that a run that comes back has its own again

    def runs(self) -> list[WatchedRun]:
        """Return all runs, in the order of their colours."""
        with self.lock:
            return list(self._runs.values())

    def find(self, run_id: str) -> WatchedRun | None:
        """Return the run with an id; None if there is none."""
        with self.lock:
            return next((run for run in self._runs.values() if run.id == run_id), None)

    def refresh(self, *, at_once: bool = False) -> bool:
        """Look for new and lost runs now and then, or at once, and at those that may have changed.

        Returns:
            Whether any did.
        """
        with self.lock:
            now_s = time.monotonic()
            if now_s < self._next_look_s and not at_once:  # several pages ask
                return False
            self._next_look_s = now_s + _LOOK_EVERY_S
            is_scan = at_once or now_s >= self._next_scan_s
            changed = self._scan() if is_scan else False
            # Runs that have ended change only when they are resumed: that is soon enough seen with the next scan.
            for run in list(self._runs.values()):
                if is_scan or run.is_running:
                    changed = (run.refresh() if run.is_there else self._lose(run)) or changed
            if is_scan:
                spent_s = time.monotonic() - now_s
                self._next_scan_s = now_s + max(_SCAN_EVERY_S, spent_s / _SCAN_SHARE)
            return changed

    def _scan(self) -> bool:
        found = set(find_runs(self.root))
        lost = [run for folder, run in self._runs.items() if folder not in found]
        for run in lost:
            self._lose(run)
        new = sorted(found - self._runs.keys(), key=_age)[: MOST_RUNS - len(self._runs)]
        for folder in new:
            run = WatchedRun(self.root, folder)
            run.color = self._colors.setdefault(run.name, len(self._colors))
            self._runs[folder] = run
            if run.name in self.gone:  # it is back
                self.gone.remove(run.name)
        return bool(new or lost)

    def _lose(self, run: WatchedRun) -> bool:
        del self._runs[run.folder]
        self.gone = [*self.gone, run.name][-_MOST_GONE:]
        return True


def find_runs(root: Path) -> Iterator[Path]:
    """Yield the run folders in a folder, itself included; links are not followed, and runs are not searched."""
    level, visited = [root], 0
    for depth in range(MOST_DEPTH + 1):
        below: list[Path] = []
        for folder in level:
            visited += 1
            if visited > MOST_FOLDERS:
                return
            if is_run(folder):
                yield folder
            elif depth < MOST_DEPTH:
                below += _subfolders(folder)
        level = below


def is_run(folder: Path) -> bool:
    """Return whether a folder holds a run."""
    return signature_of(folder / files.RUN) is not None or signature_of(folder / files.METRICS) is not None


def _subfolders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = [
                entry.name
                for entry in entries
                if not entry.name.startswith(".") and entry.name not in _SKIPPED and entry.is_dir(follow_symlinks=False)
            ]
    except OSError:  # not ours to read, or gone
        return []
    return [folder / name for name in sorted(names)]


def _age(folder: Path) -> tuple[str, str]:
    """Return a key that orders runs by their start, so that colours stay the same after a restart."""
    sessions = _read_json(folder / files.RUN).get("sessions")
    first = sessions[0] if isinstance(sessions, list) and sessions and isinstance(sessions[0], dict) else {}
    return str(first.get("started") or "~"), str(folder)


def _read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; empty if there is none, also while it is being replaced."""
    try:
        document = json.loads(read_small(path, _SMALL_BYTES) or b"{}")
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _read_total(path: Path) -> int | None:
    found = _TOTAL.search(read_small(path, _SMALL_BYTES) or b"")
    return None if found is None else int(found[1])


def _last_record(path: Path) -> dict[str, Any]:
    for line in reversed(read_end(path, _END_BYTES)):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            return record
    return {}


def _resources(path: Path) -> list[tuple[float, float]]:
    """Return env steps and seconds of the last rows of the last session."""
    rows: list[tuple[float, float]] = []
    for line in reversed(read_end(path, _END_BYTES)):
        cells = line.split(",", 3)
        try:
            env_steps, elapsed_s = float(cells[1]), float(cells[2])
        except (ValueError, IndexError):
            break
        if len(rows) >= _RATE_ROWS or (rows and elapsed_s >= rows[-1][1]):
            break
        rows.append((env_steps, elapsed_s))
    return rows[::-1]


def _seconds(stamp: object) -> float | None:
    """Return the time that a run wrote, such as 2026-01-31T12:00:00+0100, in seconds since 1970."""
    try:
        return datetime.strptime(str(stamp), "%Y-%m-%dT%H:%M:%S%z").timestamp()
    except (ValueError, OverflowError):
        return None


def _count(value: object) -> int:
    """Return a number of steps; 0 for what is none."""
    return value if isinstance(value, int) and 0 <= value < _MOST_STEPS else 0


def _finite(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
