"""A trial of a run: its beginning, in minutes, with the same hyperparameters.

A preset for a GPU plays so many games at once that on two cores a match would take longer than the whole trial, and
only a few updates would be made. So a trial plays fewer games, and cuts its rollouts into as many minibatches as the
run does. Schedules keep the length that they have in the run: what is shown is how the run would begin.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ludus.core.tables import Table, read_table
from ludus.curriculum.config import PhaseConfig
from ludus.envs.base import EnvSpec
from ludus.envs.registry import make_env
from ludus.evaluation.matches import MAX_ENVS
from ludus.training.config import EvaluationConfig, TrainConfig
from ludus.training.loggers.csv_logger import EVALUATION, REWARDS
from ludus.training.preset_advice import step_seconds
from ludus.training.resolve import learner_rows

TRIAL_S = 120.0  # of training; starting, evaluations and what the doctor says come on top
_EVALUATIONS = 4
_EVALUATION_SHARE = 0.1  # of the trial's env steps, for each evaluation
_UPDATES = 40  # that a trial makes at least, if it can
_EPISODES = 3  # of full length that a trial gives every game at least, if it can
_LEAST_ENVS = 64  # fewer cost nearly as much per step of all
_MOST_MATCHES, _LEAST_MATCHES = 20, 4  # per opponent and evaluation
_NO_TERMS = ("iteration", "env_steps")  # columns of the table of rewards beside `total` and the terms
_MOST_TERMS = 8  # that are shown, the largest
_SNAPSHOTS = 8  # of past selves that a trial takes, where the run takes any


def trial_of(config: TrainConfig, seconds: float = TRIAL_S) -> TrainConfig:
    """Return the settings of a trial of a run: what can be trained in so many seconds on this machine.

    The env steps are those that the measured speed allows, so they differ from machine to machine; the settings that
    are returned, and that are in the trial's `config.yaml`, give the same run again.
    """
    world = config.at_phase(0).world
    with make_env(world.name, 1, config=world.settings or None) as env:
        spec = env.spec
    for _ in range(2):  # fewer games are slower per game, so their speed is measured again
        env_steps = min(max(int(seconds / step_seconds(config)), 1), config.total_env_steps)
        fewer = _with_games(config, spec, _games(config, spec, env_steps))
        if fewer == config:
            break
        config = fewer
    return _shortened(config, spec, env_steps)


def changes_of(config: TrainConfig, trial: TrainConfig) -> str:
    """Return in words what a trial does less of than its run."""
    games, fewer = config.at_phase(0).world.num_envs, trial.at_phase(0).world.num_envs
    steps = f"{trial.total_env_steps:,} of {config.total_env_steps:,} env steps"
    return steps if games == fewer else f"{steps}, {fewer:,} of {games:,} games"


def _games(config: TrainConfig, spec: EnvSpec, env_steps: int) -> int:
    """Return the games with which a trial makes enough updates and sees whole episodes: a power of two of fewer."""
    games = config.at_phase(0).world.num_envs
    while games >= 2 * _LEAST_ENVS and games % 2 == 0:
        rows = learner_rows(config, spec) * games // config.at_phase(0).world.num_envs
        steps = env_steps / rows  # that every game gets
        rollout = config.method.rollout_steps(config.hyperparameters) or 1
        if steps >= _UPDATES * rollout and steps >= _EPISODES * (spec.step_limit or 1):
            break
        games //= 2
    return games


def _with_games(config: TrainConfig, spec: EnvSpec, games: int) -> TrainConfig:
    """Return a run with fewer games, and as many minibatches per rollout as before."""
    before = config.at_phase(0).world.num_envs
    if games == before:
        return config
    rows = learner_rows(config, spec)
    settings = config.hyperparameters
    if config.method.rollout_steps(settings) is not None and hasattr(settings, "batch_size"):
        smaller = settings.model_copy(update={"batch_size": max(settings.batch_size * games // before, 1)})
        settings = config.method.fit(smaller, config.policy, rows * games // before)
    curriculum = tuple(_phase_with_games(phase, games, before) for phase in config.curriculum)
    world = config.world.model_copy(update={"num_envs": max(config.world.num_envs * games // before, 1)})
    return config.model_copy(update={"world": world, "curriculum": curriculum}).with_hyperparameters(settings)


def _phase_with_games(phase: PhaseConfig, games: int, before: int) -> PhaseConfig:
    if phase.world is None or phase.world.num_envs is None:
        return phase
    fewer = phase.world.model_copy(update={"num_envs": max(phase.world.num_envs * games // before, 1)})
    return phase.model_copy(update={"world": fewer})


def _shortened(config: TrainConfig, spec: EnvSpec, env_steps: int) -> TrainConfig:
    every = max(env_steps // _EVALUATIONS, 1)
    league = config.league
    changes: dict[str, Any] = {
        "total_env_steps": env_steps,
        "schedule_env_steps": config.scheduled_env_steps(config.total_env_steps),
        "checkpoints": config.checkpoints.model_copy(update={"every_env_steps": every}),
        "league": league.model_copy(
            update={"snapshot_every_env_steps": max(min(league.snapshot_every_env_steps, env_steps // _SNAPSHOTS), 1)}
        ),
        "evaluation": _evaluation(config, spec, every),
    }
    return config.model_copy(update=changes)


def _evaluation(config: TrainConfig, spec: EnvSpec, every: int) -> EvaluationConfig:
    """Return evaluations of bounded cost: fewer matches, and against those whom the learner meets most."""
    evaluation = config.evaluation or EvaluationConfig()
    changes: dict[str, Any] = {"every_env_steps": every}
    steps = _EVALUATION_SHARE * _EVALUATIONS * every
    affordable = int(steps / (spec.step_limit or 1))
    opponents = spec.bots if evaluation.opponents is None else evaluation.opponents
    if config.phases() and opponents:
        met: Mapping[str, float] = config.phases()[0].opponents
        ranked = sorted(opponents, key=lambda name: -met.get(name, 0.0))
        most = max(affordable // _LEAST_MATCHES, 2)
        opponents = tuple(name for name in opponents if name in ranked[:most])
        changes["opponents"] = opponents
    matches = min(max(affordable // max(len(opponents), 1), _LEAST_MATCHES), _MOST_MATCHES, MAX_ENVS)
    changes["matches"] = min(matches, evaluation.matches)
    return evaluation.model_copy(update=changes)


@dataclass(frozen=True, slots=True)
class TrialProgress:
    """How a trial went, in parts of equal length.

    Attributes:
        columns: Names of what `rows` hold.
        rows: Score, and rewards per 1,000 env steps, part by part.
        never: Reward terms that were 0 all the time.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    never: tuple[str, ...]


