"""Reward something of your own: a term is one decorated function, its weight one setting."""

# %% A term is a pure function of what happened in a step and gives one number a game and seat.
import os

from torch import Tensor

import ludus
from ludus.rewards import StepInfo, reward_term

STEPS = int(os.environ.get("LUDUS_EXAMPLE_STEPS", "2_000_000"))


@reward_term("brawl")
def high_ground(info: StepInfo) -> Tensor:
    """Seconds above the opponent."""
    is_above = info.state_metrics["y"] > info.state_metrics["opponent_y"]
    return is_above.float() * info.seconds


# %% The term joins the set `dense` of the preset, with a weight that fades away.
settings = {
    "extends": "quick",
    "world": {"name": "brawl", "num_envs": 64},
    "total_env_steps": STEPS,
    "ppo": {"batch_size": 1024},
    "rewards": {"weights": {"high_ground": {"points": [[0, 0.1], [STEPS, 0.0]]}}},
    "evaluation": {"opponents": ["based"], "matches": 2},
}
run = ludus.train(settings, folder="runs/high-ground")

# %% Every term is accounted for separately, and the terms add up to the reward exactly.
header, *lines = (run.folder / "reward_breakdown.csv").read_text().splitlines()
last = dict(zip(header.split(","), map(float, lines[-1].split(",")), strict=True))
terms = {name: value for name, value in last.items() if name not in ("iteration", "env_steps", "total")}
assert sum(terms.values()) == last["total"]
print({name: round(value, 3) for name, value in terms.items()})
