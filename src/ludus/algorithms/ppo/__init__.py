"""Proximal policy optimisation: rollout buffer, advantages, loss and update as small separate parts."""
