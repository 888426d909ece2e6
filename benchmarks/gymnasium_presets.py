"""`ludus train gym:ID` as it is beside Stable-Baselines3 with the settings of the RL Zoo, at equal env steps.

Each run is a process of its own, on one thread; the two libraries take turns, or run side by side on a machine with
as many idle cores as `--jobs`. Afterwards both agents play the same 100 episodes with their most likely actions. The
seconds are CPU time of the process, which other work on the machine changes little: of a Ludus run for everything it
does, with evaluations and checkpoints, of an SB3 run for `model.learn` alone. Results go to
docs/data/gymnasium_presets.csv.

    python benchmarks/gymnasium_presets.py --seeds 3
"""

import argparse
import csv
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray

DATA = Path(__file__).parents[1] / "docs" / "data" / "gymnasium_presets.csv"
FIELDS = ("world", "learner", "seed", "env_steps", "seconds", "episode_return")
EPISODES = 100
FIRST_SEED = 10_000  # of the episodes that are evaluated

Predict = Callable[[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Task:
    """An environment, how long it is trained here, and the Zoo's settings of PPO (hyperparams/ppo.yml)."""

    total: int
    envs: int = 1
    normalize: bool = False
    ppo: dict[str, Any] = field(default_factory=dict)
    policy: dict[str, Any] = field(default_factory=dict)


_LARGE = {"log_std_init": -2.0, "ortho_init": False, "activation_fn": torch.nn.ReLU, "net_arch": [256, 256]}
_LINEAR = {"learning_rate": lambda left: 1e-3 * left, "clip_range": lambda left: 0.2 * left}

TASKS = {
    "CartPole-v1": Task(
        100_000,
        envs=8,
        ppo={"n_steps": 32, "batch_size": 256, "gae_lambda": 0.8, "gamma": 0.98, "n_epochs": 20, **_LINEAR},
    ),
    "Acrobot-v1": Task(
        300_000, envs=16, normalize=True, ppo={"n_steps": 256, "gae_lambda": 0.94, "gamma": 0.99, "n_epochs": 4}
    ),
    "Pendulum-v1": Task(
        100_000,
        envs=4,
        ppo={"n_steps": 1024, "gamma": 0.9, "learning_rate": 1e-3, "use_sde": True, "sde_sample_freq": 4},
    ),
    "MountainCarContinuous-v0": Task(
        20_000,
        normalize=True,
        ppo={
            "n_steps": 8,
            "batch_size": 8,  # the Zoo says 256, which is cut down to the rollout
            "gamma": 0.9999,
            "learning_rate": 7.77e-5,
            "ent_coef": 0.00429,
            "clip_range": 0.1,
            "gae_lambda": 0.9,
            "max_grad_norm": 5,
            "vf_coef": 0.19,
            "use_sde": True,
        },
        policy={"log_std_init": -3.29, "ortho_init": False},
    ),
    "LunarLander-v3": Task(
        300_000, envs=16, ppo={"n_steps": 1024, "gae_lambda": 0.98, "gamma": 0.999, "n_epochs": 4, "ent_coef": 0.01}
    ),
    "Hopper-v5": Task(
        100_000,
        normalize=True,
        ppo={
            "batch_size": 32,
            "n_steps": 512,
            "gamma": 0.999,
            "learning_rate": 9.80828e-05,
            "ent_coef": 0.00229519,
            "n_epochs": 5,
            "gae_lambda": 0.99,
            "max_grad_norm": 0.7,
            "vf_coef": 0.835671,
        },
        policy=_LARGE,
    ),
    "HalfCheetah-v5": Task(
        100_000,
        normalize=True,
        ppo={
            "n_steps": 512,
            "gamma": 0.98,
            "learning_rate": 2.0633e-05,
            "ent_coef": 0.000401762,
            "clip_range": 0.1,
            "n_epochs": 20,
            "gae_lambda": 0.92,
            "max_grad_norm": 0.8,
            "vf_coef": 0.58096,
        },
        policy=_LARGE,
    ),
}


def main() -> None:
    """Train what is asked for, one process per run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--worlds", nargs="*", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--learners", nargs="*", choices=list(LEARNERS), default=list(LEARNERS))
    parser.add_argument("--set", nargs="*", default=[], help="settings of Ludus on top of the preset, to try some out")
    parser.add_argument(
        "--jobs", type=int, default=1, help="runs at a time, the longest first; no more than idle cores"
    )
    parser.add_argument("--out", type=Path, default=DATA)
    parser.add_argument("--one", nargs=3, metavar=("LEARNER", "WORLD", "SEED"), help="train one run in this process")
    options = parser.parse_args()
    if options.one:
        learner, world, seed = options.one
        print(json.dumps(run(learner, world, int(seed), options.set)))
        return
    options.out.parent.mkdir(parents=True, exist_ok=True)
    is_new = not options.out.exists()
    with options.out.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        worlds = sorted(options.worlds, key=lambda world: -TASKS[world].total) if options.jobs > 1 else options.worlds
        runs = itertools.product(worlds, range(options.seeds), options.learners)
        with ThreadPoolExecutor(options.jobs) as pool:
            jobs = [pool.submit(run_apart, learner, world, seed, options.set) for world, seed, learner in runs]
            for job in as_completed(jobs) if options.jobs > 1 else jobs:
                row = job.result()
                writer.writerow(row)
                file.flush()
                print(*(f"{name} {row[name]}" for name in FIELDS), sep=", ", flush=True)


def run_apart(learner: str, world: str, seed: int, settings: list[str]) -> dict[str, Any]:
    """Train and evaluate in a process of its own, so that no run profits from what another one has warmed up."""
    command = [sys.executable, __file__, "--one", learner, world, str(seed), "--set", *settings]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    row: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return row


def run(learner: str, world: str, seed: int, settings: list[str]) -> dict[str, Any]:
    """Train and evaluate one agent; return a row of the table."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        env_steps, seconds, predict = LEARNERS[learner](world, seed, Path(folder), settings)
        value = play(world, predict)
    return dict(zip(FIELDS, (world, learner, seed, env_steps, round(seconds, 2), round(value, 2)), strict=True))


def learn_ludus(world: str, seed: int, folder: Path, settings: list[str]) -> tuple[int, float, Predict]:
    """Train as `ludus train gym:ID` does."""
    import ludus

    total = TASKS[world].total
    every = f"evaluation.every_env_steps={max(total // 5, 1)}"
    overrides = [f"total_env_steps={total}", every, f"seed={seed}", "monitoring.console=off", "world.device=cpu"]
    started_s = time.process_time()
    trained = ludus.train(f"gym:{world}", overrides=[*overrides, *settings], folder=folder / "run")
    seconds = time.process_time() - started_s
    agent = ludus.load_agent(trained.folder / "checkpoints" / "final")
    return trained.env_steps, seconds, lambda observations: agent.predict(observations, deterministic=True)[0]


def learn_sb3(world: str, seed: int, _: Path, __: list[str]) -> tuple[int, float, Predict]:
    """Train Stable-Baselines3's PPO with the Zoo's settings."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecEnv, VecNormalize

    task = TASKS[world]
    env: VecEnv = make_vec_env(world, task.envs, seed=seed)
    if task.normalize:
        env = VecNormalize(env, gamma=task.ppo["gamma"])
    model = PPO("MlpPolicy", env, seed=seed, device="cpu", policy_kwargs=task.policy, **task.ppo)
    started_s = time.process_time()
    model.learn(task.total)
    seconds = time.process_time() - started_s

    def predict(observations: NDArray[Any]) -> NDArray[Any]:
        seen = env.normalize_obs(observations) if isinstance(env, VecNormalize) else observations
        return model.predict(seen, deterministic=True)[0]

    return model.num_timesteps, seconds, predict


LEARNERS = {"ludus": learn_ludus, "sb3": learn_sb3}


def play(world: str, predict: Predict) -> float:
    """Return the mean return of `EPISODES` episodes, all played at once."""
    envs = [gym.make(world) for _ in range(EPISODES)]
    seen = [env.reset(seed=FIRST_SEED + number)[0] for number, env in enumerate(envs)]
    returns = np.zeros(EPISODES)
    running = list(range(EPISODES))
    while running:
        actions = predict(np.stack([seen[number] for number in running]))
        still = []
        for number, action in zip(running, actions, strict=True):
            seen[number], reward, terminated, truncated, _ = envs[number].step(action)
            returns[number] += float(reward)
            if not (terminated or truncated):
                still.append(number)
        running = still
    return float(returns.mean())


if __name__ == "__main__":
    main()
