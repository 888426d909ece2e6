"""How fast we learn: env steps a second of whole iterations, beside peers and this machine's limit, in one run."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from ludus.core.errors import ConfigError
from ludus.envs.base import action_dtypes
from ludus.policies.policy import Policy
from ludus.training.bench_peers import sb3_ppo, sb3_ppo_on, sb3_recurrent_ppo
from ludus.training.config import TrainConfig
from ludus.training.devices import choose_device
from ludus.training.presets import load_run_config
from ludus.training.workbench import Workbench

_MLP = {"net_arch": {"pi": [128, 128], "vf": [128, 128]}, "activation": "tanh"}
_LSTM = {"net_arch": {"pi": [64, 64], "vf": [64, 64]}, "recurrent": {"kind": "lstm", "size": 256}}
_FULL = {"net_arch": {"pi": [96, 96], "vf": [96, 96]}, "strategy": {}, "recurrent": {"kind": "lstm", "size": 512}}

# Batch shapes that suit the device; networks and epochs are the same everywhere.
_BRAWL: dict[str, dict[str, tuple[int, dict[str, Any], dict[str, Any]]]] = {
    "cpu": {
        "mlp": (1024, _MLP, {"steps": 64, "batch_size": 8192, "epochs": 4}),
        "lstm": (64, _LSTM, {"steps": 64, "batch_size": 1024, "epochs": 4, "chunk": 16}),
        "strategy": (8, _FULL, {"steps": 32, "batch_size": 256, "epochs": 10, "chunk": 32}),
    },
    "cuda": {
        "mlp": (32768, _MLP, {"steps": 64, "batch_size": 524288, "epochs": 4}),
        "lstm": (8192, _LSTM | {"bfloat16": True}, {"steps": 64, "batch_size": 65536, "epochs": 4, "chunk": 16}),
        "strategy": (
            8192,
            _FULL | {"bfloat16": True},
            {"steps": 64, "batch_size": 65536, "epochs": 10, "chunk": 64, "compile": True},
        ),
    },
}


_PEER_GAMES = 8  # environments of Stable-Baselines3


def run_learn_bench(device: str = "cpu", repeats: int = 3, *, peers: bool = True) -> dict[str, Any]:
    """Measures our learner beside its peers and beside the limit of the machine.

    Args:
        device: Where brawl is learned; CartPole always runs on the CPU.
        repeats: Iterations of each kind that are timed; medians are reported.
        peers: Whether Stable-Baselines3 and sb3-contrib are measured too.
    """
    report: dict[str, Any] = {"device": _device_name(device), "threads": torch.get_num_threads()}
    if peers:
        report |= _against_peers(repeats)
    flops = matrix_flops(device)
    report["matrix_product_flops"] = flops
    for name, (games, policy, ppo) in _BRAWL["cuda" if device.startswith("cuda") else "cpu"].items():
        measured = _brawl(device, games, policy, ppo, repeats, flops)
        report |= {f"brawl_{name}_{key}": value for key, value in measured.items()}
    return report


def run_world_learn_bench(world: str, repeats: int = 3, *, peers: bool = True) -> dict[str, Any]:
    """Measures our learner on a world of one seat with its own preset, beside SB3's PPO with eight environments.

    Args:
        world: Name of the world.
        repeats: Iterations of each that are timed, in turns; medians are reported.
        peers: Whether Stable-Baselines3 is measured too.

    Raises:
        ConfigError: The world has opponents.
    """
    config = load_run_config(world)
    report: dict[str, Any] = {"world": world, "device": "cpu", "threads": torch.get_num_threads()}
    with Workbench(choose_device(config)) as bench:
        if bench.env.spec.seats != 1:
            raise ConfigError(f"{world} has {bench.env.spec.seats} seats; valid: worlds of one seat, and brawl")
        steps = config.world.num_games * config.ppo.steps
        learner = bench.ppo
        peer_iterate = sb3_ppo_on(world, _PEER_GAMES, config) if peers else None
        learner.iterate()
        learner.times_s()
        ours, theirs = [], []
        for _ in range(repeats):
            ours.append(_seconds(learner.iterate, "cpu"))
            if peer_iterate is not None:
                theirs.append(_seconds(peer_iterate, "cpu"))
        times = learner.times_s()
        report |= {"games": config.world.num_games, "steps_per_s": steps / statistics.median(ours)}
        report |= {f"{name}_share": seconds / sum(times.values()) for name, seconds in times.items()}
        if theirs:
            report |= {
                "peer": f"Stable-Baselines3 PPO, DummyVecEnv({_PEER_GAMES}), the same networks and recipe",
                "peer_steps_per_s": steps / statistics.median(theirs),
                "ratio": statistics.median(theirs) / statistics.median(ours),
            }
    return report


def _against_peers(repeats: int) -> dict[str, Any]:
    ppo = {"steps": 512, "batch_size": 256, "epochs": 10}
    recurrent = {"steps": 32, "batch_size": 256, "epochs": 10, "chunk": 16}
    lstm = {"recurrent": {"kind": "lstm", "size": 256, "critic": "separate"}}
    report: dict[str, Any] = {}
    for name, policy, settings, peer in (
        ("ppo", {}, ppo, sb3_ppo),
        ("lstm", lstm, recurrent, sb3_recurrent_ppo),
    ):
        with Workbench(_config("gym:CartPole-v1", 8, "cpu", policy, settings)) as bench:
            learner = bench.ppo
            peer_iterate = peer(8, int(settings["steps"]), int(settings["batch_size"]), int(settings["epochs"]))
            learner.iterate()
            ours, theirs = [], []
            for _ in range(repeats):  # in turns, so that noise of the machine meets both
                ours.append(_seconds(learner.iterate, "cpu"))
                theirs.append(_seconds(peer_iterate, "cpu"))
            steps = 8 * int(settings["steps"])
            report |= {
                f"cartpole_{name}_steps_per_s": steps / statistics.median(ours),
                f"cartpole_{name}_peer_steps_per_s": steps / statistics.median(theirs),
                f"cartpole_{name}_ratio": statistics.median(theirs) / statistics.median(ours),
            }
    return report


def _brawl(
    device: str, games: int, policy: dict[str, Any], ppo: dict[str, Any], repeats: int, flops: float
) -> dict[str, Any]:
    with Workbench(_config("brawl", games, device, policy, ppo, opponents="random")) as bench:
        learner, steps = bench.ppo, int(ppo["steps"])
        started = time.perf_counter()
        learner.iterate()
        _wait(device)
        first_s = time.perf_counter() - started
        learner.iterate()
        times: dict[str, list[float]] = {"collect": [], "update": [], "simulation": []}
        for _ in range(repeats):
            times["collect"].append(_seconds(learner.collect, device))
            times["update"].append(_seconds(lambda: _update(bench), device))
            times["simulation"].append(_seconds(lambda: _simulate(bench, steps), device))
        collect, update, simulation = (statistics.median(times[name]) for name in ("collect", "update", "simulation"))
        rate = games * steps / (collect + update)
        needed = flops_per_env_step(bench.policy, int(ppo["epochs"]))
        return {
            "steps_per_s": rate,
            "fraction_of_limit": rate * needed / flops,
            "flops_per_env_step": needed,
            "simulation_share": simulation / (collect + update),
            "forward_share": max(collect - simulation, 0.0) / (collect + update),
            "update_share": update / (collect + update),
            "games": games,
            "first_iteration_s": first_s,
        }


def _update(bench: Workbench) -> None:
    bench.learner.update()
    bench.learner.metrics()


def _simulate(bench: Workbench, steps: int) -> None:
    """The games alone, with opponents, for as many steps as a rollout has."""
    env = bench.env
    shape = (env.num_games, env.spec.seats, *(env.spec.action_space.shape or ()))
    actions = torch.zeros(shape, dtype=action_dtypes(env.spec.action_space)[0], device=env.device)
    for _ in range(steps):
        if bench.opponents is not None:
            bench.opponents.act({}, actions)
        env.step(actions)


def flops_per_env_step(policy: Policy, epochs: int) -> float:
    """Floating point operations of matrix products that one env step needs: a forward, and three a step and epoch.

    Weights count two a forward pass; attention of the streaming encoder four for each frame it looks at and feature.
    """
    forward = 2.0 * sum(parameter.numel() for parameter in policy.parameters() if parameter.dim() == 2)
    strategy = policy.config.strategy
    if strategy is not None:
        forward += sum(4.0 * (frames + 1) * strategy.width for frames in strategy.look_back)
    return forward * (1 + 3 * epochs)


def matrix_flops(device: str, size: int = 2048) -> float:
    """Measures the device's matrix products a second: float32 on a CPU, bfloat16 on a GPU."""
    dtype = torch.bfloat16 if device.startswith("cuda") else torch.float32
    size = size if dtype == torch.float32 else 4 * size
    left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    out = torch.empty_like(left)
    best = min(_seconds(lambda: torch.mm(left, right, out=out), device) for _ in range(7))
    return 2.0 * size**3 / best


def _config(
    world: str,
    games: int,
    device: str,
    policy: dict[str, Any],
    ppo: dict[str, Any],
    opponents: str | None = None,
) -> TrainConfig:
    return TrainConfig.model_validate(
        {
            "world": {"name": world, "num_games": games, "device": device},
            "policy": policy,
            "ppo": ppo,
            "opponents": opponents,
        }
    )


def _seconds(work: Callable[[], object], device: str) -> float:
    _wait(device)
    started = time.perf_counter()
    work()
    _wait(device)
    return time.perf_counter() - started


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def _device_name(device: str) -> str:
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device
