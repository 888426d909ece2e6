"""The off-policy learner: one object that collects and updates, and whose whole state can be taken and given back."""

import logging
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from ludus.algorithms.learner import Groups, Learner, LearnerCounters, Part
from ludus.algorithms.sac_td3.collector import COLLECT_METRICS, OffPolicyCollector, OffPolicyRollout
from ludus.algorithms.sac_td3.config import SacConfig, Td3Config
from ludus.algorithms.sac_td3.replay import ReplayBatch, ReplayBuffer
from ludus.core.state import Count, check_names, load_generator
from ludus.envs.base import BatchedEnv, Observations
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.rollout.learner_batch import LearnerBatch
from ludus.rollout.rewards import RolloutReward

logger = logging.getLogger(__name__)

LOSSES = ("policy_loss", "value_loss", "entropy_coefficient")
_LARGEST_SEED = 2**62


class OffPolicyCounters(LearnerCounters):
    """What `OffPolicyLearner` saves as JSON."""

    updates: Count  # gradient steps done
    replay_position: Count  # where the next env step goes in the replay buffer
    replay_count: Count  # env steps that it holds


class OffPolicyLearner(Learner):
    """SAC or TD3 on one batch of games.

    An iteration plays `train_freq` steps of all games and does the gradient steps. A rollout joins the replay buffer at
    the start of the next iteration, when it has been found finite: so nothing broken is ever drawn from it, and going
    back by an iteration needs no copy of the buffer. Equal seeds give equal numbers on the CPU.
    """

    def __init__(
        self,
        env: BatchedEnv,
        policy: Policy,
        config: SacConfig | Td3Config,
        *,
        layers: PolicyConfig,
        reward: RolloutReward,
        seed: int = 0,
    ) -> None:
        """Start all games; `layers` are the run's own settings of the policy, which name the critics' layers too."""
        from ludus.algorithms.sac_td3.baselines import Baseline  # an optional library

        self.policy, self.config, self.layers = policy, config, layers
        self.collector = OffPolicyCollector(env, policy, config, reward)
        self.replay = ReplayBuffer(policy, self.collector.rollout, config.buffer_size)
        self._generator = torch.Generator(policy.device).manual_seed(seed)
        self._rate = config.learning_rate.value(0.0)
        with seeded(policy.device, seed):
            self._baseline = Baseline(policy, layers, config, self, lambda: self._rate)
        self._losses: dict[str, float] = {}
        self._updated = 0

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups of tensors that `state` gives."""
        fixed = ("policy", "critics", "optimiser", "collector", "random")
        return (*fixed, "replay") if self.config.checkpoint_buffer else fixed

    @property
    def live_groups(self) -> tuple[str, ...]:
        """The replay buffer, where checkpoints hold it."""
        return ("replay",) if self.config.checkpoint_buffer else ()

    @property
    def rows(self) -> LearnerBatch:
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

    def sample(self, batch_size: int, env: object = None) -> ReplayBatch:
        """Draw a batch for the library."""
        return self.replay.draw(batch_size, self._generator)

    def collect(self, progress: float = 0.0) -> None:
        """Add the last rollout to the replay buffer, and collect the next."""
        if self.iterations:
            self.replay.add(self.rollout)
        at_random = self.env_steps < self.config.learning_starts
        with small_products():
            self.collector.collect(self._generator, at_random=at_random)
        self.env_steps += self.rollout.steps * self.rollout.rows

    def update(self, progress: float = 0.0) -> None:
        """Update from the replay buffer once it holds enough; then add the rollout to the running statistics.

        So what is wrong with a rollout has reached neither parameters nor statistics when the metrics are looked at.
        """
        self._rate = self.config.learning_rate.value(progress)
        is_ready = self.replay.count >= max(self.config.learning_starts, 1)
        steps = self.gradient_steps if is_ready else 0
        # The library draws from torch's global generator: seed it from ours in every update.
        seed = int(torch.randint(_LARGEST_SEED, (), generator=self._generator, device=self.policy.device))
        with small_products(), unchecked_distributions(), seeded(self.policy.device, seed):
            self._losses = self._baseline.learn(steps)
        self._updated = steps
        self.collector.observe()
        self.iterations += 1
        self.collector.stopwatch.lap("update")

    def metrics(self) -> dict[str, float]:
        """Read the metrics of the last iteration; NaN where there is nothing to average, as before it learns."""
        metrics = dict(zip(COLLECT_METRICS, self.collector.metrics.tolist(), strict=True))
        metrics |= {name: self._losses.get(name, math.nan) for name in LOSSES}
        counts = {"updates": float(self._updated), "replay_size": float(self.replay.count)}
        return metrics | counts | {"learning_rate": self._rate}

    def times_s(self) -> dict[str, float]:
        """Return where the time since the last call went."""
        return self.collector.stopwatch.read()

    @property
    def loss_names(self) -> tuple[str, ...]:
        """Metrics of the last update that must be finite: none before it learns, no policy loss without its update."""
        return tuple(self._losses)

    def outputs(self) -> list[Part]:
        """Return what the last rollout consists of beside observations and rewards, causes before effects."""
        following = self.rollout.following.items()
        return [
            *(Part("observation", f"entry {name!r} after a step", tensor) for name, tensor in following),
            Part("policy output", "actions", self.rollout.actions),
        ]

    def learned(self) -> list[Part]:
        """Return everything that an update changes, the parameters first."""
        parts = {"parameters": self._baseline.parameters(), "optimiser": self._baseline.averages()}
        return [
            Part("parameter", name, torch.cat([tensor.to(self.policy.device).flatten() for tensor in tensors]))
            for name, tensors in parts.items()
        ]

    def state(self) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
        """Return everything but the games, tensors and JSON, to resume bit-exactly.

        The replay buffer is shown, not copied; see `ReplayBuffer.load_state` for why that is enough.
        """
        groups = {
            "policy": self.policy.state(),
            "critics": self._baseline.critics_state(),
            "optimiser": self._baseline.optimiser_state(),
            "collector": self.collector.state(),
            "random": {"learner": self._generator.get_state()},
        }
        if self.config.checkpoint_buffer:
            groups["replay"] = self.replay.state()
        counters = OffPolicyCounters(
            iterations=self.iterations,
            env_steps=self.env_steps,
            updates=self._baseline.updates,
            replay_position=self.replay.position,
            replay_count=self.replay.count,
        )
        return groups, counters.model_dump()

    def load_state(
        self, groups: Groups, counters: Mapping[str, Any], observations: Observations, *, games_restarted: bool = False
    ) -> None:
        """Restore the state returned by `state()`; see `Learner`."""
        check_names(groups, self.groups, "the learner's state")
        saved = OffPolicyCounters.read(counters, "learner")
        self.policy.load_state(groups["policy"])
        self._baseline.load_state(groups["critics"], groups["optimiser"], saved.updates)
        self.collector.load_state(groups["collector"], observations, games_restarted=games_restarted)
        load_generator(self._generator, groups["random"], "the learner", name="learner")
        self.iterations, self.env_steps = saved.iterations, saved.env_steps
        held = groups["replay"] if self.config.checkpoint_buffer else None
        if not self.replay.load_state(held, saved.replay_position, saved.replay_count):
            logger.warning(
                "[WARN] the replay buffer of %d env steps was not stored: it starts empty, and learning waits for %d "
                "env steps; checkpoint_buffer=true stores it",
                saved.replay_count,
                max(self.config.learning_starts, 1),
            )


@contextmanager
def seeded(device: torch.device, seed: int) -> Iterator[None]:
    """Seed torch's global random numbers within the block; restore their state after it."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


@contextmanager
def small_products() -> Iterator[None]:
    """Multiply matrices without oneDNN, which on ARM processors repacks the operands for every product.

    A product of 64 x 32 and 32 x 32 took 577 us with oneDNN and 14 us without; 256 x 256 and 256 x 256 took 1.6 ms and
    1.05 ms. On x86, torch does not use oneDNN for float32 products.
    """
    was_enabled = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment]  # a property, which the type checker cannot see
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = was_enabled


@contextmanager
def unchecked_distributions() -> Iterator[None]:
    """Switch off the argument checks of torch's distributions: they cost time, and the NaN guard sees the losses."""
    was_checked = Distribution._validate_args  # noqa: SLF001 - torch has no way to ask
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(was_checked)
