"""What a run is, in a few lines for people: who, where, what plays, what learns, how long."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import torch

from ludus.envs.base import EnvSpec
from ludus.envs.registry import make_env
from ludus.envs.world_parts import choose_scenarios
from ludus.policies.policy import Policy
from ludus.training.config import TrainConfig
from ludus.training.resolve import (
    ResolvedRun,
    describe_precision,
    learner_rows,
    phases_with_own_games,
    resolve,
    set_up_device,
)


def summarise(run: TrainConfig | ResolvedRun, folder: Path | None, user: str, *, brief: bool = False) -> Iterator[str]:
    """Yield lines that say what a run is, if brief the most important ones; of several processes only on the first."""
    resolved = resolve(run)
    if not resolved.is_writer:
        return
    config = resolved.whole
    specs = {phase: _spec(config.at_phase(phase)) for phase in phases_with_own_games(config)}
    world, spec = config.at_phase(0).world, specs[0]
    rows = learner_rows(config, spec)
    place = f"run folder {folder if folder is not None else 'not made yet'}"
    if brief:
        learned = f"{config.algorithm}, policy {_policy(config)}"
        yield f"{world.num_envs:,} games of {spec.id} on {_where(resolved)}; {learned}"
        yield f"{config.total_env_steps:,} env steps, seed {config.seed}; {_evaluation(config, spec)}"
        yield place + (f", user {user}" if user else "")
        return
    yield f"user {user or 'not named'}, {place}"
    device = config.learner_device
    precision = describe_precision(device, bfloat16=config.policy.bfloat16)
    yield f"device {device} ({set_up_device(device)}), precision {precision}"
    if config.world.device != device or resolved.placement:
        yield f"games on {_where(resolved)}"
    yield f"{world.num_envs:,} games of {spec.id}, seats in each {spec.seats}, the learner plays {rows:,} of all"
    yield f"policy {_policy(config)}, {_parameter_count(spec, config):,} parameters"
    yield config.method.summary(config.hyperparameters, rows)
    yield f"budget {config.total_env_steps:,} env steps, seed {config.seed}, {_checkpoints(config)}"
    yield _evaluation(config, spec)
    yield from _opponents(config, specs)


def _where(run: ResolvedRun) -> str:
    games, learner = run.whole.world.device, run.whole.learner_device
    apart = f", policy and learner on {learner}" if games != learner else ""
    return f"{games}{apart}{f' ({run.placement})' if run.placement else ''}"


def _policy(config: TrainConfig) -> str:
    policy = config.policy
    parts = [f"network {policy.module}"] if policy.module is not None else []
    parts += ["strategy encoder"] if policy.strategy is not None else []
    parts += [f"LSTM of {policy.recurrent.size}"] if policy.recurrent is not None else []
    actor, critic = ("x".join(map(str, sizes)) or "no layers" for sizes in (policy.net_arch.pi, policy.net_arch.vf))
    return ", ".join([*parts, f"actor {actor}, critic {critic}"])


def _parameter_count(spec: EnvSpec, config: TrainConfig) -> int:
    with torch.device("meta"):  # takes no memory
        policy = Policy(spec, config.playing_policy(), "meta")
    return sum(parameter.numel() for parameter in policy.parameters())


def _checkpoints(config: TrainConfig) -> str:
    checkpoints, every = config.checkpoints, []
    if checkpoints.every_env_steps is not None:
        every.append(f"{checkpoints.every_env_steps:,} env steps")
    if checkpoints.every_iterations is not None:
        every.append(f"{checkpoints.every_iterations:,} iterations")
    when = f"every {' and every '.join(every)}, {checkpoints.keep} kept" if every else "at the end alone"
    return f"checkpoint {when}"


def _evaluation(config: TrainConfig, spec: EnvSpec) -> str:
    evaluation = config.evaluation
    if evaluation is None:
        return "no evaluation"
    every = f"evaluation every {evaluation.every_env_steps:,} env steps"
    if evaluation.sooner is not None:
        number, steps = evaluation.sooner.number, evaluation.sooner.steps
        every += "".join(f", {apart:,} from {number} {bound:g}" for bound, apart in steps)
    if len(set(spec.teams)) == 1:
        scenarios = choose_scenarios(config.world.name, evaluation.scenarios)
        return f"{every}, {evaluation.matches} episodes" + (f" in each of {', '.join(scenarios)}" if scenarios else "")
    against = "every bot" if evaluation.opponents is None else ", ".join(evaluation.opponents)
    modes = f" in each of {', '.join(evaluation.modes)}" if evaluation.modes else ""
    return f"{every}, {evaluation.matches} matches against {against}{modes}"


def _opponents(config: TrainConfig, specs: Mapping[int, EnvSpec]) -> Iterator[str]:
    phases = config.phases()
    if not phases:
        yield "opponents none: the learner plays every seat"
    for number, phase in enumerate(phases):
        total = sum(phase.opponents.values())
        mix = ", ".join(f"{name} {weight / total:.0%}" for name, weight in phase.opponents.items() if weight)
        games = ""
        if len(specs) > 1 and number in specs:
            rows = learner_rows(config, specs[number], number)
            num_envs = config.at_phase(number).world.num_envs
            games = f", {num_envs:,} games of {specs[number].mode}, the learner plays {rows:,} seats"
        yield f"phase {number + 1} {phase.name}: {mix}{games}" if config.curriculum else f"opponents {mix}"


def _spec(config: TrainConfig) -> EnvSpec:
    world = config.world
    with make_env(world.name, 1, world.device, config=world.settings or None) as env:
        return env.spec
