"""The results of a sweep: one record per trial, the winner, the cost-score front and the importance of every key.

`results.json` is written whenever a trial changes its state, and is all that a killed sweep needs to continue.
"""

import json
import math
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ludus.config import dump_yaml, list_faults
from ludus.core.errors import FormatError
from ludus.core.files import JSON, MAX_DOCUMENT_BYTES, read_json_object, write_text_atomic
from ludus.core.intervals import Interval, mean_interval
from ludus.scale.config import SweepPlan
from ludus.scale.runs import TRIALS_FOLDER, Point, read_trial

RESULTS_FILE, WINNER_FILE = "results.json", "best.yaml"
_VERSION = 1
_FEWEST_FOR_IMPORTANCE = 4
_FEWEST_DIFFERENT = 2

State: TypeAlias = Literal["waiting", "running", "finished", "stopped", "failed"]


class TrialRecord(BaseModel):
    """What is known of a trial.

    Attributes:
        number: Its number, from 1.
        values: Its values by name of the key, at present.
        state: `waiting` has not ended and is trained on by a resumed sweep; `stopped` ended before its budget.
        reason: Why it was stopped or failed.
        points: For every seed, env steps and objective of each evaluation.
        wall_s: Wall time of its runs in all.
        replaced: How often its process was lost and replaced.
        forks: From which trials population-based training forked it, at which evaluation, and its values before.
    """

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

    number: int = Field(ge=1)
    values: dict[str, Any]
    state: State = "waiting"
    reason: str = ""
    points: list[list[tuple[int, float | None]]] = []
    wall_s: float = 0.0
    replaced: int = Field(default=0, ge=0)
    forks: list[dict[str, Any]] = []

    @property
    def name(self) -> str:
        """Name of its folder."""
        return f"trial-{self.number:04}"

    @property
    def evaluations(self) -> int:
        """Evaluations that all seeds have."""
        return min((len(points) for points in self.points), default=0)

    def value_at(self, evaluation: int) -> Interval:
        """Return the mean of the objective over seeds at an evaluation, from 1, with Student's 95 % interval."""
        values = [points[evaluation - 1][1] for points in self.points]
        return mean_interval([math.nan if value is None else value for value in values])

    @property
    def value(self) -> Interval | None:
        """The objective at its last evaluation; None if there was none, or if it was no number."""
        found = self.value_at(self.evaluations) if self.evaluations else None
        return found if found is not None and math.isfinite(found.estimate) else None

    @property
    def env_steps(self) -> int:
        """Env steps at its last evaluation, of the slowest seed."""
        return min((points[self.evaluations - 1][0] for points in self.points), default=0) if self.evaluations else 0

    def take(self, points: Iterable[Iterable[Point]], wall_s: float) -> None:
        """Take how far the runs are."""
        self.points = [[(step, value if math.isfinite(value) else None) for step, value in seed] for seed in points]
        self.wall_s = wall_s

    def describe(self) -> dict[str, JSON]:
        """Return everything as JSON, with what follows from it."""
        curve = [self.value_at(place + 1) for place in range(self.evaluations)]
        steps = [max(points[place][0] for points in self.points) for place in range(self.evaluations)]
        last = self.value
        return {
            **self.model_dump(mode="json"),
            "folder": f"{TRIALS_FOLDER}/{self.name}",
            "evaluations": self.evaluations,
            "env_steps": self.env_steps,
            "value": None if last is None else _interval(last),
            "curve": {"env_steps": steps, "value": [_interval(each) for each in curve]},
        }


class _ResultsFile(BaseModel):
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

    version: Literal[1]
    wall_s: float = Field(default=0.0, ge=0.0)
    trials: list[TrialRecord]


