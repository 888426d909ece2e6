"""Strategic steering: effects are measured, goals weighed by what is behind, exploring led to what helps."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ludus.curriculum.adaptive import broken_windows
from ludus.curriculum.steering_config import StrategicConfig, goal_term
from ludus.curriculum.strategic import Strategic
from ludus.envs.base import EnvSpec
from ludus.policies.choosing import kind_shares
from ludus.training.callbacks import Counters
from ludus.training.ranks import Ranks
from ludus.training.records import EFFECTS, Cell
from ludus.training.steered import Steered
from ludus.training.workbench import Workbench

_AT_ONCE = 512  # decisions that the policy is asked about in one call; many pictures at once take much memory


class StrategicSteering:
    """See `ludus.curriculum.steering_config.StrategicConfig` and `ludus.training.steered.Steering`."""

    def __init__(self, config: StrategicConfig, bench: Workbench, total_env_steps: int) -> None:
        self._config, self._bench, self._total = config, bench, total_env_steps
        self._strategic = Strategic(config, kind_names(bench.env.spec))

    def factors(self) -> Mapping[str, float]:
        """See `Steering`."""
        return self._strategic.factors

    def before(self) -> None:
        """See `Steering`."""
        mixture = self._bench.policy.mixture
        if mixture is not None:
            favour = self._strategic.favour()
            mixture.lean(self._config.lean if any(favour) else 0.0, favour)

    def look(self, ranks: Ranks) -> None:
        """See `Steering`."""
        trace, config = self._bench.trace, self._config
        progress = [float(trace.measured(goal_term(goal)).double().mean()) for goal in config.goals]
        measured = self._measure()
        told = np.asarray(ranks.gather_numbers([*progress, *measured.ravel().tolist()]))
        means, sums = told[:, : len(progress)].mean(axis=0), told[:, len(progress) :].sum(axis=0)
        rollout = self._bench.learner.rollout
        env_steps = rollout.steps * rollout.rows * len(told)
        self._strategic.record(sums.reshape(measured.shape), means.tolist(), env_steps)

    def _measure(self) -> NDArray[np.float64]:
        """Measures the effects of decisions in some rows of the rollout, other rows in every iteration."""
        ahead, buffer = self._config.ahead, self._bench.ppo.rollout
        count = min(max(self._config.sample // buffer.steps, 1), buffer.rows)
        rows = (torch.arange(count) + self._bench.learner.iterations * count) % buffer.rows
        rows = rows.to(buffer.actions.device)
        decided = slice(1, buffer.steps - ahead + 1)  # window t begins after step t with the decision of step t + 1
        chosen = self._bench.env.spec.choices.factors(buffer.actions[decided][:, rows])[..., 0]
        parts = torch.split(rows, max(_AT_ONCE // buffer.steps, 1))
        shares = torch.cat([self._shares(part) for part in parts], dim=1)
        changes = np.stack([self._changes(name, rows) for name in self._config.measures()])
        return self._strategic.effects.measure(chosen.cpu().numpy(), shares[decided].double().cpu().numpy(), changes)

    def _shares(self, rows: torch.Tensor) -> torch.Tensor:
        """Returns how likely every kind was in every decision of some rows, `(steps, rows, kinds)`."""
        buffer = self._bench.ppo.rollout
        observations = {name: tensor[:, rows] for name, tensor in buffer.observations.items()}
        memory = {name: tensor[0, rows] for name, tensor in buffer.memory.items()}
        return kind_shares(self._bench.policy, observations, memory, buffer.starts[:, rows])

    def _changes(self, name: str, rows: torch.Tensor) -> NDArray[np.float64]:
        """Returns by what a measure changes in every window, `(windows, rows)`; NaN where that is not known."""
        trace, ahead = self._bench.trace, self._config.ahead
        values = trace.measured(name)[:, rows].double().cpu().numpy()
        unknown = broken_windows(trace.ends[:, rows].cpu().numpy(), ahead)
        for flag in (f"{name}_readable", f"{name.removeprefix(goal_term(''))}_readable"):
            if flag in self._bench.env.spec.measures:
                readable = trace.measured(flag)[:, rows].cpu().numpy() > 0.5
                unknown = unknown | ~(readable[ahead:] & readable[:-ahead])
        return np.where(unknown, np.nan, values[ahead:] - values[:-ahead])

    def after(self, counters: Counters) -> Steered:
        """See `Steering`."""
        strategic, steered = self._strategic, Steered()
        for goal, progress in strategic.progress.items():
            steered.metrics[f"goal_progress/{goal}"] = progress
            steered.metrics[f"goal_factor/{goal}"] = strategic.factors[goal_term(goal)]
        rows = self._rows(counters)
        steered.metrics["effects_sure"] = float(sum(bool(row["is_sure"]) for row in rows))
        if counters.iterations % self._config.every_iterations == 0 or counters.env_steps >= self._total:
            steered.tables[EFFECTS] = rows
        return steered

    def _rows(self, counters: Counters) -> list[dict[str, Cell]]:
        effects = self._strategic.effects
        rows: list[dict[str, Cell]] = []
        for metric_number, metric in enumerate(effects.metrics):
            for kind_number, kind in enumerate(effects.kinds):
                effect = effects.effect(kind_number, metric_number)
                if effect is not None:
                    head: dict[str, Cell] = {"iteration": counters.iterations, "env_steps": counters.env_steps}
                    rows.append(head | {"kind": kind, "metric": metric} | effect._asdict())
        return rows

    def state(self) -> dict[str, Any]:
        """See `Steering`."""
        return self._strategic.state()

    def load_state(self, state: Mapping[str, Any]) -> None:
        """See `Steering`."""
        self._strategic.load_state(state)


def kind_names(spec: EnvSpec) -> tuple[str, ...]:
    """Returns the names of a world's kinds of action; `kind 0` and so on where they have none."""
    return spec.kind_names or tuple(f"kind {number}" for number in range(spec.choices.counts[0]))
