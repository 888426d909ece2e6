"""A small copy of a run, in which everything is done once that the run will do: collect, learn, save and load."""

import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

import torch

from ludus.algorithms.ppo.loss import Coefficients, normalise_advantages, ppo_loss
from ludus.core.errors import VerificationError
from ludus.curriculum.config import StageConfig
from ludus.envs.base import EnvSpec
from ludus.league.payoffs import SELF_KIND
from ludus.policies.agent import Agent, agent_checkpoint
from ludus.policies.config import PolicyConfig
from ludus.store import save_checkpoint
from ludus.training.config import TrainConfig
from ludus.training.guard import Guard
from ludus.training.memory_estimate import counting_saved, learner_rows
from ludus.training.off_policy_checks import small_off_policy
from ludus.training.workbench import Workbench

GAMES, STEPS = 4, 8
_SNAPSHOT = "verification"


def has_memory(config: TrainConfig) -> bool:
    """Says whether the policy will remember anything from step to step."""
    return config.policy.strategy is not None or config.policy.recurrent is not None


def small_copy(config: TrainConfig, spec: EnvSpec, stage: int = 0) -> TrainConfig:
    """Returns the same run with few games and one short minibatch; it is not compiled, which alone takes minutes.

    Args:
        config: Of the run.
        spec: The world of the stage that is played.
        stage: Which one.
    """
    world = config.world.model_copy(update={"num_games": min(GAMES, config.world.num_games)})
    small = config.model_copy(
        update={
            "world": world,
            "league": config.league.model_copy(update={"keep": 2, "exploiter": None}),
            "curriculum": tuple(map(_small_stage, config.curriculum)),
        }
    )
    if config.algorithm != "ppo":
        return small.model_copy(update={"off_policy": small_off_policy(config, learner_rows(small, spec), STEPS)})
    chunk = min(STEPS, config.ppo.chunk) if has_memory(config) else 1
    steps = min(STEPS // chunk * chunk, config.ppo.steps)
    ppo = config.ppo.model_copy(update={"steps": steps, "chunk": chunk, "epochs": 1, "compile": False})
    whole = ppo.experiences(learner_rows(small, spec, stage))
    policy = _predicting_within(small.policy, chunk) if chunk < config.ppo.chunk else small.policy
    ppo = ppo.model_copy(update={"batch_size": whole, "minibatch_count": None})
    return small.model_copy(update={"ppo": ppo, "policy": policy})


def _small_stage(stage: StageConfig) -> StageConfig:
    if stage.world is None or stage.world.num_games is None:
        return stage
    games = min(GAMES, stage.world.num_games)
    return stage.model_copy(update={"world": stage.world.model_copy(update={"num_games": games})})


def _predicting_within(policy: PolicyConfig, chunk: int) -> PolicyConfig:
    """Returns the settings with an opponent that is predicted no further ahead than shorter segments reach."""
    if policy.strategy is None or policy.strategy.predict == 0.0:
        return policy
    ahead = min(policy.strategy.predict_ahead, max(chunk - 1, 1))
    return policy.model_copy(update={"strategy": policy.strategy.model_copy(update={"predict_ahead": ahead})})


def check_rollout(bench: Workbench) -> str:
    """Collects against the bots, and against a past self if there will be any.

    Raises:
        VerificationError: A number is not finite.
    """
    bench.learner.collect()
    opponents, against = bench.opponents, ""
    if opponents is not None and opponents.pool is not None:
        opponents.add_snapshot(_SNAPSHOT, 0, bench.policy.state())
        opponents.set_mix({SELF_KIND: 1.0})
        opponents.restart()
        bench.learner.collect()
        against = ", one more against a past self"
    rollout = bench.learner.rollout
    seen = {f"observation {name!r}": tensor for name, tensor in rollout.observations.items()}
    seen |= {"reward": rollout.rewards}
    seen |= {f"{kind} ({place})": tensor for kind, place, tensor in bench.learner.outputs()}
    wrong = [name for name, tensor in seen.items() if not bool(tensor.isfinite().all())]
    if wrong:
        raise VerificationError(
            f"the first rollout has numbers that are not finite, first in the {wrong[0]}; mend the world or the "
            f"reward terms: {', '.join(bench.rewards.names)}"
        )
    bench.trace.read()
    total = sum(bench.trace.totals().values())
    return f"rollout: {rollout.steps} steps x {rollout.rows} rows, reward {total:.3g}{against}"


def check_gradients(bench: Workbench) -> tuple[str, int]:
    """Goes forward and backward over the whole rollout at once; also returns the bytes that autograd kept for it.

    Raises:
        VerificationError: A parameter gets no gradient or one that is not finite.
    """
    policy, config, buffer = bench.policy, bench.ppo.config, bench.ppo.rollout
    batch = buffer.minibatch(torch.arange(buffer.segments, device=policy.device))
    targets = batch.targets._replace(advantages=normalise_advantages(batch.targets.advantages))
    rate, clip, entropy = (torch.full((), level, device=policy.device) for level in (0.0, 0.2, 0.01))
    parameters = dict(policy.named_parameters())
    with counting_saved(parameters.values()) as saved:
        evaluation = policy.unroll(batch.observations, batch.memory, batch.starts, batch.actions)
        loss, _ = ppo_loss(evaluation, targets, Coefficients(rate, clip, entropy, None), max(config.value, 0.01))
        loss = bench.ppo.updater.auxiliary.add_to(loss, evaluation, batch)
    found = torch.autograd.grad(loss, tuple(parameters.values()), allow_unused=True)
    gradients = dict(zip(parameters, found, strict=True))
    _refuse(gradients, "get no gradient", [name for name, gradient in gradients.items() if gradient is None])
    finite = {name: bool(gradient.isfinite().all()) for name, gradient in gradients.items()}
    _refuse(
        gradients, "get a gradient that is not finite", [name for name, is_finite in finite.items() if not is_finite]
    )
    norm = float(torch.stack([gradient.float().norm() for gradient in gradients.values()]).norm())
    if norm == 0.0:
        raise VerificationError("the gradient is 0 everywhere, so nothing would be learned; look at the reward terms")
    count = sum(parameter.numel() for parameter in parameters.values())
    line = f"gradients: finite in all {len(gradients)} parameters ({count:,} numbers), length {norm:.3g}"
    return line, 0 if bench.ppo.updater.native is not None else saved[0]


def check_update(bench: Workbench) -> str:
    """Learns from the rollout as the run will, and looks for numbers that are not finite.

    Raises:
        VerificationError: There is one.
    """
    guard = Guard(bench)
    guard.begin()
    bench.learner.update()
    guard.look()
    metrics = bench.learner.metrics()
    fault = guard.verdict(metrics)
    if fault is not None:
        raise VerificationError(f"a number is not finite: it began in the {fault}; mend the world or the rewards")
    return f"update: policy loss {metrics['policy_loss']:.3g}, value loss {metrics['value_loss']:.3g}"


def check_checkpoint(bench: Workbench) -> str:
    """Saves the agent to a temporary folder, loads it and compares.

    Raises:
        VerificationError: It came back different.
        LudusError: It could not be saved or loaded.
    """
    policy, state = bench.policy, bench.policy.state()
    with tempfile.TemporaryDirectory(prefix="ludus-verify-") as folder:
        save_checkpoint(Path(folder) / "agent", agent_checkpoint(policy.spec, policy.config, state))
        size = sum(file.stat().st_size for file in (Path(folder) / "agent").iterdir())
        loaded = Agent.load(Path(folder) / "agent", policy.device).policy.state()
    wrong = sorted(set(state) ^ set(loaded) or {name for name in state if not torch.equal(state[name], loaded[name])})
    if wrong:
        raise VerificationError(
            f"a saved agent came back with other numbers in {', '.join(wrong[:5])}; check the disk and the memory"
        )
    return f"checkpoint: {size / 1024.0**2:.2f} MiB saved, verified and loaded back equal"


def _refuse(parameters: Collection[str], fault: str, names: Sequence[str]) -> None:
    if names:
        raise VerificationError(
            f"{len(names)} of {len(parameters)} parameters {fault}: {', '.join(names[:5])}; change the policy's "
            "settings, or mend the observations and rewards"
        )
