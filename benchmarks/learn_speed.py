"""Measures how fast we learn: env steps per second of whole iterations, beside peers and the limit of this machine.

    python benchmarks/learn_speed.py                              # the learners in `CASES`, and Stable-Baselines3
    python benchmarks/learn_speed.py --device cuda --no-peers
    python benchmarks/learn_speed.py --world mimic                # our PPO and SB3's on one of our worlds

Everything is measured in one run. The peers need the extra `sb3`. Prints one JSON object.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import torch

from ludus.envs.base import action_dtypes
from ludus.policies.policy import Policy
from ludus.training.components import Components
from ludus.training.config import TrainConfig
from ludus.training.presets import load_run_config
from ludus.training.resolve import set_up_device

WORLD = "brawl"  # of the cases
_PEER_GAMES = 8  # environments of Stable-Baselines3
_SB3_SETTINGS = ("n_steps", "batch_size", "n_epochs")  # that have the same names there


class LearnCase(NamedTuple):
    """A learner whose speed is measured: games in the batch, settings of the policy and of PPO."""

    num_envs: int
    policy: Mapping[str, Any]
    ppo: Mapping[str, Any]


_MLP = {"net_arch": {"pi": [128, 128], "vf": [128, 128]}, "activation": "tanh"}
_LSTM = {"net_arch": {"pi": [64, 64], "vf": [64, 64]}, "recurrent": {"size": 256}}
_FULL = {"net_arch": {"pi": [96, 96], "vf": [96, 96]}, "strategy": {}, "recurrent": {"size": 512}}
_BF16 = {"bfloat16": True}

# Of brawl, by device type and name. Batch shapes suit the device; networks are the same everywhere, and so are the
# epochs of cases of one name.
CASES: Mapping[str, Mapping[str, LearnCase]] = {
    "cpu": {
        "mlp": LearnCase(1024, _MLP, {"n_steps": 64, "batch_size": 8192, "n_epochs": 4}),
        "lstm": LearnCase(64, _LSTM, {"n_steps": 64, "batch_size": 1024, "n_epochs": 4, "sequence_length": 16}),
        "strategy": LearnCase(8, _FULL, {"n_steps": 32, "batch_size": 256, "n_epochs": 10, "sequence_length": 32}),
    },
    "cuda": {
        "mlp": LearnCase(32768, _MLP | _BF16, {"n_steps": 64, "batch_size": 524288, "n_epochs": 4}),
        "mlp_one_epoch": LearnCase(65536, _MLP | _BF16, {"n_steps": 64, "batch_size": 524288, "n_epochs": 1}),
        "lstm": LearnCase(
            65536, _LSTM | _BF16, {"n_steps": 16, "batch_size": 262144, "n_epochs": 4, "sequence_length": 16}
        ),
        "lstm_one_epoch": LearnCase(
            32768, _LSTM | _BF16, {"n_steps": 16, "batch_size": 131072, "n_epochs": 1, "sequence_length": 16}
        ),
        "strategy": LearnCase(
            8192,
            _FULL | _BF16,
            {"n_steps": 64, "batch_size": 65536, "n_epochs": 10, "sequence_length": 64, "compile": True},
        ),
    },
}


def main() -> None:
    """Measure what is asked for and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", help="world of one seat, on which SB3's PPO learns too")
    parser.add_argument("--device", default="cpu", help="of the learners in `CASES`")
    parser.add_argument("--repeats", type=int, default=3, help="iterations of each kind that are timed")
    parser.add_argument("--no-peers", action="store_true", help="skip Stable-Baselines3 and sb3-contrib")
    options = parser.parse_args()
    if options.world is None:
        measured = run_learn_bench(options.device, options.repeats, peers=not options.no_peers)
    else:
        measured = run_world_learn_bench(options.world, options.repeats, peers=not options.no_peers)
    print(json.dumps(measured, indent=1))


