"""Step a slice of PettingZoo parallel games: in our own process, or hosted by a worker process.

Like `games`, this file needs neither torch nor PettingZoo itself: the games follow PettingZoo's parallel
API, and what else they import is up to them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ludus.envs.adapters.games import Block, Entry, Maker, Plan, SingleGames, dtypes_for

AGENT = "agent"  # observation entry that says which agent a seat is, one-hot
MASK = "action_mask"  # observation entry, and PettingZoo's name for it in observations and infos
RESULTS = ("wins", "losses", "draws")  # events of the last step of a match
_TIE = 1e-9  # sums of rewards that differ by less, relatively, are equal: they were added in another order


def common_actions(own: Sequence[spaces.Space[Any]]) -> spaces.Space[Any] | None:
    """Return the smallest action space that holds those of all agents, counted from 0; None if they do not mix."""
    first = own[0]
    if all(isinstance(space, spaces.Discrete) for space in own):
        return spaces.Discrete(max(int(space.n) for space in own))  # type: ignore[attr-defined]
    if all(isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1 for space in own):
        factors = max(len(space.nvec) for space in own)  # type: ignore[attr-defined]
        padded = [[*space.nvec, *[1] * (factors - len(space.nvec))] for space in own]  # type: ignore[attr-defined]
        return spaces.MultiDiscrete(np.max(padded, axis=0))
    if len({len(space.shape or ()) for space in own}) > 1:
        return None
    shape = tuple(max(sizes) for sizes in zip(*(space.shape or () for space in own), strict=True))
    if all(isinstance(space, spaces.MultiBinary) for space in own):
        return spaces.MultiBinary(shape[0] if len(shape) == 1 else shape)
    if not all(isinstance(space, spaces.Box) for space in own):
        return None
    if all(space == first for space in own):
        return spaces.Box(first.low.astype(np.float32), first.high.astype(np.float32), dtype=np.float32)  # type: ignore[attr-defined]
    low, high = np.full(shape, np.inf, np.float32), np.full(shape, -np.inf, np.float32)
    for space in own:
        part = corner(space.shape or ())
        low[part] = np.minimum(low[part], space.low)  # type: ignore[attr-defined]
        high[part] = np.maximum(high[part], space.high)  # type: ignore[attr-defined]
    return spaces.Box(low, high, dtype=np.float32)


def corner(shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Return the place of an array of this shape in a larger one."""
    return tuple(slice(0, size) for size in shape)


def choice_counts(space: spaces.Space[Any]) -> tuple[int, ...]:
    """Return the alternatives of each factor of an action space; nothing for spaces that are no choices."""
    if isinstance(space, spaces.Discrete):
        return (int(space.n),)
    return tuple(map(int, space.nvec)) if isinstance(space, spaces.MultiDiscrete) else ()


def _decoder(own: spaces.Space[Any], common: spaces.Space[Any]) -> Callable[[NDArray[Any]], Any]:
    """Return what turns a row of the common action space into an agent's own action."""
    if isinstance(own, spaces.Discrete):
        start, dtype = int(own.start), np.dtype(own.dtype).type
        return lambda row: dtype(int(row) + start)
    part = corner(own.shape or ())
    if isinstance(own, spaces.MultiDiscrete):
        return lambda row: row[part].astype(own.dtype) + own.start
    if not isinstance(own, spaces.Box) or not isinstance(common, spaces.Box):
        return lambda row: row[part].astype(own.dtype)
    low, high = common.low[part], common.high[part]
    span = high - low
    # Where agents have different bounds, the common ones are stretched onto the agent's own.
    is_scaled = bool((own.low != low).any() or (own.high != high).any()) and bool(np.isfinite(span).all())
    if not is_scaled:
        return lambda row: np.clip(row[part], own.low, own.high).astype(own.dtype, copy=True)
    scale = (own.high - own.low) / np.where(span > 0, span, 1.0)
    return lambda row: np.clip(own.low + (row[part] - low) * scale, own.low, own.high).astype(own.dtype)


class _Outlet(NamedTuple):
    """Where an entry of one seat is written."""

    entry: Entry
    dtypes: frozenset[np.dtype[Any]]
    place: tuple[slice, ...] | None  # corner of a padded array; None for the whole array


