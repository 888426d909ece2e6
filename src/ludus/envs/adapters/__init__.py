"""Adapters: our worlds for other libraries, and other libraries' environments for our learner.

Each adapter's library is imported by its own module; `registration` registers the worlds with Gymnasium.
"""

from ludus.envs.families import Family, register_family

register_family(
    "gym",
    Family(
        find="ludus.envs.adapters.names:gymnasium_world",
        module="ludus.envs.adapters.names:gymnasium_module",
        is_registered="ludus.envs.adapters.gymnasium_factory:is_registered",
    ),
)
register_family(
    "pettingzoo",
    Family(
        find="ludus.envs.own_games:pettingzoo_world",
        module="ludus.envs.adapters.names:pettingzoo_module",
        is_registered="ludus.envs.adapters.names:is_pettingzoo_imported",
    ),
)
