"""SAC and TD3 as the training loop sees them: the learner, the checks before a run, and what they say."""

from typing import Any, ClassVar

from gymnasium import spaces
from pydantic import BaseModel

from ludus.algorithms.algorithm import Algorithm, DryRun, LearnerMemory, LearnerParts, Timing, register_algorithm
from ludus.algorithms.sac_td3.config import SacConfig, Td3Config
from ludus.algorithms.sac_td3.learner import OffPolicyLearner
from ludus.core.errors import ConfigError
from ludus.core.schedules import describe_schedule
from ludus.envs.base import EnvSpec
from ludus.nn.distributions import Squash
from ludus.policies.config import PolicyConfig

_ACTIVATION_COPIES = 6  # activations of actor, critics and targets that a gradient step holds at once


class OffPolicy(Algorithm[SacConfig | Td3Config, OffPolicyLearner]):
    """What SAC and TD3 share: continuous actions, every seat the learner's, with the optional Stable-Baselines3."""

    squash: ClassVar[Squash]  # how the policy's actions are squashed into their bounds
    preflight_iterations = 2  # a rollout joins the replay buffer at the start of the next iteration

    def make_learner(self, settings: SacConfig | Td3Config, parts: LearnerParts) -> OffPolicyLearner:
        """Make the learner and start its games."""
        self._check_world(parts.env.spec)
        return OffPolicyLearner(
            parts.env, parts.policy, settings, layers=parts.policy_config, reward=parts.reward, seed=parts.seed
        )

    def refused(self, settings: SacConfig | Td3Config, policy: PolicyConfig) -> list[str]:
        """Return the settings of a policy that off-policy learning cannot do."""
        names = ["module", "recurrent", "strategy", "encoder", "dropout"]
        names += ["state_dependent_exploration", "exploration", "bfloat16"]
        return [f"policy.{name}" for name in names if getattr(policy, name)]

    def policy_config(self, policy: PolicyConfig) -> PolicyConfig:
        """Return what plays: the actor alone, squashed, and a value head that always says 0.

        The critics judge actions, not states: they stay with the learner. Weights start as torch starts them, as both
        algorithms were published, so `orthogonal` and `log_std` do not matter.
        """
        actor_alone = policy.net_arch.model_copy(update={"vf": ()})
        return policy.model_copy(update={"squash": self.squash, "net_arch": actor_alone, "orthogonal": False})

    def rollout_steps(self, settings: SacConfig | Td3Config) -> int:
        """Return the steps of every game in an iteration."""
        return settings.train_freq

    def update_passes(self, settings: SacConfig | Td3Config, rows: int) -> float:
        """Return the transitions of all minibatches per env step."""
        return settings.batch_size * _gradient_steps_per_env_step(settings, rows)

    def check(self, settings: SacConfig | Td3Config, policy: PolicyConfig, spec: EnvSpec, rows: int) -> str:
        """Describe an iteration, in a line; raise ConfigError if the world or the replay buffer does not fit it."""
        self._check_world(spec)
        size = settings.train_freq * rows
        if size > settings.buffer_size:
            raise ConfigError(
                f"{self.name}.buffer_size {settings.buffer_size} is less than the {size} env steps of one iteration; "
                f"raise it, or lower {self.name}.train_freq or world.num_envs"
            )
        return (
            f"batch: {settings.train_freq} steps x {rows:,} rows, then {settings.gradient_steps or size:,} gradient "
            f"steps of {settings.batch_size:,} out of the last {settings.buffer_size:,}"
        )

    def _check_world(self, spec: EnvSpec) -> None:
        """Raise ConfigError unless a world has continuous actions and shows no pictures."""
        if not isinstance(spec.action_space, spaces.Box):
            raise ConfigError(
                f"algorithm {self.name} needs continuous actions (Box), {spec.id} acts by {spec.action_space}; "
                "use algorithm ppo"
            )
        pictures = [name for name, entry in spec.observation_space.items() if len(entry.shape or ()) > 1]
        if pictures:
            raise ConfigError(
                f"algorithm {self.name} learns from vectors, {spec.id} shows more axes in {', '.join(pictures)}; "
                "use algorithm ppo"
            )

    def summary(self, settings: SacConfig | Td3Config, rows: int) -> str:
        """Describe an iteration and the learning rate in a line."""
        size = settings.train_freq * rows
        return (
            f"{self.name}: {settings.train_freq} steps x {rows:,} rows = {size:,} env steps, then "
            f"{settings.gradient_steps or size:,} gradient steps of {settings.batch_size:,} out of the last "
            f"{settings.buffer_size:,}, learning rate {describe_schedule(settings.learning_rate)}"
        )

    def shrink(
        self, settings: SacConfig | Td3Config, policy: PolicyConfig, rows: int, steps: int
    ) -> tuple[SacConfig | Td3Config, PolicyConfig]:
        """Return the settings of a copy that learns from its second iteration on, the actor included."""
        steps = min(steps, settings.train_freq)
        small: dict[str, Any] = {"train_freq": steps, "learning_starts": 0, "gradient_steps": settings.actor_period}
        small |= {"buffer_size": 2 * steps * rows, "batch_size": steps * rows}
        return settings.model_copy(update=small), policy

    def memory(
        self, settings: SacConfig | Td3Config, learner: OffPolicyLearner, rows: int, dry_run: DryRun
    ) -> LearnerMemory:
        """Scale the copy's replay buffer and networks to the full run."""
        rollout = learner.rollout
        frames, small_frames = settings.train_freq * rows, rollout.steps * rollout.rows
        learned = sum(part.tensor.nbytes for part in learner.learned())
        recorded = sum(tensor.nbytes for tensor in rollout.transitions().values()) * frames // small_frames
        widths = (*learner.layers.net_arch.pi, *learner.layers.net_arch.vf, learner.policy.observations.output_size)
        parts = {
            "replay buffer": learner.replay.nbytes() * settings.buffer_size // learner.config.buffer_size,
            "parameters and optimiser": 2 * learned,  # one for gradients
            "rollout": recorded,
            "minibatch": 4 * _ACTIVATION_COPIES * settings.batch_size * sum(widths),
        }
        return LearnerMemory(parts, learned + recorded)  # the replay buffer is not copied

    def seconds_per_env_step(self, settings: SacConfig | Td3Config, timing: Timing) -> float:
        """Return the time per env step; the copy does `actor_period` gradient steps with batches of all its steps."""
        gradient_s = timing.update_s / settings.actor_period * max(1.0, settings.batch_size / timing.env_steps)
        per_env_step = _gradient_steps_per_env_step(settings, timing.rows)
        return timing.collect_s / timing.env_steps + gradient_s * per_env_step


def _gradient_steps_per_env_step(settings: SacConfig | Td3Config, rows: int) -> float:
    asked = settings.gradient_steps
    return 1.0 if asked is None else asked / (settings.train_freq * rows)


@register_algorithm("sac")
class Sac(OffPolicy):
    """Soft actor-critic: explores by its own spread, whose size it learns."""

    config: ClassVar[type[BaseModel]] = SacConfig
    squash = "stochastic"
    memory_advice = "or a smaller replay buffer (sac.buffer_size)"


@register_algorithm("td3")
class Td3(OffPolicy):
    """Twin delayed deterministic policy gradients: acts without a spread and explores by added noise."""

    config: ClassVar[type[BaseModel]] = Td3Config
    squash = "deterministic"
    memory_advice = "or a smaller replay buffer (td3.buffer_size)"
