"""Learn with a network of your own: features for Ludus's memory and heads, or logits and values."""

# %% A module that is told the world, and returns features of the observation.
import os

from torch import nn

import ludus


class MyNet(nn.Module):
    def __init__(self, spec, width=32):
        super().__init__()
        size = sum(entry.shape[0] for entry in spec.observation_space.values())
        self.layers = nn.Sequential(nn.Linear(size, width), nn.SiLU(), nn.Dropout(0.1), nn.LayerNorm(width))

    def forward(self, observations):
        (vector,) = observations.values()
        return self.layers(vector)


# %% On the command line: `ludus train duel --plugin own_network.py policy.module=own_network.py:MyNet`.
if __name__ == "__main__":
    run = ludus.train(
        {"world": {"name": "duel", "num_envs": 32}},
        policy={"module": MyNet, "module_kwargs": {"width": 16}},
        opponents={"cycle": 1, "self": 1},
        ppo={"n_steps": 64, "batch_size": 512, "n_epochs": 4},
        total_env_steps=int(os.environ.get("LUDUS_EXAMPLE_STEPS", "100_000")),
    )
    print(ludus.evaluate(run.folder, ["cycle"], matches=20).rows)
