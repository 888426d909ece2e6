"""The batched environment contract: many games, one object, one device.

Every world implements `BatchedEnv`. The learner, the league, the adapters and the conformance kit know
nothing else of a world. The contract covers worlds of very different kinds:

- one or several seats a game, in teams of any size (`EnvSpec.teams`);
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
from ludus.envs.choices import Choices, choice_faults, choices_of
from ludus.envs.choices import Places as Places  # a world's spec is written with this module alone
from ludus.envs.mirror import Mirror as Mirror
from ludus.envs.mirror import Reflection as Reflection
from ludus.envs.mirror import mirror_faults

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
        measures: Names in `StepResult.measures`.
        bots: Names of the scripted players that `BatchedEnv.bots` can make.
        blocks: For an observation entry, named `(start, stop)` ranges of its last axis, so that a network can be
            fed one part alone (`{"vector": {"opponent": (40, 80)}}`).
        device_types: Device types the world can live on.
        max_games: Most games in one batch, or None.
        realtime: Whether a step takes its time on the wall clock (a screen) whatever the machine's speed.
        snapshots: Whether `snapshot` and `restore` work.
        truncates: Whether a game can be cut off (`StepResult.truncated`); where none ever is, a learner on a GPU saves
            asking for the values of final observations in every step.
        mirror: How a seat's observations and actions look in a mirror; None if the world is not symmetric.
        action_mask: The observation entry that says which choices are allowed now: 1 or 0 for every alternative of a
            Discrete space, or of all factors of a MultiDiscrete one side by side. Policies never do what is not
            allowed; the world still has to bear it. A factor in which nothing is allowed has everything allowed.
        action_uses: In a MultiDiscrete space, whose first factor is the kind of the action: for each kind, which of the
            other factors count. Those that do not are 0. Empty where all always count.
        exploratory_kinds: Kinds of action (numbers of the first factor, or of a Discrete space) that are there for
            exploring; `policy.exploration` plays them now and then.
        action_places: In a MultiDiscrete space of kinds and cells: the grid that the cells are of, over a picture among
            the observations, so that a policy can see every cell where it is. None where actions have no places.
        kind_names: Names of the kinds of action, for people; empty where they have none.

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
    measures: tuple[str, ...] = ()
    bots: tuple[str, ...] = ()
    blocks: Blocks = field(default_factory=lambda: MappingProxyType({}))
    device_types: tuple[str, ...] = ("cpu", "cuda")
    max_games: int | None = None
    realtime: bool = False
    snapshots: bool = True
    truncates: bool = True
    mirror: Mirror | None = None
    action_mask: str | None = None
    action_uses: tuple[tuple[bool, ...], ...] = ()
    exploratory_kinds: tuple[int, ...] = ()
    action_places: Places | None = None
    kind_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        said = (self.action_mask, self.action_uses, self.exploratory_kinds, self.action_places)
        wrong = next(choice_faults(self.observation_space, self.action_space, *said), None)
        if wrong is not None:
            raise ConfigError(f"the choices of {self.id} do not fit: {wrong}")
        if self.kind_names and len(set(self.kind_names)) != self.choices.counts[0]:
            raise ConfigError(
                f"{self.id} has {self.choices.counts[0]} kinds of action; kind_names must be as many different names, "
                f"got {', '.join(self.kind_names)}"
            )
        if self.mirror is None:
            return
        fault = next(mirror_faults(self.mirror, self.observation_space, self.action_space), None)
        if fault is not None:
            raise ConfigError(f"the mirror of {self.id} does not fit: {fault}")
        if self.action_uses and self.mirror.actions.source != tuple(range(len(self.mirror.actions.source))):
            raise ConfigError(f"the mirror of {self.id} does not fit: factors that count for some kinds change places")

    @property
    def choices(self) -> Choices:
        """What an action is made of, in a world of Discrete or MultiDiscrete actions; others raise UnsupportedError."""
        return choices_of(self.action_space, self.action_uses, self.exploratory_kinds)

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
        """Returns the sizes as a team sees them, its own first: in mode `1v2` the pair's side is `2v1`."""
        others = sorted(self.teams.count(other) for other in set(self.teams) if other != team)
        return "v".join(map(str, (self.teams.count(team), *others)))


