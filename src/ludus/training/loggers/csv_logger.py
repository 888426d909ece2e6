"""The CSV logger: metrics.jsonl and the run's tables, appended durably and cut back to a checkpoint on resume.

`monitor.csv` has the form of Stable-Baselines3's `Monitor`, so that its `load_results` and every script that plots such
files can read it: a first line `#{"t_start": ...}`, then the columns `r`, `l` and `t`, and our own after them.
Monitor's `t` is wall time; ours counts env steps, since a resumed run writes the same bytes as one never stopped.
"""

import csv
import io
import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ludus.core.errors import FormatError, StateError
from ludus.core.files import MAX_TABLE_BYTES, make_folder, open_regular, read_at, read_regular_text, wrap_disk_errors
from ludus.envs.world_parts import EpisodeMetrics
from ludus.training.callbacks import Evaluated, Iteration

logger = logging.getLogger(__name__)

_CHUNK_BYTES = 1 << 20


class AppendLog:
    """An append-only file of lines; it comes into being with the first one.

    Lines that a full disk refuses wait in memory for the next one; `flush` fails while there are any, so no
    checkpoint is ahead of the file.
    """

    def __init__(self, path: Path) -> None:
        """Open the file if it is there already.

        Raises:
            StoreError: It is not a regular file, or cannot be written.
        """
        self._path = path
        self._descriptor = -1
        self._waiting = bytearray()
        if os.path.lexists(path):
            with wrap_disk_errors(path):
                self._open()

    @property
    def offset(self) -> int:
        """Size of the file in bytes; 0 if there is none."""
        return os.fstat(self._descriptor).st_size if self._descriptor >= 0 else 0

    @property
    def is_empty(self) -> bool:
        """Whether no line was written or waits to be."""
        return not self._waiting and self.offset == 0

    def append(self, lines: str) -> None:
        """Write whole lines, which reach the operating system before this returns unless the disk is full."""
        late = bool(self._waiting)
        self._waiting += lines.encode("utf-8")
        try:
            self._flush()
        except OSError as error:
            if not late:  # says it once, not with every line
                logger.warning(
                    "[WARN] %s cannot be written: %s; its lines wait in memory and training continues",
                    self._path, error.strerror,
                )  # fmt: skip

    def flush(self) -> int:
        """Hand all lines to the operating system and return the offset, for the checkpoint that is saved next.

        Raises:
            StoreFullError: The disk is full.
            StoreError: Writing failed for another reason.
        """
        with wrap_disk_errors(self._path):
            self._flush()
        return self.offset

    def fsync(self) -> None:
        """Make durable what was flushed, also while another thread appends lines; raise like `flush`."""
        with wrap_disk_errors(self._path):
            if self._descriptor >= 0:
                os.fsync(self._descriptor)

    def cut_back(self, offset: int) -> None:
        """Drop the lines after `offset`: the iterations that wrote them are repeated.

        Raises:
            StoreError: The file cannot be written.
        """
        self._waiting.clear()
        if self._descriptor < 0 and offset == 0:
            return
        with wrap_disk_errors(self._path):
            if self._descriptor < 0:
                self._open()
            end = self._line_end(min(self.offset, offset))
            if end < offset:  # it was cut off, or belongs to another run than the checkpoint
                logger.warning(
                    "[WARN] %s is not the file that the checkpoint knew, whose lines ended at byte %d: earlier lines "
                    "are lost, and new ones follow byte %d; training continues",
                    self._path, offset, end,
                )  # fmt: skip
            os.ftruncate(self._descriptor, end)
            os.fsync(self._descriptor)

    def drop_torn_line(self) -> None:
        """Drop a last line that a kill or a full disk cut off, so that the next one begins a line of its own.

        One that is longer than any of ours is another's: it is ended, since looking for its start can take for ever.

        Raises:
            StoreError: The file cannot be written.
        """
        if self._descriptor < 0:
            return
        with wrap_disk_errors(self._path):
            start = max(self.offset - _CHUNK_BYTES, 0)
            end = read_at(self._descriptor, _CHUNK_BYTES, start).rfind(b"\n") + 1
            if end or not start:
                os.ftruncate(self._descriptor, start + end)
            else:
                self.append("\n")

    def text(self) -> str:
        """Return what is in the file.

        Raises:
            FormatError: It is not UTF-8, or too large.
        """
        return read_regular_text(self._path, limit=MAX_TABLE_BYTES) if self._descriptor >= 0 else ""

    def close(self) -> None:
        """Close the file; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        make_folder(self._path.parent)
        self._descriptor = open_regular(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND)

    def _line_end(self, offset: int) -> int:
        """Return where the last whole line before `offset` ends."""
        while offset > 0:
            start = max(offset - _CHUNK_BYTES, 0)
            found = read_at(self._descriptor, offset - start, start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            offset = start
        return 0

    def _flush(self) -> None:
        if self._waiting and self._descriptor < 0:
            self._open()
        while self._waiting:  # one call writes less than asked for when the disk is nearly full
            del self._waiting[: os.write(self._descriptor, self._waiting)]


METRICS = "metrics.jsonl"
MONITOR = "monitor.csv"
EPISODE_METRICS = "behavior_metrics.csv"
REWARDS = "reward_breakdown.csv"
EVALUATION = "evaluation_results.csv"
OPPONENTS = "opponents.csv"
STRATEGY = "strategy_analysis.csv"
EFFECTS = "effects.csv"
FILES = (METRICS, MONITOR, EPISODE_METRICS, REWARDS, EVALUATION, OPPONENTS, STRATEGY, EFFECTS)

_MONITOR_HEAD = json.dumps({"t_start": 0})
_OUTCOMES = {1: "won", 0: "drawn", -1: "lost"}
Cell: TypeAlias = str | int | float | bool | None


class CsvLogger:
    """Writes the tables; the offsets of all of them belong to every checkpoint."""

    def __init__(self, folder: Path, episode_metrics: EpisodeMetrics, *, has_winners: bool) -> None:
        """Open what is there in a run folder; with winners, episodes are won or lost."""
        self._logs = {name: AppendLog(folder / name) for name in FILES}
        self._episode_metrics, self._has_winners = episode_metrics, has_winners

    def iteration(self, iteration: Iteration) -> None:
        """Write everything that an iteration gave."""
        counters, episodes = iteration.counters, iteration.episodes
        head = {"iteration": counters.iterations, "env_steps": counters.env_steps, "updates": counters.updates}
        phase = {"stage": iteration.phase} if iteration.phase else {}
        line = json.dumps(head | dict(iteration.metrics) | phase, allow_nan=False)
        self._logs[METRICS].append(line + "\n")
        when = (counters.iterations, counters.env_steps)
        if iteration.rewards:
            total = float(np.sum(list(iteration.rewards.values())))
            header = ("iteration", "env_steps", "total", *iteration.rewards)
            self._rows(REWARDS, header, [(*when, total, *iteration.rewards.values())])
        if not len(episodes):
            return
        names = (*episodes.names, "")  # -1: no opponent
        outcomes = [_OUTCOMES[outcome] if self._has_winners else "" for outcome in episodes.outcomes.tolist()]
        opponents = [names[index] for index in episodes.opponents.tolist()]
        columns = (episodes.rewards.tolist(), episodes.lengths.tolist(), outcomes, opponents)
        header = ("r", "l", "t", "iteration", "env_steps", "outcome", "opponent", "stage")
        rows = (
            (reward, length, counters.env_steps, *when, outcome, opponent, iteration.phase)
            for reward, length, outcome, opponent in zip(*columns, strict=True)
        )
        self._rows(MONITOR, header, rows)
        means = self._episode_metrics.summarise(episodes.episode_metrics)
        if means:
            row = (*when, len(episodes), *(round(value, 6) for value in means.values()))
            self._rows(EPISODE_METRICS, ("iteration", "env_steps", "episodes", *means), [row])

    def evaluation(self, evaluated: Evaluated) -> None:
        """Write one evaluation, one row per opponent or scenario."""
        counters = evaluated.counters
        head: dict[str, Cell] = {"iteration": counters.iterations, "env_steps": counters.env_steps}
        tail: dict[str, Cell] = {"score": evaluated.score, **evaluated.milestones}
        self.table(EVALUATION, [head | dict(row) | tail for row in evaluated.rows])

    def table(self, name: str, rows: Sequence[Mapping[str, Cell]]) -> None:
        """Write rows of equal columns to one of the files."""
        if rows:
            self._rows(name, tuple(rows[0]), (tuple(row.values()) for row in rows))

    def flush(self) -> dict[str, int]:
        """Hand everything to the operating system and return the offsets; raise like `AppendLog.flush`."""
        return {name: log.flush() for name, log in self._logs.items()}

    def fsync(self) -> None:
        """Make durable what was flushed, before the checkpoint that refers to it; raise like `flush`."""
        for log in self._logs.values():
            log.fsync()

    def cut_back(self, offsets: Mapping[str, int]) -> None:
        """Drop what came after the checkpoint of these offsets: the iterations that wrote it are repeated."""
        for name, log in self._logs.items():
            log.cut_back(offsets.get(name, 0))

    def matches(self) -> str:
        """Return the text of `opponents.csv`."""
        return self._logs[OPPONENTS].text()

    def close(self) -> None:
        """Close all files; may be called twice."""
        for log in self._logs.values():
            log.close()

    def _rows(self, name: str, header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
        log = self._logs[name]
        lines = [",".join(map(_text, row)) for row in rows]
        if log.is_empty:
            lines.insert(0, ",".join(map(_text, header)))
            if name == MONITOR:
                lines.insert(0, f"#{_MONITOR_HEAD}")
        log.append("\n".join(lines) + "\n")


@contextmanager
def naming_table(file: Path) -> Iterator[None]:
    """Let an error of the content of a table name its file and the next step."""
    try:
        yield
    except (FormatError, StateError) as error:
        raise FormatError(f"{file} cannot be used: {error}; repair it, or remove it to do without it") from error


def parse_table(text: str) -> list[dict[str, str]]:
    """Return the rows of a table by column; a last line that was cut off is left out.

    Raises:
        FormatError: It is not CSV.
    """
    whole = text[: text.rfind("\n") + 1]
    try:
        return list(csv.DictReader(io.StringIO(whole, newline="")))
    except csv.Error as error:
        raise FormatError(f"the table is not CSV: {error}") from None


def _text(cell: Cell) -> str:
    """Return a cell as CSV: numbers so that reading them gives the same bits, text in quotes where it needs them."""
    if isinstance(cell, float):  # most cells are, and none of them needs quotes
        return repr(cell)
    if cell is None:
        return ""
    text = str(cell)
    is_plain = "," not in text and '"' not in text and "\n" not in text
    return text if is_plain else '"' + text.replace('"', '""') + '"'
