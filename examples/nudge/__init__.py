"""A world in one folder: the rules in `env`, reward terms in `rewards`, behaviour numbers, presets."""
