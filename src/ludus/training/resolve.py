"""One resolved run: the settings with the devices chosen and this process's share, at any phase of the curriculum."""

from dataclasses import dataclass
from typing import NamedTuple

import torch

from ludus.envs.base import EnvSpec
from ludus.envs.registry import AUTO, can_live_on, make_env, place_for
from ludus.league.mix import mirrored_games
from ludus.league.seating import learner_seats
from ludus.policies.policy import Policy
from ludus.training.config import TrainConfig, WorldConfig
from ludus.training.distributed import Process, find_process

# Floating-point operations of the learner per step of all its rows from which a GPU beside games on the CPU pays:
# measured by benchmarks/learner_device.py, see docs/research/learner.md.
WORTH_A_GPU = 2.0e8


@dataclass(frozen=True, slots=True)
class ResolvedRun:
    """A run as one process does it. It is decided once, by `resolve`, and passed on."""

    config: TrainConfig  # the settings as they were asked for: what `config.yaml` and checkpoints hold
    whole: TrainConfig  # the same with devices in the place of `auto`
    own: TrainConfig  # the settings of this process's part: its games, its share of a minibatch and its devices
    process: Process  # which of the run's processes this is
    placement: str = ""  # why the learner lives where it does, for people, if that had to be decided

    @property
    def device(self) -> str:
        """Where this process's policy and learner live; its games may live elsewhere."""
        return self.own.learner_device

    @property
    def is_writer(self) -> bool:
        """Whether this process writes and speaks for all."""
        return self.process.rank == 0

    def first_game(self, phase: int) -> int:
        """Return the index of this process's first game among those of the whole run."""
        return self.process.rank * self.own.at_phase(phase).world.num_envs


def resolve(run: TrainConfig | ResolvedRun, process: Process | None = None) -> ResolvedRun:
    """Choose the devices of a run and this process's share of it; a run that is resolved already stays as it is.

    Which process this is, `torchrun` says unless it is given.

    Raises:
        ConfigError: The run cannot be divided evenly among its processes.
    """
    if isinstance(run, ResolvedRun):
        return run
    process = process or find_process()
    games, learner, why = _place(run)
    world = run.world.model_copy(update={"device": games})
    whole = run.model_copy(update={"world": world, "learner_device": learner})
    return ResolvedRun(run, whole, process.share(whole), process, why)


def _place(config: TrainConfig) -> tuple[str, str, str]:
    """Return the device of the games, that of the learner, and why, if that had to be decided."""
    world, learner = config.world, config.learner_device
    if AUTO not in (world.device, learner):
        return world.device, learner, ""
    has_gpu, settings = torch.cuda.is_available(), world.settings or None
    if world.device == AUTO:
        asked, games = "cuda" if has_gpu else "cpu", place_for(AUTO, world.name, settings)
    else:
        asked = games = world.device
        if has_gpu and asked.partition(":")[0] == "cuda" and not can_live_on(asked, world.name, settings):
            games = "cpu"
    if learner != AUTO or games == asked:
        return games, games if learner == AUTO else learner, ""
    if world.device != AUTO:
        return games, asked, f"{world.name} can be played on the CPU alone"
    work = learner_work(config)
    learner = asked if work >= WORTH_A_GPU else games
    return games, learner, f"{work / 1e9:.2g} GFLOP per step of all games, a GPU pays from {WORTH_A_GPU / 1e9:.2g}"


def learner_work(config: TrainConfig) -> float:
    """Return the floating-point operations of the learner per step of all its rows, updates included."""
    world = config.at_phase(0).world
    with make_env(world.name, 1, config=world.settings or None) as env:
        spec = env.spec
    rows = learner_rows(config, spec)
    passes = config.method.update_passes(config.hyperparameters, rows)
    return forward_flops(spec, config) * rows * (1.0 + 3.0 * passes)  # a backward pass costs two forward ones


def forward_flops(spec: EnvSpec, config: TrainConfig) -> int:
    """Return the floating-point operations that one action takes."""
    from torch.utils.flop_counter import FlopCounterMode  # imports Triton where it is installed

    policy = Policy(spec, config.playing_policy(), "cpu")
    sample = spec.observation_space.sample()
    seen = {name: torch.as_tensor(value).unsqueeze(0) for name, value in sample.items()}
    with FlopCounterMode(display=False) as counter:
        policy.step(seen, policy.initial(1), torch.ones(1, dtype=torch.bool))
    return int(counter.get_total_flops())


def device_name(device: str) -> str:
    """Return a device with the name of its GPU, such as `cuda:0 (NVIDIA H200)`; a CPU is just `cpu`."""
    return f"{device} ({torch.cuda.get_device_name(device)})" if torch.device(device).type == "cuda" else device


def set_up_device(device: str) -> str:
    """Make the settings that pay on a device, for the whole process, and return them in words."""
    if torch.device(device).type != "cuda":
        threads = torch.get_num_threads()
        return f"{threads} thread{'s' if threads > 1 else ''}"
    torch.set_float32_matmul_precision("high")  # TF32 in products of float32; bfloat16 is the policy's own setting
    torch.backends.cudnn.benchmark = True
    return f"{torch.cuda.get_device_name(device)}, cuDNN chooses its fastest algorithms"


def describe_precision(device: str, *, bfloat16: bool) -> str:
    """Say in which precision matrix products are computed on a device, after `set_up_device`."""
    if torch.device(device).type != "cuda":
        return "float32" + (" (policy.bfloat16 applies to CUDA devices alone)" if bfloat16 else "")
    return "bfloat16, TF32 in the last layers" if bfloat16 else "float32 with TF32 products"


class Layout(NamedTuple):
    """What determines games, rows and tensors of a phase; the next phase keeps the games if its layout is equal."""

    world: WorldConfig
    mirrored: int  # games in which the learner plays every seat


def layout_of(config: TrainConfig, phase: int = 0) -> Layout:
    """Return the layout of a phase, or of a run without phases."""
    world, phases = config.at_phase(phase).world, config.phases()
    return Layout(world, mirrored_games(phases[phase].opponents, world.num_envs) if phases else 0)


def phases_with_own_games(config: TrainConfig) -> tuple[int, ...]:
    """Return the first phase, and every later one whose layout none before it has."""
    layouts = [layout_of(config, phase) for phase in range(max(len(config.phases()), 1))]
    return tuple(phase for phase, layout in enumerate(layouts) if layout not in layouts[:phase])


def phase_label(config: TrainConfig, phase: int) -> str:
    """Return `phase 'name'`, or nothing in a run without a curriculum."""
    return f"phase {config.curriculum[phase].name!r}" if config.curriculum else ""


def learner_rows(config: TrainConfig, spec: EnvSpec, phase: int = 0) -> int:
    """Return the rows that learn: one team's seats of every game, or all seats where the learner plays everyone."""
    world, mirrored = layout_of(config, phase)
    return learner_seats(spec, world.num_envs, mirrored) if config.phases() else world.num_envs * spec.seats
