"""Off-policy learning: SAC and TD3 of Stable-Baselines3 on our games, with our rewards, agents and checkpoints."""
