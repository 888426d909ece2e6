"""Games on the CPU, policy and learner on a GPU: for worlds that only run on the CPU, with networks that are large."""

# %% Say where the learner lives; `auto` decides by the size of the network.
import os

import torch

import ludus

STEPS = int(os.environ.get("LUDUS_EXAMPLE_STEPS", "100_000"))

run = ludus.train(
    "gym:Pendulum-v1", learner_device="cuda" if torch.cuda.is_available() else "cpu", total_env_steps=STEPS,
    world={"num_envs": 16}, policy={"net_arch": {"pi": [256, 256], "vf": [256, 256]}},
    ppo={"n_steps": 64}, evaluation=None, monitoring={"console": "off"},
)  # fmt: skip

# %% The agent plays on any device.
print(run.evaluate(matches=10, device="cpu").mean_return)

# %% Batches of your own can have their tensors on the GPU too: the games are played where they can be.
with ludus.make_env("gym:Pendulum-v1", num_envs=4, device="cuda" if torch.cuda.is_available() else "cpu") as env:
    print(env.reset()["vector"].device, "sees games on", env.games_device)
