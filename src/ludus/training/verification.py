"""Start-up verification: everything that a run will do is done once in small, so that it fails in seconds or not."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager

import torch

from ludus.algorithms.ppo.mirroring import check_mirror
from ludus.core.errors import ConfigError, LudusError, VerificationError
from ludus.envs.base import BatchedEnv, EnvSpec
from ludus.envs.check.shape_checks import spec_faults
from ludus.envs.fitting import check_fits
from ludus.envs.registry import make_env
from ludus.training.config import TrainConfig
from ludus.training.devices import choose_device
from ludus.training.layouts import stage_label, stages_with_own_games
from ludus.training.memory_estimate import (
    GIB,
    MemoryEstimate,
    estimate_memory,
    learner_rows,
    memory_there,
    process_bytes,
)
from ludus.training.off_policy_checks import check_learning, check_replay, estimate_off_policy
from ludus.training.ranks import find_place
from ludus.training.small_run import (
    GAMES,
    check_checkpoint,
    check_gradients,
    check_rollout,
    check_update,
    has_memory,
    small_copy,
)
from ludus.training.stage_checks import check_evaluated_games, check_players
from ludus.training.steering import check_steering
from ludus.training.summary import settings_of, summarise
from ludus.training.workbench import Begun, Workbench

__all__ = ["summarise", "verify"]


def verify(config: TrainConfig) -> Iterator[str]:
    """Checks a run before it starts; of several processes the first one alone does.

    Yields:
        A line for each check that passed, as soon as it has.

    Raises:
        LudusError: A check failed; the message says which, why and what to do.
    """
    place = find_place()
    if place.rank > 0:
        return
    config = place.share(choose_device(config))
    with _checking("making the world", "mend the world or its settings"):
        env = _few_games(config.at_stage(0))
    with env:
        yield _check_world(env, config.at_stage(0))
        yield check_players(env, config)
        spec = env.spec
    check_evaluated_games(spec, config)
    check_steering(spec, config)
    estimates: dict[int, MemoryEstimate] = {}
    for stage in stages_with_own_games(config):
        estimates[stage] = yield from _check_games(config, stage, spec)
    largest = max(estimates.values(), key=lambda estimate: estimate.total)
    yield _check_memory(config, largest, place.count)


def _check_games(config: TrainConfig, stage: int, first: EnvSpec) -> Generator[str, None, MemoryEstimate]:
    """Checks everything that is done in the games of a stage, and returns the memory that they take.

    Args:
        config: Of the run, or of its part that is this process's.
        stage: The first one, or one with games of its own.
        first: What the world is in the first one.
    """
    spec, label = first, f"{stage_label(config, stage)}: " if stage else ""
    if stage:
        with _checking(f"making the world of {stage_label(config, stage)}", "mend the world or its settings"):
            env = _few_games(config.at_stage(stage))
        with env:
            spec = env.spec
            check_fits(first, spec, stage_label(config, stage))
            yield label + _check_world(env, config.at_stage(stage))
    yield label + _check_batch(spec, config, stage)
    is_ppo, activations = config.algorithm == "ppo", 0
    with _checking("making a small copy of the run", "change the settings that the error names"):
        bench = Workbench(small_copy(config, spec, stage), begun=Begun(stage))
    with bench:
        with _checking("a short rollout", "mend the world, the reward terms or the settings that the error names"):
            yield label + check_rollout(bench)
        if is_ppo:
            with _checking("a forward and backward pass", "change the policy's settings"):
                line, activations = check_gradients(bench)
                yield label + line
        with _checking("an update", f"change the settings of {settings_of(config)}"):
            yield label + (check_update(bench) if is_ppo else check_learning(bench))
        with _checking("saving and loading the agent", "free some space or mend the disk"):
            yield label + check_checkpoint(bench)
        return estimate_memory(config, bench, activations) if is_ppo else estimate_off_policy(config, bench)


@contextmanager
def _checking(what: str, advice: str) -> Iterator[None]:
    """Makes a typed error of anything that goes wrong; one that is typed already says enough."""
    try:
        yield
    except LudusError:
        raise
    except Exception as error:  # whatever a world, a reward term or the device raises is what was looked for
        raise VerificationError(f"{what} failed: {type(error).__name__}: {error}; {advice}") from error


def _few_games(config: TrainConfig) -> BatchedEnv:
    world = config.world
    return make_env(
        world.name, min(GAMES, world.num_games), world.device, seed=config.seed, config=world.settings or None
    )


def _check_world(env: BatchedEnv, config: TrainConfig) -> str:
    spec, asked = env.spec, config.world.num_games
    if spec.max_games is not None and asked > spec.max_games:
        raise ConfigError(f"world.num_games is {asked}, {spec.id} plays at most {spec.max_games}; use fewer games")
    faults = list(spec_faults(spec))
    with _checking(f"starting games of {spec.id}", "mend the world"):
        observations = env.reset()
    expected = {
        name: (env.num_games, spec.seats, *(space.shape or ())) for name, space in spec.observation_space.items()
    }
    got = {name: tuple(tensor.shape) for name, tensor in observations.items()}
    if got != expected:
        faults.append(f"observations are {got}, their spaces say {expected}")
    faults += [f"observation {name!r} is not finite" for name, tensor in observations.items()
               if tensor.is_floating_point() and not bool(tensor.isfinite().all())]  # fmt: skip
    if faults:
        raise VerificationError(f"{spec.id} breaks the contract: {'; '.join(faults)}; mend the world")
    entries = ", ".join(f"{name} {shape[2:]}" for name, shape in expected.items())
    seats = f"{spec.seats} seat{'s' if spec.seats > 1 else ''}"
    return f"world: {spec.id} on {env.device}, {seats}, sees {entries}, acts by {spec.action_space}"


def _check_batch(spec: EnvSpec, config: TrainConfig, stage: int) -> str:
    if config.algorithm != "ppo":
        return check_replay(spec, config)
    rows = learner_rows(config, spec, stage)
    if config.ppo.mirror:
        check_mirror(spec, has_memory=has_memory(config))
    ppo = config.ppo.sized(rows)
    ppo.chunk_for(has_memory=has_memory(config))
    minibatches = ppo.minibatches(rows)
    mirrored = " and their mirror images" if ppo.mirror else ""
    return (
        f"batch: {ppo.steps} steps x {rows:,} rows{mirrored} are {minibatches} minibatches of {ppo.batch_size:,}, "
        f"learned from {ppo.epochs} times"
    )


def _check_memory(config: TrainConfig, estimate: MemoryEstimate, processes: int) -> str:
    device = torch.device(config.world.device)
    advice = "or a smaller replay buffer (off_policy.buffer_size)"
    if config.algorithm == "ppo":
        advice = ("shorter rollouts (ppo.steps), smaller minibatches (ppo.batch_size) or fewer snapshots "
                  "(league.keep)")  # fmt: skip
    own = process_bytes(device)
    needed = (estimate.total + own) * (processes if device.type == "cpu" else 1)
    there, whose = memory_there(device, config.guard.memory_gib)
    parts = f"{estimate}{f', this process now {own / GIB:.2f} GiB' if own else ''}"
    if needed > there:
        raise VerificationError(
            f"the run needs about {needed / GIB:.2f} GiB and there are {there / GIB:.2f} GiB {whose} ({parts}); use "
            f"fewer games (world.num_games), {advice}"
        )
    return f"memory: about {needed / GIB:.2f} GiB of the {there / GIB:.2f} GiB {whose} ({parts})"
