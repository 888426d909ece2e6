"""Brawl: a two-player platform fighter."""

from ludus.envs.world import World

WORLD = World(
    id="brawl-v1",
    env="ludus.worlds.brawl.env:BrawlEnv",
    config="ludus.worlds.brawl.config:BrawlConfig",
    rewards="ludus.worlds.brawl.rewards:SETS",
    default_reward="dense",
    default_preset="quick",
    default_opponent="based",
    metrics="ludus.worlds.brawl.metrics:METRICS",
    display="ludus.worlds.brawl.display:DISPLAY",
    replay_view="ludus.worlds.brawl.display:REPLAY_VIEW",
    browser="ludus.worlds.brawl.display:BROWSER",
    styles="ludus.worlds.brawl.styles:STYLES",
)
