"""How much memory and time a run will take: measured on a small copy of it and scaled to the full size.

A step of few games costs more per game than one of many, so the four games of the other checks would make a run look
ten times as slow as it is. To estimate the time, copies grow until an iteration takes a second, or has all the games of
the run; on a CUDA device the next copy has all of them. A run that takes a minute even at the speed of the smallest
copy needs no better estimate.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil
import torch
from torch import Tensor

from ludus.algorithms.algorithm import DryRun, Timing
from ludus.curriculum.config import PhaseConfig
from ludus.envs.base import EnvSpec
from ludus.evaluation.matches import MAX_ENVS
from ludus.policies.policy import Policy
from ludus.training.components import Components
from ludus.training.config import TrainConfig
from ludus.training.resolve import learner_rows

GIB = 1024.0**3
GAMES, STEPS = 4, 8  # of a small copy
_SMALLEST_SHOWN = 0.02  # parts below this share of the whole are not listed one by one
_SMALLEST_REST = 100_000  # bytes


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Bytes that a run takes on its device, by what they are for."""

    parts: Mapping[str, int]

    @property
    def total(self) -> int:
        """Bytes of all parts."""
        return sum(self.parts.values())

    def __str__(self) -> str:
        large = {name: size for name, size in self.parts.items() if size >= _SMALLEST_SHOWN * self.total}
        shown = [f"{name} {_gib(size)}" for name, size in sorted(large.items(), key=lambda part: -part[1])]
        rest = self.total - sum(large.values())
        return ", ".join([*shown, f"the rest {_gib(rest)}"] if rest >= _SMALLEST_REST else shown)


def estimate_policy(config: TrainConfig, spec: EnvSpec, phase: int) -> MemoryEstimate:
    """Return the least memory that the policy of a run takes, without making it: drawing wide layers takes long."""
    with torch.device("meta"):
        shell = Policy(spec, config.playing_policy(), "meta")
    rows, memory = learner_rows(config, spec, phase), _bytes(shell.initial(1).values())
    # With the gradient and both averages of Adam.
    return MemoryEstimate({"parameters and optimiser": 4 * _bytes(shell.parameters()), "memories": rows * memory})


def estimate_memory(config: TrainConfig, components: Components, dry_run: DryRun) -> MemoryEstimate:
    """Scale what a small copy of a run takes to the full size of the phase that it plays.

    The copy has fewer games and shorter rollouts, but the same policy; `dry_run` is what the algorithm found out in it.
    """
    spec, phase = components.env.spec, components.phase_start.phase
    rows, num_envs = learner_rows(config, spec, phase), config.at_phase(phase).world.num_envs
    learner, rollout = components.learner, components.learner.rollout
    own = config.method.memory(config.hyperparameters, learner, rows, dry_run)
    steps = config.method.rollout_steps(config.hyperparameters) or rollout.steps
    memory, parameters = _bytes(components.policy.initial(1).values()), _bytes(components.policy.state().values())
    plays_itself = components.opponents is not None and components.opponents.pool is not None
    others_memory = (num_envs * spec.seats - rows) * memory if plays_itself else 0
    game, is_on_host = game_bytes(components), components.policy.device.type == "cpu"
    games = num_envs * game
    parts = {
        **own.parts,
        "trace": components.trace.memory_bytes() * steps * rows // (rollout.steps * rollout.rows),
        "games": games,
        "snapshots": config.league.keep * parameters if plays_itself else 0,
        "opponents' memories": others_memory,
        # The loop keeps the last finite state, and holds it until it has made the next.
        "states to go back to": 2 * (own.state + others_memory + games),
        # The copy that another thread writes is in host memory.
        "checkpoint": own.state + others_memory + games if is_on_host and not learner.live_groups else 0,
        "evaluation": evaluation_games(config, spec) * (game + spec.seats * memory),
    }
    return MemoryEstimate(parts)


