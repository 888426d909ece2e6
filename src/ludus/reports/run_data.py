"""Read a run folder, the one way for everything that reports on runs: whatever is missing or cut off is left out.

A running run is read as it is: a partially written line does not count yet. A link out of the folder is left out: of a
downloaded run it could put any file of this machine on a page that is passed on.
"""

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ludus.config import read_document
from ludus.core.errors import ConfigError, FormatError
from ludus.core.files import MAX_DOCUMENT_BYTES, read_json_object, suggest_run
from ludus.core.tables import Table, read_table
from ludus.league.payoffs import Record
from ludus.league.ratings import FIRST_MODE

logger = logging.getLogger(__name__)

METRICS = "metrics.jsonl"
EPISODES = "monitor.csv"
EPISODE_METRICS = "behavior_metrics.csv"
REWARDS = "reward_breakdown.csv"
EVALUATIONS = "evaluation_results.csv"
OPPONENTS = "opponents.csv"
STRATEGY = "strategy_analysis.csv"
RESOURCES = "resources.csv"  # times and memory; the only file that differs between equal runs
CONFIG = "config.yaml"
RUN = "run.json"
LOCK = "run.lock"  # held while a process trains in the folder; says which one
LOG = "run.log"
TABLES = {  # attribute of `RunData` -> file
    "metrics": METRICS, "episodes": EPISODES, "episode_metrics": EPISODE_METRICS, "rewards": REWARDS,
    "evaluations": EVALUATIONS, "opponents": OPPONENTS, "strategy": STRATEGY, "resources": RESOURCES,
}  # fmt: skip
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_BEST = Path("checkpoints") / "best" / "manifest.json"
_NO_TABLE = Table({})


@dataclass(frozen=True, slots=True)
class RunData:
    """Content of the files of a run folder; see `TABLES` for the files of the tables."""

    folder: Path
    config: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)  # `config.yaml` as plain data
    run: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)  # `run.json` likewise
    metrics: Table = _NO_TABLE  # one row per iteration: losses, entropy, KL and so on
    episodes: Table = _NO_TABLE  # one row per episode: `reward`, `length`, `outcome` (won, drawn, lost), `opponent`
    episode_metrics: Table = _NO_TABLE  # one row per iteration in which episodes ended
    rewards: Table = _NO_TABLE  # one row per iteration: `total`, then the terms
    evaluations: Table = _NO_TABLE  # one row per evaluation and opponent or scenario
    opponents: Table = _NO_TABLE  # one row per iteration and opponent: `learner`, `opponent`, `kind`, `wins`...
    strategy: Table = _NO_TABLE  # one row every few iterations
    resources: Table = _NO_TABLE  # one row now and then: memory, and where the time went since the previous row

    def setting(self, path: str, default: Any = None) -> Any:  # noqa: ANN401 - as the setting
        """Return a setting by its path, such as `ppo.ent_coef`; the default if the run has none."""
        found: Any = self.config
        for part in path.split("."):
            if not isinstance(found, Mapping) or part not in found:
                return default
            found = found[part]
        return found

    @property
    def algorithm(self) -> str:
        """Name of the algorithm; the section of its name holds its settings."""
        return str(self.setting("algorithm", "ppo"))

    @property
    def is_off_policy(self) -> bool:
        """Whether the algorithm learns from a replay buffer."""
        section = self.setting(self.algorithm, {})
        return isinstance(section, Mapping) and not section.keys().isdisjoint(("buffer_size", "learning_starts"))


def read_run(folder: Path) -> RunData:
    """Read a run folder.

    Raises:
        ConfigError: It holds neither settings nor metrics, so it is not a run folder.
    """
    if not (folder / CONFIG).is_file() and not (folder / METRICS).is_file():
        raise ConfigError(f"{folder} is not a run folder: it has neither {CONFIG} nor {METRICS}{suggest_run(folder)}")
    return RunData(folder, **read_parts(folder, TABLES))


def read_parts(folder: Path, tables: Iterable[str]) -> dict[str, Any]:
    """Return attributes of `RunData`: the settings, the document and some tables."""
    tables = tuple(tables)
    found = {name: read_table(folder / TABLES[name]) for name in tables if is_inside(folder, TABLES[name])}
    config = read_settings(folder / CONFIG) if is_inside(folder, CONFIG) else {}
    run = read_json(folder / RUN) if is_inside(folder, RUN) else {}
    return {"config": config, "run": run, **dict.fromkeys(tables, _NO_TABLE), **found}


def is_inside(folder: Path, name: str | Path) -> bool:
    """Return whether a file of a run folder is not behind a link to outside of it; warn if it is."""
    here, there = os.path.realpath(folder), os.path.realpath(folder / name)
    if there.startswith(os.path.join(here, "")):  # noqa: PTH118 - of resolved paths
        return True
    logger.warning("[WARN] %s is a link out of the run folder, to %s; it is left out", folder / name, there)
    return False


def read_settings(path: Path) -> dict[str, Any]:
    """Read a YAML file as plain data; empty if it is missing, or with a warning if it is unreadable."""
    if not os.path.lexists(path):
        return {}
    document = read_document(path)
    if not document.readable:
        logger.warning("[WARN] %s; it is left out", document.faults[0])
    plain = document.root.plain() if document.readable else {}
    return plain if isinstance(plain, dict) else {}


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; empty if it is missing, or with a warning if it is unreadable."""
    if not os.path.lexists(path):
        return {}
    try:
        return read_json_object(path, limit=MAX_DOCUMENT_BYTES)
    except FormatError as error:
        logger.warning("[WARN] %s; it is left out", error)
        return {}


@dataclass(frozen=True, slots=True)
class AgentResults:
    """Evaluation matches of one agent."""

    checkpoint: str  # `best`; `last` if the best one is unknown
    env_steps: int
    records: Mapping[str, Mapping[str, Record]]  # by mode and opponent


def read_agent_results(folder: Path, evaluations: Table) -> AgentResults | None:
    """Return the matches of the best agent, else of the one evaluated last; None if no matches were evaluated."""
    counts = np.stack([evaluations.numbers(name) for name in ("wins", "draws", "losses")], axis=1)
    played = evaluations.rows((np.isfinite(counts) & (counts >= 0.0)).all(1) & (evaluations.texts("opponent") != ""))
    steps = played.numbers("env_steps")
    if not np.isfinite(steps).any():
        return None
    best = read_json(folder / _BEST).get("step") if is_inside(folder, _BEST) else None
    is_known = isinstance(best, int) and best in steps
    when = int(steps[steps == best][0] if is_known else steps[np.isfinite(steps)][-1])
    chosen = played.rows(steps == when)
    records: dict[str, dict[str, Record]] = {}
    for row, (mode, opponent) in enumerate(zip(chosen.texts("mode"), chosen.texts("opponent"), strict=True)):
        won, drawn, lost = (int(chosen.numbers(name)[row]) for name in ("wins", "draws", "losses"))
        found = records.setdefault(str(mode) or FIRST_MODE, {})
        found[str(opponent)] = found.get(str(opponent), Record()).plus(Record(won, drawn, lost))
    return AgentResults("best" if is_known else "last", when, records)
