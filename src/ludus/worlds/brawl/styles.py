"""Brawl's labels for the strategy analysis: the switching bot's style, fields that show actions, names of keys."""

import torch
from torch import Tensor

from ludus.core.errors import UnsupportedError
from ludus.envs.base import BatchedEnv
from ludus.envs.warp_tools import struct_views
from ludus.envs.world_parts import StyleLabels
from ludus.worlds.brawl.env import BrawlEnv
from ludus.worlds.brawl.kernels.structs import Memo
from ludus.worlds.brawl.observation import FIELDS
from ludus.worlds.brawl.rules import Key

_ACTIONS = ("state_", "phase_", "connected")  # fields that say what a fighter does


def current_style(env: BatchedEnv, seats: Tensor) -> Tensor:
    """Return the style that the switching bots follow; see `ludus.envs.world_parts.StyleLabels`."""
    env = env.unwrapped
    if not isinstance(env, BrawlEnv):
        raise UnsupportedError(f"these are the styles of brawl, not of {env.spec.id}")
    return struct_views(env.bot_memory, Memo)["style"][seats].to(torch.int64)


def _action_fields() -> dict[int, str]:
    names = {index: field.name.rpartition(".")[2] for index, field in enumerate(FIELDS)}
    return {
        index: name.removeprefix("state_").replace("_", " ")
        for index, name in names.items()
        if name.startswith(_ACTIONS)
    }


STYLES = StyleLabels(("switcher",), current_style, _action_fields(), tuple(key.name.lower() for key in Key))
