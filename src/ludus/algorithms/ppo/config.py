"""The settings of PPO."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from ludus.core.errors import ConfigError
from ludus.core.schedules import (
    MAX_FACTOR,
    MAX_STEPS,
    ConstantSchedule,
    LearningRateConfig,
    LinearSchedule,
    NonNegativeScheduleConfig,
    ScheduleConfig,
)

_Decay: TypeAlias = Annotated[float, Field(ge=0.0, lt=1.0)]


class ImitationConfig(BaseModel):
    """A scripted player that the policy learns to imitate beside PPO, in the states that it gets into by itself.

    The loss is the mean of `-log pi(a*)` with `a*` what the bot would do in each state of the rollout (DAgger). With a
    weight that falls to 0, it leads the policy to the bot's level, and the rewards lead on from there.

    Attributes:
        bot: Name of a bot of the world.
        coef: Weight of the loss: a number, or a schedule over training progress.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    bot: str = Field(min_length=1)
    coef: NonNegativeScheduleConfig = LinearSchedule(start=1.0, end=0.0)


class PpoConfig(BaseModel):
    """Settings of PPO: how much is collected, and how it is learned from.

    Attributes:
        n_steps: Steps per row in a rollout.
        batch_size: Experiences per minibatch. It must divide the rollout: `n_steps * rows`.
        n_minibatches: Minibatches per epoch, instead of `batch_size`, for runs whose phases have different numbers of
            rows; None uses `batch_size`.
        n_accumulate: Parts in which each minibatch is processed; their gradients add up to the same step with less
            memory. Disables the compiled functions for plain MLP policies. Raised automatically when a GPU runs out of
            memory in an update. It may change when a run is resumed: order and content of the minibatches stay exactly
            the same, and every step is the same up to rounding, so later bytes differ; dropout draws other numbers,
            and batch normalization averages over parts.
        n_epochs: Passes over each rollout.
        sequence_length: Steps per training sequence, for policies with memory; it must divide `n_steps` and
            `batch_size`.
        learning_rate: Learning rate of Adam: a number, a schedule over training progress, or `kl_adaptive`.
        memory_lr_scale: Share of the learning rate used for recurrent memory and strategy encoder. Their many weights
            move together: at the full rate their output changes faster than the heads can follow.
        clip_range: Clip range of the probability ratio.
        clip_range_vf: Clip range of the value function; None switches clipping off.
        ent_coef: Weight of the entropy bonus.
        vf_coef: Weight of the value loss.
        gamma: Discount factor per step.
        gae_lambda: Lambda of generalized advantage estimation.
        normalize_advantage: Whether to normalize advantages per minibatch to mean 0 and standard deviation 1.
        target_kl: Stop an update when the KL divergence of a minibatch exceeds 1.5 times this; None never stops early.
        max_grad_norm: Maximum norm of the gradient.
        weight_decay: Decoupled weight decay (AdamW) on all parameters.
        adam_eps: Epsilon of Adam.
        betas: Betas of Adam.
        imitation: A scripted player to imitate beside PPO; None for none. Disables the compiled functions for plain MLP
            policies.
        stagger_episodes: Whether to cut off the first episodes at times spread over the world's step limit, so that
            rollouts hold all parts of episodes. Without it, games whose episodes are equally long stay in step.
        sde_sample_freq: Steps for which state-dependent exploration keeps its noise; None keeps it for a rollout.
        compile: Whether to compile the strategy encoder with `torch.compile`.
        native: Whether to use the compiled functions for plain MLP policies on the CPU.
        cuda_graphs: Whether to record the rollout step and the minibatch step as CUDA graphs on a CUDA device.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    removed_keys: ClassVar[Mapping[str, str]] = {
        "overlap": "learner.md#collecting-while-learning",
        "symmetry_augmentation": "learner.md#mirrored-experience",
    }

    n_steps: int = Field(default=512, ge=1, le=MAX_STEPS)
    batch_size: int = Field(default=256, ge=2, le=2**31)
    n_minibatches: int | None = Field(default=None, ge=1, le=10**6)
    n_accumulate: int = Field(default=1, ge=1, le=10**6)
    n_epochs: int = Field(default=10, ge=1, le=1_000)
    sequence_length: int = Field(default=16, ge=1, le=MAX_STEPS)
    learning_rate: LearningRateConfig = ConstantSchedule(level=3e-4)
    memory_lr_scale: float = Field(default=1.0, ge=0.0, le=1.0)
    clip_range: NonNegativeScheduleConfig = ConstantSchedule(level=0.2)
    clip_range_vf: NonNegativeScheduleConfig | None = None
    ent_coef: ScheduleConfig = ConstantSchedule(level=0.0)
    vf_coef: float = Field(default=0.5, ge=0.0, le=MAX_FACTOR)
    gamma: float = Field(default=0.99, ge=0.0, le=1.0)
    gae_lambda: float = Field(default=0.95, ge=0.0, le=1.0)
    normalize_advantage: bool = True
    target_kl: float | None = Field(default=None, gt=0.0)
    max_grad_norm: float = Field(default=0.5, gt=0.0)
    weight_decay: float = Field(default=0.0, ge=0.0)
    adam_eps: float = Field(default=1e-5, gt=0.0, le=1.0)
    betas: tuple[_Decay, _Decay] = (0.9, 0.999)
    imitation: ImitationConfig | None = None
    stagger_episodes: bool = False
    sde_sample_freq: int | None = Field(default=None, ge=1, le=MAX_STEPS)
    compile: bool = False
    native: bool = True
    cuda_graphs: bool = True

    def sequence_length_for(self, *, has_memory: bool) -> int:
        """Return the steps of a segment: 1 for a policy without memory, to which `sequence_length` does not matter."""
        if not has_memory:
            return 1
        for name, size in (("n_steps", self.n_steps), ("batch_size", self.batch_size)):
            if size % self.sequence_length:
                raise ConfigError(f"sequence_length {self.sequence_length} must divide {name} {size}; change either")
        return self.sequence_length

    def experiences(self, rows: int) -> int:
        """Return what is learned from in one epoch over a rollout of `rows` rows."""
        return self.n_steps * rows

    def sized(self, rows: int) -> "PpoConfig":
        """Return the settings with the `batch_size` for a rollout of `rows` rows; raise ConfigError if it is uneven."""
        total, count = self.experiences(rows), self.n_minibatches
        if count is None:
            self.minibatches(rows)
            return self
        if total % count or total == count:
            raise ConfigError(
                f"n_minibatches {count} must divide the rollout's {self.n_steps} steps x {rows} rows = "
                f"{total} experiences into equal parts of at least 2; change n_minibatches, n_steps or num_envs"
            )
        return self.model_copy(update={"batch_size": total // count, "n_minibatches": None})

    def minibatches(self, rows: int) -> int:
        """Return the minibatches of one epoch over a rollout of `rows` rows."""
        total = self.experiences(rows)
        if self.n_minibatches is not None:
            return self.sized(rows).minibatches(rows)
        if total % self.batch_size:
            raise ConfigError(
                f"batch_size {self.batch_size} must divide the rollout's {self.n_steps} steps x {rows} rows = "
                f"{total} experiences; change batch_size, n_steps or num_envs"
            )
        return total // self.batch_size
