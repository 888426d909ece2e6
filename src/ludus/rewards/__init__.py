"""Rewards: named terms of what happened, weights that may change over time, and an account that adds up."""
