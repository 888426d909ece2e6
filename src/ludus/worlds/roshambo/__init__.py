"""Roshambo: repeated rock-paper-scissors, where winning takes recognising how the opponent plays."""

from ludus.envs.world import World

WORLD = World(
    id="roshambo-v1",
    env="ludus.worlds.roshambo.env:RoshamboEnv",
    config="ludus.worlds.roshambo.config:RoshamboConfig",
    default_preset="quick",
    default_opponent="frequency",
    metrics="ludus.worlds.roshambo.metrics:METRICS",
    styles="ludus.worlds.roshambo.metrics:STYLES",
)
