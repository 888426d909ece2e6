"""The learner: one object that collects and updates, and whose whole state can be taken and given back."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ludus.algorithms.learner import Part
from ludus.algorithms.ppo.buffer import RolloutBuffer
from ludus.algorithms.ppo.collector import COLLECT_METRICS, Collector
from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.mirroring import MirroredRollout, check_mirror
from ludus.algorithms.ppo.rewarding import RewardFunction, RolloutReward, reward_event
from ludus.algorithms.ppo.seats import Opponents, Rows
from ludus.algorithms.ppo.update import Updater
from ludus.core.errors import StateError
from ludus.envs.base import BatchedEnv
from ludus.policies.memory import part_of, with_prefix
from ludus.policies.policy import Policy


class PpoLearner:
    """PPO on one batch of games.

    An iteration is `collect`, `update` and one reading of the metrics, which is the only time the host waits for the
    device. Equal seeds give equal numbers on the CPU.

    Attributes:
        policy: What is learned.
        collector: The running games.
        updater: The optimiser and its epochs.
        exploration: How the policy explores while it collects; that of its config, until something else is set.
        iterations: Iterations done.
        env_steps: Steps of learner rows done.
    """

    def __init__(
        self,
        env: BatchedEnv,
        policy: Policy,
        config: PpoConfig,
        *,
        seed: int = 0,
        reward: RewardFunction | RolloutReward = reward_event,
        learner: Tensor | None = None,
        opponents: Opponents | None = None,
    ) -> None:
        """Starts all games; see `Collector` for the arguments.

        Raises:
            ConfigError: Settings do not fit each other, the world or the policy.
        """
        if config.mirror:
            check_mirror(env.spec, has_memory=policy.has_memory)
        config = config.sized(Rows(env, learner).count)
        self.policy, self.config = policy, config
        self.exploration = policy.config.exploration
        self.updater = Updater(policy, config)
        self.collector = Collector(
            env,
            policy,
            config,
            reward=reward,
            learner=learner,
            opponents=opponents,
            stepper=self.updater.native,
        )
        self._mirrored = MirroredRollout(env.spec, policy, self.collector.buffer) if config.mirror else None
        self._generator = torch.Generator(policy.device).manual_seed(seed)
        self.iterations = 0
        self.env_steps = 0

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups of tensors that `state` gives."""
        return ("policy", "optimiser", "collector")

    @property
    def rows(self) -> Rows:
        """Which seats of which games are learned from."""
        return self.collector.rows

    @property
    def rollout(self) -> RolloutBuffer:
        """The last rollout."""
        return self.collector.buffer

    @property
    def loss_names(self) -> tuple[str, ...]:
        """Metrics of the last update that must be finite."""
        losses = ("policy_loss", "value_loss", "entropy", "prediction_loss", "recognition_loss")
        return tuple(name for name in losses if name in self.updater.metric_names)

    def iterate(self, progress: float = 0.0) -> dict[str, float]:
        """Collects a rollout, learns from it and returns the metrics.

        Args:
            progress: Share of the training that is done, 0 to 1, for the schedules.
        """
        self.collect(progress)
        self.update(progress)
        return self.metrics()

    def collect(self, progress: float = 0.0) -> None:
        """Collects one rollout, exploring as `exploration` says at a share of the training that is done, 0 to 1."""
        self.policy.explore(self.exploration, progress)
        self.collector.collect(self._generator)
        self.env_steps += self.collector.buffer.steps * self.collector.buffer.rows

    def update(self, progress: float = 0.0) -> None:
        """Learns from the last rollout; then its observations, mirrored ones too, join the running statistics."""
        buffer = self.collector.buffer
        if self._mirrored is not None:
            buffer = self._mirrored.fill(buffer)
        self.updater.update(buffer, progress, self._generator)
        self.policy.observe(buffer.observations)
        self.iterations += 1
        self.collector.stopwatch.lap("update")

    def metrics(self) -> dict[str, float]:
        """Reads the metrics of the last iteration: the one synchronisation with the device."""
        buffer = self.collector.buffer
        explained = 1.0 - (buffer.returns - buffer.values).var() / buffer.returns.var()
        parts = [self.collector.device_metrics(), self.updater.device_metrics(), explained.reshape(1)]
        names = [*COLLECT_METRICS, *self.updater.metric_names, "explained_variance"]
        if self.policy.mixture is not None:
            parts.append(self.policy.mixture.rates[:1])
            names.append("exploration_frequency")
        metrics = dict(zip(names, torch.cat(parts).tolist(), strict=True))
        self.updater.learn_from(metrics)
        return metrics

    def times_s(self) -> dict[str, float]:
        """Returns where the time since the last call went; after `metrics`, which waits for the device."""
        return self.collector.stopwatch.read()

    def outputs(self) -> list[Part]:
        """Returns what the last rollout consists of beside observations and rewards, causes before effects."""
        buffer = self.collector.buffer
        return [
            Part("policy output", "values", buffer.values),
            Part("policy output", "log probabilities", buffer.log_probs),
            Part("policy output", "values after the last step", buffer.last_values),
            # Everything else that the policy saw is finite, so what is wrong here is what it was shown.
            Part("observation", "a final one of a truncated episode", buffer.bootstraps),
        ]

    def learned(self) -> list[Part]:
        """Returns everything that an update changes, the parameters first."""
        parameters, *averages = self.updater.optimiser.tensors()
        return [
            Part("parameter", "parameters", parameters),
            *(Part("parameter", "optimiser", average) for average in averages),
        ]

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Returns everything but the games: tensors and what JSON can hold, to go on bit by bit from here."""
        tensors = with_prefix("policy", self.policy.state())
        tensors |= with_prefix("optimiser", self.updater.optimiser.state())
        tensors |= with_prefix("collector", self.collector.state())
        tensors["random"] = self._generator.get_state()
        counters = {
            "iterations": self.iterations,
            "env_steps": self.env_steps,
            "adaptive_rate": self.updater.adaptive_rate,
        }
        return tensors, counters

    def load_state(
        self, tensors: Mapping[str, Tensor], counters: Mapping[str, Any], observations: dict[str, Tensor]
    ) -> None:
        """Takes what `state` gave, and the observations that restoring the games' snapshot gave.

        Raises:
            StateError: Something is missing or does not fit.
        """
        self.load_learned(tensors, counters)
        self.collector.load_state(part_of(tensors, "collector"), observations)

    def load_learned(self, tensors: Mapping[str, Tensor], counters: Mapping[str, Any]) -> None:
        """Takes from what `state` gave all but the games: another learner goes on in games of its own.

        Raises:
            StateError: Something is missing or does not fit.
        """
        if "random" not in tensors or not {"iterations", "env_steps", "adaptive_rate"} <= set(counters):
            raise StateError("the learner's state needs 'random', 'iterations', 'env_steps' and 'adaptive_rate'")
        self.policy.load_state(part_of(tensors, "policy"))
        self.updater.optimiser.load_state(part_of(tensors, "optimiser"))
        self._generator.set_state(tensors["random"].cpu())
        self.updater.load_adaptive_rate(counters["adaptive_rate"])
        self.iterations, self.env_steps = int(counters["iterations"]), int(counters["env_steps"])
