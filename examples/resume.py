"""Cut a run off, however rudely, and go on: the result is the same, byte for byte on a CPU."""

# %% A run in its own process, which is killed in the middle.
import os
import subprocess
import sys
import time
from pathlib import Path

import ludus

STEPS = int(os.environ.get("LUDUS_EXAMPLE_STEPS", "100_000")) // 1024 * 1024

words = [
    "duel",
    f"total_env_steps={STEPS}",
    "world.num_envs=16",
    "ppo.n_steps=64",
    "ppo.batch_size=256",
    "opponents=rock",
]
words += ["checkpoints.every_iterations=1", "monitoring.console=off", "seed=3"]
folder = Path("runs/killed")
process = subprocess.Popen([sys.executable, "-m", "ludus.cli.main", "train", *words, "--run-dir", str(folder)])
while process.poll() is None and not list(folder.glob("checkpoints/step-*")):
    time.sleep(0.01)
process.kill()
process.wait()
print("killed after the checkpoints", sorted(path.name for path in folder.glob("checkpoints/step-*")))

# %% The run goes on from its newest whole checkpoint, with the schedules and random numbers it would have had.
went_on = ludus.resume(folder)

# %% A run that was never killed gives the same agent and the same tables.
never_killed = ludus.train("duel", overrides=words[1:], folder="runs/never-killed")
for name in ("checkpoints/final/policy.safetensors", "metrics.jsonl", "opponents.csv"):
    assert (went_on.folder / name).read_bytes() == (never_killed.folder / name).read_bytes(), name
print(f"{went_on.env_steps:,} env steps, and every byte is the same")
