"""Adaptive steering: how many games of a rollout are stuck decides how the next one explores."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ludus.core.schedules import ConstantSchedule
from ludus.curriculum.adaptive import Adaptive, count_stuck
from ludus.curriculum.steering_config import AdaptiveConfig
from ludus.policies.config import ExplorationConfig
from ludus.training.callbacks import Counters
from ludus.training.ranks import Ranks
from ludus.training.records import STEERING
from ludus.training.steered import Steered
from ludus.training.workbench import Workbench


class AdaptiveSteering:
    """See `ludus.curriculum.steering_config.AdaptiveConfig` and `ludus.training.steered.Steering`."""

    def __init__(self, config: AdaptiveConfig, bench: Workbench) -> None:
        self._config, self._bench, self._adaptive = config, bench, Adaptive(config)
        self._reason: str | None = None

    def factors(self) -> Mapping[str, float]:
        """See `Steering`."""
        return self._config.exploring if self._adaptive.is_exploring else {}

    def before(self) -> None:
        """See `Steering`."""
        learner = self._bench.ppo
        usual, level = learner.exploration or ExplorationConfig(), ConstantSchedule(level=self._adaptive.frequency)
        learner.exploration = usual.model_copy(update={"frequency": level})

    def look(self, ranks: Ranks) -> None:
        """See `Steering`."""
        trace = self._bench.trace
        values = trace.measured(self._config.measure).double().cpu().numpy()
        counted = count_stuck(values, trace.ends.cpu().numpy(), self._config.patience)
        stuck, windows = np.sum(ranks.gather_numbers(counted), axis=0).tolist()
        self._reason = self._adaptive.record(stuck, windows)

    def after(self, counters: Counters) -> Steered:
        """See `Steering`."""
        adaptive, steered = self._adaptive, Steered()
        steered.metrics["steering_exploring"] = float(adaptive.is_exploring)
        if adaptive.stuck is not None:
            steered.metrics["steering_stuck_share"] = adaptive.stuck
        if self._reason is not None:
            steered.messages.append(self._reason)
            steered.tables[STEERING] = [
                {
                    "iteration": counters.iterations,
                    "env_steps": counters.env_steps,
                    "mode": adaptive.mode,
                    "stuck_share": adaptive.stuck,
                    "exploration_frequency": adaptive.frequency,
                }
            ]
        return steered

    def state(self) -> dict[str, Any]:
        """See `Steering`."""
        return self._adaptive.state()

    def load_state(self, state: Mapping[str, Any]) -> None:
        """See `Steering`."""
        self._adaptive.load_state(state)
