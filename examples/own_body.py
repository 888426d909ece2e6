"""Let a body of your own walk: any MJCF file with a free root and actuated hinges."""

# %% Which joint of the file is which joint of the reference; the arms, which it does not know, are held straight.
import os
from pathlib import Path

import ludus

FILE = Path(__file__).with_name("own_body.xml") if "__file__" in globals() else Path("own_body.xml")
KINDS = {"hip": "hip", "hip_frontal": "swing", "knee": "knee", "ankle": "ankle"}
JOINTS = {f"{side}_{kind}": f"{name}_{side}" for side in ("right", "left") for kind, name in KINDS.items()}

# %% Axes that turn the other way are found and turned; torques and ranges are those of the file.
settings = {"body": {"file": str(FILE), "joints": JOINTS}}
with ludus.make_env("mimic", 1, config=settings) as env:
    print(f"{env.spec.action_space} of joints, {env.spec.rate_hz:g} decisions per second")

# %% It trains, is evaluated and drawn like the built-in walkers.
steps = int(os.environ.get("LUDUS_EXAMPLE_STEPS", "4_000_000"))
world = {"name": "mimic", "settings": settings}
run = ludus.train({"extends": "walk", "world": world, "total_env_steps": steps, "evaluation": {"matches": 4}})
print(run.folder)
