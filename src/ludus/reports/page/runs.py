"""The runs of a report: their files, progress and settings, and which of them are seeds of one configuration."""

import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from ludus.core.errors import ConfigError
from ludus.core.files import suggest_run
from ludus.core.intervals import Interval, mean_interval
from ludus.reports import run_data as files

TABLES = tuple(name for name in files.TABLES if name != "episodes")
_SEED_AT_END = re.compile(r"[-_. ]*(seed|s)?[-_. ]*\d*$")
GENERAL = "general"
# May differ between seeds of one configuration: none of it affects learning.
_NOT_LEARNING = ("seed", "monitoring", "checkpoints", "guard")
_OFF = ("null", "false", "[]", "{}")  # a setting that a run does not have counts as off
_LONGEST = 400  # characters of a value that are shown


@dataclass(frozen=True, slots=True)
class Run(files.RunData):
    """One run, as far as its files exist; without its episodes, whose rows are too many for a page."""

    name: str = ""  # display name, unique in a report
    status: str = ""  # `running`, `killed` and so on, where that is known; see `state`
    color: int | None = None  # its number on a live page

    @property
    def missing(self) -> tuple[str, ...]:
        """Files that are missing, empty or unreadable."""
        contents = {files.TABLES[name]: getattr(self, name) for name in TABLES}
        contents |= {files.CONFIG: self.config, files.RUN: self.run}
        return tuple(file for file, content in contents.items() if not len(content))

    @property
    def env_steps(self) -> int:
        """Env steps reached."""
        steps = [table.numbers("env_steps") for table in (self.metrics, self.rewards, self.evaluations)]
        return int(max((column[np.isfinite(column)].max() for column in steps if np.isfinite(column).any()), default=0))

    @property
    def total_env_steps(self) -> int | None:
        """Budget in env steps."""
        total = self.config.get("total_env_steps")
        return total if isinstance(total, int) else None

    @property
    def sessions(self) -> tuple[Mapping[str, Any], ...]:
        """Its sessions, from `run.json`: one per start or resume."""
        sessions = self.run.get("sessions")
        return tuple(each for each in sessions if isinstance(each, dict)) if isinstance(sessions, list) else ()

    @property
    def parent_env_steps(self) -> int:
        """Env steps of the run it was forked from; 0 if it is not a fork."""
        parent = self.run.get("parent")
        steps = parent.get("env_steps") if isinstance(parent, dict) else 0
        return steps if isinstance(steps, int) else 0

    @property
    def training_s(self) -> float | None:
        """Time of its iterations, without interrupted sessions."""
        return self._taken("training_s")

    @property
    def wall_s(self) -> float | None:
        """Time of its sessions with evaluations, without interrupted ones."""
        return self._taken("wall_s")

    def _taken(self, name: str) -> float | None:
        taken = [each.get(name) for each in self.sessions]
        return sum(each for each in taken if isinstance(each, int | float)) or None

    @property
    def steps_per_s(self) -> float | None:
        """Env steps per second of the run itself, over the sessions that ended."""
        before, steps, taken_s = self.parent_env_steps, 0, 0.0
        for session in self.sessions:
            reached, training_s = session.get("env_steps"), session.get("training_s")
            if isinstance(reached, int) and isinstance(training_s, int | float):
                start = session.get("start_env_steps")
                start = start if isinstance(start, int) else before
                steps, taken_s, before = steps + reached - start, taken_s + training_s, reached
        return steps / taken_s if steps > 0 and taken_s > 0.0 else None

    @property
    def commit(self) -> str | None:
        """Commit of the code in the last session that recorded one; None if none did."""
        states = [session.get("git") for session in self.sessions]
        known = [state for state in states if isinstance(state, dict) and state.get("commit")]
        if not known:
            return None
        return str(known[-1]["commit"]) + (" with uncommitted changes" if known[-1].get("clean") is False else "")

    @property
    def state(self) -> str:
        """Its status if known, else `finished`, `stopped` before its budget, or `not ended`: running, or killed."""
        if self.status:
            return self.status
        if self.total_env_steps is not None and self.env_steps >= self.total_env_steps:
            return "finished"
        return "stopped" if self.sessions and "ended" in self.sessions[-1] else "not ended"

    @property
    def best_score(self) -> float | None:
        """Highest score of an evaluation."""
        scores = self.evaluations.numbers("score")
        return float(scores[np.isfinite(scores)].max()) if np.isfinite(scores).any() else None

    @property
    def last_score(self) -> float | None:
        """Score of the last evaluation."""
        score = self.evaluations.last("score")
        return score if math.isfinite(score) else None

    @property
    def world(self) -> str:
        """The world; empty if unknown."""
        world = self.config.get("world")
        return str((world.get("name") if isinstance(world, dict) else self.run.get("world")) or "")

    @property
    def seed(self) -> int | None:
        """Its seed."""
        seed = self.config.get("seed", self.run.get("seed"))
        return seed if isinstance(seed, int) else None


