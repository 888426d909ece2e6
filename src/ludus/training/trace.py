"""The trace of a rollout: all events and measures of the learner's rows, from which rewards and accounts are made.

A step costs a few copies. When the rollout is complete, all of its rewards are weighed at once, and after the update,
when the host has waited for the device anyway, the episodes that ended are read.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from ludus.algorithms.ppo.rewarding import RolloutReward
from ludus.algorithms.ppo.seats import Rows
from ludus.core.errors import StateError
from ludus.envs.base import EnvSpec, StepResult, packed
from ludus.envs.behaviour import Behaviour
from ludus.rewards.manager import RewardManager
from ludus.rewards.moment import Moment
from ludus.training.callbacks import NO_EPISODES, Episodes

_OUTCOMES = ("wins", "losses")


class Lineup(Protocol):
    """Who is played against.

    Attributes:
        opponents: `(games,)` int64, index into `names` of the opponent in each game.
    """

    opponents: Tensor

    @property
    def names(self) -> tuple[str, ...]:
        """All opponents."""


class RolloutTrace(RolloutReward):
    """Records one rollout after the other; what an unfinished episode has gathered is its only state.

    Attributes:
        last: The step that was recorded last; its observations are those that the next step starts from.
        truncated_final: `()`, NaN if a final observation of a truncated game was not finite since this was set to 0.
            Kept on the host alone: on a GPU it would cost every step, and the values of these observations show it too.
    """

    def __init__(
        self, spec: EnvSpec, manager: RewardManager, behaviour: Behaviour, lineup: Lineup | None = None
    ) -> None:
        self._spec, self._manager, self._behaviour, self._lineup = spec, manager, behaviour, lineup
        self.last: StepResult | None = None
        self.truncated_final = torch.zeros(())

    def begin(self, steps: int, rows: Rows) -> None:
        """Takes memory for a rollout."""
        device = rows.index.device
        self._rows = rows
        channels = len(self._spec.events) + len(self._spec.measures)
        self._channels = torch.zeros((steps, rows.count, channels), device=device)
        self._ends = torch.zeros((steps, rows.count), dtype=torch.bool, device=device)
        self._against = torch.full((steps, rows.count), -1, dtype=torch.int32, device=device)
        self._quantities = self._summed(self._moment())
        count = len(self._quantity_names)
        self._running = torch.zeros((count, rows.count), dtype=torch.float64, device=device)
        self._lengths = torch.zeros(rows.count, dtype=torch.int64, device=device)

    def record(self, step: int, result: StepResult) -> None:
        """Keeps what happened in a step."""
        self.last = result
        split = len(self._spec.events)
        frame = self._channels[step]
        frame[:, :split] = self._rows.take(packed(result.events, self._spec.events))
        if self._spec.measures:
            frame[:, split:] = self._rows.take(packed(result.measures, self._spec.measures))
        self._ends[step] = self._rows.take_games(result.ended)
        if self._lineup is not None:
            self._against[step] = self._rows.take_games(self._lineup.opponents)
        if result.truncated.device.type == "cpu" and bool(result.truncated.any()):
            for final in result.final_observations.values():
                if not bool(final[result.truncated].isfinite().all()):
                    self.truncated_final.fill_(torch.nan)

    @property
    def opponents(self) -> Tensor:
        """`(steps, rows)` int32, index of the opponent in every step of the rollout; -1 where nobody else plays."""
        return self._against

    def rewards(self) -> Tensor:
        """Weighs all steps and returns `(steps, rows)`."""
        self._quantities = self._summed(self._moment())
        return self._quantities[: len(self._manager.names)].sum(0)

    def totals(self) -> dict[str, float]:
        """Returns each term's sum over the rollout; they add up to its reward exactly."""
        sums = self._quantities[: len(self._manager.names)].sum((1, 2), dtype=torch.float64).tolist()
        return dict(zip(self._manager.names, sums, strict=True))

    def read(self) -> Episodes:
        """Returns the episodes that ended in the rollout, and keeps what the others have gathered so far."""
        sums = self._quantities.cumsum(1, dtype=torch.float64)
        steps = torch.arange(1, len(self._ends) + 1, device=self._ends.device).unsqueeze(1)
        places = self._ends.nonzero()
        episodes = replace(NO_EPISODES, names=self._names())
        last = torch.where(self._ends, steps, 0).amax(0)  # how many steps of each row belong to finished episodes
        if len(places):
            episodes = self._episodes(sums, places)
        rows = torch.arange(sums.shape[2], device=sums.device)
        finished = sums[:, (last - 1).clamp(min=0), rows]
        carried = self._running + sums[:, -1]
        self._running = torch.where(last > 0, sums[:, -1] - finished, carried)
        self._lengths = torch.where(last > 0, len(self._ends) - last, self._lengths + len(self._ends))
        return episodes

    def _names(self) -> tuple[str, ...]:
        return () if self._lineup is None else self._lineup.names

    def _episodes(self, sums: Tensor, places: Tensor) -> Episodes:
        step, row = places.unbind(1)
        # The end before in the same row, or -1: what was gathered up to there belongs to an earlier episode.
        counted = torch.where(self._ends, torch.arange(len(self._ends), device=step.device).unsqueeze(1), -1)
        before = torch.cat((torch.full_like(counted[:1], -1), counted[:-1].cummax(0).values))[step, row]
        is_first = before < 0
        earlier = torch.where(is_first, -self._running[:, row], sums[:, before.clamp(min=0), row])
        gathered = (sums[:, step, row] - earlier).cpu().numpy()
        lengths = (step - before + torch.where(is_first, self._lengths[row], 0)).cpu().numpy()
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
            opponents=self._against[step, row].cpu().numpy().astype(np.int64),
            names=self._names(),
            terms=terms,
            behaviour=self._behaviour.per_episode(sums_by_name, lengths, self._spec.rate_hz) if sums_by_name else {},
        )

    def state(self) -> dict[str, Tensor]:
        """Returns what unfinished episodes have gathered."""
        return {"running": self._running.clone(), "lengths": self._lengths.clone()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Takes what `state` gave.

        Raises:
            StateError: It is of other terms or games.
        """
        own = self.state()
        if set(state) != set(own) or any(state[name].shape != own[name].shape for name in own):
            raise StateError("the state of the running episodes does not fit; use the same rewards, world and games")
        self._running.copy_(state["running"])
        self._lengths.copy_(state["lengths"])

    def restart(self) -> None:
        """Forgets unfinished episodes, whose games started anew."""
        self._running.zero_()
        self._lengths.zero_()

    def _moment(self) -> Moment:
        by_channel = self._channels.permute(2, 0, 1).contiguous()
        split = len(self._spec.events)
        events = dict(zip(self._spec.events, by_channel[:split], strict=True))
        measures = dict(zip(self._spec.measures, by_channel[split:], strict=True))
        return Moment(events, measures, 1.0 / self._spec.rate_hz)

    def _summed(self, moment: Moment) -> Tensor:
        """Returns all that is summed over episodes, `(quantities, steps, rows)`, reward terms first."""
        parts = self._manager.contributions(moment)
        others = {f"behaviour.{name}": value for name, value in self._behaviour.per_step(moment).items()}
        others |= {f"outcome.{name}": moment.events[name] for name in _OUTCOMES if name in moment.events}
        self._quantity_names = (*(f"reward.{name}" for name in self._manager.names), *others)
        return torch.cat((parts, torch.stack(list(others.values())))) if others else parts
