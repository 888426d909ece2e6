"""One learner per game: bots in the other seats, what happened weighed into a reward, host arrays in and out.

The single-agent adapters (Gymnasium, Gymnasium vector, Stable-Baselines3) are thin shells around `SeatedBatch`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ActionError, ConfigError, UnknownNameError
from ludus.core.random import stream_hash_tensor
from ludus.envs.base import BatchedEnv, EnvSpec, Observations, StepResult, action_dtypes
from ludus.envs.bot_roster import BotRoster
from ludus.envs.bots import PythonBot, as_bot, bot_names
from ludus.envs.world_parts import default_rewards, reward_sets
from ludus.rewards.manager import resolve_weights
from ludus.rewards.step_info import StepInfo
from ludus.rewards.terms import find_terms, terms_of

HostObservations: TypeAlias = NDArray[Any] | dict[str, NDArray[Any]]
ActionStyle: TypeAlias = Literal["native", "multi_discrete"]
_STREAM_SEAT = 0x5EA7  # keeps the draw of seats apart from the world's own draws


class SeatRewards:
    """A weighted sum of reward terms and events for every seat; `weights` holds the weight of each."""

    def __init__(self, spec: EnvSpec, weights: Mapping[str, float] | None) -> None:
        """Take weights of reward terms or events, None for the default; raise ConfigError or UnknownNameError."""
        sets = reward_sets(spec.id)
        if weights is None:
            paths = resolve_weights(default_rewards(spec), spec.name, sets)
            self.weights = {name: path.value(0) for name, path in paths.items()}
        else:
            self.weights = _checked(spec, weights)
        self._terms = find_terms(spec.name, tuple(self.weights), spec.events)
        if not self._terms:
            raise ConfigError(f"{spec.id} needs reward weights; its events: {', '.join(spec.events) or 'none'}")
        self._seconds = 1.0 / spec.rate_hz

    def total(self, result: StepResult) -> Tensor:
        """Return the rewards of a step, `(games, seats)` float32."""
        info = StepInfo(result.events, result.state_metrics, self._seconds)
        return torch.stack([self._terms[name](info) * weight for name, weight in self.weights.items()]).sum(0)


def _checked(spec: EnvSpec, weights: object) -> dict[str, float]:
    """Return weights that a caller gave; anything but a mapping of finite numbers is a ConfigError."""
    names = ", ".join(dict.fromkeys((*spec.events, *terms_of(spec.name))))
    if not isinstance(weights, Mapping):
        raise ConfigError(
            f"reward must be a mapping of names to weights, or None for the reward of `ludus train`, got {weights!r}; "
            f"valid names: {names}. For a function, decorate it with ludus.rewards.reward_term and weigh it by its name"
        )
    for name, weight in weights.items():
        is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not isinstance(name, str) or not is_number or not math.isfinite(weight):
            raise ConfigError(
                f"reward must map names to finite numbers, got {name!r}: {weight!r}; valid names: {names}"
            )
    return dict(weights)


@dataclass(frozen=True, slots=True)
class Seating:
    """Who sits where and what counts."""

    # Who plays every seat but the learner's: a bot's name, or a function or class as `register_bot` takes it; None in a
    # world of one seat.
    opponent: str | Callable[..., Any] | None = None
    seat: int | None = None  # the learner's seat, or None for a random one every episode
    # Weight of each reward term or event, or None for the reward of `ludus train`.
    reward: Mapping[str, float] | None = None
    # `multi_discrete` presents on/off keys (MultiBinary) as MultiDiscrete of twos, for libraries that cannot do
    # otherwise.
    actions: ActionStyle = "native"


@dataclass(frozen=True, slots=True)
class SeatedStep:
    """What one step gave the learners; all arrays are new and belong to the caller."""

    observations: HostObservations  # `(games, ...)`; of games that ended, the first of the next episode
    rewards: NDArray[np.float32]  # `(games,)` float32
    terminated: NDArray[np.bool_]  # `(games,)` bool
    truncated: NDArray[np.bool_]  # `(games,)` bool
    final_observations: HostObservations  # `(games, ...)`; rows are valid only for games that ended
    events: Mapping[str, NDArray[np.float32]]  # `(games,)` float32 per name
    state_metrics: Mapping[str, NDArray[np.float32]]  # `(games,)` float32 per name


class SeatedBatch:
    """A batch in which each game has one learner."""

    def __init__(self, env: BatchedEnv, seating: Seating) -> None:
        spec = env.spec
        self.env = env
        self.num_envs = env.num_envs
        self.observation_space = flat_observation_space(spec.observation_space)
        self.action_space = presented_action_space(spec.action_space, seating.actions)
        self._rewards = SeatRewards(spec, seating.reward)
        self._fixed_seat = _checked_seat(seating.seat, spec.seats, spec.id)
        self._games = torch.arange(env.num_envs, device=env.device)
        self._episodes = torch.full_like(self._games, -1)
        self._seats = torch.zeros_like(self._games)
        self._observations: Observations = {}
        self._places = np.zeros(env.num_envs, dtype=np.int64)  # each learner's row among all games and seats
        self._bots: BotRoster | None = None
        if spec.seats > 1:
            self._bots = BotRoster(env, [_opponent(seating.opponent, spec)])
        elif seating.opponent is not None:
            raise ConfigError(f"{spec.id} has one seat, so no opponent can play in it; got {seating.opponent!r}")
        shape = (env.num_envs, spec.seats, *(spec.action_space.shape or ()))
        self._actions = torch.zeros(shape, dtype=action_dtypes(spec.action_space)[0], device=env.device)
        self._assignment = torch.zeros(shape[:2], dtype=torch.int32, device=env.device)

    @property
    def seats(self) -> NDArray[np.int64]:
        """`(games,)`, the learner's seat in each game."""
        return _host(self._seats)

    def reset(self, games: NDArray[np.bool_] | None = None, *, seed: int | None = None) -> HostObservations:
        """Start new episodes, of all games or of those with `games` `(games,)` set, and return all observations."""
        if seed is not None:
            self._episodes.fill_(-1)
        mask = None if games is None else torch.as_tensor(games, dtype=torch.bool, device=self.env.device)
        self._observations = self.env.reset(mask, seed=seed)
        self._take_seats(torch.ones_like(self._games, dtype=torch.bool) if mask is None else mask)
        return self._seen(self._observations)

    def step(self, actions: NDArray[Any]) -> SeatedStep:
        """Play the learners' `actions` `(games, ...)` and the bots' own; raise ActionError if the shape is wrong."""
        given = torch.as_tensor(np.asarray(actions)).to(self._actions.device, self._actions.dtype)
        expected = self._actions[:, 0].shape
        if given.shape != expected:
            raise ActionError(
                f"actions of {self.num_envs} learners in {self.env.spec.id} must have shape {tuple(expected)}, "
                f"got {tuple(given.shape)}"
            )
        if self._bots is not None:
            self._bots.act(self._observations, self._assignment, self._actions)
        self._actions[self._games, self._seats] = given
        result = self.env.step(self._actions)
        rewards = self._pick(self._rewards.total(result).flatten(), 0)
        events = self._learners(result.events)
        state_metrics = self._learners(result.state_metrics)
        ended = torch.nonzero(result.ended).squeeze(1)
        final_observations = self._final(result.final_observations, ended) if len(ended) else None
        if len(ended):
            self._take_seats(result.ended)
        self._observations = result.observations
        observations = self._seen(result.observations)
        final = observations if final_observations is None else final_observations
        terminated, truncated = _host(result.terminated), _host(result.truncated)
        return SeatedStep(observations, rewards, terminated, truncated, final, events, state_metrics)

    def _take_seats(self, games: Tensor) -> None:
        """Seat the learners of `games` `(games,)` bool for their next episode, and bots everywhere else."""
        self._episodes += games
        if self._fixed_seat is None:
            indices = self.env.first_game + self._games
            drawn = stream_hash_tensor(self.env.seed, indices, self._episodes, 0, _STREAM_SEAT) % self.env.spec.seats
            self._seats = torch.where(games, drawn, self._seats)
        else:
            self._seats.fill_(self._fixed_seat)
        self._places = _host(self._games * self.env.spec.seats + self._seats)
        if self._bots is not None:
            self._bots.begin(games)
        self._assignment.zero_()
        self._assignment[self._games, self._seats] = -1

    def _seen(self, observations: Observations) -> HostObservations:
        """Pick the learners' rows; picking copies, so nothing of the environment's buffers leaves."""
        return self._flat({name: self._pick(tensor.flatten(0, 1), 0) for name, tensor in observations.items()})

    def _final(self, observations: Observations, ended: Tensor) -> HostObservations:
        """Pick the learners' rows of the games `ended` `(count,)`; all other rows are zero."""
        final: dict[str, NDArray[Any]] = {}
        for name, tensor in observations.items():
            rows_of_ended = tensor[ended, self._seats[ended]].cpu().numpy()
            final[name] = np.zeros((self.num_envs, *rows_of_ended.shape[1:]), dtype=rows_of_ended.dtype)
            final[name][ended.cpu().numpy()] = rows_of_ended
        return self._flat(final)

    def _flat(self, arrays: dict[str, NDArray[Any]]) -> HostObservations:
        return next(iter(arrays.values())) if isinstance(self.observation_space, spaces.Box) else arrays

    def _learners(self, named: Mapping[str, Tensor]) -> dict[str, NDArray[np.float32]]:
        """Pick the learners' values of events or state metrics; all names at once, for there may be dozens."""
        if not named:
            return {}
        stacked = torch.stack(list(named.values())).flatten(1)  # (names, games * seats)
        return dict(zip(named, self._pick(stacked, 1), strict=True))

    def _pick(self, tensor: Tensor, axis: int) -> NDArray[Any]:
        """Pick the learners' places along an axis of `games * seats`.

        On the host numpy does it: measured with 64 games, torch wakes its threads for it and takes ten times as long.
        """
        if tensor.device.type == "cpu":
            return np.take(tensor.numpy(), self._places, axis)
        picked: NDArray[Any] = (
            tensor.index_select(axis, torch.as_tensor(self._places, device=tensor.device)).cpu().numpy()
        )
        return picked


