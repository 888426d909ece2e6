"""Benchmark suites: opponents or scenarios, perturbations and the targets of each readiness tier, read from YAML."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ludus.config import KeyPath, Node, PresetDirectory, read_config, read_layers, short, show_path, suggest
from ludus.core.errors import ConfigFault, LudusError, MissingDependencyError, UnknownNameError
from ludus.envs.base import BatchedEnv
from ludus.envs.world import known_world
from ludus.envs.world_parts import metrics_of, scenarios_of
from ludus.evaluation.players import Perturbation, find_player
from ludus.evaluation.results import metric_names

_COMMON_PACKAGE = "ludus.evaluation"  # suites for worlds that have none of their own
_KIND = "suite"
_FILE_ENDINGS = (".yaml", ".yml")
_TARGET_KEYS = ("at_least", "at_most")

_Name = Annotated[str, Field(min_length=1, max_length=80)]
_Targets = Mapping[_Name, Mapping[_Name, Annotated[float, Field(allow_inf_nan=False)]]]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SuiteRow(_Frozen):
    """One row of a suite: many matches against one opponent, or many episodes of one scenario.

    Attributes:
        opponent: A bot such as `based` or `based:delay=8,noise=0.2`, or the folder of an agent.
        scenario: A scenario of a world of one team.
        delay_frames: Frames by which the agent's observations are delayed.
        noise: Standard deviation of the noise on the agent's observations.
        matches: Number of matches; that of the suite if left out.
        at_least: Lower bounds by tier, for a number such as `win_rate`.
        at_most: Upper bounds by tier, for a number such as `rmse_deg`.
    """

    opponent: _Name | None = None
    scenario: _Name | None = None
    delay_frames: Annotated[int, Field(ge=0, le=600)] = 0
    noise: Annotated[float, Field(ge=0.0, le=100.0)] = 0.0
    matches: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    at_least: _Targets = Field(default_factory=dict)
    at_most: _Targets = Field(default_factory=dict)

    @property
    def perturbation(self) -> Perturbation:
        """Perturbation of the agent's observations in this row."""
        return Perturbation(self.delay_frames, self.noise)

    @property
    def name(self) -> str:
        """Display name: the opponent or scenario, and the perturbation."""
        frames = "frame" if self.delay_frames == 1 else "frames"
        extras = [f"{self.delay_frames} {frames} late"] if self.delay_frames else []
        extras += [f"noise {self.noise:g}"] if self.noise else []
        who = self.opponent or self.scenario or "alone"
        return f"{who} [{', '.join(extras)}]" if extras else who


class Suite(_Frozen):
    """A whole suite.

    Attributes:
        matches: Matches per row, unless the row says otherwise.
        deterministic: Whether agents take their most likely action instead of sampling.
        tiers: Names of the tiers, the lowest first; none if the suite only measures.
        rows: The rows; if left out, every bot of the world, or every scenario.
        population: Whether the opponents are a population that the agent is scored against; see
            `ludus.evaluation.benchmark.Population`.
    """

    matches: Annotated[int, Field(ge=1, le=1_000_000)] = 200
    deterministic: bool = False
    tiers: tuple[_Name, ...] = ()
    rows: tuple[SuiteRow, ...] = ()
    population: bool = False


def suite_names(world: str) -> tuple[str, ...]:
    """Return the names of all suites of a world."""
    return tuple(sorted({name for directory in _directories(world) for name in directory.names()}))


def find_suite(world: str, name: str) -> Path:
    """Return the file of a suite: one of the world's own, one for all worlds, or the user's by its path.

    Raises:
        UnknownNameError: There is no suite of this name.
    """
    if "/" in name or name.endswith(_FILE_ENDINGS):
        return Path(name)
    for directory in _directories(world):
        if name in directory.names():
            return directory.file(name)
    raise UnknownNameError(f"suite of {world}", name, (*suite_names(world), "the path of a file ending in .yaml"))


def load_suite(file: Path, env: BatchedEnv) -> Suite:
    """Read a suite for a world; a file may extend one of the world's suites by its name.

    Args:
        file: The file.
        env: A game of the world.

    Raises:
        ConfigFileError: The file has errors; all of them are listed, each with its position.
        MissingDependencyError: An opponent needs a library that is not installed.
    """
    directory = next(directory for directory in _directories(env.spec.id) if directory.names())
    checks = (_check_targets, partial(_check_rows, env), partial(_check_population, env))
    return read_config(Suite, read_layers(file, directory), checks)


def _directories(world: str) -> tuple[PresetDirectory, ...]:
    record = known_world(world)
    return PresetDirectory("" if record is None else record.package, _KIND), PresetDirectory(_COMMON_PACKAGE, _KIND)


