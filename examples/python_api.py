"""A whole run from Python: settings as keywords, a callback, more training, evaluation and the numbers."""

# %% Sections of a configuration are keyword arguments; a bot is a function, a callback an object.
import os

import torch

import ludus

STEPS = int(os.environ.get("LUDUS_EXAMPLE_STEPS", "50_000"))


def paper(observation, state):
    return torch.ones_like(observation.frame), state


class Progress(ludus.BaseCallback):
    def on_rollout_end(self, counters):
        print(f"{self.num_timesteps:,} env steps")

    def on_step(self, step):
        return self.num_timesteps < 10 * STEPS  # False stops the run


run = ludus.train(
    "duel", seed=1, total_env_steps=STEPS, opponents={"rock": 1, paper: 2}, callbacks=[Progress()],
    world={"num_envs": 16}, ppo={"n_steps": 64, "batch_size": 256}, monitoring={"console": "off"},
)  # fmt: skip

# %% Train half as long again, with the same callbacks; look at the curves; play.
run = run.learn(STEPS // 2)
metrics = run.metrics()  # pandas.DataFrame(metrics) is a data frame
print(f"entropy {metrics['entropy'][0]:.2f} -> {metrics['entropy'][-1]:.2f} in {run.env_steps:,} env steps")
print(run.evaluate(["rock", paper], matches=50).mean_win_rate, run.agent().spec.id)
