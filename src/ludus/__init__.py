"""Ludus trains agents that play games: thousands of games in one batch, on one device.

Importing it makes the worlds known to Gymnasium as `ludus/Brawl-v1` and so on; neither torch nor Gymnasium is
imported before its first use.
"""

from typing import TYPE_CHECKING

from ludus.core.lazy import lazy_names
from ludus.envs.adapters.registration import register_when_gymnasium_loads

if TYPE_CHECKING:
    from ludus.envs.registry import make_env, register_env, registered_envs

__version__ = "0.1.0"
__all__ = ["__version__", "make_env", "register_env", "registered_envs"]

__getattr__ = lazy_names(
    __name__, dict.fromkeys(("make_env", "register_env", "registered_envs"), "ludus.envs.registry")
)

register_when_gymnasium_loads()
