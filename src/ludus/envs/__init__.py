"""Batched environments: the contract, the registry, the conformance kit, the worlds and the adapters."""

from typing import TYPE_CHECKING

from ludus.core import lazy_names

if TYPE_CHECKING:
    from ludus.envs.base import BatchedEnv, Bots, EnvRequest, EnvSpec, Mirror, Observations, Reflection, StepResult
    from ludus.envs.check import check_env
    from ludus.envs.own_games import env_name, register_env, register_world
    from ludus.envs.registry import make_env
    from ludus.envs.world import World, registered_envs

__all__ = [
    "BatchedEnv",
    "Bots",
    "EnvRequest",
    "EnvSpec",
    "Mirror",
    "Observations",
    "Reflection",
    "StepResult",
    "World",
    "check_env",
    "env_name",
    "make_env",
    "register_env",
    "register_world",
    "registered_envs",
]

_BASE = ("BatchedEnv", "Bots", "EnvRequest", "EnvSpec", "Mirror", "Observations", "Reflection", "StepResult")
_REGISTERING = ("env_name", "register_env", "register_world")
__getattr__ = lazy_names(
    __name__,
    dict.fromkeys(_BASE, "ludus.envs.base")
    | dict.fromkeys(_REGISTERING, "ludus.envs.own_games")
    | {"make_env": "ludus.envs.registry"}
    | {"check_env": "ludus.envs.check", "World": "ludus.envs.world", "registered_envs": "ludus.envs.world"},
)
