"""Rewards: named terms of what happened, weights that may change over time, and an account that adds up.

Its names are imported on first use: a worker process that loads a plugin needs no torch.
"""

from typing import TYPE_CHECKING

from ludus.core import lazy_names

if TYPE_CHECKING:
    from ludus.rewards.step_info import StepInfo
    from ludus.rewards.terms import reward_term

__all__ = ["StepInfo", "reward_term"]

__getattr__ = lazy_names(__name__, {"StepInfo": "ludus.rewards.step_info", "reward_term": "ludus.rewards.terms"})
