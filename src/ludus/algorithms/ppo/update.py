"""The update: epochs of minibatches over one rollout."""

import logging
from collections.abc import Mapping
from functools import cache

import torch
from torch import Tensor, distributed

from ludus.algorithms.ppo.auxiliary import AuxiliaryLosses, AuxiliaryTotals
from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.loss import METRICS, Coefficients, normalise_advantages, ppo_loss
from ludus.algorithms.ppo.native_mlp import NativeMlp, Number, supports
from ludus.algorithms.ppo.optimizer import FlatAdam
from ludus.algorithms.ppo.recovery import RestorePoint, find_out_of_memory, more_parts
from ludus.core.schedules import KlAdaptiveConfig, KlAdaptiveRate
from ludus.policies.policy import Policy
from ludus.rollout.buffer import Minibatch, RolloutBuffer, Targets
from ludus.rollout.cuda_graphs import GraphedCall

logger = logging.getLogger(__name__)

UPDATE_METRICS = (*METRICS, "gradient_norm", "updates", "skipped_updates")
_KL_TOLERANCE = 1.5  # an update stops when its KL divergence is this many times the target
_APPROX_KL = METRICS.index("approx_kl")
_RATIO_ERROR = METRICS.index("ratio_error")
# Minibatches up to which an update is one CUDA graph: with small networks, starting each by itself takes the host
# longer than it takes the device, while large ones would only make a graph of many thousand kernels.
_MOST_IN_A_GRAPH = 64


