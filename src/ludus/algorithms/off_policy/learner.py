"""The off-policy learner: one object that collects and updates, and whose whole state can be taken and given back."""

import logging
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ludus.algorithms.learner import Part
from ludus.algorithms.off_policy.collector import COLLECT_METRICS, OffPolicyCollector
from ludus.algorithms.off_policy.config import OffPolicyConfig, OffPolicyName, check_world
from ludus.algorithms.off_policy.replay import ReplayBatch, ReplayBuffer
from ludus.algorithms.off_policy.rollout import OffPolicyRollout
from ludus.algorithms.off_policy.surroundings import seeded, small_products, unchecked_distributions
from ludus.algorithms.ppo.rewarding import RolloutReward
from ludus.algorithms.ppo.seats import Rows
from ludus.core.errors import StateError
from ludus.envs.base import BatchedEnv
from ludus.policies.config import PolicyConfig
from ludus.policies.memory import part_of, with_prefix
from ludus.policies.policy import Policy

logger = logging.getLogger(__name__)

LOSSES = ("policy_loss", "value_loss", "entropy_coefficient")
_COUNTERS = ("iterations", "env_steps", "updates", "replay_position", "replay_count")
_LARGEST_SEED = 2**62


class OffPolicyLearner:
    """SAC or TD3 on one batch of games; the same entrances as `PpoLearner`.

    An iteration plays `train_freq` steps of all games and does the gradient steps. A rollout joins the replay buffer at
    the start of the next iteration, when it has been found finite: so nothing broken is ever drawn from it, and going
    back by an iteration needs no copy of the buffer. Equal seeds give equal numbers on the CPU.

    Attributes:
        policy: What is learned.
        collector: The running games.
        replay: What is learned from.
        iterations: Iterations done.
        env_steps: Steps of learner rows done.
    """

    def __init__(
        self,
        env: BatchedEnv,
        policy: Policy,
        algorithm: OffPolicyName,
        config: OffPolicyConfig,
        *,
        layers: PolicyConfig,
        reward: RolloutReward,
        seed: int = 0,
    ) -> None:
        """Starts all games.

        Args:
            env: The games, all seats of which it plays.
            policy: Made of `playing_policy`.
            algorithm: Which one.
            config: Its settings.
            layers: The run's own settings of the policy, which name the critics' layers too.
            reward: Gives the rewards of a rollout.
            seed: Of first parameters, exploration and minibatches.

        Raises:
            MissingDependencyError: Stable-Baselines3 is not installed.
            ConfigError: The world is not one for it, or the replay buffer is smaller than an iteration.
        """
        check_world(env.spec, algorithm)
        from ludus.algorithms.off_policy.baselines import Baseline  # an optional library

        self.policy, self.config = policy, config
        self.collector = OffPolicyCollector(env, policy, config, reward)
        self.replay = ReplayBuffer(policy, self.collector.rollout, config.buffer_size)
        self._generator = torch.Generator(policy.device).manual_seed(seed)
        self._rate = config.learning_rate.value(0.0)
        with seeded(policy.device, seed):
            self._baseline = Baseline(algorithm, policy, layers, config, self, lambda: self._rate)
        self.iterations = 0
        self.env_steps = 0
        self._losses: dict[str, float] = {}
        self._updated = 0

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups of tensors that `state` gives."""
        fixed = ("policy", "critics", "optimiser", "collector")
        return (*fixed, "replay") if self.config.checkpoint_buffer else fixed

    @property
    def rows(self) -> Rows:
        """Which seats of which games are learned from."""
        return self.collector.rows

    @property
    def rollout(self) -> OffPolicyRollout:
        """The last rollout."""
        return self.collector.rollout

    @property
    def gradient_steps(self) -> int:
        """Gradient steps of an iteration once it learns."""
        asked = self.config.gradient_steps
        return self.rollout.steps * self.rollout.rows if asked is None else asked

    def sample(self, batch_size: int, env: object = None) -> ReplayBatch:  # noqa: ARG002 - the library's words
        """Draws a batch for the library."""
        return self.replay.draw(batch_size, self._generator)

    def iterate(self, progress: float = 0.0) -> dict[str, float]:
        """Collects, learns and returns the metrics.

        Args:
            progress: Share of the training that is done, 0 to 1, for the learning rate.
        """
        self.collect(progress)
        self.update(progress)
        return self.metrics()

    def collect(self, progress: float = 0.0) -> None:  # noqa: ARG002 - nothing of it is scheduled
        """Lets the last rollout join the replay buffer, and collects the next."""
        if self.iterations:
            self.replay.add(self.rollout)
        at_random = self.env_steps < self.config.learning_starts
        with small_products():
            self.collector.collect(self._generator, at_random=at_random)
        self.env_steps += self.rollout.steps * self.rollout.rows

    def update(self, progress: float = 0.0) -> None:
        """Learns from the replay buffer once it holds enough; then the rollout joins the running statistics.

        So what is wrong with a rollout has reached neither parameters nor statistics when the metrics are looked at.
        """
        self._rate = self.config.learning_rate.value(progress)
        is_ready = self.replay.count >= max(self.config.learning_starts, 1)
        steps = self.gradient_steps if is_ready else 0
        # The library draws from torch's global numbers: they begin anew in every update, from ours.
        seed = int(torch.randint(_LARGEST_SEED, (), generator=self._generator, device=self.policy.device))
        with small_products(), unchecked_distributions(), seeded(self.policy.device, seed):
            self._losses = self._baseline.learn(steps)
        self._updated = steps
        self.collector.observe()
        self.iterations += 1
        self.collector.stopwatch.lap("update")

    def metrics(self) -> dict[str, float]:
        """Reads the metrics of the last iteration; NaN where there is nothing to average, as before it learns."""
        metrics = dict(zip(COLLECT_METRICS, self.collector.device_metrics().tolist(), strict=True))
        metrics |= {name: self._losses.get(name, math.nan) for name in LOSSES}
        counts = {"updates": float(self._updated), "replay_size": float(self.replay.count)}
        return metrics | counts | {"learning_rate": self._rate}

    def times_s(self) -> dict[str, float]:
        """Returns where the time since the last call went."""
        return self.collector.stopwatch.read()

    @property
    def loss_names(self) -> tuple[str, ...]:
        """Metrics of the last update that must be finite: none before it learns, no policy loss without its update."""
        return tuple(self._losses)

    def outputs(self) -> list[Part]:
        """Returns what the last rollout consists of beside observations and rewards, causes before effects."""
        following = self.rollout.following.items()
        return [
            *(Part("observation", f"entry {name!r} after a step", tensor) for name, tensor in following),
            Part("policy output", "actions", self.rollout.actions),
        ]

    def learned(self) -> list[Part]:
        """Returns everything that an update changes, the parameters first."""
        parts = {"parameters": self._baseline.parameters(), "optimiser": self._baseline.averages()}
        return [
            Part("parameter", name, torch.cat([tensor.to(self.policy.device).flatten() for tensor in tensors]))
            for name, tensors in parts.items()
        ]

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Returns everything but the games: tensors and what JSON can hold, to go on bit by bit from here.

        The replay buffer is shown, not copied; see `ReplayBuffer.load_state` for why that is enough.
        """
        tensors = with_prefix("policy", self.policy.state())
        tensors |= with_prefix("critics", self._baseline.critics_state())
        tensors |= with_prefix("optimiser", self._baseline.optimiser_state())
        tensors |= with_prefix("collector", self.collector.state())
        if self.config.checkpoint_buffer:
            tensors |= with_prefix("replay", self.replay.state())
        tensors["random"] = self._generator.get_state()
        counts = (self.iterations, self.env_steps, self._baseline.updates, self.replay.position, self.replay.count)
        return tensors, dict(zip(_COUNTERS, counts, strict=True))

    def load_state(
        self, tensors: Mapping[str, Tensor], counters: Mapping[str, Any], observations: dict[str, Tensor]
    ) -> None:
        """Takes what `state` gave, and the observations that restoring the games' snapshot gave.

        Raises:
            StateError: Something is missing or does not fit.
        """
        if "random" not in tensors or not set(_COUNTERS) <= set(counters):
            raise StateError(f"the learner's state needs 'random' and {', '.join(_COUNTERS)}; use the same config")
        self.policy.load_state(part_of(tensors, "policy"))
        critics, optimiser = part_of(tensors, "critics"), part_of(tensors, "optimiser")
        self._baseline.load_state(critics, optimiser, int(counters["updates"]))
        self.collector.load_state(part_of(tensors, "collector"), observations)
        self._generator.set_state(tensors["random"].cpu())
        self.iterations, self.env_steps = int(counters["iterations"]), int(counters["env_steps"])
        held = part_of(tensors, "replay") if self.config.checkpoint_buffer else None
        count = int(counters["replay_count"])
        if not self.replay.load_state(held, int(counters["replay_position"]), count):
            logger.warning(
                "[WARN] the replay buffer of %d env steps was not stored: it starts empty, and learning waits for %d "
                "env steps; off_policy.checkpoint_buffer=true stores it",
                count,
                max(self.config.learning_starts, 1),
            )
