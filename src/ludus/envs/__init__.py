"""Batched environments: the contract, the registry, the conformance kit, the worlds and the adapters."""

from ludus.envs.base import BatchedEnv, Bots, EnvSpec, Observations, StepResult
from ludus.envs.registry import EnvRequest, make_env, register_env, registered_envs

__all__ = [
    "BatchedEnv",
    "Bots",
    "EnvRequest",
    "EnvSpec",
    "Observations",
    "StepResult",
    "make_env",
    "register_env",
    "registered_envs",
]
