"""A world of your own in one folder: `nudge/` beside this file has rules, rewards, behaviour numbers and a preset."""

# %% A world is registered by the name of the function that makes it; nothing is imported before it is used.
import os

import ludus
from ludus.envs.check import check_env

ludus.register_env("nudge-v1", "nudge.env:make", "nudge.env:NudgeSettings")

# %% The conformance kit checks shapes, ends, seeds, snapshots and more, and names every fault.
print(check_env("nudge-v1"))

# %% Everything works with it: presets, training, evaluation, files.
STEPS = int(os.environ.get("LUDUS_EXAMPLE_STEPS", "20_000"))
run = ludus.train("nudge", preset="quick", overrides=[f"total_env_steps={STEPS}"], folder="runs/nudge")
row = ludus.evaluate(run.folder, matches=100).rows[0]
print(f"{row['arrived']:.0%} arrived, in {row['time_s']:.1f} s; the best way takes 0.5 s on average")
