"""The runs of one trial: one run folder per seed, trained in turns up to the next decision of the sweep.

A trial is trained like any run, so everything that holds for runs holds for it: it resumes bit-exactly, can be watched
and reported on. Between decisions a run is left to itself; at one it is stopped like by `Trainer.stop`, with the
checkpoint `interrupted`, and resumed if the trial continues. A fork is that of `ludus resume --fork`.

    trials/trial-0003/trial.json           its values, and from which trials it was forked
    trials/trial-0003/seed-0/              a run folder
    trials/trial-0003/fork-1/seed-0/       the run after it was forked from another trial
"""

import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ludus.core.errors import ConfigError, FormatError, RunLockedError, UnknownNameError
from ludus.core.files import MAX_DOCUMENT_BYTES, read_json_object, remove_folder, write_text_atomic
from ludus.core.tables import Table, read_table
from ludus.core.text import row_label
from ludus.reports.run_data import EVALUATIONS, RUN, read_json
from ludus.scale.config import SCORE, SweepConfig, SweepPlan
from ludus.training.callbacks import BaseCallback, Evaluated, Iteration
from ludus.training.loggers.run_log import held_warnings
from ludus.training.preflight import verify
from ludus.training.resolve import resolve
from ludus.training.run_folder import RunLock, fork_run
from ludus.training.session import Received, read_progress, training_turns
from ludus.training.together import train_together

TRIALS_FOLDER, TRIAL_FILE = "trials", "trial.json"
STOP_FILE = "stop"  # asks all runs of the sweep, on whatever machine, to save and stop
_LABELS = ("trial", "opponent", "side", "mode")
_NO_NUMBERS = (*_LABELS, "iteration", "env_steps")
_LOCK_WAIT_S, _LOCK_POLL_S = 90.0, 0.5
_SECONDS_PER_HOUR = 3600.0

_Result = TypeVar("_Result")


class Point(NamedTuple):
    """One evaluation of one run."""

    env_steps: int
    value: float


def read_points(folder: Path, config: SweepConfig) -> list[Point]:
    """Return the objective at every evaluation of a run; none if there was no evaluation yet.

    Raises:
        UnknownNameError: The evaluations have no such number or no such opponent; the valid ones are listed.
    """
    table = read_table(folder / EVALUATIONS)
    if not len(table):
        return []
    steps = table.numbers("env_steps")
    return [Point(int(step), _objective(table.rows(steps == step), config)) for step in dict.fromkeys(steps.tolist())]


def _objective(table: Table, config: SweepConfig) -> float:
    """Return the objective of one evaluation's rows."""
    if config.opponents is not None:
        labels = _labels(table)
        for name in config.opponents:
            if name not in labels:
                raise UnknownNameError("row of the evaluation (sweep.opponents)", name, dict.fromkeys(labels))
        table = table.rows(np.array([label in config.opponents for label in labels]))
    if config.objective not in table:
        valid = [name for name in table.names if name not in _NO_NUMBERS]
        raise UnknownNameError("number of an evaluation (sweep.objective)", config.objective, valid)
    numbers = table.numbers(config.objective)
    return float(numbers[0] if config.objective == SCORE and config.opponents is None else numbers.mean())


