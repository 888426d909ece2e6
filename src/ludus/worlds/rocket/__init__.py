"""Rocket: car soccer in teams of up to three."""

from ludus.envs.world import World

WORLD = World(
    id="rocket-v2",
    env="ludus.worlds.rocket.env:RocketEnv",
    config="ludus.worlds.rocket.config:RocketConfig",
    rewards="ludus.worlds.rocket.rewards:SETS",
    default_reward="dense",
    default_preset="quick",
    default_opponent="chaser",
    metrics="ludus.worlds.rocket.metrics:METRICS",
    display="ludus.worlds.rocket.display:DISPLAY",
    replay_view="ludus.worlds.rocket.display:REPLAY_VIEW",
    browser="ludus.worlds.rocket.display:BROWSER",
    commands={"rlbot": "ludus.worlds.rocket.commands:rlbot"},
)
