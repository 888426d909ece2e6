"""The runs of one trial: one run folder per seed, trained up to the next decision of the scheduler.

A trial is trained like any run, so everything that holds for runs holds for it: it resumes bit-exactly, can be watched
and reported on. Its seeds are trained one after the other or in turns; each learns the same either way. Between
decisions a run is left to itself; at one it is stopped like by `Trainer.stop`, with the checkpoint `interrupted`, and
resumed if the trial continues. A fork is that of `ludus resume --fork`.

    trials/trial-0003/trial.json           values, and the folder in which the trial is now
    trials/trial-0003/error.txt            why it failed, if it did
    trials/trial-0003/seed-0/              a run folder
    trials/trial-0003/fork-1/seed-0/       the run after it was forked from another trial
    forks/trial-0001-4/seed-0/             the state of a trial after its fourth evaluation, to be forked from
"""

import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch

from ludus.core.errors import ConfigError, FormatError, LudusError, RunLockedError, UnknownNameError
from ludus.core.files import (
    JSON,
    MAX_DOCUMENT_BYTES,
    read_if_possible,
    read_json_object,
    remove_folder,
    write_text_atomic,
)
from ludus.core.tables import Table, read_table
from ludus.core.text import blame, row_label
from ludus.reports.run_data import EVALUATIONS, RUN, read_json
from ludus.scale.config import SCORE, SweepConfig, SweepPlan
from ludus.training.callbacks import BaseCallback, Evaluated, Iteration
from ludus.training.config import TrainConfig
from ludus.training.loggers.run_log import held_warnings
from ludus.training.preflight import verify
from ludus.training.resolve import resolve
from ludus.training.run_folder import RunLock, fork_run
from ludus.training.session import Outcome, Received, read_progress, run_training, training_turns
from ludus.training.together import train_together

TRIALS_FOLDER, FORKS_FOLDER = "trials", "forks"
TRIAL_FILE, ERROR_FILE = "trial.json", "error.txt"
STOP_FILE = "stop"  # asks all runs of the sweep, on whatever machine, to save and stop
_LABELS = ("trial", "opponent", "side", "mode")
_NO_NUMBERS = (*_LABELS, "iteration", "env_steps")
_KEPT_FORKS = 3  # a trial may be forked from while it is already further
_LOCK_WAIT_S, _LOCK_POLL_S = 60.0, 0.5
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
        self._decision, self.ends_at_s = decision, ends_at_s
        self.is_decision = self.is_late = False

    def on_iteration(self, iteration: Iteration) -> None:
        """Look at the clock and for a request to stop."""
        if self._stop.exists():
            self.trainer.stop("the sweep was asked to stop")
        elif time.time() >= self.ends_at_s:
            self.is_late = True
            self.trainer.stop("the wall time of the sweep or of the trial is used up")

    def on_evaluation(self, evaluated: Evaluated) -> None:
        """Pause the run if this is the evaluation at which the scheduler decides."""
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


class _Ended(NamedTuple):
    """Why runs of a trial ended before their budgets, and whether that ends all of them."""

    reason: str = ""
    is_interrupted: bool = False
    ends_all: bool = False