def _labels(table: Table) -> list[str]:
    columns = {name: table.texts(name).tolist() for name in _LABELS}
    return [row_label(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]


class _Limits(BaseCallback):
    """Stops a run at its next decision, at a limit of wall time, or when the sweep is asked to stop."""

    def __init__(self, sweep: Path, folder: Path, config: SweepConfig, decision: int | None, ends_at_s: float) -> None:
        self._stop, self._folder, self._config = sweep / STOP_FILE, folder, config
        self._decision, self._ends_at_s = decision, ends_at_s
        self.is_decision = self.is_late = False

    def on_iteration(self, iteration: Iteration) -> None:
        """Look at the clock and for a request to stop."""
        if self._stop.exists():
            self.trainer.stop("the sweep was asked to stop")
        elif time.time() >= self._ends_at_s:
            self.is_late = True
            self.trainer.stop("the wall time of the sweep or of the trial is used up")

    def on_evaluation(self, evaluated: Evaluated) -> None:
        """Pause the run if this is the evaluation at which the sweep decides."""
        count = len(read_points(self._folder, self._config))  # an objective that does not exist fails here
        if self._decision is not None and count >= self._decision:
            self.is_decision = True
            self.trainer.stop(f"evaluation {count}: the sweep decides whether the trial continues")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a trial is.

    Attributes:
        points: Evaluations by seed.
        wall_s: Wall time of its runs in all.
        is_finished: Whether all runs are finished.
        reason: Why it ended before its budget; empty if it did not.
        is_interrupted: Whether it was stopped in the middle by a request or the wall time of the sweep.
    """

    points: tuple[tuple[Point, ...], ...]
    wall_s: float
    is_finished: bool
    reason: str = ""
    is_interrupted: bool = False


class TrialRuns:
    """The runs of a trial.

    Attributes:
        name: Its name, such as `trial-0003`.
        values: Its values by name of the key.
        forks: From which trials it was forked, at which evaluation, and its values before.
    """

    def __init__(self, plan: SweepPlan, sweep: Path, name: str, values: Mapping[str, Any]) -> None:
        """Open the folder of a trial; one that has not begun is made, with these values.

        Raises:
            FormatError: It has other values.
        """
        self.name, self._plan, self._sweep, self._home = name, plan, sweep, sweep / TRIALS_FOLDER / name
        begun = read_trial(sweep, name)
        if begun and begun["values"] != values:
            raise FormatError(f"{self._home} is the folder of a trial with other values; move it away")
        self._set(dict(values), begun.get("forks", []))
        if not begun:
            self._write()

    def _set(self, values: dict[str, Any], forks: list[dict[str, Any]]) -> None:
        self.values, self.forks = values, forks
        base = self._plan.trial_config(values)
        # A figure at every pause would cost more than the pause; reports draw the same curves.
        quiet = base.monitoring.model_copy(update={"console": "off", "curves": False})
        self._configs = [
            base.model_copy(update={"seed": base.seed + index, "monitoring": quiet})
            for index in range(self._plan.config.seeds)
        ]

    def _write(self) -> None:
        document = {"values": self.values, "forks": self.forks}
        write_text_atomic(self._home / TRIAL_FILE, json.dumps(document, indent=2) + "\n")

    def runs(self) -> list[Path]:
        """Return the run folders, one per seed, where they are now."""
        folder = self._home / f"fork-{len(self.forks)}" if self.forks else self._home
        return [folder / f"seed-{index}" for index in range(len(self._configs))]

    def advance(self, evaluations: int | None, ends_at_s: float = math.inf) -> Progress:
        """Train all seeds in turns until each has so many evaluations, or to its end.

        Args:
            evaluations: The next decision of the sweep; None if there is none before the end.
            ends_at_s: Time at which the sweep ends.

        Raises:
            LudusError: Whatever ends a run.
        """
        config, limit_h = self._plan.config, self._plan.config.max_hours_per_trial
        left_s = math.inf if limit_h is None else limit_h * _SECONDS_PER_HOUR - self.wall_s()
        used_up = f"sweep.max_hours_per_trial of {limit_h:g} is used up" if limit_h is not None else ""
        if left_s <= 0.0:
            return self.progress(used_up)
        both = [*zip(self._configs, self.runs(), strict=True)]
        left = [
            (run, folder)
            for run, folder in both
            if (evaluations is None or len(read_points(folder, config)) < evaluations)
            and not read_progress(run, folder).is_finished
        ]
        trial_ends_s = time.time() + left_s
        ends_s = min(ends_at_s, trial_ends_s)
        limits = [_Limits(self._sweep, folder, config, evaluations, ends_s) for _, folder in left]
        for _, folder in left:
            when_unlocked(partial(_try_lock, folder))
        with held_warnings() as warnings:
            if left and left[0] is both[0] and not read_progress(*both[0]).env_steps:
                for _ in verify(resolve(self._configs[0]), 0, both[0][1]):  # those of the other seeds are the same
                    pass
        turns = [
            training_turns(run, folder, Received(), title=f"{self.name} seed {run.seed}", callbacks=[limit],
                           warnings=warnings if folder is both[0][1] else ())
            for (run, folder), limit in zip(left, limits, strict=True)
        ]  # fmt: skip
        outcomes = train_together(turns, resolve(self._configs[0]).device)
        stopped = [
            outcome.stop_reason
            for limit, outcome in zip(limits, outcomes, strict=True)
            if outcome.stop_reason and not limit.is_decision
        ]
        if not stopped:
            return self.progress()
        is_late = any(limit.is_late for limit in limits)
        if is_late and trial_ends_s < ends_at_s:
            return self.progress(used_up)
        # Anything else is a guard of the run, after which its last evaluation counts.
        return self.progress(stopped[0], is_interrupted=is_late or (self._sweep / STOP_FILE).exists())

    def progress(self, reason: str = "", *, is_interrupted: bool = False) -> Progress:
        """Return how far it is, by the files of its runs."""
        both = [*zip(self._configs, self.runs(), strict=True)]
        points = tuple(tuple(read_points(folder, self._plan.config)) for _, folder in both)
        is_finished = all(read_progress(config, folder).is_finished for config, folder in both)
        return Progress(points, self.wall_s(), is_finished, "" if is_finished else reason, is_interrupted)

    def wall_s(self) -> float:
        """Return the wall time of all of its runs, those before a fork included."""
        times: dict[Path, float] = {}
        for path in self._home.glob(f"**/seed-*/{RUN}"):
            sessions = [each for each in read_json(path).get("sessions") or () if isinstance(each, dict)]
            found = [session.get("wall_s") for session in sessions]
            spent_s = sum(each for each in found if isinstance(each, int | float))
            folder = path.parent.parent
            times[folder] = max(times.get(folder, 0.0), spent_s)  # seconds of runs in turns are those of all of them
        return sum(times.values())

    def fork(self, source: "TrialRuns", values: Mapping[str, Any]) -> None:
        """Continue with other values from the present state of another trial, which is not being trained."""
        evaluations = min(len(read_points(folder, self._plan.config)) for folder in source.runs())
        fork = {"source": source.name, "evaluations": evaluations, "before": self.values}
        self._set(dict(values), [*self.forks, fork])
        for folder, target, config in zip(source.runs(), self.runs(), self._configs, strict=True):
            remove_folder(target)  # one that was cut off
            fork_run(folder, target, config)
        self._write()


def read_trial(sweep: Path, name: str) -> dict[str, Any]:
    """Return what a trial says of itself; empty if it has not begun."""
    path = sweep / TRIALS_FOLDER / name / TRIAL_FILE
    if not os.path.lexists(path):
        return {}
    document = read_json_object(path, limit=MAX_DOCUMENT_BYTES)
    forks = document.get("forks")
    is_list = isinstance(forks, list) and all(isinstance(each, dict) for each in forks)
    if not is_list or not isinstance(document.get("values"), dict):
        raise FormatError(f"{path} is not the file of a trial: it needs values and forks")
    return document


def when_unlocked(do: Callable[[], _Result]) -> _Result:
    """Do something with a run that a process whose head was killed may still hold; it ends as soon as it notices."""
    waited_until_s = time.monotonic() + _LOCK_WAIT_S
    while True:
        try:
            return do()
        except RunLockedError:
            if time.monotonic() >= waited_until_s:
                raise
            time.sleep(_LOCK_POLL_S)


def _try_lock(folder: Path) -> None:
    RunLock(folder).release()


def check_target(folder: Path, names: Sequence[str], advice: str = "continue it with --resume") -> None:
    """Raise ConfigError if a folder for something new holds something already."""
    taken = [name for name in names if (folder / name).exists()]
    if taken:
        raise ConfigError(f"{folder} has {', '.join(taken)} already; {advice}, or choose another folder")
