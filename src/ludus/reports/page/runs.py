"""What a report knows of its runs: their files, how far they came, and which of them are seeds of one configuration."""

import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ludus.core.errors import ConfigError
from ludus.reports import run_data as files
from ludus.reports.page.settings import learn_alike
from ludus.reports.run_data import Table

_TABLES = (files.METRICS, files.BEHAVIOUR, files.REWARDS, files.EVALUATIONS, files.OPPONENTS, files.STRATEGY,
           files.RESOURCES)  # fmt: skip
_SEED_AT_END = re.compile(r"[-_. ]*(seed|s)?[-_. ]*\d*$")


@dataclass(frozen=True, slots=True)
class Run:
    """One run, as far as its files are there.

    Attributes:
        name: What people are shown; no two runs of a report have the same.
        folder: Where it is.
        config: `config.yaml` as plain data.
        document: `run.json` as plain data.
        tables: The tables by file name, without `monitor.csv`: a row an episode is more than a page can show.
        missing: Files that are not there or empty.
    """

    name: str
    folder: Path
    config: Mapping[str, Any]
    document: Mapping[str, Any]
    tables: Mapping[str, Table]
    missing: tuple[str, ...]

    @property
    def env_steps(self) -> int:
        """How far it came."""
        steps = [self.tables[name].numbers("env_steps") for name in (files.METRICS, files.REWARDS, files.EVALUATIONS)]
        return int(max((column[np.isfinite(column)].max() for column in steps if np.isfinite(column).any()), default=0))

    @property
    def total_env_steps(self) -> int | None:
        """Its budget."""
        total = self.config.get("total_env_steps")
        return total if isinstance(total, int) else None

    @property
    def sessions(self) -> tuple[Mapping[str, Any], ...]:
        """How often it was begun or resumed, as `run.json` tells."""
        sessions = self.document.get("sessions")
        return tuple(each for each in sessions if isinstance(each, dict)) if isinstance(sessions, list) else ()

    @property
    def training_s(self) -> float | None:
        """Time that its sessions took; of sessions that were cut off nothing is known."""
        taken = [each.get("training_s") for each in self.sessions]
        return sum(each for each in taken if isinstance(each, int | float)) or None

    @property
    def steps_per_s(self) -> float | None:
        """Environment steps a second, over the sessions that ended."""
        before, steps, taken_s = 0, 0, 0.0
        for session in self.sessions:
            reached, training_s = session.get("env_steps"), session.get("training_s")
            if isinstance(reached, int) and isinstance(training_s, int | float):
                steps, taken_s, before = steps + reached - before, taken_s + training_s, reached
        return steps / taken_s if steps > 0 and taken_s > 0.0 else None

    @property
    def state(self) -> str:
        """Says `finished`, `stopped` before its budget, or `not ended`: it is running, or was killed."""
        if self.total_env_steps is not None and self.env_steps >= self.total_env_steps:
            return "finished"
        return "stopped" if self.sessions and "ended" in self.sessions[-1] else "not ended"

    @property
    def best_score(self) -> float | None:
        """Highest score of an evaluation."""
        scores = self.tables[files.EVALUATIONS].numbers("score")
        return float(scores[np.isfinite(scores)].max()) if np.isfinite(scores).any() else None

    @property
    def last_score(self) -> float | None:
        """Score of the last evaluation."""
        score = self.tables[files.EVALUATIONS].last("score")
        return score if math.isfinite(score) else None

    @property
    def world(self) -> str:
        """Where it played; empty if nothing says so."""
        world = self.config.get("world")
        name = world.get("name") if isinstance(world, dict) else self.document.get("world")
        return str(name or "")

    @property
    def seed(self) -> int | None:
        """Its seed."""
        seed = self.config.get("seed", self.document.get("seed"))
        return seed if isinstance(seed, int) else None


@dataclass(frozen=True, slots=True)
class Group:
    """Runs that differ in their seed alone, or one run.

    Attributes:
        label: What people are shown; no two groups of a report have the same.
        runs: Its runs.
    """

    label: str
    runs: tuple[Run, ...]


def read_runs(folders: Sequence[Path]) -> tuple[Run, ...]:
    """Reads run folders.

    Raises:
        ConfigError: There is none, one is no run folder, or one comes twice.
    """
    if not folders:
        raise ConfigError("a report needs at least one run folder, such as runs/latest")
    resolved = [folder.resolve() for folder in folders]
    twice = sorted({str(folder) for folder in resolved if resolved.count(folder) > 1})
    if twice:
        raise ConfigError(f"named more than once: {', '.join(twice)}; name every run once")
    return tuple(_read(folder, name) for folder, name in zip(resolved, _names(resolved), strict=True))


def group_runs(runs: Sequence[Run]) -> tuple[Group, ...]:
    """Puts runs together that differ in their seed alone; a run whose configuration is lost stands alone."""
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
        raise ConfigError(f"there is no folder {folder}; pass the folder that `ludus train` named, such as runs/latest")
    known = (files.CONFIG, files.RUN, *_TABLES)
    if not any((folder / each).is_file() for each in known):
        raise ConfigError(f"{folder} is no run folder: it has none of {', '.join(known)}")
    tables = {
        each: files.read_lines(folder / each) if each == files.METRICS else files.read_table(folder / each)
        for each in _TABLES
    }
    config, document = files.read_settings(folder / files.CONFIG), _read_json(folder / files.RUN)
    missing = [each for each, table in tables.items() if not len(table)]
    missing += [each for each, found in ((files.CONFIG, config), (files.RUN, document)) if not found]
    return Run(name, folder, config, document, tables, tuple(missing))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _names(folders: Sequence[Path]) -> list[str]:
    """Returns the folders' names, with as much of the path before them as tells them apart."""
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
