"""The batched environment contract: many games, one object, one device.

Every world implements `BatchedEnv`. The learner, the league, the adapters and the conformance kit know
nothing else of a world. The contract covers worlds of very different kinds:

- one or several seats per game, in teams of any size (`EnvSpec.teams`);
- observations that are a dict of tensors (vectors, pixels), each `(games, seats, ...)`;
- worlds that live on any device, on the host only, or as one real-time screen (`EnvSpec` says which).

Who owns the tensors: everything that `reset` and `step` return is a buffer of the environment that the next
call overwrites. Clone what has to be kept.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ActionError, ConfigError, DeviceError, SnapshotError, UnsupportedError
from ludus.core.state import Range, check_tensors
from ludus.envs.spaces import ActionFactors, action_factors_of, choice_faults, mirror_faults
from ludus.envs.spaces import ActionGrid as ActionGrid  # a world's spec is written with this module alone
from ludus.envs.spaces import ActionKinds as ActionKinds
from ludus.envs.spaces import Mirror as Mirror
from ludus.envs.spaces import Reflection as Reflection

Observations: TypeAlias = dict[str, Tensor]
Blocks: TypeAlias = Mapping[str, Mapping[str, tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class EnvSpec:
    """What a world is, before any game of it exists.

    Attributes:
        name: Registered name without version, such as `brawl`.
        version: Raised whenever the same actions would no longer give the same match.
        teams: Team of each seat; `(0, 1)` is one against one, `(0, 0, 1, 1)` two against two.
        observation_space: Space of one seat; always a dict, also when it has one entry.
        action_space: Space of one seat.
        rate_hz: Decisions a second of game time.
        step_limit: Steps after which a game ends, or None.
        events: Names in `StepResult.events`.
        state_metrics: Names in `StepResult.state_metrics`.
        bots: Names of the scripted players that `BatchedEnv.bots` can make.
        blocks: For an observation entry, named `(start, stop)` ranges of its last axis, so that a network can be
            fed one part alone (`{"vector": {"opponent": (40, 80)}}`).
        fields: For an observation entry, the name of every value of its last axis, such as `opponent.x`, so that bots
            can read `observation.opponent.x`.
        device_types: Device types the world can live on.
        max_envs: Most games in one batch, or None.
        realtime: Whether a step takes its time on the wall clock (a screen) whatever the machine's speed.
        snapshots: Whether `snapshot` and `restore` work.
        truncates: Whether a game can be cut off (`StepResult.truncated`); where none ever is, a learner on a GPU saves
            asking for the values of final observations in every step.
        mirror: How a seat's observations and actions look in a mirror; None if the world is not symmetric.
        actions: What is to be known about the choices of Discrete or MultiDiscrete actions, such as a mask of allowed
            ones; nothing by default.
        bot_families: Further scripted players that `BatchedEnv.bots` can make, by what is before the colon of a name:
            `openspiel` for `openspiel:greenberg`. They play where they are named, and not among all bots of the world.

    Raises:
        ConfigError: The mirror, or what is said about choices, does not fit the spaces.
    """

    name: str
    version: int
    teams: tuple[int, ...]
    observation_space: spaces.Dict
    action_space: spaces.Space[object]
    rate_hz: float
    step_limit: int | None
    events: tuple[str, ...] = ()
    state_metrics: tuple[str, ...] = ()
    bots: tuple[str, ...] = ()
    blocks: Blocks = field(default_factory=lambda: MappingProxyType({}))
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    device_types: tuple[str, ...] = ("cpu", "cuda")
    max_envs: int | None = None
    realtime: bool = False
    snapshots: bool = True
    truncates: bool = True
    mirror: Mirror | None = None
    actions: ActionKinds = field(default_factory=ActionKinds)
    bot_families: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        wrong = next(choice_faults(self.observation_space, self.action_space, self.actions), None)
        if wrong is not None:
            raise ConfigError(f"the choices of {self.id} do not fit: {wrong}")
        for entry, names in self.fields.items():
            space = self.observation_space.spaces.get(entry)
            groups = {name.rpartition(".")[0] for name in names}
            if space is None or space.shape is None or space.shape[-1:] != (len(set(names)),) or groups & {*names}:
                raise ConfigError(f"the fields of {self.id} must name every value of an entry once, got {entry!r}")
        if self.mirror is None:
            return
        fault = next(mirror_faults(self.mirror, self.observation_space, self.action_space), None)
        if fault is not None:
            raise ConfigError(f"the mirror of {self.id} does not fit: {fault}")
        if self.actions.uses and self.mirror.actions.source != tuple(range(len(self.mirror.actions.source))):
            raise ConfigError(f"the mirror of {self.id} does not fit: factors that count for some kinds change places")

    @property
    def choices(self) -> ActionFactors:
        """What an action is made of, in a world of Discrete or MultiDiscrete actions; others raise UnsupportedError."""
        return action_factors_of(self.action_space, self.actions.uses, self.actions.exploratory)

    @property
    def seats(self) -> int:
        """Number of seats in a game."""
        return len(self.teams)

    @property
    def id(self) -> str:
        """Versioned name, such as `brawl-v1`."""
        return f"{self.name}-v{self.version}"

    @property
    def mode(self) -> str:
        """Sizes of the teams from the smallest on, such as `1v2`, whichever team is which; ratings are kept by it."""
        return "v".join(map(str, sorted(self.teams.count(team) for team in set(self.teams))))

    def side(self, team: int) -> str:
        """Return the sizes as a team sees them, its own first: in mode `1v2` the pair's side is `2v1`."""
        others = sorted(self.teams.count(other) for other in set(self.teams) if other != team)
        return "v".join(map(str, (self.teams.count(team), *others)))


