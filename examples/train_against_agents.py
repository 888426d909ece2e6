"""Train against agents from files: other runs, checkpoints and exported agents."""

# %% Two short runs with other seeds are the opponents.
import os

import ludus

STEPS = int(os.environ.get("LUDUS_EXAMPLE_STEPS", "1_000_000"))
small = [f"total_env_steps={STEPS}", "world.num_envs=64", "ppo.batch_size=1024", "evaluation.matches=2"]
first = ludus.train("brawl", overrides=[*small, "seed=1"], folder="runs/first")
second = ludus.train("brawl", overrides=[*small, "seed=2"], folder="runs/second")
champion = ludus.export_agent(second.folder, "champion.ludus").path

# %% A mix replaces the preset's; copies of the agents go into the run folder, so that it resumes exactly.
mix = {first.folder: 2, champion: 1, first.folder / "checkpoints" / "init": 1, "self": 1}
run = ludus.train("brawl", opponents=mix, overrides=small, folder="runs/third")

# %% How does it do against them?
for row in ludus.evaluate(run.folder, [first.folder, champion], matches=20).rows:
    print(f"{row['win_rate']:.0%} won against {row['opponent']}")
