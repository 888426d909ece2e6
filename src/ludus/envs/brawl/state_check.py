"""Checks a state before a kernel sees it: kernels use some of its numbers as places in arrays, and look at none twice.

A snapshot may come from a stranger's checkpoint, or from an environment with other settings. A wrong number in it must
be an error here: a kernel would read or write beyond its arrays.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from ludus.core.errors import SnapshotError
from ludus.envs.brawl.config import BrawlConfig
from ludus.envs.brawl.kernels.structs import Item, Match, Player
from ludus.envs.brawl.rules import MOVES_PER_WEAPON, Ground, State
from ludus.envs.warp_tools import struct_views


def check_state(snapshot: Mapping[str, Tensor], weapons: int, config: BrawlConfig) -> None:
    """Raises SnapshotError unless a state can be one of an environment with these settings and so many weapons."""
    players = struct_views(snapshot["players"].contiguous(), Player)
    items = struct_views(snapshot["items"].contiguous(), Item)
    matches = struct_views(snapshot["matches"].contiguous(), Match)
    attacking = players["state"] == State.ATTACK
    lying = items["life"] > 0
    _within("player state", players["state"], 0, max(State))
    _within("player ground", players["ground"], 0, max(Ground))
    _within("player weapon", players["weapon"], 0, weapons - 1)
    _within("player move", players["move"], -1, weapons * MOVES_PER_WEAPON - 1)
    _within("player move while attacking", players["move"][attacking], 0, weapons * MOVES_PER_WEAPON - 1)
    _within("player stocks", players["stocks"], 1, config.stocks)
    _within("player facing", players["facing"].abs(), 1, 1)
    _within("player home", players["home"].abs(), 1, 1)
    _within("sum of both homes", players["home"].sum(-1), 0, 0)
    _within("frame of a match", matches["frame"], 0, config.step_limit - 1)
    _within("weapon on the stage", items["weapon"][lying], 1, weapons - 1)
    for name in ("x", "y", "vx", "vy", "damage"):
        if not bool(torch.isfinite(players[name]).all()):
            raise SnapshotError(f"snapshot of brawl: player {name} has a value that is not finite")


def _within(name: str, values: Tensor, low: int, high: int) -> None:
    wrong = values[(values < low) | (values > high)]
    if wrong.numel():
        raise SnapshotError(
            f"snapshot of brawl: {name} is {int(wrong[0])}, valid: {low} to {high}; "
            "restore it in an environment with the settings and the move table it was taken with"
        )
