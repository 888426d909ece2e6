"""Teach a walker human gait at a speed of your own. Minutes on two cores at the full budget."""

# %% Settings of the world are settings of the run; `ludus config show mimic` lists them all.
import os

import ludus

STEPS = int(os.environ.get("LUDUS_EXAMPLE_STEPS", "4_000_000"))
IS_SMALL = STEPS < 100_000

run = ludus.train(
    "mimic",
    preset="debug" if IS_SMALL else "walk",
    overrides=[f"total_env_steps={STEPS}", "world.settings.speed=1.1", "evaluation.every_env_steps=1_000_000"],
    folder="runs/walker",
)

# %% How it walks at that speed: how far, how close to the reference, and whether it stays on its feet.
(row,) = ludus.evaluate(run.folder, scenarios=[], matches=4 if IS_SMALL else 20, deterministic=True).rows
print(f"{row['distance_m']:.1f} m, imitation {row['imitation']:.2f}, {row['stable']:.0%} stayed on their feet")

# %% The same walker at another speed, which it never trained for.
faster = run.config.world.settings | {"speed": 1.3}
(row,) = ludus.evaluate(run.folder, scenarios=[], matches=4, config=faster, deterministic=True).rows
print(f"at 1.3 m/s: {row['distance_m']:.1f} m")