def _sb3_on_cartpole(settings: Mapping[str, int], *, recurrent: bool) -> Callable[[], None]:
    """Make Stable-Baselines3's PPO with its default 64x64 network, or sb3-contrib's RecurrentPPO with its two LSTMs.

    Each call runs one iteration.
    """
    from stable_baselines3.common.env_util import make_vec_env

    library, name = ("sb3_contrib", "RecurrentPPO") if recurrent else ("stable_baselines3", "PPO")
    algorithm = getattr(import_module(library), name)
    kind, sizes = "MlpLstmPolicy" if recurrent else "MlpPolicy", {key: settings[key] for key in _SB3_SETTINGS}
    model = algorithm(kind, make_vec_env("CartPole-v1", _PEER_GAMES, seed=0), **sizes, seed=0, device="cpu")
    return _iteration(model, _PEER_GAMES * settings["n_steps"])


def sb3_ppo_on(world: str, games: int, config: TrainConfig) -> Callable[[], None]:
    """Make SB3's PPO on a world of ours of one seat with continuous actions, with the networks and recipe of a config.

    Each call runs one iteration of as many env steps as an iteration of `config` has.
    """
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv
    from torch import nn

    from ludus.envs.adapters.gymnasium_env import LudusEnv
    from ludus.envs.registry import make_env

    env_steps = config.world.num_envs * config.hyperparameters.n_steps
    arch = config.policy.net_arch
    activation = nn.Tanh if config.policy.activation == "tanh" else nn.ReLU
    # A single event as reward: all terms for one game per step would slow SB3 down, and are no part of its learning.
    reward = {make_env(world).spec.events[0]: 1.0}
    envs = DummyVecEnv([lambda: LudusEnv(world, reward=reward) for _ in range(games)])
    model = PPO(
        "MlpPolicy", envs, n_steps=env_steps // games,
        batch_size=config.hyperparameters.batch_size, n_epochs=config.hyperparameters.n_epochs,
        policy_kwargs={"net_arch": {"pi": list(arch.pi), "vf": list(arch.vf)}, "activation_fn": activation},
        seed=0, device="cpu",
    )  # fmt: skip
    return _iteration(model, env_steps)


def _iteration(model: Any, env_steps: int) -> Callable[[], None]:  # noqa: ANN401 - the peers' types are optional
    model.learn(env_steps)

    def run() -> None:
        model.learn(env_steps, reset_num_timesteps=False)

    return run


def run_learn_bench(device: str, repeats: int, *, peers: bool) -> dict[str, Any]:
    """Measure the learners in `CASES`, beside peers and beside the limit of the machine.

    Medians of `repeats` iterations are reported. The peers are Stable-Baselines3 and sb3-contrib on CartPole, always on
    the CPU.
    """
    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else device
    report: dict[str, Any] = {"device": name, "threads": torch.get_num_threads()}
    if peers:
        report |= _against_peers(repeats)
    set_up_device(device)  # as a run does
    flops = matrix_flops(device)
    report["matrix_product_flops"] = flops
    for name, case in CASES["cuda" if device.startswith("cuda") else "cpu"].items():
        measured = _measure(device, case, repeats, flops)
        report |= {f"{WORLD}_{name}_{key}": value for key, value in measured.items()}
    return report


def run_world_learn_bench(world: str, repeats: int, *, peers: bool) -> dict[str, Any]:
    """Measure our learner on a world of one seat with its own preset, beside SB3's PPO with eight environments.

    Medians of `repeats` iterations of each, in turns, are reported.
    """
    config = load_run_config(world)
    report: dict[str, Any] = {"world": world, "device": "cpu", "threads": torch.get_num_threads()}
    with Components(config) as components:
        if components.env.spec.seats != 1:
            raise SystemExit(f"{world} has {components.env.spec.seats} seats; valid: worlds of one seat")
        steps = config.world.num_envs * (config.method.rollout_steps(config.hyperparameters) or 1)
        learner = components.learner
        peer_iterate = sb3_ppo_on(world, _PEER_GAMES, config) if peers else lambda: None
        learner.iterate()
        learner.times_s()
        ours_s, theirs_s = _in_turns(learner.iterate, peer_iterate, repeats)
        times = learner.times_s()
        report |= {"games": config.world.num_envs, "steps_per_s": steps / ours_s}
        report |= {f"{name}_share": seconds / sum(times.values()) for name, seconds in times.items()}
        if peers:
            peer = f"Stable-Baselines3 PPO, DummyVecEnv({_PEER_GAMES}), the same networks and recipe"
            report |= {"peer": peer, "peer_steps_per_s": steps / theirs_s, "ratio": theirs_s / ours_s}
    return report


