"""Fight against opponents of your own: a script of keys, bots with a handicap, and agents from files."""

# %% A script of frames and keys is an opponent; `clockwork:script=FILE` plays it over and over.
import os
from pathlib import Path

import ludus

STEPS = int(os.environ.get("LUDUS_EXAMPLE_STEPS", "2_000_000"))

script = Path("jumper.yaml")
script.write_text(
    "- {frames: 10, keys: [right]}\n"
    "- {frames: 2, keys: [jump]}\n"
    "- {frames: 12, keys: [down, light]}\n"
    "- {frames: 20, keys: []}\n"
)
jumper = f"clockwork:script={script}"

# %% Opponents are a mix of weights. Delay and noise make any bot slower and less sure; `self` are past selves.
run = ludus.train(
    "brawl",
    preset="quick",
    overrides=[
        f"total_env_steps={STEPS}",
        "world.num_envs=64",
        "ppo.batch_size=1024",
        f'opponents={{"{jumper}": 2, "aggressive:delay=8,noise=0.1": 1, self: 1}}',
        "league.snapshot_every_env_steps=8192",
        "evaluation.opponents=[based]",
        "evaluation.matches=4",
    ],
    folder="runs/against-my-own",
)

# %% An agent is an opponent too, from its run folder, from a checkpoint or from an exported file.
first_self = run.folder / "checkpoints" / "init"
for row in ludus.evaluate(run.folder, [jumper, "aggressive:delay=8,noise=0.1", first_self], matches=4).rows:
    print(f"{row['win_rate']:.0%} won against {row['opponent']}")
