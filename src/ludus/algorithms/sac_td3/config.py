"""The settings of off-policy learning, and the policy that plays for it."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ludus.core.schedules import MAX_FACTOR, MAX_STEPS, ConstantSchedule, NonNegativeScheduleConfig


class OffPolicyConfig(BaseModel):
    """What SAC and TD3 share: how much is collected, remembered and learned from.

    Attributes:
        learning_rate: Rate of Adam for actor, critics and entropy coefficient: a number or a schedule over progress.
        buffer_size: Env steps that the replay buffer remembers.
        batch_size: Env steps of a gradient step, drawn from the replay buffer.
        learning_starts: Env steps of random actions before anything is learned.
        gamma: Discount per step.
        tau: How far the target critics go towards the critics in a gradient step.
        train_freq: Steps of every game in an iteration, between two times of learning.
        gradient_steps: Of an iteration; None does one for each of its env steps.
        checkpoint_buffer: Whether checkpoints hold the replay buffer, up to its whole size each. Without it they are
            small, but a resumed run starts with an empty buffer: it collects `learning_starts` env steps before it
            learns again, and takes another course than one that was never cut off.
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
        ent_coef: Weight of the entropy; `auto` learns it, so that the policy's entropy meets `target_entropy`.
        ent_coef_init: Where `auto` begins; rewards much smaller than 1 per step want less.
        target_entropy: Of actions between -1 and 1; None is minus the number of actions.
    """

    ent_coef: Literal["auto"] | Annotated[float, Field(ge=0.0, le=MAX_FACTOR)] = "auto"
    ent_coef_init: float = Field(default=1.0, gt=0.0, le=MAX_FACTOR)
    target_entropy: float | None = None


class Td3Config(OffPolicyConfig):
    """Settings of TD3.

    Attributes:
        action_noise: Deviation of what is added to actions between -1 and 1 while collecting.
        policy_delay: Critic updates to one of the actor and of the targets.
        target_policy_noise: Deviation of what is added to the target's actions.
        target_noise_clip: Largest size of that.
    """

    action_noise: float = Field(default=0.1, ge=0.0, le=10.0)
    policy_delay: int = Field(default=2, ge=1, le=1_000)
    target_policy_noise: float = Field(default=0.2, ge=0.0, le=10.0)
    target_noise_clip: float = Field(default=0.5, ge=0.0, le=10.0)

    @property
    def actor_period(self) -> int:
        """Gradient steps of the critics to one of the actor."""
        return self.policy_delay
