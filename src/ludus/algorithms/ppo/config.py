"""The settings of PPO."""

from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from ludus.core.errors import ConfigError
from ludus.core.schedules import (
    MAX_FACTOR,
    MAX_STEPS,
    ConstantSchedule,
    LearningRateConfig,
    NonNegativeScheduleConfig,
    ScheduleConfig,
)

_Decay: TypeAlias = Annotated[float, Field(ge=0.0, lt=1.0)]


class PpoConfig(BaseModel):
    """How much is collected, and how it is learned from.

    Attributes:
        n_steps: Steps of every row in a rollout.
        batch_size: Experiences in a minibatch; it divides those of a rollout: `n_steps * rows`, or twice as many with
            `symmetry_augmentation`, whose images are counted too.
        n_minibatches: Minibatches of an epoch, in the place of `batch_size`: for a run whose phases have different
            numbers of rows; None takes `batch_size`.
        n_accumulate: Parts in which every minibatch is worked through, whose gradients add up: the same steps with less
            memory, and no compiled functions for plain MLP policies. Larger numbers are used by themselves when a GPU
            runs out of memory in an update. It may change when a run is resumed. Order and content of the minibatches
            then stay exactly the same, and every step is the same but for the rounding of sums, so later bytes differ;
            dropout draws other masks, and batch normalisation averages over parts.
        n_epochs: Passes over a rollout.
        sequence_length: Steps of a contiguous segment, for policies with memory; it divides `n_steps` and
            `batch_size`.
        learning_rate: Rate of Adam: a number, a schedule over training progress, or `kl_adaptive`.
        memory_lr_scale: Share of the learning rate that recurrent memory and strategy encoder learn with. Their many
            weights move together: at the full rate what they tell the heads changes faster than the heads can follow.
        clip_range: How far the probability ratio may go from 1 before its gradient stops.
        clip_range_vf: How far a value may go from its old one before its gradient stops; None switches it off.
        ent_coef: Weight of the entropy bonus.
        vf_coef: Weight of the value loss.
        gamma: Discount a step.
        gae_lambda: Decay of the advantage estimate a step.
        normalize_advantage: Whether each minibatch's advantages are shifted to mean 0 and scaled to deviation 1.
        target_kl: Stops an update when a minibatch's KL divergence exceeds 1.5 times this; None switches it off.
        max_grad_norm: Longer gradients are scaled down to this length.
        weight_decay: Decoupled weight decay (AdamW) on all parameters.
        adam_eps: Epsilon of Adam.
        betas: Decay rates of Adam's two averages.
        symmetry_augmentation: Whether every experience is also learned from as its mirror image, in a world that has
            a mirror; env steps count only what was really played.
        sde_sample_freq: Steps over which state-dependent exploration keeps its noise; None keeps it for a rollout.
        compile: Whether `torch.compile` takes the strategy encoder.
        native: Whether plain MLP policies on the CPU are learned by the compiled functions.
        cuda_graphs: Whether the rollout step and the minibatch step become CUDA graphs on a CUDA device.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

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
    symmetry_augmentation: bool = False
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
        """Return what is learned from in one epoch over a rollout of `rows` rows: its steps, and mirror images."""
        return self.n_steps * rows * (2 if self.symmetry_augmentation else 1)

    def sized(self, rows: int) -> "PpoConfig":
        """Return the settings with the `batch_size` for a rollout of `rows` rows; raise ConfigError if it is uneven."""
        total, count = self.experiences(rows), self.n_minibatches
        if count is None:
            self.minibatches(rows)
            return self
        if total % count or total == count:
            raise ConfigError(
                f"n_minibatches {count} must divide the rollout's {self._rollout(rows)} = {total} experiences into "
                "equal parts of at least 2; change n_minibatches, n_steps or num_envs"
            )
        return self.model_copy(update={"batch_size": total // count, "n_minibatches": None})

    def minibatches(self, rows: int) -> int:
        """Return the minibatches of one epoch over a rollout of `rows` rows."""
        total = self.experiences(rows)
        if self.n_minibatches is not None:
            return self.sized(rows).minibatches(rows)
        if total % self.batch_size:
            raise ConfigError(
                f"batch_size {self.batch_size} must divide the rollout's {self._rollout(rows)} = "
                f"{total} experiences; change batch_size, n_steps or num_envs"
            )
        return total // self.batch_size

    def _rollout(self, rows: int) -> str:
        return f"{self.n_steps} steps x {rows} rows{' x 2 (mirrored)' if self.symmetry_augmentation else ''}"