class TrialRuns:
    """The runs of a trial.

    Attributes:
        name: Its name, such as `trial-0003`.
        values: Its values by name of the key.
    """

    def __init__(self, plan: SweepPlan, sweep: Path, name: str, values: Mapping[str, Any]) -> None:
        """Open the folder of a trial, which is made if missing."""
        self.name, self.values = name, dict(values)
        self._plan, self._sweep, self._home = plan, sweep, sweep / TRIALS_FOLDER / name
        self._document = read_trial(sweep, name)
        if not self._document:
            self._write({"values": self.values, "folder": ".", "forks": []})
        base = plan.trial_config(self.values)
        # A figure at every pause would cost more than the pause; reports draw the same curves.
        quiet = base.monitoring.model_copy(update={"console": "off", "curves": False})
        self._configs = [
            base.model_copy(update={"seed": base.seed + index, "monitoring": quiet})
            for index in range(plan.config.seeds)
        ]

    @property
    def is_current(self) -> bool:
        """Whether the folder is that of these values; not before `fork` if another trial's values were taken over."""
        return self._document.get("values") == self.values

    @property
    def folder(self) -> Path:
        """Where its runs are now."""
        return self._home / str(self._document.get("folder", "."))

    def runs(self) -> list[Path]:
        """Return the run folders, one per seed."""
        return [self.folder / f"seed-{index}" for index in range(len(self._configs))]

    def progress(self) -> Progress:
        """Return how far it is, by the files of its runs."""
        return self._progress(reason="", is_interrupted=False)

    def advance(self, evaluations: int | None, ends_at_s: float = math.inf) -> Progress:
        """Train every seed until it has so many evaluations, or to its end.

        Args:
            evaluations: The next decision of the scheduler; None if there is none before the end.
            ends_at_s: Time at which the sweep ends.

        Raises:
            LudusError: Whatever ends a run; the message says of which seed it is if there are several.
        """
        if self._in_turns:
            ended = self._advance_in_turns(evaluations, ends_at_s)
        else:
            ended = self._advance_in_sequence(evaluations, ends_at_s)
        return self._progress(ended.reason, ended.is_interrupted)

    @cached_property
    def _in_turns(self) -> bool:
        """Whether seeds are trained in turns."""
        asked = self._plan.config.seeds_in_turns
        return torch.device(resolve(self._configs[0]).device).type == "cuda" if asked is None else asked

    def _advance_in_sequence(self, evaluations: int | None, ends_at_s: float) -> _Ended:
        """Train one seed after the other; one that a limit or a request stops ends all."""
        ended = _Ended()
        for index, folder in enumerate(self.runs()):
            left_s = self._left_s()
            if left_s <= 0.0:
                return _Ended(self._used_up())
            if self._is_there(folder, evaluations):
                continue
            limits = self._limits(folder, evaluations, min(ends_at_s, time.time() + left_s))
            reason = _train(self._configs[index], folder, limits, title=self._title(index), checked=index == 0)
            this = self._judge(limits, reason, ends_at_s)
            if this.ends_all:
                return this
            ended = this if this.reason else ended
        return ended

    def _advance_in_turns(self, evaluations: int | None, ends_at_s: float) -> _Ended:
        """Train all seeds in turns; a limit or a request stops each after its present iteration."""
        left_s = self._left_s()
        if left_s <= 0.0:
            return _Ended(self._used_up())
        folders = self.runs()
        left = [index for index, folder in enumerate(folders) if not self._is_there(folder, evaluations)]
        left = [index for index in left if not read_progress(self._configs[index], folders[index]).is_finished]
        if not left:
            return _Ended()
        ends_s = min(ends_at_s, time.time() + left_s)
        limits = [self._limits(folders[index], evaluations, ends_s) for index in left]
        for index in left:
            _retry_while_locked(partial(_try_lock, folders[index]))
        with held_warnings() as warnings:
            if left[0] == 0:
                _check_new(self._configs[0], folders[0])
        outcomes: list[Outcome] = train_together(
            [
                training_turns(
                    self._configs[index],
                    folders[index],
                    Received(),
                    title=self._title(index),
                    callbacks=[limit],
                    warnings=warnings if index == 0 else (),
                )
                for index, limit in zip(left, limits, strict=True)
            ],
            resolve(self._configs[0]).device,
        )
        judged = [
            self._judge(limit, outcome.stop_reason, ends_at_s) for limit, outcome in zip(limits, outcomes, strict=True)
        ]
        return max(judged, key=lambda each: (each.ends_all, bool(each.reason)))

    def _title(self, index: int) -> str:
        return f"{self.name} seed {self._configs[index].seed}"

    def _is_there(self, folder: Path, evaluations: int | None) -> bool:
        """Return whether a run has reached the next decision."""
        return evaluations is not None and len(read_points(folder, self._plan.config)) >= evaluations

    def _limits(self, folder: Path, evaluations: int | None, ends_at_s: float) -> _Limits:
        return _Limits(self._sweep, folder, self._plan.config, evaluations, ends_at_s)

    def _left_s(self) -> float:
        limit_h = self._plan.config.max_hours_per_trial
        return math.inf if limit_h is None else limit_h * _SECONDS_PER_HOUR - self.wall_s()

    def _used_up(self) -> str:
        return f"sweep.max_hours_per_trial of {self._plan.config.max_hours_per_trial:g} is used up"

    def _judge(self, limits: _Limits, reason: str, ends_at_s: float) -> _Ended:
        """Return what the end of a run before its budget means for the trial."""
        if not reason or limits.is_decision:
            return _Ended()
        if limits.is_late and limits.ends_at_s < ends_at_s:
            return _Ended(self._used_up(), ends_all=True)
        if limits.is_late or (self._sweep / STOP_FILE).exists():
            return _Ended(reason, is_interrupted=True, ends_all=True)
        return _Ended(reason)  # a guard of the run: its last evaluation counts

    def wall_s(self) -> float:
        """Return the wall time of all of its runs, those before a fork included."""
        times: dict[Path, list[float]] = {}
        for path in self._home.glob(f"**/seed-*/{RUN}"):
            sessions = [each for each in read_json(path).get("sessions") or () if isinstance(each, dict)]
            found = [session.get("wall_s") for session in sessions]
            spent_s = sum(each for each in found if isinstance(each, int | float))
            times.setdefault(path.parent.parent, []).append(spent_s)
        # Seconds of runs in turns are those of all of them.
        return sum(max(each) if self._in_turns else sum(each) for each in times.values())

    def snapshot(self) -> Path:
        """Keep the present state of all seeds, so that other trials can be forked from it; return its folder."""
        count = min(len(read_points(folder, self._plan.config)) for folder in self.runs())
        forks = self._sweep / FORKS_FOLDER
        target = forks / f"{self.name}-{len(self._document['forks'])}-{count:06}"
        for folder, config in zip(self.runs(), self._configs, strict=True):
            copied = target / folder.name
            if not (copied / RUN).is_file():
                fork_run(folder, copied, config)
        for old in sorted(forks.glob(f"{self.name}-*"))[:-_KEPT_FORKS]:
            remove_folder(old)
        return target

    def fork(self, snapshot: Path, source: str) -> None:
        """Continue from the state of another trial with the values of this one."""
        forks = self._document["forks"]
        target = f"fork-{len(forks) + 1}"
        for seed, config in zip([folder.name for folder in self.runs()], self._configs, strict=True):
            remove_folder(self._home / target / seed)  # one that was cut off
            fork_run(snapshot / seed, self._home / target / seed, config)
        evaluations = min(len(read_points(snapshot / folder.name, self._plan.config)) for folder in self.runs())
        fork = {"source": source, "evaluations": evaluations, "before": self._document["values"]}
        self._write({"values": self.values, "folder": target, "forks": [*forks, fork]})

    def forks(self) -> list[JSON]:
        """Return from which trials it was forked, when, and its values before."""
        found = self._document.get("forks")
        return found if isinstance(found, list) else []

    def _progress(self, reason: str, is_interrupted: bool) -> Progress:
        points = tuple(tuple(read_points(folder, self._plan.config)) for folder in self.runs())
        both = zip(self._configs, self.runs(), strict=True)
        is_finished = all(read_progress(config, folder).is_finished for config, folder in both)
        return Progress(points, self.wall_s(), is_finished, "" if is_finished else reason, is_interrupted)

    def _write(self, document: dict[str, Any]) -> None:
        self._document = document
        write_text_atomic(self._home / TRIAL_FILE, json.dumps(document, indent=2) + "\n")


