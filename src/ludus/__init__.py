"""Ludus trains agents that play games: thousands of games in one batch, on one device.

The names below are the API; `docs/howto/python.md` describes them. `import ludus` is quick, because torch, Gymnasium
and the worlds are imported by the first name that needs them.

    import gymnasium as gym
    import ludus

    gym.register_envs(ludus)
    env = gym.make("ludus/Brawl-v1")
"""

import os
from typing import TYPE_CHECKING, Any

from ludus.core import __version__, lazy_names
from ludus.envs.adapters import register_gymnasium, register_if_gymnasium_is_loaded

if TYPE_CHECKING:
    from ludus.algorithms.algorithm import register_algorithm
    from ludus.core.errors import (
        BotError,
        CallbackError,
        CheckpointError,
        ConfigError,
        ConfigMismatchError,
        DeviceError,
        EnvFaultError,
        LudusError,
        MissingDependencyError,
        NetworkError,
        NotFiniteError,
        RunLockedError,
        StoreError,
        UnknownNameError,
        UnsupportedError,
        VerificationError,
    )
    from ludus.envs.bots import register_bot
    from ludus.envs.check import check_env
    from ludus.envs.registry import make_env, register_env, register_world
    from ludus.envs.stored import allow_files
    from ludus.envs.world import World, registered_envs
    from ludus.evaluation.evaluate import evaluate
    from ludus.evaluation.play_match import play_match
    from ludus.evaluation.players import load_agent
    from ludus.policies.agent import Agent
    from ludus.policies.export import export_agent
    from ludus.policies.user_module import register_network
    from ludus.rewards.terms import reward_term
    from ludus.training.api import TrainedRun, resume, train
    from ludus.training.callbacks import BaseCallback

_HOMES = {
    "Agent": "ludus.policies.agent",
    "BaseCallback": "ludus.training.callbacks",
    "BotError": "ludus.core.errors",
    "CallbackError": "ludus.core.errors",
    "CheckpointError": "ludus.core.errors",
    "ConfigError": "ludus.core.errors",
    "ConfigMismatchError": "ludus.core.errors",
    "DeviceError": "ludus.core.errors",
    "EnvFaultError": "ludus.core.errors",
    "LudusError": "ludus.core.errors",
    "MissingDependencyError": "ludus.core.errors",
    "NetworkError": "ludus.core.errors",
    "NotFiniteError": "ludus.core.errors",
    "RunLockedError": "ludus.core.errors",
    "StoreError": "ludus.core.errors",
    "TrainedRun": "ludus.training.api",
    "UnknownNameError": "ludus.core.errors",
    "UnsupportedError": "ludus.core.errors",
    "VerificationError": "ludus.core.errors",
    "World": "ludus.envs.world",
    "allow_files": "ludus.envs.stored",
    "check_env": "ludus.envs.check",
    "evaluate": "ludus.evaluation.evaluate",
    "export_agent": "ludus.policies.export",
    "load_agent": "ludus.evaluation.players",
    "make_env": "ludus.envs.registry",
    "play_match": "ludus.evaluation.play_match",
    "register_algorithm": "ludus.algorithms.algorithm",
    "register_bot": "ludus.envs.bots",
    "register_env": "ludus.envs.registry",
    "register_network": "ludus.policies.user_module",
    "register_world": "ludus.envs.registry",
    "registered_envs": "ludus.envs.world",
    "resume": "ludus.training.api",
    "reward_term": "ludus.rewards.terms",
    "train": "ludus.training.api",
}

__all__ = [
    "Agent",
    "BaseCallback",
    "BotError",
    "CallbackError",
    "CheckpointError",
    "ConfigError",
    "ConfigMismatchError",
    "DeviceError",
    "EnvFaultError",
    "LudusError",
    "MissingDependencyError",
    "NetworkError",
    "NotFiniteError",
    "RunLockedError",
    "StoreError",
    "TrainedRun",
    "UnknownNameError",
    "UnsupportedError",
    "VerificationError",
    "World",
    "__version__",
    "allow_files",
    "check_env",
    "evaluate",
    "export_agent",
    "load_agent",
    "make_env",
    "play_match",
    "register_algorithm",
    "register_bot",
    "register_env",
    "register_gymnasium",
    "register_network",
    "register_world",
    "registered_envs",
    "resume",
    "reward_term",
    "train",
]

_resolve = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the type depends on the name
    found = _resolve(name)
    register_if_gymnasium_is_loaded()
    return found


def __dir__() -> list[str]:
    return sorted(__all__)


# ONNX Runtime, which reads text off screens, reports to its maker's servers unless this says otherwise.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

register_if_gymnasium_is_loaded()
