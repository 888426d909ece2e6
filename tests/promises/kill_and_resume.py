"""Trains, is killed with SIGKILL at random moments, resumes, and compares the end with an uninterrupted run.

Run as a program by the tests of promises 1 and 8. It imports everything once and then forks a trainer a life: a real
process that runs the real loop, without the seconds that a fresh interpreter would spend on imports.
"""

import gc
import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import torch

from ludus.training import BaseCallback, Counters, Iteration, TrainConfig, train
from ludus.training.components import Components

KINDS = ("saving", "working", "early", "saving")
STEPS, GAMES = 8, 4
PPO: dict[str, Any] = {"n_steps": STEPS, "sequence_length": 4, "batch_size": 16, "n_epochs": 1}
STRATEGY: dict[str, Any] = {"layers": 1, "heads": 2, "width": 8, "feedforward": 8, "window": 5}
LOSSES: dict[str, Any] = {"predict_actions": 0.5, "classify": 0.2, "stop_gradient": True}
PLAIN: dict[str, dict[str, Any]] = {
    "brawl, LSTM, statistics, a mix of bots": {
        "world": {"name": "brawl", "num_envs": GAMES, "settings": {"threads": 1, "step_limit": 60}},
        "policy": {"recurrent": {"size": 8}, "normalize": {"observations": True, "returns": True}},
        "ppo": PPO,
        "opponents": {"based": 1, "random": 2},
    },
    "duel, compiled MLP, KL-adaptive rate": {
        "world": {"name": "duel", "num_envs": GAMES},
        "ppo": PPO | {"learning_rate": {"kind": "kl_adaptive", "start": 1e-3, "target": 0.001}},
        "opponents": "random",
    },
    "duel, streaming encoder, self-play": {
        "world": {"name": "duel", "num_envs": GAMES // 2},
        "policy": {"strategy": STRATEGY},
        "ppo": PPO | {"learning_rate": {"kind": "linear", "start": 1e-3, "end": 1e-5}},
    },
    "duel, strategy encoder with every option, past selves": {
        "world": {"name": "duel", "num_envs": GAMES},
        "policy": {"strategy": STRATEGY | LOSSES | {"block": ["opponent", "self"]}},
        "ppo": PPO,
        "opponents": {"random": 1, "rock": 1, "self": 1},
    },
    "tug, teams, phases with games of their own": {  # four rows in each of them
        "world": {"name": "tug", "num_envs": GAMES, "settings": {"rounds": 3}},
        "policy": {"recurrent": {"size": 8}, "normalize": {"observations": True, "returns": True}},
        "ppo": PPO,
        "curriculum": [
            {"name": "1v1", "opponents": {"random": 1, "self": 1}, "promotion": {"after_env_steps": 4 * 32}},
            {
                "name": "1v2",
                "opponents": {"mirror": 1, "self": 1},
                "world": {"num_envs": 2, "settings": {"orange": 2}},
                "promotion": {"after_env_steps": 4 * 32},
            },
            {
                "name": "2v2",
                "opponents": {"random": 1, "self": 1},
                "rewards": {"weights": {"reward": 1.0}, "team_spirit": 0.5},
                "world": {"num_envs": 2, "settings": {"blue": 2, "orange": 2}},
                "promotion": {"rating": 0.0, "after_env_steps": 4 * 32},
            },
            {
                "name": "1v1 again",
                "opponents": {"mirror": 1, "self": 2},
                "world": {"num_envs": 3, "settings": {"rounds": 5}},
            },
        ],
        "league": {"snapshot_every_env_steps": 3 * 32, "keep": 3, "sampler": "pfsp"},
        "evaluation": {"every_env_steps": 5 * 32, "matches": 2},
    },
}
ALL_TABLES: dict[str, dict[str, Any]] = {
    "brawl, streaming encoder, phases, past selves, evaluation": {
        "world": {"name": "brawl", "num_envs": GAMES, "settings": {"threads": 1, "step_limit": 30}},
        "policy": {"strategy": STRATEGY},
        "ppo": PPO,
        "curriculum": [
            {"name": "first", "opponents": {"random": 1, "constant": 1}, "promotion": {"after_env_steps": 8 * 32}},
            {"name": "second", "opponents": {"based": 1, "self": 2}, "rewards": {"base": "sparse"}},
        ],
        "league": {"snapshot_every_env_steps": 3 * 32, "keep": 3},
        "evaluation": {"every_env_steps": 4 * 32, "opponents": ["random", "constant"], "matches": 2},
        "monitoring": {"strategy_every_iterations": 3},
    },
    "duel, short matches, every past self": {
        "world": {"name": "duel", "num_envs": GAMES, "settings": {"rounds": 3}},
        "ppo": PPO,
        "opponents": {"rock": 1, "self": 3},
        "league": {"snapshot_every_env_steps": 2 * 32, "sampler": "pfsp"},
        "evaluation": {"every_env_steps": 3 * 32, "matches": 4},
    },
}
# And how many iterations each has. A life that is killed gets on by one or two of them.
RUNS = {"plain": (PLAIN, 20), "tables": (ALL_TABLES, 20)}


class Teller(BaseCallback):
    """Says through a pipe that an iteration is done; what follows it is a save."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def on_training_start(self, counters: Counters) -> None:
        os.write(self._pipe, b"s")

    def on_iteration(self, iteration: Iteration) -> None:
        os.write(self._pipe, b"i")


def make_config(run: dict[str, Any], seed: int, iterations: int) -> TrainConfig:
    fixed = {"seed": seed, "total_env_steps": iterations * STEPS * GAMES}
    return TrainConfig.model_validate(run | fixed | {"checkpoints": {"every_iterations": 1, "keep": 2}})


def start(config: TrainConfig, folder: Path) -> tuple[int, int]:
    """Forks a trainer; returns its process number and the pipe it speaks through."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        code = 1
        try:
            train(config, folder, [Teller(writer)])
            code = 0
        except BaseException:  # a child must never return into the parent's code
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writer)
    return process, reader