class Columns(Mapping[str, Tensor]):
    """Named columns of one tensor: a mapping to read by name, one block to read at once.

    Attributes:
        packed: `(games, seats, names)`, all columns side by side.
    """

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
    """Returns the named columns side by side, `(games, seats, names)`.

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
        observations: `(games, seats, ...)` an entry; of games that ended, the first of the next episode.
        terminated: `(games,)` bool, the game is over by its own rules.
        truncated: `(games,)` bool, the game was cut off; its value goes on from `final_observations`.
        final_observations: `(games, seats, ...)` an entry; rows are valid only for games that ended in this step.
        events: `(games, seats)` float32 a name: what happened in this step (damage, knockouts, goals, reward).
        measures: `(games, seats)` float32 a name: where things stood after this step, before any restart.
            Worlds that have either in one tensor give it as `Columns`.
    """

    observations: Observations
    terminated: Tensor
    truncated: Tensor
    final_observations: Observations
    events: Mapping[str, Tensor]
    measures: Mapping[str, Tensor]

    @property
    def ended(self) -> Tensor:
        """`(games,)` bool, games that ended for whichever reason and started anew within the step."""
        return self.terminated | self.truncated


@dataclass(frozen=True, slots=True)
class EnvRequest:
    """What a world's factory is given.

    Attributes:
        num_games: Games in the batch.
        device: Device name, such as `cpu` or `cuda:0`.
        seed: Seed of all random streams.
        first_game: Index of the first game; parts of a larger batch are made with it.
        config: The world's own settings; its factory checks them.
    """

    num_games: int = 1
    device: str | torch.device = "cpu"
    seed: int = 0
    first_game: int = 0
    config: Mapping[str, Any] | None = None


class Bots(Protocol):
    """Scripted players of one world, made by `BatchedEnv.bots`; what they remember lives in the environment."""

    names: tuple[str, ...]

    def act(self, assignment: Tensor, actions: Tensor) -> None:
        """Writes the bots' actions for the current state.

        Args:
            assignment: `(games, seats)` int32, index into `names`, or -1 for a seat that no bot plays.
            actions: `(games, seats, ...)`; rows of seats with -1 stay as they are.
        """


