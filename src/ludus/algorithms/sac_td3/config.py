"""The settings of off-policy learning, and the policy that plays for it."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ludus.core.schedules import MAX_FACTOR, MAX_STEPS, ConstantSchedule, NonNegativeScheduleConfig


class OffPolicyConfig(BaseModel):
    """What SAC and TD3 share: how much is collected, remembered and learned from.

    Attributes:
        learning_rate: Learning rate of Adam for actor, critics and entropy coefficient: a number, or a schedule over
            training progress.
        buffer_size: Capacity of the replay buffer in env steps.
        batch_size: Env steps per gradient step, sampled from the replay buffer.
        learning_starts: Env steps of random actions before learning starts.
        gamma: Discount factor per step.
        tau: Polyak coefficient of the target networks.
        train_freq: Steps per game in an iteration.
        gradient_steps: Gradient steps per iteration; None does one per env step.
        checkpoint_buffer: Whether checkpoints hold the replay buffer. Without it they are small, but a resumed run
            starts with an empty buffer, collects `learning_starts` env steps before it learns again, and takes another
            course than an uninterrupted one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    learning_rate: NonNegativeScheduleConfig = ConstantSchedule(level=3e-4)
    buffer_size: int = Field(default=1_000_000, ge=1, le=10**10)
    batch_size: int = Field(default=256, ge=1, le=2**31)
    learning_starts: int = Field(default=1_000, ge=0, le=10**10)
    gamma: float = Field(default=0.99, ge=0.0, le=1.0)
    tau: float = Field(default=0.005, gt=0.0, le=1.0)
    train_freq: int = Field(default=8, ge=1, le=MAX_STEPS)
    gradient_steps: int | None = Field(default=None, ge=1, le=10**7)
    checkpoint_buffer: bool = True

    @model_validator(mode="after")
    def _can_ever_start(self) -> Self:
        if self.learning_starts > self.buffer_size:
            raise ValueError(
                f"learning_starts {self.learning_starts} is more than the buffer remembers ({self.buffer_size}), so "
                "nothing would ever be learned; raise buffer_size"
            )
        return self

    @property
    def actor_period(self) -> int:
        """Gradient steps of the critics to one of the actor."""
        return 1


class SacConfig(OffPolicyConfig):
    """Settings of SAC.

    Attributes:
        ent_coef: Entropy coefficient; `auto` learns it to meet `target_entropy`.
        ent_coef_init: Initial value for `auto`; rewards much smaller than 1 per step want less.
        target_entropy: Target entropy of actions in -1 to 1; None is minus the number of actions.
    """

    ent_coef: Literal["auto"] | Annotated[float, Field(ge=0.0, le=MAX_FACTOR)] = "auto"
    ent_coef_init: float = Field(default=1.0, gt=0.0, le=MAX_FACTOR)
    target_entropy: float | None = None


class Td3Config(OffPolicyConfig):
    """Settings of TD3.

    Attributes:
        action_noise: Standard deviation of the Gaussian noise added to actions in -1 to 1 while collecting.
        policy_delay: Critic updates per update of the actor and the targets.
        target_policy_noise: Standard deviation of the noise added to target actions.
        target_noise_clip: Clip range of that noise.
    """

    action_noise: float = Field(default=0.1, ge=0.0, le=10.0)
    policy_delay: int = Field(default=2, ge=1, le=1_000)
    target_policy_noise: float = Field(default=0.2, ge=0.0, le=10.0)
    target_noise_clip: float = Field(default=0.5, ge=0.0, le=10.0)

    @property
    def actor_period(self) -> int:
        """Gradient steps of the critics to one of the actor."""
        return self.policy_delay
