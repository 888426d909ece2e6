"""Register the worlds with Gymnasium as `ludus/Name-v1`; this alone imports no world, no torch and no Gymnasium."""

import sys

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
