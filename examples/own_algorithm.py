"""Learn by an algorithm of your own: its settings and its learner are two classes, registered by a third."""

# %% The settings are a model; `algorithm: reinforce` and a section `reinforce:` choose and change them.
import os
from collections.abc import Mapping
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

import ludus
from ludus.algorithms import Algorithm, Collector, Groups, Learner, LearnerBatch, LearnerParts, Part, register_algorithm
from ludus.rollout.buffer import RolloutBuffer
from ludus.rollout.episodes import EpisodeStatistics

STEPS = int(os.environ.get("LUDUS_EXAMPLE_STEPS", "200_000"))


class ReinforceConfig(BaseModel):
    """Settings of REINFORCE with a learned baseline; `n_steps` to `cuda_graphs` are what the collector asks for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    n_steps: int = Field(default=32, ge=1)
    gamma: float = Field(default=0.99, ge=0.0, le=1.0)
    gae_lambda: float = Field(default=1.0, ge=0.0, le=1.0)
    sde_sample_freq: int | None = None
    cuda_graphs: bool = False
    learning_rate: float = Field(default=0.3, gt=0.0)
    ent_coef: float = Field(default=0.01, ge=0.0)

    def sequence_length_for(self, *, has_memory: bool) -> int:
        """Return the steps of a training sequence: a whole rollout."""
        return self.n_steps if has_memory else 1


# %% The learner collects with the same collector as PPO, and says what a checkpoint must hold.
class ReinforceLearner(Learner):
    """One gradient step per rollout, by plain gradient descent."""

    def __init__(self, settings: ReinforceConfig, parts: LearnerParts) -> None:
        self.policy, self._settings = parts.policy, settings
        seats = {"learner": parts.learner, "opponents": parts.opponents}
        self._collector = Collector(parts.env, parts.policy, settings, reward=parts.reward, **seats)  # type: ignore[arg-type]
        self._optimizer = torch.optim.SGD(parts.policy.parameters(), settings.learning_rate)
        self._generator = torch.Generator(parts.policy.device).manual_seed(parts.seed)
        self._loss = torch.zeros(())

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups of tensors that `state` returns."""
        return ("policy", "collector", "random")

    @property
    def rows(self) -> LearnerBatch:
        """Which seats of which games are learned from."""
        return self._collector.rows

    @property
    def rollout(self) -> RolloutBuffer:
        """The last rollout."""
        return self._collector.buffer

    def collect(self, progress: float = 0.0) -> None:
        """Collect one rollout."""
        self._collector.collect(self._generator)
        self.env_steps += self.rollout.steps * self.rollout.rows

    def update(self, progress: float = 0.0) -> None:
        """Take one step along the gradient of log pi(a|s) * A, with the value function as baseline."""
        batch = self.rollout.minibatch(torch.arange(self.rollout.segments, device=self.policy.device))
        found = self.policy.unroll(batch.observations, batch.memory, batch.episode_starts, batch.actions)
        advantages = batch.targets.advantages
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        value_loss = (batch.targets.returns - found.values).square().mean()
        policy_loss = -(found.log_probs * advantages).mean()
        loss = policy_loss + 0.5 * value_loss - self._settings.ent_coef * found.entropies.mean()
        self._loss = policy_loss.detach()
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.policy.parameters(), 0.5)
        self._optimizer.step()
        self.policy.observe(self.rollout.observations)
        self.iterations += 1

    def metrics(self) -> dict[str, float]:
        """Read the metrics of the last iteration."""
        episodes = zip(EpisodeStatistics.METRICS, self._collector.device_metrics().tolist(), strict=True)
        return dict(episodes) | {"policy_loss": float(self._loss), "updates": 1.0}

    def learned(self) -> list[Part]:
        """Return everything that an update changes."""
        flat = torch.cat([parameter.detach().flatten() for parameter in self.policy.parameters()])
        return [Part("parameter", "parameters", flat)]

    def state(self) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
        """Return everything but the games."""
        groups = {"policy": self.policy.state(), "collector": self._collector.state()}
        counters = {"iterations": self.iterations, "env_steps": self.env_steps}
        return groups | {"random": {"learner": self._generator.get_state()}}, counters

    def load_state(
        self,
        groups: Groups,
        counters: Mapping[str, Any],
        observations: dict[str, Tensor],
        *,
        games_restarted: bool = False,
    ) -> None:
        """Restore the state returned by `state()`."""
        self.policy.load_state(groups["policy"])
        self._collector.load_state(groups["collector"], observations, games_restarted=games_restarted)
        self._generator.set_state(groups["random"]["learner"])
        self.iterations, self.env_steps = counters["iterations"], counters["env_steps"]


# %% Registering it is enough: presets, checks, checkpoints, evaluation, reports and `ludus resume` work with it.
@register_algorithm("reinforce")
class Reinforce(Algorithm[ReinforceConfig, ReinforceLearner]):
    """REINFORCE with a learned baseline."""

    config = ReinforceConfig
    features = frozenset({"opponents"})

    def make_learner(self, settings: ReinforceConfig, parts: LearnerParts) -> ReinforceLearner:
        """Make the learner and start its games."""
        return ReinforceLearner(settings, parts)


# %% As a plugin of the command line: `ludus train identity --plugin own_algorithm.py algorithm=reinforce`.
if __name__ == "__main__":
    settings = {
        "world": {"name": "identity", "num_envs": 32},
        "algorithm": "reinforce",
        "total_env_steps": STEPS,
        "evaluation": {"every_env_steps": STEPS, "matches": 20},
    }
    run = ludus.train(settings, folder="runs/reinforce")
    print(f"{run.env_steps:,} env steps, {run.folder}")
