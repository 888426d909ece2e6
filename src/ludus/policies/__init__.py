"""Policies: networks, memory and an action distribution behind one interface."""

from typing import TYPE_CHECKING

from ludus.core import lazy_names

if TYPE_CHECKING:
    from ludus.policies.cost import LoadLimits
    from ludus.policies.user_module import register_network

__all__ = ["LoadLimits", "register_network"]

# Lazy, so that `ludus agents` and the completion of agent names never import torch.
__getattr__ = lazy_names(
    __name__, {"LoadLimits": "ludus.policies.cost", "register_network": "ludus.policies.user_module"}
)
