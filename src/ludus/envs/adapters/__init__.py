"""Adapters: our worlds for other libraries, and other libraries' environments for our learner.

Each adapter's library is imported by its own module. This one registers what other modules find by a name, and alone
imports no world, no torch and no Gymnasium.
"""

import sys

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

_NAMESPACE = "ludus"


def register_gymnasium() -> None:
    """Register all worlds with Gymnasium; may be called again.

    `import ludus` does this if Gymnasium is imported already, and so does the first use of any name of `ludus` that
    needs Gymnasium. A program that imports `ludus` before Gymnasium and then uses Gymnasium alone calls it itself.
    """
    import gymnasium as gym

    from ludus.envs.world import registered_worlds

    for world in registered_worlds():
        env_id = f"{_NAMESPACE}/{world.id[0].upper()}{world.id[1:]}"
        if env_id not in gym.registry:
            gym.register(
                id=env_id,
                entry_point="ludus.envs.adapters.gymnasium_env:LudusEnv",
                vector_entry_point="ludus.envs.adapters.gymnasium_env:LudusVectorEnv",
                kwargs={"world": world.id, "opponent": world.default_opponent},
            )


def register_if_gymnasium_is_loaded() -> None:
    """Register all worlds if Gymnasium is imported, which takes ten times as long as importing `ludus`."""
    if "gymnasium" in sys.modules:
        register_gymnasium()