def read_progress_of(folder: Path) -> TrialProgress:
    """Return how rewards, their terms and scores moved in a run."""
    rewards, evaluations = read_table(folder / REWARDS), read_table(folder / EVALUATION)
    steps, scored_at = rewards.numbers("env_steps"), evaluations.numbers("env_steps")
    steps_of = np.diff(steps, prepend=0.0)
    ends = np.linspace(0.0, steps.max() if steps.size else 0.0, _EVALUATIONS + 1)[1:]
    columns = [name for name in rewards.names if name not in _NO_TERMS]
    never = tuple(name for name in columns if name != "total" and not np.any(rewards.numbers(name)))
    largest = sorted(set(columns) - {"total", *never}, key=lambda name: -_size(rewards, name))
    shown = ["total", *largest[:_MOST_TERMS]]
    lines = []
    for begin, end in zip((0.0, *ends[:-1]), ends, strict=True):
        part = rewards.rows((steps > begin) & (steps <= end))
        score = evaluations.rows((scored_at > begin) & (scored_at <= end)).numbers("score")
        taken = steps_of[(steps > begin) & (steps <= end)].sum() / 1000.0
        cells = [f"{part.numbers(name).sum() / max(taken, 1e-9):.3g}" for name in shown]
        known = score[np.isfinite(score)]
        lines.append((f"{int(end):,}", f"{known.mean():.3f}" if known.size else "-", *cells))
    return TrialProgress(("until env step", "score", "reward per 1,000", *shown[1:]), tuple(lines), never)


def _size(table: Table, name: str) -> float:
    return float(np.nansum(np.abs(table.numbers(name))))
