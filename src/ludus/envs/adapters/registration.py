"""Makes the worlds known to Gymnasium as `ludus/Name-v1`; this alone imports no world and no torch."""

import gymnasium as gym

# Gymnasium name -> world, and the opponent unless the caller names another. None: a world of one seat.
_WORLDS: dict[str, tuple[str, str | None]] = {
    "Brawl-v1": ("brawl-v1", "based"),
    "Duel-v1": ("duel-v1", "random"),
    "Endless-v1": ("endless-v1", None),
    "Identity-v1": ("identity-v1", None),
    "Point-v1": ("point-v1", None),
    "Recall-v1": ("recall-v1", None),
    "Rps-v1": ("rps-v1", None),
}
_NAMESPACE = "ludus"


def register_gymnasium() -> None:
    """Registers all worlds with Gymnasium; may be called again."""
    for name, (world, opponent) in _WORLDS.items():
        env_id = f"{_NAMESPACE}/{name}"
        if env_id not in gym.registry:
            gym.register(
                id=env_id,
                entry_point="ludus.envs.adapters.gymnasium_env:LudusEnv",
                vector_entry_point="ludus.envs.adapters.gymnasium_vector:LudusVectorEnv",
                kwargs={"world": world, "opponent": opponent},
            )