def rows(observations: HostObservations, game: int) -> HostObservations:
    """Return the observation of one game."""
    if isinstance(observations, dict):
        return {name: values[game] for name, values in observations.items()}
    picked: NDArray[Any] = observations[game]
    return picked


def mask_of(spec: EnvSpec, observations: HostObservations) -> NDArray[np.bool_] | None:
    """Return which choices observations allow, `(..., choices)` bool; None in a world without a mask."""
    if spec.actions.mask is None:
        return None
    entry = observations[spec.actions.mask] if isinstance(observations, dict) else observations
    allowed: NDArray[np.bool_] = entry > 0.5
    return allowed


def mask_info(spec: EnvSpec, observations: HostObservations) -> dict[str, NDArray[np.int8]]:
    """Return the mask as Gymnasium's and PettingZoo's infos hold it, `action_mask` in int8; nothing without a mask."""
    mask = mask_of(spec, observations)
    return {} if mask is None else {"action_mask": mask.astype(np.int8)}


def flat_observation_space(space: spaces.Dict) -> spaces.Box | spaces.Dict:
    """Return the only Box of a dict with one entry, or the dict."""
    entries = list(space.spaces.values())
    return entries[0] if len(entries) == 1 and isinstance(entries[0], spaces.Box) else space


def presented_action_space(space: spaces.Space[Any], style: ActionStyle) -> spaces.Space[Any]:
    """Return the action space as a library gets to see it."""
    if style not in ("native", "multi_discrete"):
        raise UnknownNameError("action style", str(style), ("native", "multi_discrete"))
    if style == "multi_discrete" and isinstance(space, spaces.MultiBinary):
        return spaces.MultiDiscrete(np.full(space.shape, 2))
    return space


def _opponent(opponent: str | Callable[..., Any] | None, spec: EnvSpec) -> str | PythonBot:
    if isinstance(opponent, str):
        return opponent
    if opponent is None or not callable(opponent):
        raise ConfigError(
            f"{spec.id} has {spec.seats} seats: name an opponent; valid: {', '.join(bot_names(spec))}, or a function "
            f"or class as ludus.register_bot takes it; got {opponent!r}"
        )
    return as_bot(opponent)


def _checked_seat(seat: int | None, seats: int, world: str) -> int | None:
    if seat is not None and (isinstance(seat, bool) or seat not in range(seats)):
        raise ConfigError(
            f"seat {seat!r} is not in {world}; valid: {', '.join(map(str, range(seats)))} or None for any"
        )
    return 0 if seats == 1 else seat


def _host(tensor: Tensor) -> NDArray[Any]:
    """Return a tensor as a new array on the host; callers keep it while the environment's buffers change."""
    copied: NDArray[Any] = tensor.to("cpu", copy=True).numpy()
    return copied
