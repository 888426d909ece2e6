"""Adaptive curriculum: exploration that adapts to stuck games, and rewards weighed by goals that are behind."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.core.schedules import ConstantSchedule
from ludus.curriculum.adaptive import Adaptive, Strategic, broken_windows, count_stuck
from ludus.curriculum.config import AdaptiveConfig, StrategicConfig, goal_term
from ludus.envs.base import EnvSpec
from ludus.policies.config import ExplorationConfig
from ludus.policies.policy import kind_shares
from ludus.training.callbacks import Counters
from ludus.training.components import Components, make_rewards
from ludus.training.config import TrainConfig
from ludus.training.distributed import ProcessGroup
from ludus.training.loggers.csv_logger import EFFECTS, Cell


class SnapshotEvent(NamedTuple):
    """A snapshot that joined the league: its name, the steps that it had learned from, and its `Policy.state`."""

    name: str
    env_steps: int
    state: Mapping[str, Tensor]


@dataclass(slots=True)
class IterationEvents:
    """What an iteration changed."""

    messages: list[str] = field(default_factory=list)  # human-readable
    matches: list[dict[str, Any]] = field(default_factory=list)  # rows for `opponents.csv`
    snapshots: list[SnapshotEvent] = field(default_factory=list)  # snapshots that joined the league
    metrics: dict[str, float] = field(default_factory=dict)  # numbers for `metrics.jsonl`
    tables: dict[str, list[dict[str, Cell]]] = field(default_factory=dict)  # rows of equal columns for other files


class AdaptiveCurriculum(ABC):
    """Adapts exploration and rewards during a run; the result is the same on all processes."""

    def __init__(self, rule: Adaptive | Strategic) -> None:
        self._rule = rule

    @abstractmethod
    def factors(self) -> Mapping[str, float]:
        """Return the factors of reward terms in the next rollout."""

    @abstractmethod
    def on_rollout_start(self) -> None:
        """Set how the next rollout explores."""

    @abstractmethod
    def on_rollout_end(self, processes: ProcessGroup) -> None:
        """Look at a rollout, after it was collected and before anything is learned from it."""

    @abstractmethod
    def on_iteration_end(self, counters: Counters) -> IterationEvents:
        """Return what the last rollout has changed."""

    def state(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return self._rule.state()

    def load_state(self, state: object) -> None:
        """Restore the state returned by `state()`; raise StateError if it does not fit."""
        self._rule.load_state(state)


class _ExplorationCurriculum(AdaptiveCurriculum):
    """See `ludus.curriculum.config.AdaptiveConfig`."""

    def __init__(self, config: AdaptiveConfig, components: Components) -> None:
        self._config, self._components, self._adaptive = config, components, Adaptive(config)
        self._reason: str | None = None
        super().__init__(self._adaptive)

    def factors(self) -> Mapping[str, float]:
        return self._config.exploring if self._adaptive.is_exploring else {}

    def on_rollout_start(self) -> None:
        learner = self._components.learner
        usual, level = learner.exploration or ExplorationConfig(), ConstantSchedule(level=self._adaptive.frequency)
        learner.exploration = usual.model_copy(update={"frequency": level})

    def on_rollout_end(self, processes: ProcessGroup) -> None:
        trace = self._components.trace
        values = trace.measured(self._config.measure).double().cpu().numpy()
        counted = count_stuck(values, trace.dones.cpu().numpy(), self._config.patience)
        stuck, windows = np.sum(processes.gather_numbers(counted), axis=0).tolist()
        self._reason = self._adaptive.record(stuck, windows)

    def on_iteration_end(self, counters: Counters) -> IterationEvents:
        adaptive = self._adaptive
        shown = {"steering_exploring": float(adaptive.is_exploring)}
        shown |= {} if adaptive.stuck is None else {"steering_stuck_share": adaptive.stuck}
        return IterationEvents([] if self._reason is None else [self._reason], metrics=shown)


_AT_ONCE = 512  # decisions that the policy is asked about in one call; many pictures at once take much memory
_SAMPLE = 4096  # decisions per iteration that are used; more cost time


class _GoalCurriculum(AdaptiveCurriculum):
    """See `ludus.curriculum.config.StrategicConfig`."""

    def __init__(self, config: StrategicConfig, components: Components, total_env_steps: int) -> None:
        self._config, self._components, self._total = config, components, total_env_steps
        self._strategic = Strategic(config, kind_names(components.env.spec))
        super().__init__(self._strategic)

    def factors(self) -> Mapping[str, float]:
        return self._strategic.factors

    def on_rollout_start(self) -> None:
        mixture = self._components.policy.mixture
        if mixture is not None:
            favour = self._strategic.favour()
            mixture.lean(self._config.lean if any(favour) else 0.0, favour)

    def on_rollout_end(self, processes: ProcessGroup) -> None:
        trace, config = self._components.trace, self._config
        progress = [float(trace.measured(goal_term(goal)).double().mean()) for goal in config.goals]
        measured = self._measure()
        told = np.asarray(processes.gather_numbers([*progress, *measured.ravel().tolist()]))
        means, sums = told[:, : len(progress)].mean(axis=0), told[:, len(progress) :].sum(axis=0)
        self._strategic.record(sums.reshape(measured.shape), means.tolist())

    def _measure(self) -> NDArray[np.float64]:
        """Measure the effects of decisions in some rows of the rollout, other rows in every iteration."""
        ahead, buffer = self._config.ahead, self._components.buffer
        count = min(max(_SAMPLE // buffer.steps, 1), buffer.rows)
        rows = (torch.arange(count) + self._components.learner.iterations * count) % buffer.rows
        rows = rows.to(buffer.actions.device)
        decided = slice(1, buffer.steps - ahead + 1)  # window t begins after step t with the decision of step t + 1
        chosen = self._components.env.spec.choices.factors(buffer.actions[decided][:, rows])[..., 0]
        parts = torch.split(rows, max(_AT_ONCE // buffer.steps, 1))
        shares = torch.cat([self._shares(part) for part in parts], dim=1)
        changes = np.stack([self._changes(name, rows) for name in self._config.state_metrics()])
        return self._strategic.effects.measure(chosen.cpu().numpy(), shares[decided].double().cpu().numpy(), changes)

    def _shares(self, rows: Tensor) -> Tensor:
        """Return how likely every kind was in every decision of some rows, `(steps, rows, kinds)`."""
        buffer = self._components.buffer
        observations = {name: tensor[:, rows] for name, tensor in buffer.observations.items()}
        memory = {name: tensor[0, rows] for name, tensor in buffer.memory.items()}
        return kind_shares(self._components.policy, observations, memory, buffer.episode_starts[:, rows])

    def _changes(self, name: str, rows: Tensor) -> NDArray[np.float64]:
        """Return the change of a state metric in every window, `(windows, rows)`; NaN where that is not known."""
        trace, ahead = self._components.trace, self._config.ahead
        values = trace.measured(name)[:, rows].double().cpu().numpy()
        unknown = broken_windows(trace.dones[:, rows].cpu().numpy(), ahead)
        for flag in (f"{name}_readable", f"{name.removeprefix(goal_term(''))}_readable"):
            if flag in self._components.env.spec.state_metrics:
                readable = trace.measured(flag)[:, rows].cpu().numpy() > 0.5
                unknown = unknown | ~(readable[ahead:] & readable[:-ahead])
        return np.where(unknown, np.nan, values[ahead:] - values[:-ahead])

    def on_iteration_end(self, counters: Counters) -> IterationEvents:
        strategic, update = self._strategic, IterationEvents()
        for goal, progress in strategic.progress.items():
            update.metrics[f"goal_progress/{goal}"] = progress
            update.metrics[f"goal_factor/{goal}"] = strategic.factors[goal_term(goal)]
        rows = self._rows(counters)
        update.metrics["effects_sure"] = float(sum(bool(row["is_sure"]) for row in rows))
        if counters.iterations % self._config.every_iterations == 0 or counters.env_steps >= self._total:
            update.tables[EFFECTS] = rows
        return update

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


def kind_names(spec: EnvSpec) -> tuple[str, ...]:
    """Return the names of a world's kinds of action; `kind 0` and so on where they have none."""
    return spec.actions.names or tuple(f"kind {number}" for number in range(spec.choices.counts[0]))


