"""What a run is, in a few lines for people: who, where, what plays, what learns, how long."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import torch

from ludus.envs.base import EnvSpec
from ludus.envs.registry import make_env
from ludus.envs.trials import choose_trials
from ludus.policies.policy import Policy
from ludus.training.config import TrainConfig
from ludus.training.devices import choose_device, set_up_device
from ludus.training.layouts import stages_with_own_games
from ludus.training.memory_estimate import learner_rows
from ludus.training.ranks import find_place


def summarise(config: TrainConfig, folder: Path | None, user: str) -> Iterator[str]:
    """Tells what a run is; of several processes the first one alone does.

    Args:
        config: The settings of the whole run.
        folder: The run folder; None if there is none yet.
        user: Who trains; may be empty.

    Yields:
        Lines.
    """
    if find_place().rank > 0:
        return
    config = choose_device(config)
    specs = {stage: _spec(config.at_stage(stage)) for stage in stages_with_own_games(config)}
    world, spec = config.at_stage(0).world, specs[0]
    rows = learner_rows(config, spec)
    yield f"user {user or 'not named'}, run folder {folder if folder is not None else 'not made yet'}"
    precision = "bfloat16 products" if config.policy.bfloat16 else "float32"
    yield f"device {world.device} ({set_up_device(world.device)}), precision {precision}"
    yield f"{world.num_games:,} games of {spec.id}, seats in each {spec.seats}, the learner plays {rows:,} of all"
    yield f"policy {_policy(config)}, {_parameter_count(spec, config):,} parameters"
    yield _ppo(config, rows) if config.algorithm == "ppo" else _off_policy(config, rows)
    yield f"budget {config.total_env_steps:,} env steps, seed {config.seed}, {_checkpoints(config)}"
    yield _evaluation(config, spec)
    yield from _opponents(config, specs)


def settings_of(config: TrainConfig) -> str:
    """Returns the name of the settings that the run's algorithm reads."""
    return "ppo" if config.algorithm == "ppo" else "off_policy"


def _ppo(config: TrainConfig, rows: int) -> str:
    ppo = config.ppo.sized(rows)
    mirrored = ", learned from with their mirror images" if ppo.mirror else ""
    return (
        f"rollout {ppo.steps} steps x {rows:,} rows = {ppo.steps * rows:,} env steps{mirrored}, minibatches of "
        f"{ppo.batch_size:,}, {ppo.epochs} epochs, learning rate {_schedule(ppo.learning_rate.model_dump())}"
    )


def _off_policy(config: TrainConfig, rows: int) -> str:
    off_policy = config.off_policy
    size = off_policy.train_freq * rows
    return (
        f"{config.algorithm}: {off_policy.train_freq} steps x {rows:,} rows = {size:,} env steps, then "
        f"{off_policy.gradient_steps or size:,} gradient steps of {off_policy.batch_size:,} out of the last "
        f"{off_policy.buffer_size:,}, learning rate {_schedule(off_policy.learning_rate.model_dump())}"
    )


def _policy(config: TrainConfig) -> str:
    policy = config.policy
    parts = [f"{policy.strategy.kind} strategy encoder"] if policy.strategy is not None else []
    parts += [f"{policy.recurrent.kind} of {policy.recurrent.size}"] if policy.recurrent is not None else []
    actor, critic = ("x".join(map(str, sizes)) or "no layers" for sizes in (policy.net_arch.pi, policy.net_arch.vf))
    return ", ".join([*parts, f"actor {actor}, critic {critic}"])


def _parameter_count(spec: EnvSpec, config: TrainConfig) -> int:
    with torch.device("meta"):  # takes no memory
        policy = Policy(spec, config.playing_policy(), "meta")
    return sum(parameter.numel() for parameter in policy.parameters())


def _schedule(fields: Mapping[str, object]) -> str:
    if fields["kind"] == "constant":
        return f"{fields['level']:g}"
    return " ".join([str(fields["kind"]), *(f"{name} {fields[name]:g}" for name in ("start", "end") if name in fields)])


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
        trials = choose_trials(config.world.name, evaluation.trials)
        return f"{every}, {evaluation.matches} episodes" + (f" in each of {', '.join(trials)}" if trials else "")
    named = evaluation.opponents
    against = "every bot" if named is None else ", ".join(named)
    modes = f" in each of {', '.join(evaluation.modes)}" if evaluation.modes else ""
    return f"{every}, {evaluation.matches} matches against {against}{modes}"


def _opponents(config: TrainConfig, specs: Mapping[int, EnvSpec]) -> Iterator[str]:
    stages = config.stages()
    if not stages:
        yield "opponents none: the learner plays every seat"
    for number, stage in enumerate(stages):
        total = sum(stage.opponents.values())
        mix = ", ".join(f"{name} {weight / total:.0%}" for name, weight in stage.opponents.items() if weight)
        games = ""
        if len(specs) > 1 and number in specs:
            rows = learner_rows(config, specs[number], number)
            num_games = config.at_stage(number).world.num_games
            games = f", {num_games:,} games of {specs[number].mode}, the learner plays {rows:,} seats"
        yield f"stage {number + 1} {stage.name}: {mix}{games}" if config.curriculum else f"opponents {mix}"


def _spec(config: TrainConfig) -> EnvSpec:
    world = config.world
    with make_env(world.name, 1, world.device, config=world.settings or None) as env:
        return env.spec
