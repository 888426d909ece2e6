"""How much memory a run will take: measured on a small copy of it, scaled to the full size, part by part."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import psutil
import torch
from torch import Tensor

from ludus.envs.base import EnvSpec
from ludus.evaluation.duels import MOST_GAMES
from ludus.league.seating import learner_seats
from ludus.training.config import TrainConfig
from ludus.training.layouts import layout_of
from ludus.training.workbench import Workbench

GIB = 1024.0**3
_SMALLEST_SHOWN = 0.02  # parts below this share of the whole are not listed one by one
_SMALLEST_REST = 100_000  # bytes


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Bytes that a run takes on its device.

    Attributes:
        parts: By what they are for.
    """

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


def learner_rows(config: TrainConfig, spec: EnvSpec, stage: int = 0) -> int:
    """Returns the rows that learn: one team's seats of every game, or all seats where the learner plays everyone.

    Args:
        config: Of the run.
        spec: The world of the stage.
        stage: Which one.
    """
    world, mirrored = layout_of(config, stage)
    return learner_seats(spec, world.num_games, mirrored) if config.stages() else world.num_games * spec.seats


def estimate_memory(config: TrainConfig, bench: Workbench, activations: int) -> MemoryEstimate:
    """Scales what a small copy of a run takes to the full size of the stage that it plays.

    Args:
        config: The full run.
        bench: A copy with fewer games and shorter rollouts and chunks, and the same policy.
        activations: Bytes that the backward pass needs for the copy's whole rollout in one minibatch.
    """
    buffer, spec, policy = bench.ppo.rollout, bench.env.spec, bench.policy
    rows, memory = learner_rows(config, spec, bench.begun.stage), _bytes(policy.initial(1).values())
    num_games = config.at_stage(bench.begun.stage).world.num_games
    ppo, small_frames = config.ppo.sized(rows), buffer.steps * buffer.rows
    frames = ppo.steps * rows
    recorded = [buffer.actions, buffer.starts, buffer.ends, buffer.rewards, buffer.bootstraps, buffer.log_probs]
    recorded += [buffer.values, buffer.advantages, buffer.returns]
    recorded += [] if buffer.bots is None else [buffer.bots]
    rollout = _bytes((*recorded, *buffer.observations.values())) * frames // small_frames
    rollout += frames // ppo.chunk * memory
    parameters = _bytes(policy.state().values())
    optimiser = _bytes(bench.ppo.updater.optimiser.state().values())
    game = game_bytes(bench)
    others = num_games * spec.seats - rows
    plays_itself = bench.opponents is not None and bench.opponents.pool is not None
    others_memory = others * memory if plays_itself else 0
    games = num_games * game
    parts = {
        "parameters and optimiser": 2 * parameters + optimiser,  # one for the gradient
        "rollout": rollout,
        "mirrored rollout": 2 * rollout if ppo.mirror else 0,  # the rollout once more, and its image
        "memories": rows * memory,
        "trace": bench.trace.memory_bytes() * frames // small_frames,
        "minibatch": (activations * ppo.batch_size // small_frames) + rollout * ppo.batch_size // frames,
        "games": games,
        "snapshots": config.league.keep * parameters if plays_itself else 0,
        "opponents' memories": others_memory,
        # The loop keeps the last finite state, and holds it until it has made the next.
        "states to go back to": 2 * (parameters + optimiser + rows * memory + others_memory + games),
        "evaluation": evaluation_games(config, spec) * (game + spec.seats * memory),
    }
    if plays_itself and config.league.exploiter is not None:  # a learner of its own, beside the run's
        own = ("parameters and optimiser", "rollout", "memories", "trace", "minibatch", "games", "opponents' memories")
        parts["exploiter"] = sum(parts[name] for name in own)
    return MemoryEstimate(parts)


def memory_there(device: torch.device, allowed_gib: float | None = None) -> tuple[int, str]:
    """Returns the bytes that a run can have on a device, and whose they are, in words.

    Args:
        device: Where the run is.
        allowed_gib: What the run's guard allows on the host; None is all there is.
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free + torch.cuda.memory_reserved(device), f"free on {device}"
    total = psutil.virtual_memory().total
    if allowed_gib is not None and allowed_gib * GIB < total:
        return int(allowed_gib * GIB), "that guard.memory_gib allows"
    return total, "of the machine"


def process_bytes(device: torch.device) -> int:
    """Returns what this process takes already: its libraries, on the host."""
    return psutil.Process().memory_info().rss if device.type == "cpu" else 0


@contextmanager
def counting_saved(parameters: Iterable[Tensor]) -> Iterator[list[int]]:
    """Counts the bytes that autograd keeps for the backward pass while the context lasts, without the parameters.

    Yields:
        A list whose only number is the count.
    """
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


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors)


def game_bytes(bench: Workbench) -> int:
    """Returns the bytes of one game: its state where the world tells it, and two observations of every seat."""
    env, last = bench.env, bench.trace.last
    seen = 0 if last is None else _bytes((*last.observations.values(), *last.final_observations.values()))
    state = _bytes(env.snapshot().values()) if env.spec.snapshots else 0
    return -(-(seen + state) // env.num_games)


def evaluation_games(config: TrainConfig, spec: EnvSpec) -> int:
    """Returns the games that an evaluation plays at once; 0 without evaluations."""
    if config.evaluation is None:
        return 0
    named = config.evaluation.opponents
    opponents = len(spec.bots if named is None else named)
    return min(max(opponents, 1) * config.evaluation.matches, MOST_GAMES)


def _gib(size: int) -> str:
    return f"{size / GIB:.2f} GiB" if size >= GIB / 10 else f"{size / 1024.0**2:.1f} MiB"
