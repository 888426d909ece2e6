"""Policies: networks, memory and an action distribution behind one interface."""

from ludus.policies.user_module import register_network

__all__ = ["register_network"]