def _against_peers(repeats: int) -> dict[str, Any]:
    ppo = {"n_steps": 512, "batch_size": 256, "n_epochs": 10}
    recurrent = {"n_steps": 32, "batch_size": 256, "n_epochs": 10, "sequence_length": 16}
    lstm = {"recurrent": {"size": 256, "critic": "separate"}}
    report: dict[str, Any] = {}
    for name, policy, settings in (("ppo", {}, ppo), ("lstm", lstm, recurrent)):
        with Components(_config("gym:CartPole-v1", _PEER_GAMES, "cpu", policy, settings)) as components:
            learner, peer_iterate = components.learner, _sb3_on_cartpole(settings, recurrent=bool(policy))
            learner.iterate()
            ours_s, theirs_s = _in_turns(learner.iterate, peer_iterate, repeats)
            steps = _PEER_GAMES * settings["n_steps"]
            report |= {
                f"cartpole_{name}_steps_per_s": steps / ours_s,
                f"cartpole_{name}_peer_steps_per_s": steps / theirs_s,
                f"cartpole_{name}_ratio": theirs_s / ours_s,
            }
    return report


def _in_turns(ours: Callable[[], object], theirs: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Return the median seconds of both, measured in turns, so that noise of the machine meets both."""
    times = [(_seconds(ours, "cpu"), _seconds(theirs, "cpu")) for _ in range(repeats)]
    return statistics.median(own for own, _ in times), statistics.median(other for _, other in times)


def _measure(device: str, case: LearnCase, repeats: int, flops: float) -> dict[str, Any]:
    games, policy, ppo = case
    with Components(_config(WORLD, games, device, policy, ppo, opponents="random")) as components:
        learner, steps = components.learner, int(ppo["n_steps"])
        first_s = _seconds(learner.iterate, device)
        learner.iterate()
        times: dict[str, list[float]] = {"collect": [], "update": [], "simulation": []}
        for _ in range(repeats):
            times["collect"].append(_seconds(learner.collect, device))
            times["update"].append(_seconds(lambda: _update(components), device))
            times["simulation"].append(_seconds(lambda: _simulate(components, steps), device))
        collect, update, simulation = (statistics.median(times[name]) for name in ("collect", "update", "simulation"))
        rate = games * steps / (collect + update)
        needed = flops_per_env_step(components.policy, int(ppo["n_epochs"]))
        return {
            "steps_per_s": rate,
            "fraction_of_limit": rate * needed / flops,
            "flops_per_env_step": needed,
            "simulation_share": simulation / (collect + update),
            "forward_share": max(collect - simulation, 0.0) / (collect + update),
            "update_share": update / (collect + update),
            "games": games,
            "batch_size": int(ppo["batch_size"]),
            "n_epochs": int(ppo["n_epochs"]),
            "first_iteration_s": first_s,
        }


def _update(components: Components) -> None:
    components.learner.update()
    components.learner.metrics()


def _simulate(components: Components, steps: int) -> None:
    """The games alone, with opponents, for as many steps as a rollout has."""
    env = components.env
    shape = (env.num_envs, env.spec.seats, *(env.spec.action_space.shape or ()))
    actions = torch.zeros(shape, dtype=action_dtypes(env.spec.action_space)[0], device=env.device)
    for _ in range(steps):
        if components.opponents is not None:
            components.opponents.act({}, actions)
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


def matrix_flops(device: str) -> float:
    """Measure the device's matrix products per second: float32 on a CPU, bfloat16 on a GPU."""
    size, dtype = (8192, torch.bfloat16) if device.startswith("cuda") else (2048, torch.float32)
    left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    out = torch.empty_like(left)
    best = min(_seconds(lambda: torch.mm(left, right, out=out), device) for _ in range(7))
    return 2.0 * size**3 / best


def _config(
    world: str, games: int, device: str, policy: Mapping[str, Any], ppo: Mapping[str, Any], opponents: str | None = None
) -> TrainConfig:
    where = {"name": world, "num_envs": games, "device": device}
    return TrainConfig.model_validate({"world": where, "policy": policy, "ppo": ppo, "opponents": opponents})


def _seconds(work: Callable[[], object], device: str) -> float:
    _wait(device)
    started = time.perf_counter()
    work()
    _wait(device)
    return time.perf_counter() - started


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    main()