@dataclass(frozen=True, slots=True)
class Group:
    """Runs that differ in their seed alone, or one run, under a label that is unique in a report."""

    label: str
    runs: tuple[Run, ...]

    def score(self, which: Literal["best", "last"]) -> Interval | None:
        """Return the mean of the seeds' best or last scores with Student's 95 % interval; None with less than two."""
        scores = [run.best_score if which == "best" else run.last_score for run in self.runs]
        known = [score for score in scores if score is not None]
        return mean_interval(known) if len(known) > 1 else None


def read_runs(folders: Sequence[Path]) -> tuple[Run, ...]:
    """Read run folders.

    Raises:
        ConfigError: There is none, one is not a run folder, or one is listed twice.
    """
    if not folders:
        raise ConfigError("a report needs at least one run folder, such as runs/latest")
    resolved = [folder.resolve() for folder in folders]
    twice = sorted({str(folder) for folder in resolved if resolved.count(folder) > 1})
    if twice:
        raise ConfigError(f"listed more than once: {', '.join(twice)}; list every run once")
    return tuple(_read(folder, name) for folder, name in zip(resolved, _names(resolved), strict=True))


def group_runs(runs: Sequence[Run]) -> tuple[Group, ...]:
    """Group runs that differ only in their seed; a run without a configuration is its own group."""
    groups: list[list[Run]] = []
    for run in runs:
        same = next((group for group in groups if run.config and learn_alike(group[0].config, run.config)), None)
        if same is None:
            groups.append([run])
        else:
            same.append(run)
    labels = [_label([run.name for run in group]) for group in groups]
    unique = [
        label if labels.count(label) == 1 else f"{label}: {group[0].name}"
        for label, group in zip(labels, groups, strict=True)
    ]
    return tuple(Group(label, tuple(group)) for label, group in zip(unique, groups, strict=True))


def _read(folder: Path, name: str) -> Run:
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}{suggest_run(folder)}")
    known = (files.CONFIG, files.RUN, *(files.TABLES[table] for table in TABLES))
    if not any((folder / file).is_file() for file in known):
        raise ConfigError(f"{folder} is not a run folder: it has none of {', '.join(known)}{suggest_run(folder)}")
    return Run(folder, **files.read_parts(folder, TABLES), name=name)


def _names(folders: Sequence[Path]) -> list[str]:
    """Return the folders' names, with as much of their paths as makes them unique."""
    for parts in range(1, max(len(folder.parts) for folder in folders) + 1):
        names = [str(Path(*folder.parts[-parts:])) for folder in folders]
        if len(set(names)) == len(names):
            return names
    return [str(folder) for folder in folders]


def _label(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    common = _SEED_AT_END.sub("", _common_start(names))
    return f"{common or names[0] + ' and others'} ({len(names)} seeds)"


def _common_start(names: Sequence[str]) -> str:
    letters = itertools.takewhile(lambda column: len(set(column)) == 1, zip(*names, strict=False))
    return "".join(column[0] for column in letters)


class Setting(NamedTuple):
    """One setting, by its path such as `ppo.learning_rate.start`."""

    path: str
    values: tuple[str | None, ...]  # in each group, as text; None where a group does not have it
    differs: bool  # between groups


def settings_by_part(groups: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, list[Setting]]:
    """Return all settings of the groups' runs by top-level key; different ones in a group are listed as `0, 1, 2`."""
    columns = [_merged([_flat(config) for config in configs]) for configs in groups]
    paths = dict.fromkeys(path for column in columns for path in column)
    parts: dict[str, list[Setting]] = {}
    for path in paths:
        values = tuple(column.get(path) for column in columns)
        differs = len({_meant(value) for value, column in zip(values, columns, strict=True) if column}) > 1
        part, _, rest = path.partition(".")
        parts.setdefault(part if rest else GENERAL, []).append(Setting(path, values, differs))
    return dict(sorted(parts.items(), key=lambda item: item[0] != GENERAL))


def learn_alike(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Return whether two configurations differ only in the seed and in what does not affect learning."""
    learning = ({name: config[name] for name in config if name not in _NOT_LEARNING} for config in (first, second))
    ours, theirs = map(_flat, learning)
    return all(_meant(ours.get(path)) == _meant(theirs.get(path)) for path in {**ours, **theirs})


def _meant(value: str | None) -> str | None:
    return None if value in _OFF else value


def _merged(columns: Sequence[Mapping[str, str]]) -> dict[str, str]:
    paths = dict.fromkeys(path for column in columns for path in column)
    return {path: ", ".join(dict.fromkeys(column[path] for column in columns if path in column)) for path in paths}


def _flat(config: Mapping[str, Any], before: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in config.items():
        path = f"{before}{name}"
        if isinstance(value, Mapping) and value:
            found |= _flat(value, f"{path}.")
        else:
            found[path] = _shown(value)
    return found


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
