"""Put an agent into one file, give it to somebody, and play with it in any program of your own."""

# %% An agent to export.
import os

import gymnasium as gym
import numpy as np

import ludus

STEPS = int(os.environ.get("LUDUS_EXAMPLE_STEPS", "50_000"))
words = [f"total_env_steps={STEPS}", "world.num_envs=8", "monitoring.console=off", "evaluation=null"]
run = ludus.train("gym:CartPole-v1", overrides=words, folder="runs/cart-pole")

# %% One file with weights, normalisers, world and settings, and a SHA-256. It can be wrong, but it can never run code.
exported = ludus.export_agent(run.folder, "cart-pole.ludus")
print(f"{exported.path}: {exported.size_bytes:,} bytes, SHA-256 {exported.sha256[:16]}...")

# %% Whoever gets it needs no run folder. `predict` is what users of Stable-Baselines3 know.
agent = ludus.load_agent("cart-pole.ludus")
env = gym.make("CartPole-v1")
observation, _ = env.reset(seed=1)
state, start, points, over = None, np.ones(1, dtype=bool), 0.0, False
while not over:
    action, state = agent.predict(observation, state, start, deterministic=True)
    observation, reward, terminated, truncated, _ = env.step(action)
    points, over, start = points + float(reward), terminated or truncated, np.zeros(1, dtype=bool)
env.close()
print(f"{points:.0f} points in one episode")

# %% It is an agent for every command too: `ludus eval cart-pole.ludus`, and `ludus export --onnx` for other languages.
print(ludus.evaluate("cart-pole.ludus", matches=20, deterministic=True).mean_return, "points on average")
