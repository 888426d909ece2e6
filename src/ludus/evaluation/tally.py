"""What an evaluation counts: the sums of every match, kept on the device, and the table's rows that come of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.intervals import mean_interval, wilson_interval
from ludus.envs.base import BatchedEnv, EnvSpec, StepResult
from ludus.envs.behaviour import Behaviour
from ludus.rewards.moment import Moment

Row: TypeAlias = dict[str, Any]
Sums: TypeAlias = dict[str, NDArray[np.float64]]

_COUNTED_EVENTS = ("wins", "losses", "reward")


@dataclass(frozen=True, slots=True)
class Matches:
    """Finished matches of the agent; of a match in which it plays several seats, one row for each.

    Attributes:
        opponents: `(rows,)` index of the opponent.
        leads: `(rows,)` bool, whether the row is the first of its match.
        lengths: `(rows,)` steps.
        teams: `(rows,)` team that the agent was.
        events: Sums of wins, losses and reward where the world has them, `(rows,)` each.
        sums: Sums of the quantities of the world's behaviour, `(rows,)` each.
    """

    opponents: NDArray[np.int64]
    leads: NDArray[np.bool_]
    lengths: NDArray[np.int64]
    teams: NDArray[np.int64]
    events: Sums
    sums: Sums

    def of(self, opponent: int) -> "Matches":
        """Returns those against one opponent."""
        return self._chosen(self.opponents == opponent)

    def by_side(self, spec: EnvSpec) -> "dict[str, Matches]":
        """Returns those of each side that was played; all together as one where teams are of equal size."""
        sides = np.array([spec.side(team) for team in self.teams.tolist()], dtype=np.str_)
        return {str(side): self._chosen(sides == side) for side in np.unique(sides)}

    def _chosen(self, chosen: NDArray[np.bool_]) -> "Matches":
        return Matches(
            self.opponents[chosen],
            self.leads[chosen],
            self.lengths[chosen],
            self.teams[chosen],
            {name: values[chosen] for name, values in self.events.items()},
            {name: values[chosen] for name, values in self.sums.items()},
        )


def join(parts: Sequence[Matches]) -> Matches:
    """Puts the matches of several batches together."""
    first = parts[0]
    return Matches(
        np.concatenate([part.opponents for part in parts]),
        np.concatenate([part.leads for part in parts]),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.teams for part in parts]),
        {name: np.concatenate([part.events[name] for part in parts]) for name in first.events},
        {name: np.concatenate([part.sums[name] for part in parts]) for name in first.sums},
    )


class Tally:
    """Adds up what happens in the agent's seats during the matches of one batch."""

    def __init__(self, env: BatchedEnv, seats: Tensor, behaviour: Behaviour) -> None:
        """Begins at zero.

        Args:
            env: The games.
            seats: `(games, seats)` bool, the agent's seats.
            behaviour: Whose quantities are wanted.
        """
        self._index = seats.flatten().nonzero().squeeze(1)
        self._teams = torch.tensor(env.spec.teams, device=env.device)[self._index % env.spec.seats]
        self._games = self._index.div(env.spec.seats, rounding_mode="floor")
        self._behaviour, self._step_s = behaviour, 1.0 / env.spec.rate_hz
        self._events = tuple(name for name in _COUNTED_EVENTS if name in env.spec.events)
        self._quantities: tuple[str, ...] | None = None  # known when the first step is
        # float64: thousands of small numbers are added one by one.
        self._sums = torch.zeros((0, len(self._index)), dtype=torch.float64, device=env.device)

    def __call__(self, result: StepResult, playing: Tensor) -> None:
        """Adds a step; `playing` `(games,)` are the games that count."""
        quantities = self._behaviour.per_step(Moment(result.events, result.measures, self._step_s))
        tensors = [*(result.events[name] for name in self._events), *quantities.values()]
        if self._quantities is None:
            self._quantities = tuple(quantities)
            self._sums = self._sums.new_zeros((len(tensors), len(self._index)))
        if not tensors:
            return
        values = torch.stack(tensors).flatten(1).index_select(1, self._index)
        self._sums += torch.where(playing[self._games], values, 0.0)

    def matches(self, opponents: Tensor, steps: Tensor) -> Matches:
        """Brings everything to the host.

        Args:
            opponents: `(games,)` index of each game's opponent.
            steps: `(games,)` length of each match.
        """
        sums = self._sums.cpu().numpy()
        games = self._games.cpu().numpy()
        counted = len(self._events)
        return Matches(
            opponents.cpu().numpy()[games],
            np.diff(games, prepend=-1) > 0,
            steps.cpu().numpy()[games],
            self._teams.cpu().numpy(),
            dict(zip(self._events, sums[:counted], strict=True)),
            dict(zip(self._quantities or (), sums[counted:], strict=True)),
        )


def table_row(opponent: str, matches: Matches, behaviour: Behaviour, rate_hz: float) -> Row:
    """Returns a table's row: who it was against, how many matches, and every number with its interval where it has one.

    A draw is not won: `win_rate` is the share of matches that were won.
    """
    leads = matches.leads
    count = int(leads.sum())
    row: Row = {"opponent": opponent, "matches": count}
    if "wins" in matches.events:
        wins = int((matches.events["wins"][leads] > 0).sum())
        losses = int((matches.events["losses"][leads] > 0).sum()) if "losses" in matches.events else count - wins
        row |= {"wins": wins, "draws": count - wins - losses, "losses": losses}
        row |= _with_interval("win_rate", wilson_interval(wins, count))
    if "reward" in matches.events:
        row |= _with_interval("mean_return", mean_interval(matches.events["reward"][leads].tolist()))
    row |= _with_interval("mean_length", mean_interval(matches.lengths[leads].tolist()))
    return row | behaviour.summarise(behaviour.per_episode(matches.sums, matches.lengths, rate_hz))


def row_numbers(spec: EnvSpec, behaviour: Behaviour) -> tuple[str, ...]:
    """Returns the numbers that the rows of a world have, found on a match of one step in which nothing happens."""
    events, measures = ({name: torch.zeros(1) for name in names} for names in (spec.events, spec.measures))
    quantities = behaviour.per_step(Moment(events, measures, 1.0 / spec.rate_hz))
    nothing = np.zeros(1)
    matches = Matches(
        np.zeros(1, np.int64),
        np.ones(1, np.bool_),
        np.ones(1, np.int64),
        np.zeros(1, np.int64),
        {name: nothing for name in _COUNTED_EVENTS if name in spec.events},
        dict.fromkeys(quantities, nothing),
    )
    with np.errstate(all="ignore"):  # quotients of nothing
        row = table_row("", matches, behaviour, spec.rate_hz)
    return tuple(name for name, value in row.items() if not isinstance(value, str))


def _with_interval(name: str, interval: tuple[float, float, float]) -> Mapping[str, float]:
    estimate, low, high = interval
    return {name: estimate, f"{name}_low": low, f"{name}_high": high}