class Updater:
    """Learns from rollouts; `native` holds the compiled functions, where they know the policy, for rollouts too.

    Nothing is read back to the host while it works, except on the CPU, where reading is free: metrics add up on the
    device, and an update that has reached its target KL continues with steps that do nothing.

    Attributes:
        parts: In how many parts a minibatch is worked through: `n_accumulate`, or more since the device ran out of
            memory.
    """

    def __init__(self, policy: Policy, config: PpoConfig) -> None:
        self.policy, self.config = policy, config
        self.optimiser = FlatAdam(policy, config)
        rate = config.learning_rate
        self._adaptive = KlAdaptiveRate(rate) if isinstance(rate, KlAdaptiveConfig) else None
        device = policy.device
        value_clip = torch.zeros((), device=device) if config.clip_range_vf is not None else None
        self._coefficients = Coefficients(
            self.optimiser.learning_rate, torch.zeros((), device=device), torch.zeros((), device=device), value_clip
        )
        self._filled: dict[Tensor, float] = {}  # the values of coefficients, which hash by identity
        self._sums = torch.zeros(len(UPDATE_METRICS), device=device)
        self._first_ratio_error = torch.zeros((), device=device)
        self._stopped = torch.zeros((), device=device)
        self.auxiliary = AuxiliaryLosses(policy, config)
        if config.compile:
            policy.use_compiler()
        self.parts = config.n_accumulate
        self.native = NativeMlp(policy, self.optimiser, config) if self._can_be_native() else None
        # On the CPU an allocation that cannot be satisfied ends the process, or is a plain RuntimeError.
        self._recovers = device.type == "cuda"
        self._restore_point = RestorePoint(policy, self.optimiser)
        # A graph cannot hold a reduction over processes.
        is_alone = not distributed.is_initialized()
        self._graphable = config.cuda_graphs and device.type == "cuda" and is_alone and policy.allows_cuda_graphs
        self._graph: GraphedCall | None = None
        self._measured: Tensor | None = None  # by the graph of the last update; None where no graph held all of it

    def _can_be_native(self) -> bool:
        if not self.config.native or not supports(self.policy):
            return False
        asked = {
            "policy.dropout": self.policy.config.dropout > 0.0,
            "ppo.n_accumulate": self.config.n_accumulate > 1,
            "ppo.imitation": self.config.imitation is not None,
        }
        for setting, is_set in asked.items():
            if is_set:
                _notice(f"{setting} is set, which the compiled functions for plain MLP policies cannot do: updates and "
                        "rollouts run in torch, a few times slower")  # fmt: skip
                return False
        return True

    def update(self, buffer: RolloutBuffer, progress: float, generator: torch.Generator) -> None:
        """Run all epochs over a finished rollout, in an order of segments drawn by `generator`; then ask `metrics`."""
        self._set_coefficients(progress)
        if self.native is not None:
            self._clear()
            self._native_epochs(self.native, buffer, generator)
            return
        if self._recovers:
            self._restore_point.keep(generator)
        while reason := self._try_epochs(buffer, generator):
            self._graph = None  # it holds memory, and minibatches of another form
            self._restore_point.restore(generator)
            segments = self.config.batch_size // buffer.sequence_length
            before, self.parts = self.parts, more_parts(self.parts, segments, reason)
            logger.warning(
                "[WARN] the device ran out of memory in an update (%s): parameters and optimizer go back to before it, "
                "and it is repeated with minibatches in %d parts instead of %d, which gives the same steps; in later "
                "runs set ppo.n_accumulate=%d", reason, self.parts, before, self.parts,
            )  # fmt: skip

    def _clear(self) -> None:
        self._sums.zero_()
        self.auxiliary.sums.zero_()
        self._stopped.zero_()

    def _try_epochs(self, buffer: RolloutBuffer, generator: torch.Generator) -> str:
        """Run all epochs; return what the device said if it ran out of memory, else nothing.

        It returns instead of raising because an exception keeps the tensors of the failed minibatch alive.
        """
        try:
            with self.policy.updating(generator):
                self._epochs(buffer, generator)
        except RuntimeError as error:
            found = find_out_of_memory(error)
            # Other processes would be waiting in the same minibatch.
            if found is None or not self._recovers or distributed.is_initialized():
                raise
            return (str(found).strip() or "out of memory").splitlines()[0]
        return ""

    def _epochs(self, buffer: RolloutBuffer, generator: torch.Generator) -> None:
        minibatches, self._measured = buffer.size // self.config.batch_size, None
        if self._graphable and self.config.n_epochs * minibatches <= _MOST_IN_A_GRAPH and not self.policy.is_compiled:
            self._replay(buffer, torch.stack([self._order(buffer, generator) for _ in range(self.config.n_epochs)]))
            return
        self._clear()
        first = True
        for _ in range(self.config.n_epochs):
            for segments in self._order(buffer, generator).chunk(minibatches):
                self._step(buffer, segments)
                if first:
                    self._first_ratio_error.copy_(self._sums[_RATIO_ERROR])
                    first = False
                if self.config.target_kl is not None and not self._stopped.is_cuda and self._stopped:
                    return

    def _order(self, buffer: RolloutBuffer, generator: torch.Generator) -> Tensor:
        """Draw the order in which an epoch goes through the segments."""
        return torch.randperm(buffer.segments, generator=generator, device=self.policy.device)

    def _replay(self, buffer: RolloutBuffer, orders: Tensor) -> None:
        """Run all epochs as one CUDA graph; `orders` is `(epochs, segments)`."""
        minibatches = buffer.size // self.config.batch_size

        def run(orders: Tensor) -> None:
            self._clear()
            for number, segments in enumerate(part for order in orders for part in order.chunk(minibatches)):
                self._minibatch_step(buffer, segments)
                if number == 0:
                    self._first_ratio_error.copy_(self._sums[_RATIO_ERROR])
            self._means.copy_(self._measure())

        def warm_up() -> None:
            self._minibatch_step(buffer, orders[0].chunk(minibatches)[0])
            self._measure()

        if self._graph is None:
            self._means = self._measure()
            self._graph = GraphedCall(run, orders, self._changed(), warm_up)
        self._graph(orders)
        self._measured = self._means

    def _native_epochs(self, native: NativeMlp, buffer: RolloutBuffer, generator: torch.Generator) -> None:
        coefficients, target_kl = self._coefficients, self.config.target_kl
        numbers = {
            Number.LEARNING_RATE: coefficients.learning_rate.item(),
            Number.CLIP: coefficients.clip.item(),
            Number.ENTROPY: coefficients.entropy.item(),
            Number.VALUE_CLIP: -1.0 if coefficients.value_clip is None else coefficients.value_clip.item(),
            Number.KL_LIMIT: -1.0 if target_kl is None else _KL_TOLERANCE * target_kl,
        }
        native.begin(buffer, self._sums, self._first_ratio_error, self._stopped)
        for _ in range(self.config.n_epochs):
            native.epoch(torch.randperm(buffer.segments, generator=generator), numbers)

    def _step(self, buffer: RolloutBuffer, segments: Tensor) -> None:
        """Step on a minibatch, by a CUDA graph where that is possible."""
        if not self._graphable:
            self._minibatch_step(buffer, segments)
            return
        if self._graph is None:
            self._graph = GraphedCall(lambda chosen: self._minibatch_step(buffer, chosen), segments, self._changed())
        self._graph(segments)

    def _changed(self) -> tuple[Tensor, ...]:
        """Return what a minibatch changes."""
        statistics = self.policy.network_buffers().values()
        return (*self.optimiser.tensors(), *statistics, self._sums, self.auxiliary.sums, self._stopped)

    def _minibatch_step(self, buffer: RolloutBuffer, segments: Tensor) -> None:
        self.optimiser.zero()
        metrics = self._whole_gradient(buffer, segments) if self.parts == 1 else self._sum_gradients(buffer, segments)
        self.optimiser.average_over_ranks()
        norm = self.optimiser.clip()
        self.optimiser.step(self._whether_to_skip(metrics, norm))
        self._sums += torch.cat((metrics, torch.stack((norm, 1.0 - self._skip, self._skip))))

    def _whole_gradient(self, buffer: RolloutBuffer, segments: Tensor) -> Tensor:
        """Add the gradient of a minibatch; return its metrics."""
        batch = buffer.minibatch(segments)
        targets = batch.targets
        if self.config.normalize_advantage:
            targets = targets._replace(advantages=normalise_advantages(targets.advantages))
        return self._add_gradient(batch, targets)

    def _sum_gradients(self, buffer: RolloutBuffer, segments: Tensor) -> Tensor:
        """Add the gradients of a minibatch's parts, each by its share; return the metrics of the whole.

        What is a mean over the minibatch must not become one over a part: advantages are normalised over the whole, and
        the auxiliary losses, whose means are over some frames alone, are divided by the number of those in the whole.
        """
        frames, count, first = buffer.frames_of(segments), segments.numel(), 0
        advantages = buffer.advantages.flatten()[frames]
        if self.config.normalize_advantage:
            advantages = normalise_advantages(advantages)
        totals = self.auxiliary.totals(buffer, frames)
        means, worst = torch.zeros_like(self._sums[: len(METRICS)]), torch.zeros_like(self._first_ratio_error)
        for part in segments.tensor_split(min(self.parts, count)):
            batch, share = buffer.minibatch(part), part.numel() / count
            targets = batch.targets._replace(advantages=advantages[:, first : first + part.numel()])
            metrics = self._add_gradient(batch, targets, share, totals)
            means, worst = means + share * metrics, torch.maximum(worst, metrics[_RATIO_ERROR])
            first += part.numel()
        means[_RATIO_ERROR] = worst
        return means

    def _add_gradient(
        self, batch: Minibatch, targets: Targets, share: float = 1.0, totals: AuxiliaryTotals | None = None
    ) -> Tensor:
        evaluation = self.policy.unroll(batch.observations, batch.memory, batch.episode_starts, batch.actions)
        loss, metrics = ppo_loss(evaluation, targets, self._coefficients, self.config.vf_coef)
        if totals is not None:
            loss = share * loss
        loss = self.auxiliary.add_to(loss, evaluation, batch, totals)
        loss.backward()  # type: ignore[no-untyped-call]
        return metrics

    def _whether_to_skip(self, metrics: Tensor, norm: Tensor) -> Tensor:
        if self.config.target_kl is not None:
            kl = metrics[_APPROX_KL].clone()
            if distributed.is_initialized():
                distributed.all_reduce(kl)
                kl /= distributed.get_world_size()
            self._stopped.copy_(torch.maximum(self._stopped, (kl > _KL_TOLERANCE * self.config.target_kl).float()))
        self._skip = torch.maximum(self._stopped, (~torch.isfinite(norm)).float())
        return self._skip

    def _set_coefficients(self, progress: float) -> None:
        rate = self.config.learning_rate
        level = rate.value(progress) if self._adaptive is None and not isinstance(rate, KlAdaptiveConfig) else None
        self._fill(self._coefficients.learning_rate, self._adaptive.rate if self._adaptive else level or 0.0)
        self._fill(self._coefficients.clip, self.config.clip_range.value(progress))
        self._fill(self._coefficients.entropy, self.config.ent_coef.value(progress))
        if self.config.imitation is not None:
            self._fill(self.auxiliary.imitation, self.config.imitation.coef.value(progress))
        if self._coefficients.value_clip is not None and self.config.clip_range_vf is not None:
            self._fill(self._coefficients.value_clip, self.config.clip_range_vf.value(progress))

    def _fill(self, coefficient: Tensor, value: float) -> None:
        """Set a coefficient unless it has the value: most are constant, and a kernel takes the host microseconds."""
        if self._filled.get(coefficient) != value:
            coefficient.fill_(value)
            self._filled[coefficient] = value

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Names of what `device_metrics` gives."""
        return (*UPDATE_METRICS, "learning_rate", *self.auxiliary.names)

    def device_metrics(self) -> Tensor:
        """Return the means over minibatches and ranks, the counts and the learning rate, on the device."""
        return self._measure() if self._measured is None else self._measured

    def _measure(self) -> Tensor:
        count = self._sums[len(METRICS) + 1] + self._sums[len(METRICS) + 2]
        means = self._sums / count.clamp(min=1.0)
        means[-2:] = self._sums[-2:]
        means[_RATIO_ERROR] = self._first_ratio_error
        means = torch.cat((means, self.auxiliary.sums / count.clamp(min=1.0)))
        if distributed.is_initialized():
            distributed.all_reduce(means)
            means /= distributed.get_world_size()
        known = len(UPDATE_METRICS)
        rate = self._coefficients.learning_rate.reshape(1)
        return torch.cat((means[:known], rate, self.auxiliary.metrics(means[known:])))

    def learn_from(self, metrics: Mapping[str, float]) -> None:
        """Let the KL-adaptive learning rate follow the metrics of the last update."""
        if self._adaptive is not None:
            self._adaptive.update(metrics["approx_kl"])

    @property
    def adaptive_rate(self) -> float | None:
        """The KL-adaptive learning rate, for a checkpoint; None for other schedules."""
        return self._adaptive.rate if self._adaptive else None

    def load_adaptive_rate(self, rate: float | None) -> None:
        """Restore the rate returned by `adaptive_rate()`."""
        if self._adaptive is not None and rate is not None:
            self._adaptive.load(rate)


@cache  # once per process: the checks before a run make several learners
def _notice(text: str) -> None:
    logger.warning("[WARN] %s", text)
