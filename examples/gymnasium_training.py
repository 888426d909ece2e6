"""Train any Gymnasium environment: `gym:ID`, in this process or in workers that are replaced when they die."""

# %% Settings as a mapping have the same form as a YAML file, and are checked by the same schema.
import os

import ludus

STEPS = int(os.environ.get("LUDUS_EXAMPLE_STEPS", "60_000"))

settings = {
    "extends": "default",
    "world": {"name": "gym:CartPole-v1", "num_envs": 8, "settings": {"workers": 0}},
    "total_env_steps": STEPS,
    "evaluation": {"every_env_steps": max(STEPS // 3, 1), "matches": 20, "deterministic": True},
    "monitoring": {"console": "plain"},
}
run = ludus.train(settings, folder="runs/cart-pole-trained")

# %% The best agent of all evaluations was kept.
best = ludus.evaluate(run.folder, matches=50, deterministic=True)
print(f"{best.mean_return:.0f} of 500 points")

# %% Where games are dear, SAC and TD3 need fewer of them: `algorithm: sac`, with `pip install -e ".[sb3]"`.
pendulum = ludus.train(
    "gym:Pendulum-v1",
    preset="default",  # that of Pendulum is for PPO
    total_env_steps=min(STEPS // 4, 10_000),
    algorithm="sac",
    world={"num_envs": 4},
    policy={"activation": "relu", "net_arch": {"pi": [64, 64], "vf": [64, 64]}},
    sac={"learning_rate": 1e-3, "learning_starts": 100, "buffer_size": 20_000},
    evaluation=None,
    monitoring={"console": "off"},
    folder="runs/pendulum",
)
print(f"{ludus.evaluate(pendulum.folder, matches=10, deterministic=True).mean_return:.0f} points; 0 would be perfect")
