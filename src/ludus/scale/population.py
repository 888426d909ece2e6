"""The configuration of a league over machines: a run's configuration and the section `population`.

The roles are those of AlphaStar (Vinyals et al., "Grandmaster level in StarCraft II using multi-agent reinforcement
learning", Nature 575, 2019): main agents play themselves and everyone, main exploiters play the main agents, and league
exploiters play everyone. Exploiters join the league and begin again when they win often enough or their time is up.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from ludus.config import Document, PresetDirectory, as_document, dump_yaml, read_config, read_overrides, single
from ludus.core.errors import ConfigError, ConfigFault, ConfigFileError
from ludus.core.random import stream_hash
from ludus.core.schedules import MAX_ENV_STEPS, MAX_FACTOR
from ludus.envs.registry import check_name_from_file
from ludus.envs.world import find_world
from ludus.league.payoffs import SELF_KIND
from ludus.scale.stored import check_stored
from ludus.training.config import TrainConfig
from ludus.training.destinations import withhold
from ludus.training.presets import read_run_layers, run_layers, world_of_file

LEAGUE_FILE = "league.yaml"
POPULATION = "population"
PRESET_KIND = "league"  # files of a world in its folder `leagues`
DEFAULT_PRESET = "alphastar"

Role: TypeAlias = Literal["main", "main_exploiter", "league_exploiter"]
ROLES: tuple[Role, ...] = ("main", "main_exploiter", "league_exploiter")

_STREAM_LEARNER = 0x1EA6
_CHANGEABLE = ("evaluators", "max_hours", *(f"{role}.learners" for role in ROLES))

_WHY = "league-scaling.md#opponents-in-one-run"

_Weight = Annotated[float, Field(ge=0.0, le=MAX_FACTOR)]
_Count = Annotated[int, Field(ge=0, le=1_000)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class MainConfig(_Frozen):
    """Main agents.

    Attributes:
        learners: How many there are.
        opponents: Share of games against itself as it is now (`mirror`), against members of the league (`self`), and
            against bots.
    """

    removed_keys: ClassVar[Mapping[str, str]] = {"forgotten_share": _WHY}

    learners: int = Field(default=1, ge=1, le=1_000)
    opponents: dict[str, _Weight] = {"mirror": 0.35, SELF_KIND: 0.65}


class ExploiterRoleConfig(_Frozen):
    """Exploiters of one role.

    Attributes:
        learners: How many there are.
        env_steps: Env steps after which it joins the league and begins again, if it does not win often enough before.
    """

    removed_keys: ClassVar[Mapping[str, str]] = {"opponents": _WHY, "win_rate": _WHY}

    learners: _Count = 1
    env_steps: int = Field(default=10_000_000, ge=1, le=MAX_ENV_STEPS)


class PopulationConfig(_Frozen):
    """The section `population`: who learns, who evaluates, and when snapshots join.

    Attributes:
        main: Main agents; the league ends when all of them have used up `total_env_steps`.
        main_exploiter: Learners that look for weaknesses of the main agents.
        league_exploiter: Learners that look for weaknesses of the whole league.
        evaluators: Processes that play matches between members.
        snapshot_every_env_steps: Env steps after which a main agent becomes a member of the league, and after which an
            exploiter is judged.
        live: Most members that a learner plays against at a time.
        matches_per_pair: Matches of evaluators per pair of members.
        newest: Number of the newest other members that a new member is evaluated against.
        cpus_per_learner: CPU cores that a learner occupies.
        gpus_per_learner: GPUs that a learner occupies, may be a fraction; None is 1 if the cluster has one.
        cpus_per_evaluator: CPU cores that an evaluator occupies.
        gpus_per_evaluator: GPUs that an evaluator occupies; without one it plays on the CPU.
        max_hours: Wall time after which all learners save and stop; None is no limit.
    """

    removed_keys: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("pfsp_power", "window", "pairs_per_job", "initial"), _WHY
    )

    main: MainConfig = MainConfig()
    main_exploiter: ExploiterRoleConfig = ExploiterRoleConfig()
    league_exploiter: ExploiterRoleConfig = ExploiterRoleConfig()
    evaluators: _Count = 1
    snapshot_every_env_steps: int = Field(default=1_000_000, ge=1, le=MAX_ENV_STEPS)
    live: int = Field(default=16, ge=1, le=1_000)
    matches_per_pair: int = Field(default=64, ge=1, le=1_000_000)
    newest: int = Field(default=32, ge=1, le=100_000)
    cpus_per_learner: float = Field(default=1.0, gt=0.0)
    gpus_per_learner: float | None = Field(default=None, ge=0.0)
    cpus_per_evaluator: float = Field(default=1.0, gt=0.0)
    gpus_per_evaluator: float = Field(default=0.0, ge=0.0)
    max_hours: float | None = Field(default=None, gt=0.0)

    def role(self, role: Role) -> MainConfig | ExploiterRoleConfig:
        """Return the settings of a role."""
        found: MainConfig | ExploiterRoleConfig = getattr(self, role)
        return found

    def learner_names(self) -> Iterator[tuple[str, Role]]:
        """Yield the names of all learners, such as `main-exploiter-1`, with their roles."""
        for role in ROLES:
            for number in range(1, self.role(role).learners + 1):
                yield f"{role.replace('_', '-')}-{number}", role


class _Section(_Frozen):
    population: PopulationConfig = PopulationConfig()


@dataclass(frozen=True, slots=True)
class LeaguePlan:
    """A checked league.

    Attributes:
        config: The section `population`.
        base: The settings that all learners share.
    """

    config: PopulationConfig
    base: TrainConfig

    def learner_config(self, name: str, role: Role, generation: int) -> TrainConfig:
        """Return the settings of a learner's run.

        Args:
            name: Of the learner; each has its own seed.
            role: Its role.
            generation: How often it has begun, from 1.
        """
        part, every = self.config.role(role), self.config.snapshot_every_env_steps
        budget, opponents = self.base.total_env_steps, self.config.main.opponents
        if isinstance(part, ExploiterRoleConfig):
            budget, opponents = part.env_steps, {SELF_KIND: 1.0}
        league = self.base.league.model_copy(
            # Twice as many places as are used: those of members that are replaced are free once their games have ended.
            update={"sampler": "assigned", "keep": 2 * self.config.live + 2}
        )
        quiet = self.base.monitoring.model_copy(update={"console": "off", "curves": False})
        seed = stream_hash(self.base.seed, *name.encode(), generation, _STREAM_LEARNER)
        document = self.base.model_copy(
            update={
                "seed": seed,
                "total_env_steps": budget,
                "opponents": opponents,
                "league": league,
                "checkpoints": self.base.checkpoints.model_copy(update={"every_env_steps": every}),
                "monitoring": quiet,
            }
        ).to_json()
        return TrainConfig.from_json(document)

    def to_yaml(self) -> str:
        """Return the league as one file that extends nothing."""
        return dump_yaml({POPULATION: self.config.model_dump(mode="json"), **self.base.to_json()})

    def changed(self, overrides: Sequence[str]) -> "LeaguePlan":
        """Return the plan with other numbers of learners and evaluators, such as `evaluators=4` or `main.learners=2`.

        Raises:
            ConfigFileError: A change has a fault, or cannot be made in a league that has begun.
        """
        words = [word.removeprefix(f"{POPULATION}.") for word in overrides]
        refused = [
            ConfigFault(f"command line: {word}", f"{POPULATION}.{word.partition('=')[0]}",
                        "cannot change in a league that has begun", hint=f"valid: {', '.join(_CHANGEABLE)}")
            for word in words
            if word.partition("=")[0] not in _CHANGEABLE
        ]  # fmt: skip
        if refused:
            raise ConfigFileError(refused)
        layers = read_overrides([f"{POPULATION}.{word}" for word in words])
        before = as_document({POPULATION: self.config.model_dump(mode="json")}, LEAGUE_FILE)
        return LeaguePlan(read_config(_Section, [before, *layers]).population, self.base)


def find_league(name: str, preset: str | None = None) -> Path:
    """Return the file of a league: a path, or one of those of a world such as `brawl`.

    Args:
        name: Path of a file, or a world.
        preset: Which one of the world's; `alphastar` if None.

    Raises:
        ConfigError: There is no such file, or the world has no leagues.
        UnknownNameError: There is no such world, or it has no such league.
    """
    file = Path(name)
    if file.suffix in (".yaml", ".yml"):
        if preset is not None:
            raise ConfigError(f"both the file {file} and --preset {preset} are given; choose one")
        if not file.is_file():
            raise ConfigError(f"there is no file {file}; name a configuration of a league, or a world such as brawl")
        return file
    directory = PresetDirectory(find_world(name).package, PRESET_KIND)
    if not directory.names():
        raise ConfigError(f"{name} comes with no league; write a configuration of your own with a section population")
    return directory.file(preset or DEFAULT_PRESET)


def load_league(file: Path, overrides: Sequence[str] = ()) -> LeaguePlan:
    """Read the configuration of a league and everything that it extends.

    Args:
        file: A configuration that names its world.
        overrides: `key.path=value` each.

    Raises:
        ConfigFileError: Files or overrides have faults; all of them are listed.
        ConfigError: The file does not name its world, or the settings cannot be those of a league.
        UnknownNameError: There is no such world.
    """
    world = world_of_file(file)
    check_name_from_file(world, f"{file}: world.name")
    layers = run_layers(world, None, file, overrides)
    faults: list[ConfigFault] = []
    nodes = [layer.root.child(POPULATION) for layer in layers]
    config, base = PopulationConfig(), None
    try:
        section = [Document(single((POPULATION,), node)) for node in nodes if node is not None]
        config = read_config(_Section, section).population if section else config
    except ConfigFileError as error:
        faults += error.faults
    try:
        base = read_run_layers(world, [replace(layer, root=layer.root.without(POPULATION)) for layer in layers])[0]
    except ConfigFileError as error:
        faults += error.faults
    if faults or base is None:
        raise ConfigFileError(faults)
    plan = LeaguePlan(config, base)
    _check(plan, file)
    return plan


def _check(plan: LeaguePlan, file: Path) -> None:
    if plan.base.curriculum:
        raise ConfigError(f"{file}: a league has no curriculum; its roles say who plays whom, so leave it out")
    if not plan.config.main.opponents.get(SELF_KIND):
        raise ConfigError(f"{file}: {POPULATION}.main.opponents needs a share of {SELF_KIND!r}, the league")
    for role in ROLES:
        plan.learner_config(role, role, 1)  # raises what the schema of runs refuses


def read_league(folder: Path) -> LeaguePlan:
    """Read the league of a league folder.

    Raises:
        ConfigError: The folder holds no league, or its file was changed into something that is none.
    """
    if not (folder / LEAGUE_FILE).is_file():
        raise ConfigError(
            f"{folder} holds no league: it has no {LEAGUE_FILE}; start one with: ludus league start brawl"
        )
    check_stored(folder / LEAGUE_FILE)
    plan = load_league(folder / LEAGUE_FILE)
    plan.base.check_stored(folder / LEAGUE_FILE)
    return replace(plan, base=withhold(plan.base))
