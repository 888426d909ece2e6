"""PPO as the training loop sees it: its learner, its checks before a run, and what they say."""

import logging
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor

from ludus.algorithms.algorithm import (
    Algorithm,
    DryRun,
    LearnerMemory,
    LearnerParts,
    Timing,
    register_algorithm,
    tensor_bytes,
)
from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.learner import PpoLearner
from ludus.algorithms.ppo.loss import Coefficients, normalise_advantages, ppo_loss
from ludus.core.errors import ConfigError, UnknownNameError, VerificationError
from ludus.core.schedules import describe_schedule
from ludus.envs.base import EnvSpec
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import NETWORK

logger = logging.getLogger(__name__)


@register_algorithm("ppo")
class Ppo(Algorithm[PpoConfig, PpoLearner]):
    """Proximal policy optimization, for any action space, with recurrent policies and opponents."""

    config = PpoConfig
    features = frozenset({"opponents", "curriculum", "adaptive_curriculum", "distributed"})
    memory_advice = (
        "shorter rollouts (ppo.n_steps), smaller minibatches (ppo.batch_size) or fewer snapshots (league.keep)"
    )

    def make_learner(self, settings: PpoConfig, parts: LearnerParts) -> PpoLearner:
        """Make the learner and start its games."""
        return PpoLearner(
            parts.env,
            parts.policy,
            settings,
            seed=parts.seed,
            reward=parts.reward,
            learner=parts.learner,
            opponents=parts.opponents,
        )

    def rollout_steps(self, settings: PpoConfig) -> int:
        """Return the steps of every row in a rollout."""
        return settings.n_steps

    def update_passes(self, settings: PpoConfig, rows: int) -> float:
        """Return the epochs of an update."""
        return float(settings.n_epochs)

    def check(self, settings: PpoConfig, policy: PolicyConfig, spec: EnvSpec, rows: int) -> str:
        """Describe the minibatches of a rollout; raise ConfigError if they are uneven."""
        if settings.imitation is not None and settings.imitation.bot not in spec.bots:
            raise UnknownNameError(
                f"bot of {spec.id} to imitate (ppo.imitation.bot)", settings.imitation.bot, spec.bots
            )
        ppo = settings.sized(rows)
        segments = ppo.batch_size // ppo.sequence_length_for(has_memory=policy.has_memory)
        if ppo.n_accumulate > segments:
            raise ConfigError(
                f"ppo.n_accumulate is {ppo.n_accumulate}, but a minibatch has {segments} segments; use at most so many"
            )
        parts = f", each in {ppo.n_accumulate} parts" if ppo.n_accumulate > 1 else ""
        return (
            f"batch: {ppo.n_steps} steps x {rows:,} rows are {ppo.minibatches(rows)} minibatches of "
            f"{ppo.batch_size:,}{parts}, learned from {ppo.n_epochs} times"
        )

    def summary(self, settings: PpoConfig, rows: int) -> str:
        """Describe rollout, minibatches and learning rate in a line."""
        ppo = settings.sized(rows)
        return (
            f"rollout {ppo.n_steps} steps x {rows:,} rows = {ppo.n_steps * rows:,} env steps, "
            f"minibatches of {ppo.batch_size:,}, {ppo.n_epochs} epochs, "
            f"learning rate {describe_schedule(ppo.learning_rate)}"
        )

    def shrink(
        self, settings: PpoConfig, policy: PolicyConfig, rows: int, steps: int
    ) -> tuple[PpoConfig, PolicyConfig]:
        """Return the settings of a copy with one short minibatch, from which it learns at once.

        It is not compiled, which alone takes minutes.
        """
        length = min(steps, settings.sequence_length) if policy.has_memory else 1
        shorter = {"n_steps": min(steps // length * length, settings.n_steps), "sequence_length": length}
        small = settings.model_copy(update=shorter | {"n_epochs": 1, "compile": False, "n_minibatches": None})
        return small.model_copy(update={"batch_size": small.experiences(rows)}), policy

    def fit(self, settings: PpoConfig, policy: PolicyConfig, rows: int) -> PpoConfig:
        """Return settings with as many minibatches as asked for, or as many of them as divide the rollout evenly."""
        total = settings.experiences(rows)
        if settings.n_minibatches is None and total % settings.batch_size == 0:
            return settings
        asked = settings.n_minibatches or max(total // settings.batch_size, 1)
        count = math.gcd(total // settings.sequence_length if policy.has_memory else total, asked)
        return settings.model_copy(update={"n_minibatches": count if count < total else 1})

    def share(self, settings: PpoConfig, processes: int) -> PpoConfig:
        """Return the settings with one process's part of a minibatch; raise ConfigError if that is not possible."""
        if settings.n_minibatches is not None:  # the size of a minibatch follows from the rows of a process
            return settings
        if settings.batch_size % processes:
            raise ConfigError(
                f"ppo.batch_size {settings.batch_size} cannot be divided evenly among {processes} processes; use a "
                f"multiple of {processes}, or another number of processes"
            )
        return settings.model_copy(update={"batch_size": settings.batch_size // processes})

    def dry_run(self, learner: PpoLearner) -> DryRun:
        """Go forward and backward over the whole rollout; raise VerificationError unless all gradients are finite."""
        policy, buffer = learner.policy, learner.rollout
        batch = buffer.minibatch(torch.arange(buffer.segments, device=policy.device))
        targets = batch.targets._replace(advantages=normalise_advantages(batch.targets.advantages))
        rate, clip, entropy = (torch.full((), level, device=policy.device) for level in (0.0, 0.2, 0.01))
        parameters = {name: tensor for name, tensor in policy.named_parameters() if tensor.requires_grad}
        with _counting_saved(parameters.values()) as saved:
            evaluation = policy.unroll(batch.observations, batch.memory, batch.episode_starts, batch.actions)
            weight = max(learner.config.vf_coef, 0.01)
            loss, _ = ppo_loss(evaluation, targets, Coefficients(rate, clip, entropy, None), weight)
            loss = learner.updater.auxiliary.add_to(loss, evaluation, batch)
        found = torch.autograd.grad(loss, tuple(parameters.values()), allow_unused=True)
        gradients: dict[str, Tensor | None] = dict(zip(parameters, found, strict=True))
        # Layers of a user's own network that its forward does not use do no harm.
        unused = [name for name, slope in gradients.items() if slope is None and name.startswith(f"{NETWORK}.")]
        if unused:
            logger.warning("[WARN] %s: %d parameters get no gradient: %s", policy.network, len(unused), unused[:5])
        norm = _check_gradients({name: gradient for name, gradient in gradients.items() if name not in unused})
        count = sum(parameter.numel() for parameter in parameters.values())
        line = f"gradients: finite in all {len(parameters)} parameters ({count:,} numbers), length {norm:.3g}"
        lines = (line,) if policy.network is None else (policy.network.describe(), line)
        return DryRun(lines, 0 if learner.updater.native is not None else saved[0])

    def memory(self, settings: PpoConfig, learner: PpoLearner, rows: int, dry_run: DryRun) -> LearnerMemory:
        """Scale the copy's buffer, optimiser and activations to the full run."""
        ppo, buffer, policy = settings.sized(rows), learner.rollout, learner.policy
        frames, small_frames = ppo.n_steps * rows, buffer.steps * buffer.rows
        memory = tensor_bytes(*policy.initial(1).values())
        rollout = buffer.recorded_bytes() * frames // small_frames + frames // ppo.sequence_length * memory
        parameters = tensor_bytes(*policy.state().values())
        optimiser = tensor_bytes(*learner.updater.optimiser.state().values())
        minibatch = -(-ppo.batch_size // ppo.n_accumulate)  # the part of it that is worked through at once
        activations = dry_run.activation_bytes * minibatch // small_frames
        copies = 2 if policy.device.type == "cuda" else 1
        parts = {
            # One for the gradient; a GPU holds both once more, to go back to if it runs out of memory in an update.
            "parameters and optimiser": copies * (parameters + optimiser) + parameters,
            "rollout": rollout,
            "memories": rows * memory,
            "minibatch": activations + rollout * minibatch // frames,
        }
        return LearnerMemory(parts, parameters + optimiser + rows * memory)

    def seconds_per_env_step(self, settings: PpoConfig, timing: Timing) -> float:
        """Return the time per env step; the copy learns from its rollout once."""
        return timing.collect_s / timing.env_steps + timing.update_s / timing.env_steps * settings.n_epochs


def _check_gradients(gradients: Mapping[str, Tensor | None]) -> float:
    """Return the length of the whole gradient, or raise VerificationError if nothing could be learned by it."""
    found = {name: gradient for name, gradient in gradients.items() if gradient is not None}
    missing = [name for name in gradients if name not in found]
    wrong = [name for name, gradient in found.items() if not bool(gradient.isfinite().all())]
    for fault, names in (("get no gradient", missing), ("get a gradient with NaN or Inf", wrong)):
        if names:
            raise VerificationError(
                f"{len(names)} of {len(gradients)} parameters {fault}: {', '.join(names[:5])}; change the policy's "
                "settings, or fix the observations and rewards"
            )
    norm = float(torch.stack([gradient.float().norm() for gradient in found.values()]).norm())
    if norm == 0.0:
        raise VerificationError("the gradient is 0 everywhere, so nothing would be learned; look at the reward terms")
    return norm


@contextmanager
def _counting_saved(parameters: Iterable[Tensor]) -> Iterator[list[int]]:
    """Yield a list with the number of bytes that autograd keeps for the backward pass, without the parameters."""
    count = [0]
    known = {parameter.untyped_storage().data_ptr() for parameter in parameters}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            known.add(storage.data_ptr())
            count[0] += storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        yield count
