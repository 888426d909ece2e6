"""Is one agent better than another? Evaluate both on the same games, with intervals, and let them meet."""

# %% Two agents that differ in one setting: the second one remembers.
import os

import ludus

STEPS = int(os.environ.get("LUDUS_EXAMPLE_STEPS", "60_000"))

settings = {
    "world": {"name": "rps-v1", "num_envs": 64},
    "total_env_steps": STEPS,
    "ppo": {"n_steps": 32, "sequence_length": 16, "batch_size": 512, "n_epochs": 4, "learning_rate": 3e-3},
    "monitoring": {"console": "off", "tensorboard": False, "curves": False},
}
plain = ludus.train(settings, folder="runs/plain")
remembering = ludus.train(settings | {"policy": {"recurrent": {"size": 32}}}, folder="runs/remembering")

# %% Equal seeds are equal games. Two numbers differ for sure if their intervals do not touch.
results = {run.folder.name: ludus.evaluate(run.folder, matches=200, seed=1).rows[0] for run in (plain, remembering)}
for name, row in results.items():
    low, high = row["mean_return_low"], row["mean_return_high"]
    print(f"{name:12} {row['mean_return']:6.2f} points of 16 ({low:.2f} to {high:.2f})")
first, second = results.values()
is_real = first["mean_return_high"] < second["mean_return_low"]
print("the difference is real" if is_real else "too close to tell: play more matches or train longer")

# %% Agents of a world with two seats can meet each other; both sides count alike.
duels = settings | {"world": {"name": "duel-v1", "num_envs": 64}, "opponents": {"rock": 1, "cycle": 1}}
champion = ludus.train(duels, folder="runs/champion")
for row in ludus.evaluate(champion.folder, ["rock", champion.folder], matches=100).rows:
    print(f"{row['win_rate']:.0%} won, {row['draws']} drawn against {row['opponent']}")