class BatchedEnv(ABC):
    """Many games of one world, advanced together.

    Randomness is a pure function of (seed, game index, episode, frame): a game's future depends neither on the
    size of the batch nor on the number of threads. Game `i` of the batch has index `first_game + i`.
    """

    spec: EnvSpec
    num_games: int
    device: torch.device
    seed: int
    first_game: int
    _action_form: tuple[tuple[int, ...], tuple[torch.dtype, ...]] | None = None  # shape and types, once they are needed

    @abstractmethod
    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        """Starts a new episode.

        Args:
            games: `(games,)` bool, which games start anew; all if None.
            seed: Replaces the seed and sets all episode counters back, so that equal seeds give equal games. Only
                for all games at once.

        Returns:
            Observations of all games, `(games, seats, ...)` an entry.
        """

    def step(self, actions: Tensor) -> StepResult:
        """Advances every game by one step; games that end start anew within it.

        Args:
            actions: `(games, seats, ...)` on the device of the environment.

        Raises:
            ActionError: The shape, type or device is wrong.
        """
        self._check_actions(actions)
        return self._advance(actions)

    @abstractmethod
    def _advance(self, actions: Tensor) -> StepResult:
        """Does the work of `step` on actions whose shape, type and device are right."""

    def snapshot(self) -> dict[str, Tensor]:
        """Returns the whole state as tensors that later steps do not touch."""
        raise UnsupportedError(f"{self.spec.id} cannot take snapshots (spec.snapshots is False)")

    def restore(self, snapshot: Mapping[str, Tensor]) -> Observations:
        """Takes the state of `snapshot` and returns its observations.

        Raises:
            SnapshotError: It was taken of another world, version or number of games.
        """
        raise UnsupportedError(
            f"{self.spec.id} cannot restore a snapshot of {', '.join(snapshot)} (spec.snapshots is False)"
        )

    def bots(self, names: Sequence[str]) -> Bots:
        """Makes scripted players of the given names; `EnvSpec.bots` lists the valid ones."""
        raise UnsupportedError(f"{self.spec.id} has no scripted players, asked for {', '.join(names)}")

    def render(self, game: int = 0) -> NDArray[np.uint8]:
        """Draws one game as an RGB picture `(height, width, 3)`."""
        raise UnsupportedError(f"{self.spec.id} cannot be drawn, asked for game {game}")

    def close(self) -> None:  # noqa: B027 - most worlds have nothing to release
        """Releases threads, processes and windows; may be called twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_actions(self, actions: Tensor) -> None:
        """Raises ActionError unless shape, type and device fit; reads no value, so it never waits for a GPU."""
        if not isinstance(actions, Tensor):
            raise ActionError(f"actions must be a torch.Tensor, got {type(actions).__name__}; use torch.as_tensor")
        if self._action_form is None:
            space = self.spec.action_space
            self._action_form = (self.num_games, self.spec.seats, *(space.shape or ())), action_dtypes(space)
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
    """Returns the tensor types that actions of `space` may have; the first one is the preferred."""
    if isinstance(space, spaces.MultiBinary):
        return (torch.int8, torch.uint8, torch.bool)
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        return (torch.int64, torch.int32)
    if isinstance(space, spaces.Box):
        return (torch.float32,)
    raise UnsupportedError(f"action space {space} is not supported; valid: MultiBinary, Discrete, MultiDiscrete, Box")


def resolve_device(device: str | torch.device, spec_id: str, device_types: Sequence[str]) -> torch.device:
    """Returns the device with its index, or raises DeviceError if it is not here or not for this world."""
    try:
        resolved = torch.device(device)
    except RuntimeError as error:
        raise DeviceError(f"unknown device {str(device)!r}; valid: {', '.join(device_types)}") from error
    if resolved.type not in device_types:
        raise DeviceError(f"{spec_id} lives on {' or '.join(device_types)}, not on {resolved.type}")
    if resolved.type == "cuda":
        if not torch.cuda.is_available():
            raise DeviceError(f"device {str(device)!r} was asked for, but torch sees no CUDA device; use 'cpu'")
        return torch.device("cuda", torch.cuda.current_device() if resolved.index is None else resolved.index)
    return torch.device("cpu")


def check_snapshot(snapshot: Mapping[str, Tensor], state: Mapping[str, Tensor], spec_id: str) -> None:
    """Raises SnapshotError unless `snapshot` has the names, shapes and types of `state`."""
    if not isinstance(snapshot, Mapping) or not all(isinstance(tensor, Tensor) for tensor in snapshot.values()):
        raise SnapshotError(f"a snapshot of {spec_id} is a mapping of names to tensors; use what `snapshot` returned")
    if set(snapshot) != set(state):
        raise SnapshotError(
            f"snapshot does not fit {spec_id}: it has {', '.join(sorted(snapshot)) or 'nothing'}; "
            f"expected {', '.join(sorted(state))}"
        )
    for name, tensor in state.items():
        given = snapshot[name]
        if given.shape != tensor.shape or given.dtype != tensor.dtype:
            raise SnapshotError(
                f"snapshot of {spec_id}: {name!r} is {tuple(given.shape)} {given.dtype}, "
                f"expected {tuple(tensor.shape)} {tensor.dtype}; use the same number of games and version"
            )
