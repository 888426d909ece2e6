"""City: a city builder that is played through the screen."""

from ludus.envs.world import World

WORLD = World(
    id="city-v1",
    env="ludus.worlds.city.env:CityEnv",
    config="ludus.worlds.city.config:CityConfig",
    rewards="ludus.worlds.city.rewards:SETS",
    default_reward="growth",
    default_preset="quick",
    metrics="ludus.worlds.city.metrics:METRICS",
    display="ludus.worlds.city.display:DISPLAY",
    commands={
        "audit": "ludus.worlds.city.commands:audit",
        "new-profile": "ludus.worlds.city.commands:new_profile",
    },
)
