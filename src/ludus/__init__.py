"""Ludus trains agents that play games: thousands of games in one batch, on one device.

Importing it makes the worlds known to Gymnasium as `ludus/Brawl-v1` and so on; neither torch nor Gymnasium is
imported before its first use.
"""

import os
from typing import TYPE_CHECKING

from ludus.core import __version__, lazy_names
from ludus.envs.adapters.registration import register_when_gymnasium_loads

if TYPE_CHECKING:
    from ludus.algorithms.algorithm import register_algorithm
    from ludus.core.errors import ConfigError, LudusError, UnknownNameError
    from ludus.envs.bots import register_bot
    from ludus.envs.check import check_env
    from ludus.envs.registry import make_env, register_env, register_world
    from ludus.envs.world import World, registered_envs
    from ludus.evaluation.evaluate import evaluate
    from ludus.evaluation.play_match import play_match
    from ludus.evaluation.players import load_agent
    from ludus.policies.export import export_agent
    from ludus.rewards.terms import reward_term
    from ludus.training.api import resume, train

__all__ = [
    "ConfigError",
    "LudusError",
    "UnknownNameError",
    "World",
    "__version__",
    "check_env",
    "evaluate",
    "export_agent",
    "load_agent",
    "make_env",
    "play_match",
    "register_algorithm",
    "register_bot",
    "register_env",
    "register_world",
    "registered_envs",
    "resume",
    "reward_term",
    "train",
]

__getattr__ = lazy_names(
    __name__,
    {
        "ConfigError": "ludus.core.errors",
        "LudusError": "ludus.core.errors",
        "UnknownNameError": "ludus.core.errors",
        "World": "ludus.envs.world",
        "check_env": "ludus.envs.check",
        "evaluate": "ludus.evaluation.evaluate",
        "export_agent": "ludus.policies.export",
        "load_agent": "ludus.evaluation.players",
        "make_env": "ludus.envs.registry",
        "play_match": "ludus.evaluation.play_match",
        "register_algorithm": "ludus.algorithms.algorithm",
        "register_bot": "ludus.envs.bots",
        "register_env": "ludus.envs.registry",
        "register_world": "ludus.envs.registry",
        "registered_envs": "ludus.envs.world",
        "resume": "ludus.training.api",
        "reward_term": "ludus.rewards.terms",
        "train": "ludus.training.api",
    },
)


def __dir__() -> list[str]:
    return sorted(__all__)


# ONNX Runtime, which reads text off screens, reports to its maker's servers unless this says otherwise.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

register_when_gymnasium_loads()
