"""The tables of a run: what every episode, iteration and evaluation gave, in files that grow as the run goes.

Equal runs write equal bytes, so times of day and durations stay out. A file comes into being with its first row.
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ludus.envs.behaviour import Behaviour
from ludus.training.append_log import AppendLog
from ludus.training.callbacks import Evaluated, Iteration

METRICS = "metrics.jsonl"
MONITOR = "monitor.csv"
BEHAVIOUR = "behavior_metrics.csv"
REWARDS = "reward_breakdown.csv"
EVALUATION = "evaluation_results.csv"
OPPONENTS = "opponents.csv"
STRATEGY = "strategy_analysis.csv"
STEERING = "steering.csv"
EFFECTS = "effects.csv"
FILES = (METRICS, MONITOR, BEHAVIOUR, REWARDS, EVALUATION, OPPONENTS, STRATEGY, STEERING, EFFECTS)

_OUTCOMES = {1: "won", 0: "drawn", -1: "lost"}
Cell: TypeAlias = str | int | float | bool | None


class Records:
    """Writes the tables; the offsets of all of them belong to every checkpoint."""

    def __init__(self, folder: Path, behaviour: Behaviour, *, has_winners: bool) -> None:
        """Opens what is there.

        Args:
            folder: The run folder.
            behaviour: The world's.
            has_winners: Whether episodes are won or lost.
        """
        self._logs = {name: AppendLog(folder / name) for name in FILES}
        self._behaviour, self._has_winners = behaviour, has_winners

    def iteration(self, iteration: Iteration) -> None:
        """Writes everything that an iteration gave."""
        counters, episodes = iteration.counters, iteration.episodes
        head = {"iteration": counters.iterations, "env_steps": counters.env_steps, "updates": counters.updates}
        stage = {"stage": iteration.stage} if iteration.stage else {}
        line = json.dumps(head | dict(iteration.metrics) | stage, allow_nan=False)
        self._logs[METRICS].append(line + "\n")
        when = (counters.iterations, counters.env_steps)
        if iteration.rewards:
            total = float(np.sum(list(iteration.rewards.values())))
            self._rows(REWARDS, ("iteration", "env_steps", "total", *iteration.rewards),
                       [(*when, total, *iteration.rewards.values())])  # fmt: skip
        if not len(episodes):
            return
        names = (*episodes.names, "")  # -1 is nobody
        outcomes = [_OUTCOMES[outcome] if self._has_winners else "" for outcome in episodes.outcomes.tolist()]
        opponents = [names[index] for index in episodes.opponents.tolist()]
        columns = (episodes.rewards.tolist(), episodes.lengths.tolist(), outcomes, opponents)
        self._rows(
            MONITOR,
            ("iteration", "env_steps", "reward", "length", "outcome", "opponent", "stage"),
            ((*when, *row, iteration.stage) for row in zip(*columns, strict=True)),
        )
        means = self._behaviour.summarise(episodes.behaviour)
        if means:
            header = ("iteration", "env_steps", "episodes", *means)
            self._rows(BEHAVIOUR, header, [(*when, len(episodes), *(round(value, 6) for value in means.values()))])

    def evaluation(self, evaluated: Evaluated) -> None:
        """Writes one evaluation, a row an opponent or a trial."""
        counters = evaluated.counters
        head: dict[str, Cell] = {"iteration": counters.iterations, "env_steps": counters.env_steps}
        tail: dict[str, Cell] = {"score": evaluated.score, **evaluated.milestones}
        rows = [head | dict(row) | tail for row in evaluated.rows]
        self._rows(EVALUATION, tuple(rows[0]), (tuple(row.values()) for row in rows))

    def table(self, name: str, rows: Sequence[Mapping[str, Cell]]) -> None:
        """Writes rows of equal columns to one of the files."""
        if rows:
            self._rows(name, tuple(rows[0]), (tuple(row.values()) for row in rows))

    def sync(self) -> dict[str, int]:
        """Brings everything to the disk and returns the offsets, for the checkpoint that is saved next.

        Raises:
            StoreFullError: The disk is full.
            StoreError: Writing failed for another reason.
        """
        return {name: log.sync() for name, log in self._logs.items()}

    def cut_back(self, offsets: Mapping[str, int]) -> None:
        """Drops what came after the checkpoint of these offsets: the iterations that wrote it are repeated."""
        for name, log in self._logs.items():
            log.cut_back(offsets.get(name, 0))

    def matches(self) -> str:
        """Returns the text of `opponents.csv`."""
        return self._logs[OPPONENTS].text()

    def close(self) -> None:
        """Closes all files; may be called twice."""
        for log in self._logs.values():
            log.close()

    def _rows(self, name: str, header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
        log = self._logs[name]
        lines = [",".join(map(_text, row)) for row in rows]
        if log.is_empty:
            lines.insert(0, ",".join(map(_text, header)))
        log.append("\n".join(lines) + "\n")


def parse_table(text: str) -> list[dict[str, str]]:
    """Returns the rows of a table by column; a last line that was cut off is left out."""
    whole = text[: text.rfind("\n") + 1]
    return list(csv.DictReader(io.StringIO(whole, newline="")))


def _text(cell: Cell) -> str:
    """Returns a cell as CSV: numbers so that reading them gives the same bits, text in quotes where it needs them."""
    if cell is None:
        return ""
    text = repr(cell) if isinstance(cell, float) else str(cell)
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n') else text
