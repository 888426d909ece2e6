"""The trace of a rollout: all events and measures of the learner's rows, from which rewards and accounts are made.

A step costs a few copies. When the rollout is complete, all of its rewards are weighed at once, and after the update,
when the host has waited for the device anyway, the episodes that ended are read.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.state import MAX_COUNT, load_tensors
from ludus.envs.base import EnvSpec, StepResult, packed
from ludus.envs.world_parts import EpisodeMetrics
from ludus.rewards.manager import RewardManager
from ludus.rewards.step_info import StepInfo
from ludus.rollout.advantages import forward_scan
from ludus.rollout.learner_batch import LearnerBatch
from ludus.rollout.rewards import RolloutReward

_OUTCOMES = ("wins", "losses")
_FEW_ROWS = 64
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Results(NamedTuple):
    """Matches that ended, in the order in which they did."""

    opponents: NDArray[np.int64]  # `(matches,)` int64, index of the opponent
    outcomes: NDArray[np.int64]  # `(matches,)` int64: 1 won, 0 drawn, -1 lost
    sides: NDArray[np.int64]  # `(matches,)` int64, index of the learner's side


@dataclass(frozen=True, slots=True)
class Episodes:
    """The episodes of learner rows that ended in one iteration, in the order in which they ended."""

    rewards: NDArray[np.float64]  # `(episodes,)` float64, sum of the reward
    lengths: NDArray[np.int64]  # `(episodes,)` int64, steps
    outcomes: NDArray[np.int64]  # `(episodes,)` int64: 1 won, 0 drawn, -1 lost; all 0 in a world without winners
    opponents: NDArray[np.int64]  # `(episodes,)` int64, index into `names`; -1 where there was no opponent
    leads: NDArray[np.bool_]  # `(episodes,)` bool, whether it is that of the learner's first seat in its game
    sides: NDArray[np.int64]  # `(episodes,)` int64, index into `side_names`; -1 where there was no opponent
    names: tuple[str, ...] = ()  # opponents, by index
    side_names: tuple[str, ...] = ()  # sides that the learner can be on, such as `2v1`, by index
    # For each reward term, `(episodes,)` float64, its part of `rewards`.
    terms: Mapping[str, NDArray[np.float64]] = field(default_factory=lambda: _NOTHING)
    # `(episodes,)` float64 per episode metric of the world.
    episode_metrics: Mapping[str, NDArray[np.float64]] = field(default_factory=lambda: _NOTHING)

    def __len__(self) -> int:
        return len(self.rewards)

    def matches(self) -> Results:
        """Return the matches among them: games against an opponent, each once however many seats the learner had."""
        chosen = self.leads & (self.opponents >= 0)
        return Results(self.opponents[chosen], self.outcomes[chosen], self.sides[chosen])

    def grouped(self) -> Iterator[tuple[str, str, NDArray[np.int64]]]:
        """Yield every opponent that was met, the learner's side, and the outcomes of their matches in their order."""
        matches, count = self.matches(), len(self.side_names)
        keys = matches.opponents * count + matches.sides
        order = np.argsort(keys, kind="stable")
        met, counts = np.unique(keys, return_counts=True)
        ends = np.cumsum(counts)
        for key, first, end in zip(met.tolist(), (ends - counts).tolist(), ends.tolist(), strict=True):
            yield self.names[key // count], self.side_names[key % count], matches.outcomes[order[first:end]]


_NO_COUNTS = np.zeros(0, np.int64)
NO_EPISODES = Episodes(np.zeros(0), _NO_COUNTS, _NO_COUNTS, _NO_COUNTS, leads=np.zeros(0, np.bool_), sides=_NO_COUNTS)


class EpisodeStatistics:
    """Return and length of the learner's episodes on the device, for the metrics of a rollout.

    Both collectors use it. `EpisodeRecorder` accounts for every term of every episode in float64 on the host, and
    would make the device wait if the metrics came from there.

    Attributes:
        running: `(3, rows)`, of the running episodes: reward, steps, and the discounted reward.
        metrics: `METRICS` of the last rollout, on the device; means are NaN where no episode ended.
    """

    METRICS = ("episodes", "episode_return", "episode_length", "reward")

    def __init__(self, rows: int, device: torch.device) -> None:
        """Start with no episode under way."""
        self.running = torch.zeros((3, rows), device=device)
        self.metrics = torch.zeros(len(self.METRICS), device=device)

    def add(self, rewards: Tensor, episode_starts: Tensor, dones: Tensor, gamma: float | None) -> Tensor:
        """Add a rollout of `(steps, rows)` and return the discounted rewards so far of each step's episode.

        `gamma` is the discount per step; None if discounted rewards are not needed.
        """
        keep = (~episode_starts).float()  # y[t] = x[t] + keep[t] * y[t - 1] sums over running episodes
        totals = forward_scan(rewards, keep, self.running[0])
        lengths = forward_scan(torch.ones_like(keep), keep, self.running[1])
        discounted = totals if gamma is None else forward_scan(rewards, gamma * keep, self.running[2])
        self.running.copy_(torch.stack((totals[-1], lengths[-1], discounted[-1])))
        ended = dones.float()
        sums = torch.stack((ended.sum(), (ended * totals).sum(), (ended * lengths).sum()))
        self.metrics = torch.cat((sums[:1], sums[1:] / sums[0], rewards.mean().reshape(1)))
        return discounted


class Lineup(Protocol):
    """Who is played against."""

    opponents: Tensor  # `(games,)` int64, index into `names` of the opponent in each game; -1 where there is none

    @property
    def names(self) -> tuple[str, ...]:
        """All opponents."""

    @property
    def sides(self) -> tuple[str, ...]:
        """The learner's side in each game, such as `2v1`."""


class _Frame(NamedTuple):
    """Views of one step, made once: with few rows, making them costs as much as using them."""

    events: Tensor
    state_metrics: Tensor
    dones: Tensor
    against: Tensor


class EpisodeRecorder(RolloutReward):
    """Records one rollout after the other; what an unfinished episode has gathered is its only state.

    Attributes:
        last: The step that was recorded last; its observations are those that the next step starts from.
        dones: `(steps, rows)` bool, steps of the rollout in which an episode ended.
        opponents: `(steps, rows)` int64, index of the opponent in every step; -1 where there is no opponent.
        on_step: Called with every step before it is recorded; None for nothing.
        truncated_final: `()`, NaN if a final observation of a truncated game had a NaN or Inf since this was set to 0.
            Kept on the host alone: on a GPU it would cost every step, and the values of these observations show it too.
    """

    def __init__(
        self, spec: EnvSpec, manager: RewardManager, episode_metrics: EpisodeMetrics, lineup: Lineup | None = None
    ) -> None:
        self._spec, self._manager, self._episode_metrics, self._lineup = spec, manager, episode_metrics, lineup
        self.last: StepResult | None = None
        self.on_step: Callable[[StepResult], None] | None = None
        self.truncated_final = torch.zeros(())

    def begin(self, steps: int, rows: LearnerBatch) -> None:
        """Allocate memory for a rollout."""
        device, spec = rows.index.device, self._spec
        self._rows, self._is_on_host = rows, device.type == "cpu"
        # Rows move between seats, never between games; where every game is one row there is nothing to choose.
        games = rows.index.div(spec.seats, rounding_mode="floor")
        self._games = None if rows.count == rows.games else games
        self._leads = np.diff(games.cpu().numpy(), prepend=-1) > 0
        self._side_names = tuple(sorted({spec.side(team) for team in spec.teams}))
        places = {name: place for place, name in enumerate(self._side_names)}
        sides = [places.get(side, -1) for side in self._lineup.sides] if self._lineup is not None else [-1] * rows.games
        self._sides = np.array(sides, np.int64)[games.cpu().numpy()]
        self._is_few = self._is_on_host and rows.count <= _FEW_ROWS
        # Rewards that are shared need all seats; which of them are the learner's rows can change in every step.
        chooses = self._manager.shares and not rows.plays_all
        self._chosen = torch.zeros((steps, rows.count), dtype=torch.int64, device=device) if chooses else None
        kept = rows.games * spec.seats if chooses else rows.count
        self._events = torch.zeros((steps, kept, len(spec.events)), device=device)
        self._measures = torch.zeros((steps, kept, len(spec.state_metrics)), device=device)
        self.dones = torch.zeros((steps, rows.count), dtype=torch.bool, device=device)
        self.opponents = torch.full((steps, rows.count), -1, device=device)
        blocks = (self._by_seat(self._events), self._by_seat(self._measures), self.dones, self.opponents)
        self._frames = [_Frame(*frame) for frame in zip(*blocks, strict=True)]
        self._ones = torch.ones(steps, dtype=torch.float64, device=device)
        self._weigh()
        self._running = torch.zeros_like(self._sums)
        self._lengths = torch.zeros(rows.count, dtype=torch.int64)  # on the host, where alone they are needed

    @property
    def can_be_recorded(self) -> bool:
        """Whether a CUDA graph can hold `record`: there is no callback for every step."""
        return self.on_step is None

    @property
    def recording_key(self) -> object | None:
        """What a CUDA graph of `rewards` would depend on: the weights of the terms."""
        return self._manager.recording_key

    def record(self, step: int, result: StepResult) -> None:
        """Keep what happened in a step."""
        self.last = result
        if self.on_step is not None:
            self.on_step(result)
        frame = self._frames[step]
        if self._spec.events:
            self._keep(result.events, self._spec.events, frame.events)
        if self._spec.state_metrics:
            self._keep(result.state_metrics, self._spec.state_metrics, frame.state_metrics)
        if self._chosen is not None:
            self._chosen[step].copy_(self._rows.index)
        if self._lineup is not None:
            self._keep_games(self._lineup.opponents, frame.against)
        if self._is_few:
            self._record_few_ends(step, result)
            return
        self._keep_games(result.ended, frame.dones)
        if self._is_on_host and bool(result.truncated.any()):
            self._look_at_final(result)

    def _record_few_ends(self, step: int, result: StepResult) -> None:
        """Keep the ends of few games on the host: looking through lists costs less than one call on tensors."""
        if step == 0:
            self.dones.zero_()
        was_cut_off = True in result.truncated.tolist()
        if was_cut_off:
            self._look_at_final(result)
        if was_cut_off or True in result.terminated.tolist():
            self._keep_games(result.ended, self._frames[step].dones)

    def _look_at_final(self, result: StepResult) -> None:
        for final in result.final_observations.values():
            if not bool(final[result.truncated].isfinite().all()):
                self.truncated_final.fill_(torch.nan)

    @property
    def _keeps_all(self) -> bool:
        return self._rows.plays_all or self._chosen is not None

    def _by_seat(self, block: Tensor) -> Tensor:
        """View `(steps, rows, names)` as the world gives a step, where all seats are kept."""
        if not self._keeps_all:
            return block
        steps, rows, names = block.shape
        by_seat = block.view(steps, rows // self._spec.seats, self._spec.seats, names)
        return by_seat.squeeze(-1) if names == 1 else by_seat

    def _keep(self, columns: Mapping[str, Tensor], names: tuple[str, ...], into: Tensor) -> None:
        block = columns[names[0]] if len(names) == 1 else packed(columns, names)
        if self._keeps_all:
            into.copy_(block)
        else:
            torch.index_select(block.reshape(-1, len(names)), 0, self._rows.index, out=into)

    def _keep_games(self, values: Tensor, into: Tensor) -> None:
        if self._games is None:
            into.copy_(values)
        else:
            torch.index_select(values, 0, self._games, out=into)

    def measured(self, name: str) -> Tensor:
        """Return a measure of the world after every step of the rollout, `(steps, rows)`."""
        return self._choose(self._measures)[..., self._spec.state_metrics.index(name)]

    def rewards(self) -> Tensor:
        """Weigh all steps and return `(steps, rows)`."""
        self._weigh()
        return self._quantities[: len(self._manager.names)].sum(0)

    def totals(self) -> dict[str, float]:
        """Return each term's sum over the rollout; they add up to its reward exactly."""
        return dict(zip(self._manager.names, self._totals.tolist(), strict=True))

    def read(self) -> Episodes:
        """Return the episodes that ended in the rollout, and keep what the others have gathered so far."""
        found = find_ends(self.dones.cpu().numpy())
        carried, lengths = self._running + self._sums, self._lengths.numpy() + len(self.dones)
        episodes = replace(NO_EPISODES, names=self._names(), side_names=self._side_names)
        if len(found.step):
            # What goes to the device and what comes back is one transfer each: they cost more than what is computed.
            count, ended = len(found.rows), len(found.step)
            sought = (found.step + 1) * count + found.column, found.before * count + count + found.column
            left = found.finished * count + np.arange(count)
            numbers = (found.rows, np.concatenate((*sought, left)), found.step * self._rows.count + found.row)
            moved = torch.from_numpy(np.concatenate(numbers)).to(self.dones.device)
            rows, places, meetings = torch.split(moved, [len(each) for each in numbers])
            # Only the few rows that have an end must be added up step by step. First comes what they brought along, as
            # if it were to be taken off: an episode's part is then the sum at its end less that at the end before.
            sums = self._quantities.index_select(2, rows).cumsum(1, dtype=torch.float64)
            sums = torch.cat((-self._running.index_select(1, rows).unsqueeze(1), sums), dim=1)
            picked = sums.flatten(1).index_select(1, places)
            at_end, before, finished = picked.split_with_sizes((ended, ended, count), 1)
            against = self.opponents.flatten().index_select(0, meetings).unsqueeze(0)
            gathered = torch.cat((at_end - before, against)).cpu().numpy()
            episodes = self._episodes(found, gathered[:-1], gathered[-1].astype(np.int64))
            carried.index_copy_(1, rows, sums[:, -1] - finished)
            lengths[found.rows] = len(self.dones) - found.finished
        self._running, self._lengths = carried, torch.from_numpy(lengths)
        return episodes

    def _names(self) -> tuple[str, ...]:
        return () if self._lineup is None else self._lineup.names

    def _episodes(self, found: "Ends", gathered: NDArray[np.float64], against: NDArray[np.int64]) -> Episodes:
        """Return the episodes that ended, from sums `gathered` `(quantities, episodes)` and opponents `against`."""
        brought = np.where(found.before < 0, self._lengths.numpy()[found.row], 0)
        lengths = found.step - found.before + brought
        by_name = dict(zip(self._quantity_names, gathered, strict=True))
        terms = {name: by_name[f"reward.{name}"] for name in self._manager.names}
        has_result = all(f"outcome.{name}" in by_name for name in _OUTCOMES)
        outcome = by_name["outcome.wins"] - by_name["outcome.losses"] if has_result else np.zeros(len(lengths))
        sums_by_name = {
            name.partition(".")[2]: values for name, values in by_name.items() if name.startswith("behaviour.")
        }
        return Episodes(
            rewards=np.sum(list(terms.values()), axis=0),
            lengths=lengths,
            outcomes=np.sign(outcome).astype(np.int64),
            opponents=against,
            leads=self._leads[found.row],
            sides=self._sides[found.row],
            names=self._names(),
            side_names=self._side_names,
            terms=terms,
            episode_metrics=self._episode_metrics.per_episode(sums_by_name, lengths, self._spec.rate_hz)
            if sums_by_name
            else {},
        )

    def memory_bytes(self) -> int:
        """Return its maximum size in bytes: the recording, one copy by name, and three times the sums."""
        kept = 2 * (self._events.nbytes + self._measures.nbytes) + self.dones.nbytes + self.opponents.nbytes
        kept += 0 if self._chosen is None else self._chosen.nbytes
        return kept + 3 * self._quantities.nbytes  # in float32, and in float64 for the sums

    def state(self) -> dict[str, Tensor]:
        """Return what unfinished episodes have gathered."""
        return {"running": self._running.clone(), "lengths": self._lengths.clone()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the state returned by `state()`; raise StateError if it is of other terms or games."""
        own = {"running": self._running, "lengths": self._lengths}
        most = torch.finfo(self._running.dtype).max
        ranges = {"lengths": (0, MAX_COUNT), "running": (-most, most)}
        load_tensors(state, own, "the running episodes", ranges=ranges, advice="use the same rewards, world and games")

    def restart(self) -> None:
        """Drop unfinished episodes, whose games were restarted."""
        self._running.zero_()
        self._lengths.zero_()

    def _weigh(self) -> None:
        """Make all that is summed over episodes, `(quantities, steps, rows)`, reward terms first, and its sums."""
        info = self._moment(self._events, self._measures)
        parts = self._manager.contributions(info)
        if self._chosen is not None:
            parts = parts.gather(2, self._chosen.expand(len(parts), -1, -1))
            info = self._moment(*(self._choose(block) for block in (self._events, self._measures)))
        others = {f"behaviour.{name}": value for name, value in self._episode_metrics.per_step(info).items()}
        others |= {f"outcome.{name}": info.events[name] for name in _OUTCOMES if name in info.events}
        self._quantity_names = (*(f"reward.{name}" for name in self._manager.names), *others)
        self._quantities = torch.cat((parts, *(value.unsqueeze(0) for value in others.values())))
        self._sums = self._ones @ self._quantities.double()  # less than half the time of a sum in float64
        self._totals = self._sums[: len(self._manager.names)].sum(1)

    def _choose(self, block: Tensor) -> Tensor:
        """Return the learner's rows of all seats, `(steps, rows, names)`."""
        if self._chosen is None:
            return block
        return block.gather(1, self._chosen.unsqueeze(-1).expand(-1, -1, block.shape[-1]))

    def _moment(self, events: Tensor, state_metrics: Tensor) -> StepInfo:
        """Name the columns of `(steps, rows, names)`."""
        named_events, named_measures = (
            dict(zip(names, frames.permute(2, 0, 1).contiguous(), strict=True))
            for names, frames in ((self._spec.events, events), (self._spec.state_metrics, state_metrics))
        )
        return StepInfo(named_events, named_measures, 1.0 / self._spec.rate_hz)


class Ends(NamedTuple):
    """Where episodes ended in a rollout, in the order in which they did."""

    step: NDArray[np.int64]  # `(episodes,)`, of each end
    row: NDArray[np.int64]  # `(episodes,)`, likewise
    before: NDArray[np.int64]  # `(episodes,)`, step of the end before in the same row, or -1
    column: NDArray[np.int64]  # `(episodes,)`, index of the row among `rows`
    rows: NDArray[np.int64]  # `(rows with an end,)`, sorted
    finished: NDArray[np.int64]  # `(rows with an end,)`, how many of a row's steps belong to finished episodes


def find_ends(ends: NDArray[np.bool_]) -> Ends:
    """Find the ends in `(steps, rows)`."""
    step, row = ends.nonzero()
    order = np.argsort(row, kind="stable")  # row by row, and by step in each
    follows = row[order[1:]] == row[order[:-1]]
    before = np.full_like(step, -1)
    before[order[1:]] = np.where(follows, step[order[:-1]], -1)
    last = order[np.append(~follows, True)] if len(order) else order
    rows = row[last]
    return Ends(step, row, before, np.searchsorted(rows, row), rows, step[last] + 1)
