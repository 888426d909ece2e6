"""The settings of PPO."""

from pydantic import BaseModel, ConfigDict, Field

from ludus.core.errors import ConfigError
from ludus.core.schedules import ConstantSchedule, LearningRateConfig, ScheduleConfig


class PpoConfig(BaseModel):
    """How much is collected, and how it is learned from.

    Attributes:
        steps: Steps of every row in a rollout.
        batch_size: Experiences in a minibatch; it divides those of a rollout: `steps * rows`, or twice as many with
            `mirror`, whose images are counted too.
        minibatch_count: Minibatches of an epoch, in the place of `batch_size`: for a run whose stages have different
            numbers of rows; None takes `batch_size`.
        epochs: Passes over a rollout.
        chunk: Steps of a contiguous segment, for policies with memory; it divides `steps` and `batch_size`.
        learning_rate: Rate of Adam: a number, a schedule over training progress, or `kl_adaptive`.
        memory_rate: Share of the learning rate that recurrent memory and strategy encoder learn with. Their many
            weights move together: at the full rate what they tell the heads changes faster than the heads can follow.
        clip: How far the probability ratio may go from 1 before its gradient stops.
        value_clip: How far a value may go from its old one before its gradient stops; None switches it off.
        entropy: Weight of the entropy bonus.
        value: Weight of the value loss.
        gamma: Discount a step.
        gae_lambda: Decay of the advantage estimate a step.
        normalise_advantages: Whether each minibatch's advantages are shifted to mean 0 and scaled to deviation 1.
        target_kl: Stops an update when a minibatch's KL divergence exceeds 1.5 times this; None switches it off.
        max_gradient_norm: Longer gradients are scaled down to this length.
        weight_decay: Decoupled weight decay (AdamW) on all parameters.
        adam_epsilon: Epsilon of Adam.
        betas: Decay rates of Adam's two averages.
        mirror: Whether every experience is also learned from as its mirror image, in a world that has a mirror; env
            steps count what was really played alone.
        hold_noise_steps: Steps over which state-dependent exploration keeps its noise; None keeps it for a rollout.
        compile: Whether `torch.compile` takes the strategy encoder.
        native: Whether plain MLP policies on the CPU are learned by the compiled functions.
        cuda_graphs: Whether the rollout step and the minibatch step become CUDA graphs on a CUDA device.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: int = Field(default=512, ge=1)
    batch_size: int = Field(default=256, ge=2)
    minibatch_count: int | None = Field(default=None, ge=1)
    epochs: int = Field(default=10, ge=1)
    chunk: int = Field(default=16, ge=1)
    learning_rate: LearningRateConfig = ConstantSchedule(level=3e-4)
    memory_rate: float = Field(default=1.0, ge=0.0)
    clip: ScheduleConfig = ConstantSchedule(level=0.2)
    value_clip: ScheduleConfig | None = None
    entropy: ScheduleConfig = ConstantSchedule(level=0.0)
    value: float = Field(default=0.5, ge=0.0)
    gamma: float = Field(default=0.99, ge=0.0, le=1.0)
    gae_lambda: float = Field(default=0.95, ge=0.0, le=1.0)
    normalise_advantages: bool = True
    target_kl: float | None = Field(default=None, gt=0.0)
    max_gradient_norm: float = Field(default=0.5, gt=0.0)
    weight_decay: float = Field(default=0.0, ge=0.0)
    adam_epsilon: float = Field(default=1e-5, gt=0.0)
    betas: tuple[float, float] = (0.9, 0.999)
    mirror: bool = False
    hold_noise_steps: int | None = Field(default=None, ge=1)
    compile: bool = False
    native: bool = True
    cuda_graphs: bool = True

    def chunk_for(self, *, has_memory: bool) -> int:
        """Returns the steps of a segment: 1 for a policy without memory, to which `chunk` does not matter."""
        if not has_memory:
            return 1
        for name, size in (("steps", self.steps), ("batch_size", self.batch_size)):
            if size % self.chunk:
                raise ConfigError(f"chunk {self.chunk} must divide {name} {size}; change either")
        return self.chunk

    def experiences(self, rows: int) -> int:
        """Returns what is learned from in one epoch over a rollout of `rows` rows: its steps, and mirror images."""
        return self.steps * rows * (2 if self.mirror else 1)

    def sized(self, rows: int) -> "PpoConfig":
        """Returns the settings with the `batch_size` that a rollout of `rows` rows is learned from with.

        Raises:
            ConfigError: Its experiences cannot be divided evenly.
        """
        total, count = self.experiences(rows), self.minibatch_count
        if count is None:
            self.minibatches(rows)
            return self
        if total % count or total == count:
            raise ConfigError(
                f"minibatch_count {count} must divide the rollout's {self._rollout(rows)} = {total} experiences into "
                "equal parts of at least 2; change minibatch_count, steps or the number of games"
            )
        return self.model_copy(update={"batch_size": total // count, "minibatch_count": None})

    def minibatches(self, rows: int) -> int:
        """Returns the minibatches of one epoch over a rollout of `rows` rows."""
        total = self.experiences(rows)
        if self.minibatch_count is not None:
            return self.sized(rows).minibatches(rows)
        if total % self.batch_size:
            raise ConfigError(
                f"batch_size {self.batch_size} must divide the rollout's {self._rollout(rows)} = "
                f"{total} experiences; change batch_size, steps or the number of games"
            )
        return total // self.batch_size

    def _rollout(self, rows: int) -> str:
        return f"{self.steps} steps x {rows} rows{' x 2 (mirrored)' if self.mirror else ''}"
