"""Agents of Rocket as bots for RLBot v5: a folder that RLBot starts, with a test of itself; for offline play only."""