class Columns(Mapping[str, Tensor]):
    """Named columns of one tensor: a mapping by name, and `packed` `(games, seats, names)` to read all at once."""

    __slots__ = ("_views", "packed")

    def __init__(self, packed: Tensor, names: Sequence[str]) -> None:
        if packed.shape[-1] != len(names) or len(set(names)) != len(names):
            raise TypeError(f"{packed.shape[-1]} columns need as many different names, got {', '.join(names)}")
        self.packed = packed
        self._views = {name: packed[..., column] for column, name in enumerate(names)}

    def __getitem__(self, name: str) -> Tensor:
        return self._views[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)


def packed(columns: Mapping[str, Tensor], names: Sequence[str]) -> Tensor:
    """Return the named columns side by side, `(games, seats, names)`.

    `Columns` of just these names in this order give their own tensor, live and without a copy; of anything else the
    chosen entries are stacked.
    """
    if isinstance(columns, Columns) and tuple(columns) == tuple(names):
        return columns.packed
    return torch.stack([columns[name] for name in names], -1)


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one step of all games gave.

    Attributes:
        observations: `(games, seats, ...)` per entry; of games that ended, the first of the next episode.
        terminated: `(games,)` bool, the game is over by its own rules.
        truncated: `(games,)` bool, the game was cut off; bootstrap its value from `final_observations`.
        final_observations: `(games, seats, ...)` per entry; rows are valid only for games that ended in this step.
        events: `(games, seats)` float32 per name: what happened in this step (damage, knockouts, goals, reward).
        state_metrics: `(games, seats)` float32 per name: where things stood after this step, before any restart.
            Worlds that have either in one tensor give it as `Columns`.
        any_truncated: Whether any game was cut off, where the host knows it and `truncated` is on another device; None
            where it would have to ask.
    """

    observations: Observations
    terminated: Tensor
    truncated: Tensor
    final_observations: Observations
    events: Mapping[str, Tensor]
    state_metrics: Mapping[str, Tensor]
    any_truncated: bool | None = None

    @property
    def ended(self) -> Tensor:
        """`(games,)` bool, games that ended for any reason and restarted within the step."""
        return self.terminated | self.truncated


@dataclass(frozen=True, slots=True)
class EnvRequest:
    """What a world's factory is given."""

    num_envs: int = 1  # games in the batch
    device: str | torch.device = "cpu"  # device name, such as `cpu` or `cuda:0`
    seed: int = 0  # seed of all random streams
    first_game: int = 0  # index of the first game; parts of a larger batch are made with it
    config: Mapping[str, Any] | None = None  # the world's own settings; its factory checks them


class Bots(Protocol):
    """Scripted players of one world, made by `BatchedEnv.bots`; what they remember lives in the environment."""

    names: tuple[str, ...]

    def act(self, assignment: Tensor, actions: Tensor) -> None:
        """Write the bots' actions for the current state.

        Args:
            assignment: `(games, seats)` int32, index into `names`, or -1 for a seat that no bot plays.
            actions: `(games, seats, ...)`; rows of seats with -1 stay as they are.
        """


