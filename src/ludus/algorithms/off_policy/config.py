"""The settings of off-policy learning, and the policy that plays for it."""

from typing import Annotated, Literal, Self

from gymnasium import spaces
from pydantic import BaseModel, ConfigDict, Field, model_validator

from ludus.core.errors import ConfigError
from ludus.core.schedules import ConstantSchedule, ScheduleConfig
from ludus.envs.base import EnvSpec
from ludus.networks.squashed import Squash
from ludus.policies.config import PolicyConfig

OffPolicyName = Literal["sac", "td3"]

_SQUASH: dict[OffPolicyName, Squash] = {"sac": "stochastic", "td3": "deterministic"}


class OffPolicyConfig(BaseModel):
    """How much is collected, remembered and learned from.

    Attributes:
        learning_rate: Rate of Adam for actor, critics and entropy coefficient: a number or a schedule over progress.
        buffer_size: Env steps that the replay buffer remembers.
        batch_size: Env steps of a gradient step, drawn from the replay buffer.
        learning_starts: Env steps of random actions before anything is learned.
        gamma: Discount a step.
        tau: How far the target critics go towards the critics in a gradient step.
        train_freq: Steps of every game in an iteration, between two times of learning.
        gradient_steps: Of an iteration; None does one for each of its env steps.
        entropy_coefficient: Of SAC; `auto` learns it, so that the policy's entropy meets `target_entropy`.
        first_entropy_coefficient: Of SAC, where `auto` begins; rewards much smaller than 1 a step want less.
        target_entropy: Of SAC, of actions between -1 and 1; None is minus the number of actions.
        exploration_noise: Of TD3, deviation of what is added to actions between -1 and 1 while collecting.
        policy_delay: Of TD3, critic updates to one of the actor and of the targets.
        target_noise: Of TD3, deviation of what is added to the target's actions.
        target_noise_clip: Of TD3, largest size of that.
        checkpoint_buffer: Whether checkpoints hold the replay buffer, up to its whole size each. Without it they are
            small, but a run that goes on starts with an empty buffer: it collects `learning_starts` env steps before it
            learns again, and takes another course than one that was never cut off.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    learning_rate: ScheduleConfig = ConstantSchedule(level=3e-4)
    buffer_size: int = Field(default=1_000_000, ge=1)
    batch_size: int = Field(default=256, ge=1)
    learning_starts: int = Field(default=1_000, ge=0)
    gamma: float = Field(default=0.99, ge=0.0, le=1.0)
    tau: float = Field(default=0.005, gt=0.0, le=1.0)
    train_freq: int = Field(default=8, ge=1)
    gradient_steps: int | None = Field(default=None, ge=1)
    entropy_coefficient: Literal["auto"] | Annotated[float, Field(ge=0.0)] = "auto"
    first_entropy_coefficient: float = Field(default=1.0, gt=0.0)
    target_entropy: float | None = None
    exploration_noise: float = Field(default=0.1, ge=0.0)
    policy_delay: int = Field(default=2, ge=1)
    target_noise: float = Field(default=0.2, ge=0.0)
    target_noise_clip: float = Field(default=0.5, ge=0.0)
    checkpoint_buffer: bool = True

    @model_validator(mode="after")
    def _can_ever_start(self) -> Self:
        if self.learning_starts > self.buffer_size:
            raise ValueError(
                f"learning_starts {self.learning_starts} is more than the buffer remembers ({self.buffer_size}), so "
                "nothing would ever be learned; raise buffer_size"
            )
        return self


def playing_policy(config: PolicyConfig, algorithm: OffPolicyName) -> PolicyConfig:
    """Returns what plays for an algorithm: the actor alone, squashed, and a value head that always says 0.

    The critics judge actions, not states: they stay with the learner. Weights start as torch starts them, as both
    algorithms were published, so `orthogonal` and `log_std` do not matter.
    """
    actor_alone = config.net_arch.model_copy(update={"vf": ()})
    return config.model_copy(update={"squash": _SQUASH[algorithm], "net_arch": actor_alone, "orthogonal": False})


def check_world(spec: EnvSpec, algorithm: OffPolicyName) -> None:
    """Raises ConfigError unless a world has continuous actions and shows no pictures."""
    if not isinstance(spec.action_space, spaces.Box):
        raise ConfigError(
            f"algorithm {algorithm} needs continuous actions (Box), {spec.id} acts by {spec.action_space}; "
            "use algorithm ppo"
        )
    pictures = [name for name, entry in spec.observation_space.items() if len(entry.shape or ()) > 1]
    if pictures:
        raise ConfigError(
            f"algorithm {algorithm} learns from vectors, {spec.id} shows more axes in {', '.join(pictures)}; "
            "use algorithm ppo"
        )


def refused_settings(config: PolicyConfig) -> list[str]:
    """Returns the names of the settings of a policy that off-policy learning cannot do."""
    refused = {
        "policy.recurrent": config.recurrent is not None,
        "policy.strategy": config.strategy is not None,
        "policy.encoder": bool(config.encoder),
        "policy.state_dependent_exploration": config.state_dependent_exploration,
        "policy.exploration": config.exploration is not None,
        "policy.bfloat16": config.bfloat16,
    }
    return [name for name, is_set in refused.items() if is_set]
