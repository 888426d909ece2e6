"""Train a fighter, look at how good it is, and keep the numbers. Minutes on two cores; run it with `python`."""

# %% The preset `quick` is an MLP against all scripted styles. Sections of a configuration are keyword arguments.
import os

import ludus

STEPS = int(os.environ.get("LUDUS_EXAMPLE_STEPS", "12_000_000"))
MATCHES = 100 if STEPS > 1_000_000 else 1

run = ludus.train(
    "brawl", preset="quick", total_env_steps=STEPS, evaluation={"matches": MATCHES}, folder="runs/my-first-bot"
)
print(f"{run.env_steps:,} env steps; everything about the run is in {run.folder}")

# %% Matches against three bots, half of them from each side, on games that training never saw.
evaluation = run.evaluate(["constant", "based", "aggressive"], matches=MATCHES)
for row in evaluation.rows:
    interval = f"{row['win_rate_low']:.0%} to {row['win_rate_high']:.0%}"
    print(f"{row['opponent']:12} {row['win_rate']:.0%} won ({interval}), damage ratio {row['damage_ratio']:.2f}")

# %% The same numbers are in files while it trains.
print(sorted(file.name for file in run.folder.iterdir()))
