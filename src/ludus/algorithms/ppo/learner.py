"""The learner: one object that collects and updates, and whose whole state can be taken and given back."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ludus.algorithms.learner import Gather, Groups, Learner, LearnerCounters, Part
from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.update import Updater
from ludus.core.state import check_names, load_generator
from ludus.envs.base import BatchedEnv, Observations
from ludus.policies.policy import Policy
from ludus.rollout.buffer import RolloutBuffer
from ludus.rollout.collector import Collector
from ludus.rollout.episodes import EpisodeStatistics
from ludus.rollout.learner_batch import LearnerBatch, Opponents
from ludus.rollout.rewards import RewardFunction, RolloutReward, reward_event


class PpoCounters(LearnerCounters):
    """What `PpoLearner` saves as JSON; the KL-adaptive learning rate is None for other schedules."""

    adaptive_rate: float | None


class PpoLearner(Learner):
    """PPO on one batch of games.

    An iteration is `collect`, `update` and one reading of the metrics, which is the only time the host waits for the
    device. Equal seeds give equal numbers on the CPU. `exploration` is the policy's own until another is set.
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
        """Start all games; see `Collector` for the arguments. Raise ConfigError if settings do not fit each other."""
        config = config.sized(LearnerBatch(env, learner).count)
        self.policy, self.config = policy, config
        self.exploration = policy.config.exploration
        self.updater = Updater(policy, config)
        self.collector = Collector(
            env, policy, config, reward=reward, learner=learner, opponents=opponents, inference=self.updater.native,
            stagger_episodes=config.stagger_episodes,
            demonstrator=None if config.imitation is None else config.imitation.bot,
        )  # fmt: skip
        self._generator = torch.Generator(policy.device).manual_seed(seed)

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups of tensors that `state` returns."""
        return ("policy", "optimiser", "collector", "random")

    @property
    def rows(self) -> LearnerBatch:
        """Which seats of which games are learned from."""
        return self.collector.rows

    @property
    def rollout(self) -> RolloutBuffer:
        """The last rollout."""
        return self.collector.buffer

    @property
    def loss_names(self) -> tuple[str, ...]:
        """Metrics of the last update that must be finite."""
        auxiliary = (name for name in self.updater.auxiliary.names if name.endswith("_loss"))
        return ("policy_loss", "value_loss", "entropy", *auxiliary)

    def collect(self, progress: float = 0.0) -> None:
        """Collect one rollout, exploring as `exploration` says at a share of the training that is done, 0 to 1."""
        self.policy.explore(self.exploration, progress)
        self.collector.collect(self._generator)
        self.env_steps += self.collector.buffer.steps * self.collector.buffer.rows

    def update(self, progress: float = 0.0) -> None:
        """Learn from the last rollout; then add its observations to the running statistics."""
        self.updater.update(self.rollout, progress, self._generator)
        self.policy.observe(self.rollout.observations)
        self.iterations += 1
        self.collector.stopwatch.lap("update")

    def metrics(self) -> dict[str, float]:
        """Read the metrics of the last iteration: the one synchronisation with the device."""
        explained = self.collector.explained_variance.reshape(1)
        parts = [self.collector.device_metrics(), self.updater.device_metrics(), explained]
        names = [*EpisodeStatistics.METRICS, *self.updater.metric_names, "explained_variance"]
        if self.policy.mixture is not None:
            parts.append(self.policy.mixture.rates[:1])
            names.append("exploration_frequency")
        metrics = dict(zip(names, torch.cat(parts).tolist(), strict=True))
        self.updater.learn_from(metrics)
        return metrics

    def times_s(self) -> dict[str, float]:
        """Return where the time since the last call went; after `metrics`, which waits for the device."""
        return self.collector.stopwatch.read()

    def outputs(self) -> list[Part]:
        """Return what the last rollout consists of beside observations and rewards, causes before effects."""
        buffer, network = self.collector.buffer, self.policy.network
        whose = "" if network is None else f" of {network}"
        return [
            Part("policy output", f"values{whose}", buffer.values),
            Part("policy output", f"log probabilities{whose}", buffer.log_probs),
            Part("policy output", f"values after the last step{whose}", buffer.last_values),
            # Everything else that the policy saw is finite, so what is wrong here is what it was shown.
            Part("observation", "a final one of a truncated episode", buffer.bootstraps),
        ]

    def learned(self) -> list[Part]:
        """Return everything that an update changes, the parameters first."""
        parameters, *averages = self.updater.optimiser.tensors()
        return [
            Part("parameter", "parameters", parameters),
            *(Part("parameter", "optimiser", average) for average in averages),
        ]

    def join_metrics(self, metrics: Mapping[str, float], gather: Gather) -> dict[str, float]:
        """Return the metrics of all processes' rollouts; what the update measured is of the whole batch already."""
        buffer = self.rollout
        missed = buffer.returns - buffer.values
        moments = torch.stack((missed.mean(), missed.var(), buffer.returns.mean(), buffer.returns.var())).tolist()
        rows = gather([*(metrics[name] for name in EpisodeStatistics.METRICS), *moments])
        episodes = sum(row[0] for row in rows)
        sums = [sum(row[0] * row[column] for row in rows if row[0]) for column in (1, 2)]
        size = buffer.steps * buffer.rows
        spread = _joined_variance([(row[6], row[7]) for row in rows], size)
        left = _joined_variance([(row[4], row[5]) for row in rows], size)
        return {
            **metrics,
            "episodes": episodes,
            "episode_return": sums[0] / episodes if episodes else math.nan,
            "episode_length": sums[1] / episodes if episodes else math.nan,
            "reward": sum(row[3] for row in rows) / len(rows),
            "explained_variance": 1.0 - left / spread if spread else math.nan,
        }

    def state(self) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
        """Return everything but the games, to continue bit by bit from here."""
        groups = {
            "policy": self.policy.state(),
            "optimiser": self.updater.optimiser.state(),
            "collector": self.collector.state(),
            "random": {"learner": self._generator.get_state()},
        }
        counters = PpoCounters(
            iterations=self.iterations, env_steps=self.env_steps, adaptive_rate=self.updater.adaptive_rate
        )
        return groups, counters.model_dump()

    def load_state(
        self, groups: Groups, counters: Mapping[str, Any], observations: Observations, *, games_restarted: bool = False
    ) -> None:
        """Restore the state returned by `state()`; see `Learner`."""
        check_names(groups.keys(), self.groups, "the learner's state")
        self.load_learned(groups, counters)
        self.collector.load_state(groups["collector"], observations, games_restarted=games_restarted)

    def load_learned(self, groups: Groups, counters: Mapping[str, Any]) -> None:
        """Restore all but the games; see `Learner`."""
        saved = PpoCounters.read(counters, "learner")
        self.policy.load_state(groups["policy"])
        self.updater.optimiser.load_state(groups["optimiser"])
        load_generator(self._generator, groups["random"], "the learner", name="learner")
        self.updater.load_adaptive_rate(saved.adaptive_rate)
        self.iterations, self.env_steps = saved.iterations, saved.env_steps


def _joined_variance(groups: list[tuple[float, float]], size: int) -> float:
    """Return the variance over groups of `size` numbers each, of which mean and variance are known."""
    mean = sum(group_mean for group_mean, _ in groups) / len(groups)
    squares = sum((size - 1) * variance + size * (group_mean - mean) ** 2 for group_mean, variance in groups)
    return squares / (size * len(groups) - 1)
