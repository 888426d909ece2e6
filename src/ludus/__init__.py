"""Ludus trains agents that play games: thousands of games in one batch, on one device.

Importing it makes the worlds known to Gymnasium as `ludus/Brawl-v1` and so on; neither torch nor Gymnasium is
imported before its first use.
"""

from typing import TYPE_CHECKING

from ludus.core.lazy import lazy_names
from ludus.envs.adapters.registration import register_when_gymnasium_loads

if TYPE_CHECKING:
    from ludus.envs.registry import make_env, register_env, registered_envs
    from ludus.evaluation.api import evaluate
    from ludus.evaluation.contenders import load_agent
    from ludus.policies.export import export_agent
    from ludus.training.api import resume, train

__version__ = "0.1.0"
__all__ = [
    "__version__",
    "evaluate",
    "export_agent",
    "load_agent",
    "make_env",
    "register_env",
    "registered_envs",
    "resume",
    "train",
]

__getattr__ = lazy_names(
    __name__,
    {
        "evaluate": "ludus.evaluation.api",
        "export_agent": "ludus.policies.export",
        "load_agent": "ludus.evaluation.contenders",
        "make_env": "ludus.envs.registry",
        "register_env": "ludus.envs.registry",
        "registered_envs": "ludus.envs.registry",
        "resume": "ludus.training.api",
        "train": "ludus.training.api",
    },
)

register_when_gymnasium_loads()
