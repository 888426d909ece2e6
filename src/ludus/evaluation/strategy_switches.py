"""Bots that change their style during a match, and which style they follow at the moment."""

import torch
from torch import Tensor

from ludus.envs.base import BatchedEnv
from ludus.envs.brawl.env import BrawlEnv
from ludus.envs.brawl.kernels.bot_styles import Memo
from ludus.envs.warp_tools import struct_views

_SWITCHER = "switcher"


def switching_bots(env: BatchedEnv) -> tuple[str, ...]:
    """Returns the bots of a world that change their style during a match; those of all others keep one."""
    return (_SWITCHER,) if isinstance(env, BrawlEnv) else ()


def styles_now(env: BatchedEnv, seats: Tensor) -> Tensor:
    """Returns which style the switching bots follow, after they have acted on the current frame.

    Args:
        env: The games, of a world that has such bots.
        seats: `(games, seats)` bool, one seat of each game: the bot's.

    Returns:
        `(games,)` int64, indices into `spec.bots`; -1 in any other world.
    """
    if not isinstance(env, BrawlEnv):
        return torch.full((env.num_games,), -1, dtype=torch.int64, device=env.device)
    return struct_views(env.bot_memory, Memo)["style"][seats].to(torch.int64)