def read_trial(sweep: Path, name: str) -> dict[str, Any]:
    """Return what a trial says of itself; empty if it has not begun."""
    path = sweep / TRIALS_FOLDER / name / TRIAL_FILE
    if not os.path.lexists(path):
        return {}
    document = read_json_object(path, limit=MAX_DOCUMENT_BYTES)
    folder, forks = document.get("folder"), document.get("forks")
    is_inside = isinstance(folder, str) and (folder == "." or folder == f"fork-{len(forks or ())}")
    if not is_inside or not isinstance(forks, list) or not isinstance(document.get("values"), dict):
        raise FormatError(f"{path} is not the file of a trial: it needs values, folder and forks")
    return document


def note_error(sweep: Path, name: str, error: Exception) -> str:
    """Write why a trial failed into its folder, and return it; the place only of an error that is not ours."""
    text = f"{type(error).__name__}: {error}" if isinstance(error, LudusError) else blame(error)
    write_text_atomic(sweep / TRIALS_FOLDER / name / ERROR_FILE, text + "\n")
    return text


def read_error(sweep: Path, name: str) -> str:
    """Return why a trial failed; empty if it could not say."""
    found = read_if_possible(sweep / TRIALS_FOLDER / name / ERROR_FILE, limit=MAX_DOCUMENT_BYTES)
    return (found or b"").decode("utf-8", errors="replace").strip()


def _retry_while_locked(do: Callable[[], _Result]) -> _Result:
    """Do something with a run that a worker of a killed sweep may still hold, which ends as soon as it notices."""
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


def _train(config: TrainConfig, folder: Path, limits: _Limits, *, title: str, checked: bool) -> str:
    """Train or resume one run, and return why it ended before its budget; empty if it did not."""

    def train() -> str:
        if read_progress(config, folder).is_finished:
            return ""
        with held_warnings() as warnings:
            if checked:
                _check_new(config, folder)
        outcome = run_training(config, folder, Received(), title=title, callbacks=[limits], warnings=warnings)
        return outcome.stop_reason

    return _retry_while_locked(train)


def _check_new(config: TrainConfig, folder: Path) -> None:
    """Check the settings of a run that has not begun; those of a trial's other seeds are the same."""
    if not read_progress(config, folder).env_steps:
        for _ in verify(resolve(config), 0, folder):
            pass


def check_target(folder: Path, names: Sequence[str], advice: str = "continue it with --resume") -> None:
    """Raise ConfigError if a folder for something new holds something already."""
    taken = [name for name in names if (folder / name).exists()]
    if taken:
        raise ConfigError(f"{folder} has {', '.join(taken)} already; {advice}, or choose another folder")
