"""Benchmark suites: which opponents or trials an agent is put to, how it is hindered, and what it should reach."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ludus.config import Shelf, read_config, read_layers
from ludus.core.errors import UnknownNameError
from ludus.envs.base import BatchedEnv
from ludus.envs.registry import world_package
from ludus.evaluation.hindrances import Hindrance
from ludus.evaluation.suite_checks import check_rows, check_targets

STANDARD = "standard"

_COMMON_PACKAGE = "ludus.evaluation"  # suites for worlds that have none of their own
_KIND = "suite"
_FILE_ENDINGS = (".yaml", ".yml")

_Name = Annotated[str, Field(min_length=1, max_length=80)]
_Targets = Mapping[_Name, Mapping[_Name, Annotated[float, Field(allow_inf_nan=False)]]]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SuiteRow(_Frozen):
    """One row of a suite: many matches against one opponent, or many episodes of one trial.

    Attributes:
        opponent: A bot such as `based` or `based:delay=8,noise=0.2`, or the folder of an agent.
        trial: A trial of a world of one team.
        delay_frames: Frames by which the agent sees everything late.
        noise: Standard deviation of noise on what the agent sees.
        matches: How many; as the suite says if left out.
        at_least: For a number such as `win_rate`, what each tier asks for at least.
        at_most: For a number such as `rmse_deg`, what each tier allows at most.
    """

    opponent: _Name | None = None
    trial: _Name | None = None
    delay_frames: Annotated[int, Field(ge=0, le=600)] = 0
    noise: Annotated[float, Field(ge=0.0, le=100.0)] = 0.0
    matches: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    at_least: _Targets = Field(default_factory=dict)
    at_most: _Targets = Field(default_factory=dict)

    @property
    def hindrance(self) -> Hindrance:
        """What the agent suffers in this row."""
        return Hindrance(self.delay_frames, self.noise)

    @property
    def name(self) -> str:
        """What people are shown: the opponent or trial, and the agent's own troubles."""
        frames = "frame" if self.delay_frames == 1 else "frames"
        troubles = [f"{self.delay_frames} {frames} late"] if self.delay_frames else []
        troubles += [f"noise {self.noise:g}"] if self.noise else []
        who = self.opponent or self.trial or "alone"
        return f"{who} [{', '.join(troubles)}]" if troubles else who


class Suite(_Frozen):
    """A whole suite.

    Attributes:
        matches: In every row that says nothing else.
        deterministic: Whether agents take their most likely action instead of drawing one.
        tiers: Names of the tiers, the lowest first; none if the suite only measures.
        rows: What is played; if left out, every bot of the world, or every trial.
    """

    matches: Annotated[int, Field(ge=1, le=1_000_000)] = 200
    deterministic: bool = False
    tiers: tuple[_Name, ...] = ()
    rows: tuple[SuiteRow, ...] = ()


def suite_names(world: str) -> tuple[str, ...]:
    """Returns the names of all suites that can be played in a world."""
    return tuple(sorted({name for shelf in _shelves(world) for name in shelf.names()}))


def find_suite(world: str, name: str) -> Path:
    """Returns the file of a suite: one of the world's own, one for all worlds, or the user's by its path.

    Raises:
        UnknownNameError: There is no suite of this name.
    """
    if "/" in name or name.endswith(_FILE_ENDINGS):
        return Path(name)
    for shelf in _shelves(world):
        if name in shelf.names():
            return shelf.file(name)
    raise UnknownNameError(f"suite of {world}", name, (*suite_names(world), "the path of a file ending in .yaml"))


def load_suite(file: Path, env: BatchedEnv) -> Suite:
    """Reads a suite for a world; a file may extend one of the world's suites by its name.

    Args:
        file: The file.
        env: A game of the world, which knows its bots.

    Raises:
        ConfigFileError: The file has faults; all of them are listed, each with its place.
    """
    shelf = next(shelf for shelf in _shelves(env.spec.id) if shelf.names())
    checks = (check_targets, partial(check_rows, env))
    return read_config(Suite, read_layers(file, shelf), checks)


def _shelves(world: str) -> tuple[Shelf, ...]:
    try:
        package = world_package(world)
    except UnknownNameError:
        package = ""
    return Shelf(package, _KIND), Shelf(_COMMON_PACKAGE, _KIND)
