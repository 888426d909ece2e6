"""Rewards: named terms of what happened, weights that may change over time, and an account that adds up."""

from ludus.rewards.moment import Moment
from ludus.rewards.terms import reward_term

__all__ = ["Moment", "reward_term"]