def finish(process: int, reader: int) -> None:
    """Lets a trainer come to its end."""
    while os.read(reader, 1 << 16):
        pass
    os.close(reader)
    assert os.waitpid(process, 0)[1] == 0, "a trainer failed"


def kill_once(config: TrainConfig, folder: Path, kind: str, chance: random.Random) -> str:
    """Kills one life at a random moment; returns what was hit: `early`, `working`, `saving`, or `finished`.

    Args:
        config: Settings of the run.
        folder: The run folder.
        kind: What to aim at: the start, in which the run resumes, anything after some iterations, or a save.
        chance: Draws the moment.
    """
    process, reader = start(config, folder)
    heard, wanted = b"", chance.randint(1, 3)
    began = time.perf_counter()
    while kind != "early" and heard.count(b"i") < wanted:
        said = os.read(reader, 1)
        if not said:
            break
        heard += said
        if heard == b"s":
            began = time.perf_counter()
    iteration_s = (time.perf_counter() - began) / max(heard.count(b"i"), 1)
    if kind == "saving":
        give_up = time.perf_counter() + 1.0
        while not is_saving(folder, process) and time.perf_counter() < give_up:
            time.sleep(0.0005)
        time.sleep(chance.choice([0.0, chance.uniform(0.0, 0.004)]))  # a save in memory takes some 5 ms
    else:
        time.sleep(chance.uniform(0.0, 0.15 if kind == "early" else iteration_s))
    os.kill(process, signal.SIGKILL)
    status = os.waitpid(process, 0)[1]
    os.close(reader)
    if not os.WIFSIGNALED(status):
        assert status == 0, "a trainer failed"
        return "finished"
    return "saving" if is_saving(folder, process) else "early" if kind == "early" else "working"


def is_saving(folder: Path, process: int) -> bool:
    store = folder / "checkpoints"
    return store.is_dir() and any(name.startswith(f".ludus-tmp-{process}-") for name in os.listdir(store))  # noqa: PTH208


def content(folder: Path) -> dict[str, bytes]:
    """Returns all files; but not the manifests of snapshots, which count how often one was saved."""
    files = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {
        name: path.read_bytes()
        for name, path in files.items()
        if not (name.startswith("snapshots/") and path.name == "manifest.json")
    }


def main(root: Path, kills: int, seed: int, runs: dict[str, dict[str, Any]], iterations: int) -> None:
    torch.set_num_threads(1)
    chance = random.Random(seed)  # noqa: S311 - draws moments, guards nothing
    for run in runs.values():  # loads kernels and libraries before anything is forked
        with Components(make_config(run, seed, iterations)) as components:
            components.learner.collect()
    gc.freeze()  # a collection in a trainer would copy every page that it shares with this process
    counts = dict.fromkeys(("early", "working", "saving"), 0)
    names = list(runs)
    per_run = -(-kills // len(names))
    attempt = 0
    while sum(counts.values()) < kills:
        config = make_config(runs[names[attempt % len(names)]], seed + attempt, iterations)
        straight, broken = root / f"straight-{attempt}", root / f"broken-{attempt}"
        finish(*start(config, straight))
        for life in range(per_run):
            hit = kill_once(config, broken, KINDS[life % len(KINDS)], chance)
            if hit == "finished":
                break
            counts[hit] += 1
        finish(*start(config, broken))
        expected, got = content(straight), content(broken)
        assert len(expected["metrics.jsonl"].splitlines()) == iterations
        assert set(expected) == set(got), sorted(set(expected) ^ set(got))
        different = [name for name in expected if expected[name] != got[name]]
        assert not different, f"{names[attempt % len(names)]}: {different}"
        attempt += 1
    sys.stdout.write(json.dumps(counts | {"runs": attempt}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), *RUNS[sys.argv[4]])
