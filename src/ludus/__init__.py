"""Ludus trains agents that play games: thousands of games in one batch, on one device."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ludus.envs.registry import make_env, register_env, registered_envs

__version__ = "0.1.0"

# Resolved on first use, so that `import ludus` and `ludus --help` never pay for torch.
_LAZY = {
    "make_env": "ludus.envs.registry",
    "register_env": "ludus.envs.registry",
    "registered_envs": "ludus.envs.registry",
}

__all__ = ["__version__", "make_env", "register_env", "registered_envs"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the type depends on the name
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'ludus' has no attribute {name!r}")
