"""Train with Stable-Baselines3 in a world of ours: a batch of games is one of its vector environments."""

# %% `pip install -e ".[sb3]"`. Bots take the other seat, and weights turn events into a reward.
import os
from typing import Any

from stable_baselines3 import PPO

from ludus.envs.adapters.sb3 import LudusVecEnv

STEPS = int(os.environ.get("LUDUS_EXAMPLE_STEPS", "200_000"))

envs = LudusVecEnv("brawl", 32, opponent="based", reward={"damage_dealt": 0.01, "knockouts": 1.0, "falls": -1.0})
model = PPO("MlpPolicy", envs, n_steps=64, batch_size=512, n_epochs=2, device="cpu", verbose=0)
model.learn(STEPS)

# %% What it learned, in the same games.
observations: Any = envs.reset()
dealt = 0.0
for _frame in range(300):
    observations, rewards, _dones, _infos = envs.step(model.predict(observations)[0])
    dealt += float(rewards.sum())
envs.close()
print(f"a reward of {dealt / 32:.2f} a game in 10 seconds of play")