def memory_there(device: torch.device, allowed_gib: float | None) -> tuple[int, str]:
    """Return the bytes that a run can have on a device, and whose they are, in words.

    Its guard may allow less on the host than there is.
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free + torch.cuda.memory_reserved(device), f"free on {device}"
    total = psutil.virtual_memory().total
    if allowed_gib is not None and allowed_gib * GIB < total:
        return int(allowed_gib * GIB), "that guard.memory_gib allows"
    return total, "of the machine"


def process_bytes(device: torch.device) -> int:
    """Return what this process takes already: its libraries, on the host."""
    return psutil.Process().memory_info().rss if device.type == "cpu" else 0


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors)


def game_bytes(components: Components) -> int:
    """Return the bytes of one game: its state where the world tells it, and two observations of every seat."""
    env, last = components.env, components.trace.last
    seen = 0 if last is None else _bytes((*last.observations.values(), *last.final_observations.values()))
    state = _bytes(env.snapshot().values()) if env.spec.snapshots else 0
    return -(-(seen + state) // env.num_envs)


def small_copy(config: TrainConfig, spec: EnvSpec, phase: int = 0, games: int = GAMES) -> TrainConfig:
    """Return the same run, in a phase and its world, with at most so many games and short rollouts."""
    world = config.world.model_copy(update={"num_envs": min(games, config.world.num_envs)})
    small = config.model_copy(
        update={
            "world": world,
            "league": config.league.model_copy(update={"keep": 2}),
            "curriculum": tuple(_small_phase(each, games) for each in config.curriculum),
        }
    )
    rows = learner_rows(small, spec, phase)
    settings, policy = config.method.shrink(config.hyperparameters, config.policy, rows, STEPS)
    return small.model_copy(update={"policy": policy}).with_hyperparameters(settings)


def _small_phase(phase: PhaseConfig, games: int) -> PhaseConfig:
    if phase.world is None or phase.world.num_envs is None:
        return phase
    fewer = phase.world.model_copy(update={"num_envs": min(games, phase.world.num_envs)})
    return phase.model_copy(update={"world": fewer})


def evaluation_games(config: TrainConfig, spec: EnvSpec) -> int:
    """Return the games that an evaluation plays at once; 0 without evaluations."""
    if config.evaluation is None:
        return 0
    named = config.evaluation.opponents
    opponents = len(spec.bots if named is None else named)
    return min(max(opponents, 1) * config.evaluation.matches, MAX_ENVS)


def _gib(size: int) -> str:
    return f"{size / GIB:.2f} GiB" if size >= GIB / 10 else f"{size / 1024.0**2:.1f} MiB"


VERY_LONG_S = 2.0 * 3600.0
_BUDGET_S = 1.0  # for one iteration; copies of which it takes longer are not made larger
_SHORT_S = 60.0
_LEAST_GROWTH = 4  # few games cost nearly as much as one
_WARM_S = 0.3  # in iterations that take longer, what only the first one does is of no account
_GRAPH_ITERATIONS = 3  # the first ones on a CUDA device, which compile and record graphs


class TimeEstimate(NamedTuple):
    """How fast a run trains: seconds per env step, without evaluations and checkpoints, measured in so many games."""

    step_s: float
    games: int


def estimate_time(
    config: TrainConfig, components: Components, env_steps: int, folder: Path | None = None
) -> TimeEstimate:
    """Measure how fast a run does the `env_steps` left in a phase; `components` is a small copy after an iteration."""
    phase, games, spec = components.phase_start.phase, components.env.num_envs, components.env.spec
    most = config.at_phase(phase).world.num_envs if spec.max_envs is None else games  # few can be had: slow to start
    is_cuda = components.policy.device.type == "cuda"  # where recording graphs takes longer than many iterations
    iteration_s, step_s = _iterate(config, components)
    while games < most and iteration_s < _BUDGET_S and step_s * env_steps > _SHORT_S:
        games = most if is_cuda else min(int(games * max(_LEAST_GROWTH, _BUDGET_S / iteration_s)), most)
        with Components(small_copy(config, spec, phase, games), components.phase_start, folder) as larger:
            iteration_s, step_s = _iterate(config, larger)  # the first one makes buffers
            for _ in range(_GRAPH_ITERATIONS if is_cuda else int(iteration_s < _WARM_S)):
                iteration_s, step_s = _iterate(config, larger)
    return TimeEstimate(step_s, games)


def _iterate(config: TrainConfig, components: Components) -> tuple[float, float]:
    """Do one iteration of a copy; return its seconds, and those per env step of the run it is a copy of."""
    learner = components.learner
    started_s = _now_s(components)
    learner.collect()
    components.trace.read()
    collected_s = _now_s(components)
    learner.update()
    ended_s = _now_s(components)
    steps = learner.rollout.steps * learner.rollout.rows
    num_envs = config.at_phase(components.phase_start.phase).world.num_envs
    rows = round(learner.rollout.rows * num_envs / components.env.num_envs)
    timing = Timing(collected_s - started_s, ended_s - collected_s, steps, rows)
    return ended_s - started_s, config.method.seconds_per_env_step(config.hyperparameters, timing)


def _now_s(components: Components) -> float:
    if components.policy.device.type == "cuda":
        torch.cuda.synchronize(components.policy.device)
    return time.perf_counter()