class BatchedEnv(ABC):
    """Many games of one world, advanced together.

    Randomness is a pure function of (seed, game index, episode, frame): a game's future depends neither on the
    size of the batch nor on the number of threads. Game `i` of the batch has index `first_game + i`.

    `warnings` says what people should know about games with these settings before they trust their numbers.
    """

    spec: EnvSpec
    num_envs: int
    device: torch.device
    seed: int
    first_game: int
    warnings: tuple[str, ...] = ()
    _action_form: tuple[tuple[int, ...], tuple[torch.dtype, ...]] | None = None  # shape and types, once they are needed

    def _take_request(self, spec: EnvSpec, request: EnvRequest) -> None:
        """Set what every batch has; raise DeviceError if the device is not here or not for this world."""
        self.spec, self.num_envs = spec, request.num_envs
        self.seed, self.first_game = request.seed, request.first_game
        self.device = resolve_device(request.device, spec.id, spec.device_types)

    @property
    def games_device(self) -> torch.device:
        """Device that the games are played on; where it is another than `device`, their tensors are copied."""
        return self.device

    @property
    def unwrapped(self) -> "BatchedEnv":
        """The games of the world itself, without what was put around them."""
        return self

    def play_sets(self, matches: int) -> None:  # noqa: B027 - most worlds draw nothing for a match
        """Let scripted players keep what they draw for a match over so many matches of a game in a row."""

    @abstractmethod
    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        """Start a new episode in `games` `(games,)` bool, or in all; return observations of all games.

        A seed, which is only for all games at once, replaces the seed and sets all episode counters back, so that equal
        seeds give equal games.
        """

    def step(self, actions: Tensor) -> StepResult:
        """Advance every game by one step with actions `(games, seats, ...)`; games that end restart within it.

        Raise ActionError if their shape, type or device is wrong.
        """
        self._check_actions(actions)
        return self._advance(actions)

    def recording_key(self) -> object | None:
        """Return what a CUDA graph of `step` depends on beside the values of tensors; None where none can be made.

        A world that returns something promises that a step changes tensors in place, always the same ones, and never
        waits for the device.
        """
        return None

    @abstractmethod
    def _advance(self, actions: Tensor) -> StepResult:
        """Do the work of `step` on actions whose shape, type and device are right."""

    def snapshot(self) -> dict[str, Tensor]:
        """Return the whole state as tensors that later steps do not touch."""
        raise UnsupportedError(f"{self.spec.id} cannot take snapshots (spec.snapshots is False)")

    def restore(self, snapshot: Mapping[str, Tensor]) -> Observations:
        """Take the state of `snapshot` and return its observations; raise SnapshotError if it is of other games."""
        raise UnsupportedError(
            f"{self.spec.id} cannot restore a snapshot of {', '.join(snapshot)} (spec.snapshots is False)"
        )

    def bots(self, names: Sequence[str]) -> Bots:
        """Make scripted players of the given names; `EnvSpec.bots` lists the valid ones."""
        raise UnsupportedError(f"{self.spec.id} has no scripted players, asked for {', '.join(names)}")

    def render(self, game: int = 0) -> NDArray[np.uint8]:
        """Draw one game as an RGB picture `(height, width, 3)`."""
        raise UnsupportedError(f"{self.spec.id} cannot be drawn, asked for game {game}")

    def close(self) -> None:  # noqa: B027 - most worlds have nothing to release
        """Release threads, processes and windows; may be called twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_reset(self, games: Tensor | None, seed: int | None) -> None:
        """Raise ActionError unless the games to reset, if any are named, are a mask without a seed."""
        if games is None:
            return
        if seed is not None:
            raise ActionError("reset takes a seed only for all games at once; leave `games` out")
        if not isinstance(games, Tensor):
            raise ActionError(f"reset takes a bool tensor of the games to restart, got {type(games).__name__}")
        if games.shape != (self.num_envs,) or games.dtype != torch.bool or games.device != self.device:
            raise ActionError(
                f"reset takes a bool mask of shape ({self.num_envs},) on {self.device}, "
                f"got {games.dtype} of shape {tuple(games.shape)} on {games.device}"
            )

    def _check_actions(self, actions: Tensor) -> None:
        """Raise ActionError unless shape, type and device fit; no value is read, so it never waits for a GPU."""
        if not isinstance(actions, Tensor):
            raise ActionError(f"actions must be a torch.Tensor, got {type(actions).__name__}; use torch.as_tensor")
        if self._action_form is None:
            space = self.spec.action_space
            self._action_form = (self.num_envs, self.spec.seats, *(space.shape or ())), action_dtypes(space)
        expected, valid = self._action_form
        if actions.shape != expected:
            raise ActionError(
                f"actions of {self.spec.id} must have shape {expected} (games, seats, ...), got {tuple(actions.shape)}"
            )
        if actions.dtype not in valid:
            names = ", ".join(str(dtype) for dtype in valid)
            raise ActionError(f"actions of {self.spec.id} must be one of {names}, got {actions.dtype}")
        if actions.device != self.device:
            raise ActionError(f"actions must be on {self.device}, got {actions.device}; use actions.to(env.device)")


def action_dtypes(space: spaces.Space[object]) -> tuple[torch.dtype, ...]:
    """Return the tensor types that actions of `space` may have; the first one is the preferred."""
    if isinstance(space, spaces.MultiBinary):
        return (torch.int8, torch.uint8, torch.bool)
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        return (torch.int64, torch.int32)
    if isinstance(space, spaces.Box):
        return (torch.float32,)
    raise UnsupportedError(f"action space {space} is not supported; valid: MultiBinary, Discrete, MultiDiscrete, Box")


def resolve_device(device: str | torch.device, spec_id: str, device_types: Sequence[str]) -> torch.device:
    """Return the device with its index, or raise DeviceError if it is not here or not for this world."""
    try:
        resolved = torch.device(device)
    except RuntimeError as error:
        raise DeviceError(f"unknown device {str(device)!r}; valid: {', '.join(device_types)}") from error
    if resolved.type not in device_types:
        raise DeviceError(f"{spec_id} lives on {' or '.join(device_types)}, not on {resolved.type}")
    if resolved.type == "cuda":
        if not torch.cuda.is_available():
            raise DeviceError(f"device {str(device)!r} was asked for, but torch sees no CUDA device; use 'cpu'")
        if resolved.index is not None and resolved.index >= torch.cuda.device_count():
            raise DeviceError(f"device {str(device)!r} was asked for; valid: {', '.join(_cuda_devices())}, or 'cuda'")
        return torch.device("cuda", torch.cuda.current_device() if resolved.index is None else resolved.index)
    return torch.device("cpu")


def _cuda_devices() -> list[str]:
    return [f"cuda:{index}" for index in range(torch.cuda.device_count())]


def check_snapshot(
    snapshot: Mapping[str, Tensor],
    state: Mapping[str, Tensor],
    spec_id: str,
    ranges: Mapping[str, Range] = MappingProxyType({}),
) -> None:
    """Raise SnapshotError unless `snapshot` has the names, shapes and types of `state`, and values within `ranges`."""
    if not isinstance(snapshot, Mapping) or not all(isinstance(tensor, Tensor) for tensor in snapshot.values()):
        raise SnapshotError(f"a snapshot of {spec_id} is a mapping of names to tensors; use what `snapshot` returned")
    advice = "use the same number of games, settings and version"
    check_tensors(snapshot, state, spec_id, ranges=ranges, advice=advice, error=SnapshotError)


def check_fits(spec: EnvSpec, other: EnvSpec, what: str) -> None:
    """Raise ConfigError unless a policy of `spec` can play in `other`, the games of `what` (`phase '2v2'`)."""
    found = list(_differences(spec, other))
    if found:
        raise ConfigError(
            f"{what} changes what is seen or done in {spec.id}: {'; '.join(found)}; give it other settings"
        )


def _differences(spec: EnvSpec, other: EnvSpec) -> Iterator[str]:
    if spec.id != other.id:
        yield f"the world is {other.id}, not {spec.id}"
    before, after = spec.observation_space.spaces, other.observation_space.spaces
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            yield f"observation {name!r} is {after.get(name, 'missing')}, not {before.get(name, 'missing')}"
    if spec.action_space != other.action_space:
        yield f"the action space is {other.action_space}, not {spec.action_space}"
    for kind in ("events", "state_metrics", "blocks"):
        if getattr(spec, kind) != getattr(other, kind):
            yield f"the {kind} are {', '.join(getattr(other, kind))}, not {', '.join(getattr(spec, kind))}"
    for name in ("mask", "uses", "exploratory", "places"):
        was, became = getattr(spec.actions, name), getattr(other.actions, name)
        if was != became:
            yield f"actions.{name} is {became!r}, not {was!r}"