def make_adaptive_curriculum(config: TrainConfig, components: Components) -> AdaptiveCurriculum | None:
    """Create the adaptive curriculum of a run; None if it has none.

    Raises:
        ConfigError: The settings do not fit the run.
        UnknownNameError: A measure, a reward term or a kind of action does not exist.
    """
    check_adaptive_curriculum(components.env.spec, config)
    if isinstance(config.adaptive_curriculum, StrategicConfig):
        return _GoalCurriculum(config.adaptive_curriculum, components, config.total_env_steps)
    if isinstance(config.adaptive_curriculum, AdaptiveConfig):
        return _ExplorationCurriculum(config.adaptive_curriculum, components)
    return None


def check_adaptive_curriculum(spec: EnvSpec, config: TrainConfig) -> None:
    """Raise what `make_adaptive_curriculum` raises."""
    adaptive = config.adaptive_curriculum
    if adaptive is None:
        return
    if isinstance(adaptive, AdaptiveConfig):
        state_metrics, terms, key, decisions = [adaptive.measure], [*adaptive.exploring], "patience", adaptive.patience
    else:
        state_metrics, terms = [*adaptive.state_metrics()], [*map(goal_term, adaptive.goals)]
        key, decisions = "ahead", adaptive.ahead
        if adaptive.against not in kind_names(spec):
            raise UnknownNameError(f"kind of action of {spec.id} to compare with", adaptive.against, kind_names(spec))
    for name in state_metrics:
        if name not in spec.state_metrics:
            raise UnknownNameError(f"measure of {spec.id}", name, spec.state_metrics)
    make_rewards(spec, config).set_factors(dict.fromkeys(terms, 1.0))
    steps = config.method.rollout_steps(config.hyperparameters)
    if steps is not None and decisions >= steps:
        raise ConfigError(
            f"adaptive_curriculum.{key} is {decisions}, but a rollout has {steps} steps; lower it, or collect longer "
            "rollouts"
        )
