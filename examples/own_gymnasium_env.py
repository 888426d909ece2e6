"""Bring your own Gymnasium environment: a class becomes a world, played in this process or in workers."""

# %% Any `gymnasium.Env`; a function that makes one, or a `gymnasium.vector.VectorEnv`, does as well.
import os

import gymnasium as gym
import numpy as np

import ludus


class Balance(gym.Env):
    observation_space = gym.spaces.Box(-2.0, 2.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, push=0.1, length=100):
        self.push, self.length = push, length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state, self.steps = self.np_random.uniform(-0.5, 0.5, 2), 0
        return self.state.astype(np.float32), {}

    def step(self, action):
        self.steps += 1
        self.state[1] += self.push * (2 * action - 1) + 0.02 * self.state[0]
        self.state[0] += 0.1 * self.state[1]
        fell = bool(np.abs(self.state).max() > 1.0)
        return np.clip(self.state, -2, 2).astype(np.float32), 1.0, fell, self.steps >= self.length, {}


# %% `env_kwargs` are the constructor's arguments; `"workers": 2` would need the class in a file of its own.
steps = int(os.environ.get("LUDUS_EXAMPLE_STEPS", "60_000"))
settings = {"env_kwargs": {"push": 0.2}}
run = ludus.train(env=Balance, total_env_steps=steps, world={"settings": settings}, monitoring={"console": "plain"})
print(f"{ludus.evaluate(run.folder, matches=20).mean_return:.0f} of 100 steps")
