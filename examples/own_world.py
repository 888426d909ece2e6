"""A world of your own: the project in `own_world/` declares `nudge-v1` as an entry point; see its `pyproject.toml`."""

# %% `pip install ./own_world` makes it known everywhere. Without installing it, register its record by hand.
import os
import sys
from pathlib import Path

import ludus
from ludus.envs.check import check_env

sys.path.insert(0, str(Path(__file__).parent / "own_world"))
from nudge import WORLD

if WORLD.id not in ludus.registered_envs():
    ludus.register_world(WORLD)

# %% The conformance kit checks shapes, ends, seeds, snapshots and more, and names every fault.
print(check_env("nudge-v1"))

# %% Everything works with it: presets, training, evaluation, files.
STEPS = int(os.environ.get("LUDUS_EXAMPLE_STEPS", "20_000"))
run = ludus.train("nudge", preset="quick", overrides=[f"total_env_steps={STEPS}"], folder="runs/nudge")
row = ludus.evaluate(run.folder, matches=100).rows[0]
print(f"{row['arrived']:.0%} arrived, in {row['time_s']:.1f} s; the best way takes 0.5 s on average")
