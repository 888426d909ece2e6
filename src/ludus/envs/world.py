"""The `World` record: everything that the engine knows about a world, in one declaration.

A package declares its worlds in the entry-point group `ludus.worlds`:

    [project.entry-points."ludus.worlds"]
    mygame = "mygame:WORLD"

where `mygame/__init__.py` holds `WORLD = World(id="mygame-v1", env="mygame.env:make", ...)`. The worlds that come with
Ludus use the same mechanism. Parts are named as `package.module:name` and imported on first use, so that declaring and
listing worlds imports neither torch nor a simulator.
"""

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.core.faults import let_pass
from ludus.core.text import blame
from ludus.envs.families import family_of

if TYPE_CHECKING:
    from ludus.envs.base import BatchedEnv, EnvRequest
    from ludus.envs.display import BrowserGame, Display, ReplayView
    from ludus.envs.settings import EnvSettings
    from ludus.envs.world_parts import EpisodeMetrics, StyleLabels

T = TypeVar("T")
Lazy: TypeAlias = str | T  # the thing itself, or `package.module:name`
EnvFactory: TypeAlias = "Callable[[EnvRequest], BatchedEnv]"
Settings: TypeAlias = Mapping[str, Any]

GROUP = "ludus.worlds"  # of entry points
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_WORLDS: "dict[str, World]" = {}  # by id; filled from the entry points on first use

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A world: how to make its games, and what the engine offers around them.

    Only `id` and `env` are required; without the other parts everything still works, with less comfort.

    Attributes:
        id: Name and version, such as `mygame-v1`.
        env: Make the batched environment of an `EnvRequest`.
        config: Model of the world's settings; with it, a wrong setting in a YAML file is reported with its line.
        rewards: Named sets of reward weights; importing their module registers the world's reward terms.
        default_reward: Name of the set that `ludus train` and every adapter use; None for the first set.
        package: Whose folders `presets` and `suites` hold the world's YAML files; by default the package that `env`
            lives in.
        default_preset: Preset of `ludus train WORLD`, or a function that chooses it.
        default_opponent: Bot in the other seats of the Gymnasium environment; None for a world of one seat.
        metrics: Episode metrics: how a seat played, besides its reward.
        scenarios: Settings under which an agent without opponents is evaluated, by name; the first decides which agent
            is the best.
        display: How people watch and play the world.
        replay_view: How a report's page draws its matches.
        browser: How a web page plays it (`ludus share`); a world of kernels (`ludus.envs.kernel_env`), or one whose
            scripts bring their own physics.
        styles: What the strategy analysis knows about opponents that switch styles, and about observation fields.
        commands: Extra commands as Typer apps or functions, by name: `gait` of mimic becomes `ludus mimic gait`.
        checks: Checks of `ludus doctor --installation`, by name: functions that return what they found, or raise a
            `LudusError`.
    """

    id: str
    env: Lazy[EnvFactory]
    config: "Lazy[type[EnvSettings]] | None" = None
    rewards: Lazy[Mapping[str, Mapping[str, float]]] = field(default_factory=lambda: _NOTHING)
    default_reward: str | None = None
    package: str = ""
    default_preset: str | Callable[[], str] = "quick"
    default_opponent: str | None = None
    metrics: "Lazy[EpisodeMetrics] | None" = None
    scenarios: Lazy[Mapping[str, Settings]] = field(default_factory=lambda: _NOTHING)
    display: "Lazy[Display] | None" = None
    replay_view: "Lazy[ReplayView] | None" = None
    browser: "Lazy[BrowserGame] | None" = None
    styles: "Lazy[StyleLabels] | None" = None
    commands: Mapping[str, Lazy[Callable[..., Any]]] = field(default_factory=lambda: _NOTHING)
    checks: Mapping[str, Lazy[Callable[[], str]]] = field(default_factory=lambda: _NOTHING)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_-]*-v\d+|(gym|pettingzoo):.+", self.id):
            raise ConfigError(f"world id {self.id!r} must look like 'name-v1': lower case, ending in its version")
        if not self.package:
            module = self.env.partition(":")[0] if isinstance(self.env, str) else getattr(self.env, "__module__", "")
            object.__setattr__(self, "package", str(module).rpartition(".")[0])

    @property
    def name(self) -> str:
        """Name without version."""
        return self.id.rpartition("-v")[0] or self.id

    @property
    def version(self) -> int:
        """Version."""
        return int(self.id.rpartition("-v")[2])


class UnknownKind(ABC):
    """What makes the games of a world that is looked at when it is first used; see `World.env` and `find_world`."""

    @abstractmethod
    def __call__(self, request: "EnvRequest") -> "BatchedEnv":
        """Make a batch."""

    @abstractmethod
    def found(self) -> World:
        """Return the record that takes the place of the present one."""


def resolve(part: Lazy[T]) -> T:
    """Return a part of a world, importing it if it is named as `package.module:name`."""
    if isinstance(part, str):
        module, _, name = part.partition(":")
        found: T = getattr(import_module(module), name)
        return found
    return part


def known_worlds() -> dict[str, World]:
    """Return all worlds by id: those that installed packages declare as entry points, and those registered since."""
    if not _WORLDS:
        for entry in entry_points(group=GROUP):
            try:
                world = entry.load()
            except BaseException as error:  # a package of others can raise anything; the other worlds still work
                let_pass(error)
                logger.warning("[WARN] world %s (%s) cannot be loaded: %s", entry.name, entry.value, blame(error))
                continue
            if not isinstance(world, World) or world.id in _WORLDS:
                fault = "is no World" if not isinstance(world, World) else f"repeats the id {world.id}"
                logger.warning("[WARN] world %s (%s) %s; it is left out", entry.name, entry.value, fault)
                continue
            _WORLDS[world.id] = world
    return _WORLDS


def registered_envs() -> tuple[str, ...]:
    """Return the versioned names of all worlds."""
    return tuple(sorted(known_worlds()))


def registered_worlds() -> tuple[World, ...]:
    """Return the records of all worlds, sorted by id."""
    return tuple(known_worlds()[env_id] for env_id in registered_envs())


def find_world(name: str) -> World:
    """Return the record of a world, by default its newest version, or of `gym:ID` or `pettingzoo:MODULE`.

    Raise UnknownNameError if there is no such world.
    """
    family = family_of(name)
    if family is not None:
        find: Callable[[str], World] = resolve(family.find)
        return find(name)
    worlds = known_worlds()
    versions = [world for world in worlds.values() if world.name == name]
    world = worlds.get(name) or max(versions, key=lambda world: world.version, default=None)
    if world is None:
        hint = "for a game of your own pass --plugin FILE, where the file calls ludus.register_env"
        raise UnknownNameError("world", name, registered_envs(), hint)
    if isinstance(world.env, UnknownKind):
        world = worlds[world.id] = world.env.found()
    return world


def known_world(name: str) -> World | None:
    """Return the record of a world, or None if there is no such world."""
    try:
        return find_world(name)
    except UnknownNameError:
        return None