class ParallelGames(SingleGames):
    """PettingZoo parallel environments: every agent is a seat.

    An agent that has left, or has not come yet, sees zeros, gets no reward, and its actions are ignored.
    """

    forms: ClassVar[Mapping[str, str]] = {
        "step": "dicts by agent: (observations, rewards, terminations, truncations, infos)",
        "reset": "dicts by agent: (observations, infos)",
    }

    def __init__(self, plan: Plan, block: Block, first: int, last: int, make: Maker) -> None:
        super().__init__(plan, block, first, last, make)
        self._seats = plan.seats
        self._numbers = {seat.agent: number for number, seat in enumerate(plan.seats)}
        self._outlets = [[self._outlet(entry) for entry in seat.entries] for seat in plan.seats]
        own = [self.envs[0].action_space(seat.agent) for seat in plan.seats]
        common = common_actions(own)
        if common is None:
            raise TypeError("the agents' action spaces do not mix")
        self._decoders = [_decoder(space, common) for space in own]
        self._bounds = np.cumsum(choice_counts(common))
        self._counts = [
            math.prod(space.shape or (1,)) if not choice_counts(space) else sum(choice_counts(space)) for space in own
        ]
        self._allowed = [np.array(seat.allowed, np.float32) for seat in plan.seats]
        self._gone: list[set[str]] = [set() for _ in self.envs]
        self._teams = 1 + max(seat.team for seat in plan.seats)
        self._returns = np.zeros((len(self.envs), self._teams))
        self._masks = np.ones((len(self.envs), len(plan.seats), int(self._bounds[-1]) if len(self._bounds) else 0))

    def _outlet(self, entry: Entry) -> _Outlet:
        shape = self._final[entry.name].shape[2:]
        if shape == entry.shape:
            return _Outlet(entry, dtypes_for(entry), None)
        flat = len(shape) != len(entry.shape)
        return _Outlet(entry, dtypes_for(entry), corner((math.prod(entry.shape),) if flat else entry.shape))

    def _play(self, index: int, slot: int) -> bool:
        env = self.envs[index]
        acting = self._present(index, env)
        result = env.step({agent: self._action(index, self._numbers[agent]) for agent in acting})
        if not isinstance(result, tuple) or len(result) != 5 or not all(isinstance(part, Mapping) for part in result):
            raise self._broken(result, self.forms["step"])
        observations, rewards, terminations, truncations, infos = result
        terminated = {agent for agent in acting if self._says(terminations, "terminations", agent)}
        truncated = {agent for agent in acting if self._says(truncations, "truncations", agent)}
        for agent in acting:
            number, value = self._numbers[agent], self._number(rewards.get(agent, 0.0), f"rewards[{agent!r}]")
            self._events["reward"][index, number] = value
            self._returns[index, self._seats[number].team] += value
        self._gone[index] |= terminated | truncated
        remaining = self._present(index, env)
        is_over = not remaining
        self._write(
            self._final if is_over else self._seen[slot], index, acting if is_over else remaining, observations, infos
        )
        if is_over:
            # Cut off is what did not end by its own rules for anyone who was still there.
            self._truncated[index] = bool(truncated) and not terminated
            self._terminated[index] = not self._truncated[index]
            self._write_result(index)
        return is_over

    def _present(self, index: int, env: Any) -> list[str]:  # noqa: ANN401 - a game of others
        """Return the agents that are in the game."""
        agents = [agent for agent in env.agents if agent not in self._gone[index]]
        unknown = [agent for agent in agents if agent not in self._numbers]
        if unknown:
            valid = ", ".join(self._numbers)
            raise self._broken(unknown[0], f"agents among the possible ones, {valid}", "an agent of env.agents")
        return agents

    def _says(self, flags: Mapping[str, Any], name: str, agent: str) -> bool:
        return agent in flags and self._flag(f"{name}[{agent!r}]", flags[agent])

    def _start(self, index: int, slot: int) -> None:
        self._gone[index].clear()
        self._returns[index] = 0.0
        observations, infos = self._started(index)
        if not isinstance(observations, Mapping):
            raise self._broken(observations, self.forms["reset"], "observations")
        agents = self._present(index, self.envs[index])
        if not agents:
            raise self._broken(observations, "a game with agents, but env.agents is empty", "observations")
        self._write(self._seen[slot], index, agents, observations, infos if isinstance(infos, Mapping) else {})

    def _write(
        self,
        target: Mapping[str, NDArray[Any]],
        index: int,
        agents: Sequence[str],
        observations: Mapping[str, Any],
        infos: Mapping[str, Any],
    ) -> None:
        """Write what these agents see, and zeros for all others."""
        present = set(agents)
        for number, (seat, outlets) in enumerate(zip(self._seats, self._outlets, strict=True)):
            is_present = seat.agent in present
            if is_present and seat.agent not in observations:
                raise self._broken(observations, f"an observation of {seat.agent!r}", "observations")
            if not is_present:
                for values in target.values():
                    values[index, number] = 0
            if AGENT in target:
                target[AGENT][index, number] = is_present * np.eye(len(self._seats), dtype=np.float32)[number]
            if MASK in target:
                mask = self._mask(number, observations.get(seat.agent), infos.get(seat.agent)) if is_present else None
                self._masks[index, number] = target[MASK][index, number] = (
                    self._allowed[number] if mask is None else mask
                )
            if is_present:
                self._show(target, index, number, outlets, observations[seat.agent])

    def _show(
        self,
        target: Mapping[str, NDArray[Any]],
        index: int,
        number: int,
        outlets: Sequence[_Outlet],
        seen: Any,  # noqa: ANN401
    ) -> None:
        for outlet in outlets:
            value = self._value(outlet.entry, outlet.dtypes, seen, f"observations[{self._seats[number].agent!r}]")
            values = target[outlet.entry.name]
            if outlet.place is None:
                values[index, number] = value
            else:
                values[index, number][outlet.place] = value if value.ndim == len(outlet.place) else value.ravel()

    def _mask(self, number: int, seen: Any, info: Any) -> NDArray[Any] | None:  # noqa: ANN401 - whatever a game gives
        """Return what an agent may do by its observation or info, in the common space; None if neither says it."""
        given = next((part[MASK] for part in (seen, info) if isinstance(part, Mapping) and MASK in part), None)
        if given is None:
            return None
        mask = np.asarray(given)
        if mask.shape != (self._counts[number],) or mask.dtype.kind not in "biuf":
            name = f"the action mask of {self._seats[number].agent!r}"
            raise self._broken(given, f"an array of shape ({self._counts[number]},) of 0 and 1", name)
        whole = self._allowed[number].copy()
        # Factors that the agent's own space does not have come last, with one alternative each.
        whole[np.flatnonzero(whole)[: len(mask)]] = mask != 0
        # A mask of zeros, as in another's turn, would allow nothing: then everything is allowed.
        return whole if all(part.any() for part in np.split(whole, self._bounds[:-1])) else None

    def _action(self, index: int, number: int) -> Any:  # noqa: ANN401 - an action of any space
        """Return the action of a seat for its game; one that is not allowed becomes the first that is."""
        row = self._actions[index, number]
        if self._masks.shape[-1]:
            factors = np.atleast_1d(row).copy()
            for factor, mask in enumerate(np.split(self._masks[index, number], self._bounds[:-1])):
                if not mask[factors[factor]]:
                    factors[factor] = mask.argmax()
            row = factors if row.ndim else factors[0]
        return self._decoders[number](row)

    def _write_result(self, index: int) -> None:
        """Write who won: the team with the largest sum of rewards; teams that share it have drawn."""
        if self._teams < 2:
            return
        returns = self._returns[index]
        best = returns.max()
        leads = returns >= best - _TIE * max(1.0, abs(best))
        is_drawn = leads.sum() > 1
        for number, seat in enumerate(self._seats):
            result = ("draws" if is_drawn else "wins") if leads[seat.team] else "losses"
            self._events[result][index, number] = 1.0


def host(plan: dict[str, Any], arrays: Mapping[str, NDArray[Any]], first: int, last: int) -> ParallelGames:
    """Make games `first ... last - 1` of a plan."""
    whole = Plan.from_json(plan)
    return ParallelGames(whole, Block(whole, arrays), first, last, whole.source.load())