@dataclass(slots=True)
class SweepResults:
    """All trials of a sweep.

    Attributes:
        plan: The sweep.
        folder: Its folder.
        trials: The trials by number.
        earlier_s: Wall time of the sessions before this one.
        started_s: When this session began.
        reason: Why the sweep ended before all trials had; empty if it did not, or while it runs.
        is_running: Whether it is not over.
        signal_number: The signal that ended it; 0 if none did.
        importance: How much each key matters, once it is over; see `importance_of`.
    """

    plan: SweepPlan
    folder: Path
    trials: dict[int, TrialRecord] = field(default_factory=dict)
    earlier_s: float = 0.0
    started_s: float = field(default_factory=time.time)
    reason: str = ""
    is_running: bool = True
    signal_number: int = 0
    importance: JSON = None

    @property
    def wall_s(self) -> float:
        """Wall time of all sessions."""
        return self.earlier_s + time.time() - self.started_s

    def add(self, values: Mapping[str, Any]) -> TrialRecord:
        """Return a new trial with these values."""
        record = TrialRecord(number=len(self.trials) + 1, values=dict(values))
        self.trials[record.number] = record
        return record

    def in_state(self, *states: State) -> list[TrialRecord]:
        """Return the trials in some states."""
        return [record for record in self.trials.values() if record.state in states]

    def ranking(self) -> list[TrialRecord]:
        """Return the trials from the best to the worst: finished ones, then stopped ones, then those without a value.

        Among stopped trials those that came further are better: that is why they were stopped later.
        """
        sign = self.plan.config.sign

        def key(record: TrialRecord) -> tuple[bool, bool, int, float, int]:
            last = record.value
            is_finished = record.state == "finished"
            worth = -math.inf if last is None else sign * last.estimate
            return last is None, not is_finished, 0 if is_finished else -record.evaluations, -worth, record.number

        return sorted(self.trials.values(), key=key)

    @property
    def best(self) -> TrialRecord | None:
        """The best trial that has ended; None if none has a value."""
        ended = [each for each in self.ranking() if each.value is not None and each.state in ("finished", "stopped")]
        return ended[0] if ended else None

    def front(self) -> list[TrialRecord]:
        """Return the trials to which no other one is both cheaper and better, the cheapest first."""
        known = [(record.wall_s, record) for record in self.in_state("finished", "stopped") if record.value is not None]
        found: list[TrialRecord] = []
        for _, record in sorted(known, key=lambda each: (each[0], each[1].number)):
            if not found or self._worth(record) > self._worth(found[-1]):
                found.append(record)
        return found

    def _worth(self, record: TrialRecord) -> float:
        return -math.inf if record.value is None else self.plan.config.sign * record.value.estimate

    def finish(self, reason: str) -> None:
        """Write the results of a sweep that is over, and why it ended before all trials had, if it did."""
        self.is_running, self.reason, self.importance = False, reason, importance_of(self)
        self.save()

    def save(self) -> None:
        """Write `results.json`, and `best.yaml` if there is a winner; both atomically."""
        write_text_atomic(self.folder / RESULTS_FILE, json.dumps(self.describe(), indent=1) + "\n")
        best = self.best
        if best is not None:
            settings = self.plan.trial_config(best.values).to_json()
            write_text_atomic(
                self.folder / WINNER_FILE, f"# The best settings of {self.folder.resolve().name}\n{dump_yaml(settings)}"
            )

    def describe(self) -> dict[str, JSON]:
        """Return everything as JSON."""
        config, best = self.plan.config, self.best
        return {
            "version": _VERSION,
            "world": self.plan.base.world.name,
            "state": "running" if self.is_running else "stopped" if self.reason else "finished",
            "reason": self.reason,
            "wall_s": round(self.wall_s, 3),
            "sweep": config.model_dump(mode="json"),
            "keys": [dimension.describe() for dimension in self.plan.dimensions],
            "trials": [record.describe() for record in self.trials.values()],
            "ranking": [record.number for record in self.ranking()],
            "best": None if best is None else best.number,
            "front": [record.number for record in self.front()],
            "importance": self.importance,
        }


def read_results(plan: SweepPlan, folder: Path) -> SweepResults:
    """Read the results of a sweep that was begun; none if it was killed before the first trial.

    A trial that had begun when the sweep was killed, but was not in the file yet, waits.

    Raises:
        FormatError: The file is damaged.
    """
    path = folder / RESULTS_FILE
    document: dict[str, Any] = {"version": _VERSION, "trials": []}
    if os.path.lexists(path):
        document = read_json_object(path, limit=MAX_DOCUMENT_BYTES)
    try:
        found = _ResultsFile.model_validate(document)
    except ValidationError as error:
        raise FormatError(f"{path} cannot be used: {list_faults(error)}") from error
    for place, record in enumerate(found.trials, 1):
        if record.state in ("waiting", "running"):  # a fork may have changed its values since they were written last
            record.values = read_trial(folder, record.name).get("values", record.values)
        if record.number != place or plan.encode(record.values) is None:
            raise FormatError(f"{path} cannot be used: trial {place} is missing, or is not of this sweep's spaces")
    results = SweepResults(plan, folder, {record.number: record for record in found.trials}, earlier_s=found.wall_s)
    while values := read_trial(folder, TrialRecord(number=len(results.trials) + 1, values={}).name).get("values"):
        if plan.encode(values) is None:
            break
        results.add(values)
    return results


def importance_of(results: SweepResults) -> JSON:
    """Return how much of the objective's variance each key explains, by Optuna; None where there are too few trials.

    Trials are compared at the last evaluation that half of them reached, since stopped ones have no later value.
    """
    counts = sorted((record.evaluations for record in results.trials.values() if record.evaluations), reverse=True)
    if len(counts) < _FEWEST_FOR_IMPORTANCE or find_spec("optuna") is None:
        return None
    evaluation = counts[(len(counts) - 1) // 2]
    compared = [record for record in results.trials.values() if record.evaluations >= evaluation and not record.forks]
    values = [(record, record.value_at(evaluation).estimate) for record in compared]
    values = [(record, value) for record, value in values if math.isfinite(value)]
    if len(values) < _FEWEST_FOR_IMPORTANCE or len({value for _, value in values}) < _FEWEST_DIFFERENT:
        return None
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    evaluator: Any
    if find_spec("sklearn") is not None:
        name, evaluator = "fANOVA", optuna.importance.FanovaImportanceEvaluator(seed=results.plan.config.seed)
    else:
        name, evaluator = "PED-ANOVA", optuna.importance.PedAnovaImportanceEvaluator()
    spaces = {dimension.name: dimension.distribution() for dimension in results.plan.dimensions}
    study = optuna.create_study(direction=results.plan.config.direction)
    for record, value in values:
        params = results.plan.encode(record.values)
        study.add_trial(optuna.create_trial(params=params, distributions=spaces, value=value))
    shares = optuna.importance.get_param_importances(study, evaluator=evaluator)
    keys: dict[str, JSON] = {key: float(share) for key, share in shares.items()}
    return {"evaluator": name, "evaluation": evaluation, "trials": len(study.trials), "keys": keys}


def _interval(interval: Interval) -> JSON:
    """Return an interval as JSON; None for what is not finite."""
    return [value if math.isfinite(value) else None for value in interval]