def _check_targets(root: Node) -> Sequence[ConfigFault]:
    """Find duplicate and undefined tiers, and targets that a higher tier makes easier."""
    names = [str(node.content) for node in _listed(root.child("tiers"))]
    faults = []
    for place, node in enumerate(_listed(root.child("tiers"))):
        if names.index(str(node.content)) < place:
            faults.append(_fault(node, ("tiers", place), "is listed twice; list every tier once"))
    for path, _, targets in _targets(root):
        asked: dict[str, float] = {}
        for tier, target in _entries(targets):
            if tier not in names:
                expectation, hint = "should be one of the tiers", suggest(tier, names) if names else "add it to tiers"
                faults.append(ConfigFault(str(target.key_origin), show_path((*path, tier)), expectation, tier, hint))
            elif isinstance(target.content, int | float):
                asked[tier] = float(target.content)
        faults += _easier(path, targets, [(tier, asked[tier]) for tier in names if tier in asked])
    return faults


def _check_rows(env: BatchedEnv, root: Node) -> Sequence[ConfigFault]:
    """Find opponents, scenarios and numbers that the world does not have, and duplicate rows."""
    faults = []
    alone = len(set(env.spec.teams)) == 1
    seen: dict[str, Node] = {}
    for place, row in enumerate(_listed(root.child("rows"))):
        faults += _check_player(env, ("rows", place), row, alone=alone)
        parts = {key: row.child(key) for key in ("opponent", "scenario", "delay_frames", "noise")}
        what = str({key: node.content for key, node in parts.items() if node is not None})
        if what in seen:
            faults.append(_fault(row, ("rows", place), f"is the same as the row at {seen[what].origin}"))
        seen.setdefault(what, row)
    numbers = metric_names(env.spec, metrics_of(env.spec.id))
    for path, number, targets in _targets(root):
        if number not in numbers:
            expectation = f"should be a number of {env.spec.id}"
            place_of_key = str(targets.key_origin)
            faults.append(ConfigFault(place_of_key, show_path(path), expectation, number, suggest(number, numbers)))
    return faults


def _check_population(env: BatchedEnv, root: Node) -> Sequence[ConfigFault]:
    """Find a population in a world whose agents have no return or no opponents."""
    node = root.child("population")
    if node is None or node.content is not True or ("reward" in env.spec.events and len(set(env.spec.teams)) > 1):
        return []
    return [_fault(node, ("population",), f"should be left out: {env.spec.id} has no opponents or no event 'reward'")]


def _check_player(env: BatchedEnv, path: KeyPath, row: Node, *, alone: bool) -> list[ConfigFault]:
    opponent, scenario = row.child("opponent"), row.child("scenario")
    if alone and opponent is not None:
        return [_fault(opponent, (*path, "opponent"), f"should be left out: {env.spec.id} has no opponents")]
    if alone:
        scenarios = scenarios_of(env.spec.id)
        if scenario is None or not isinstance(scenario.content, str) or scenario.content in scenarios:
            return []
        hint = suggest(scenario.content, scenarios) if scenarios else "it has none: leave it out"
        return [_fault(scenario, (*path, "scenario"), f"should be a scenario of {env.spec.id}", hint)]
    if scenario is not None:
        return [_fault(scenario, (*path, "scenario"), f"should be left out: {env.spec.id} is played against opponents")]
    if opponent is None:
        return [_fault(row, path, f"should name an opponent, such as one of {', '.join(env.spec.bots) or 'no bots'}")]
    try:
        find_player(str(opponent.content), env)
    except MissingDependencyError:  # nothing is wrong with the file
        raise
    except LudusError as error:
        return [_fault(opponent, (*path, "opponent"), str(error))]
    return []


def _easier(path: KeyPath, targets: Node, asked: Sequence[tuple[str, float]]) -> list[ConfigFault]:
    """Return a fault for each tier that asks for less than the one below it."""
    sign = 1.0 if path[-2] == "at_least" else -1.0
    faults = []
    for (lower, below), (tier, value) in pairwise(asked):
        node = targets.child(tier)
        if sign * (value - below) < 0.0 and node is not None:
            faults.append(_fault(node, (*path, tier), f"is easier than {lower}, which asks for {below:g}"))
    return faults


def _targets(root: Node) -> Iterator[tuple[KeyPath, str, Node]]:
    """Yield the path of each number that has targets, its name, and the targets by tier."""
    for place, row in enumerate(_listed(root.child("rows"))):
        for key in _TARGET_KEYS:
            for number, targets in _entries(row.child(key)):
                yield ("rows", place, key, number), number, targets


def _listed(node: Node | None) -> list[Node]:
    return node.content if node is not None and isinstance(node.content, list) else []


def _entries(node: Node | None) -> list[tuple[str, Node]]:
    return list(node.content.items()) if node is not None and isinstance(node.content, dict) else []


def _fault(node: Node, path: KeyPath, expectation: str, hint: str = "") -> ConfigFault:
    got = "" if isinstance(node.content, dict) else short(node.plain())
    return ConfigFault(str(node.origin), show_path(path), expectation, got, hint)
