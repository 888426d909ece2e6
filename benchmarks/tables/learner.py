"""Tables about learning: beside other libraries, by kind of policy, by encoder, and learning curves."""

from collections import defaultdict
from typing import Any

from benchmarks.tables.markdown import read_all, read_csv, read_json, table

from ludus.core.intervals import mean_interval

_PEERS = {
    "cartpole_ppo": ("CartPole-v1, PPO 64x64, 8 games, batch 256, 10 epochs", "SB3 PPO"),
    "cartpole_lstm": ("CartPole-v1, two LSTMs of 256, batch 256, 10 epochs", "RecurrentPPO"),
}
_POLICIES = {
    "brawl_mlp": "MLP 128x128, 4 epochs",
    "brawl_mlp_one_epoch": "MLP 128x128, 1 epoch",
    "brawl_lstm": "LSTM 256, 4 epochs",
    "brawl_lstm_one_epoch": "LSTM 256, 1 epoch",
    "brawl_strategy": "full strategy agent, 10 epochs",
}


def peers() -> str:
    """Returns env steps a second beside Stable-Baselines3 and sb3-contrib."""
    data = read_json("learn_cpu.json")
    lines = [
        [
            what,
            f"{data[f'{name}_steps_per_s']:,.0f}",
            f"{peer} {data[f'{name}_peer_steps_per_s']:,.0f}",
            f"{data[f'{name}_ratio']:.1f}",
        ]
        for name, (what, peer) in _PEERS.items()
    ]
    return table([f"{_device(data)}, float32", "env steps/s", "peer", "ratio"], lines)


def brawl() -> str:
    """Returns env steps a second in brawl, and where the time goes."""
    lines = []
    for data in read_all("learn_*.json"):
        for name, what in _POLICIES.items():
            if f"{name}_steps_per_s" not in data:  # cases of a GPU alone
                continue
            shares = [f"{100 * data[f'{name}_{part}_share']:.0f} %" for part in ("simulation", "forward", "update")]
            rates = [f"{data[f'{name}_steps_per_s']:,.0f}", f"{data[f'{name}_fraction_of_limit']:.2f}"]
            lines.append([what, _device(data), *rates, *shares])
    header = ["brawl against the random bot", "device", "env steps/s", "fraction of the limit"]
    return table([*header, "simulation", "forward", "update"], lines)


def _device(data: dict[str, Any]) -> str:
    if data["device"] == "cpu":
        return f"{data['threads']} {data['processor']} cores"
    return str(data["device"]).removeprefix("NVIDIA ")


def curves() -> str:
    """Returns the return over the last tenth of the training: mean over seeds with its interval."""
    points: dict[tuple[str, str], dict[str, list[tuple[int, float]]]] = defaultdict(lambda: defaultdict(list))
    for row in read_csv("curves.csv"):
        own = points[row["world"], row["learner"]][row["seed"]]
        own.append((int(row["env_steps"]), float(row["episode_return"])))
    lines = []
    for world in dict.fromkeys(world for world, _ in points):
        cells: list[str] = []
        total, seeds = 0, 0
        for learner in ("ludus", "sb3"):
            runs = points[world, learner].values()
            total, seeds = max(total, *(run[-1][0] for run in runs)), len(runs)
            lasts = [[value for step, value in run if step > 0.9 * run[-1][0]] for run in runs]
            interval = mean_interval([sum(last) / len(last) for last in lasts])
            cells.append(f"{interval.estimate:.0f} ({interval.low:.0f} to {interval.high:.0f})")
        lines.append([world, f"{total:,}", str(seeds), *cells])
    return table(["world", "env steps", "seeds", "Ludus", "Stable-Baselines3"], lines)


def presets() -> str:
    """Returns return and time of `ludus train gym:ID` beside Stable-Baselines3 with the settings of the RL Zoo."""
    runs: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    steps: dict[str, int] = {}
    for row in read_csv("gymnasium_presets.csv"):
        runs[row["world"]][row["learner"]].append((float(row["episode_return"]), float(row["seconds"])))
        steps[row["world"]] = max(steps.get(row["world"], 0), int(row["env_steps"]))
    lines = []
    for world, learners in runs.items():
        returns, seconds = [], []
        for learner in ("ludus", "sb3"):
            interval = mean_interval([value for value, _ in learners[learner]])
            returns.append(f"{interval.estimate:,.0f} ({interval.low:,.0f} to {interval.high:,.0f})")
            seconds.append(sum(taken for _, taken in learners[learner]) / len(learners[learner]))
        seeds = str(len(learners["ludus"]))
        ratio = f"{seconds[1] / seconds[0]:.1f}"
        lines.append([world, f"{steps[world]:,}", seeds, *returns, *(f"{taken:,.0f}" for taken in seconds), ratio])
    header = [
        "environment",
        "env steps",
        "seeds",
        "Ludus, return",
        "SB3 with the Zoo's settings",
        "Ludus, CPU s",
        "SB3, CPU s",
    ]
    return table([*header, "times as fast"], lines)


def learner_device() -> str:
    """Returns env steps per second with the learner on the CPU and on a GPU, both with games on the CPU."""
    header = ["world", "games", "layers", "GFLOP per step", "learner on the CPU, env steps/s", "on an H200", "ratio"]
    lines = [
        [
            *(row["world"], row["games"], row["layers"], f"{float(row['gflop_per_step']):.3f}"),
            *(f"{int(row[f'{place}_steps_per_s']):,}" for place in ("cpu", "gpu")),
            f"{float(row['ratio']):.1f}",
        ]
        for row in read_csv("learner_device.csv")
    ]
    return table(header, lines)
