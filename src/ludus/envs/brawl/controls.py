"""How a person plays Brawl: keyboard keys, and the action that they ask of a seat."""

from collections.abc import Collection
from typing import NamedTuple

import torch
from torch import Tensor

from ludus.envs.brawl.env import BrawlEnv
from ludus.envs.brawl.rules import KEYS, Key


class Control(NamedTuple):
    """A key of the keyboard, by its lower-case name, and what it does."""

    name: str
    key: Key
    meaning: str


CONTROLS = (
    Control("w", Key.UP, "aim up"),
    Control("a", Key.LEFT, "left"),
    Control("s", Key.DOWN, "down: aim, fast fall, drop through the platform"),
    Control("d", Key.RIGHT, "right"),
    Control("space", Key.JUMP, "jump"),
    Control("h", Key.PICKUP, "pick up / drop a weapon"),
    Control("l", Key.DODGE, "dash (with a direction) / dodge"),
    Control("j", Key.LIGHT, "light attack"),
    Control("k", Key.HEAVY, "heavy attack, hold to charge"),
    Control("g", Key.TAUNT, "taunt"),
)
# The same on two lines, for a card on the screen.
KEY_LINES = (
    "A D move   W aim up   S aim down, fall fast, drop   Space jump",
    "J light   K heavy, hold to charge   L dash or dodge   H weapon   G taunt",
)
_SWAPPED = {Key.LEFT: Key.RIGHT, Key.RIGHT: Key.LEFT}


def sees_mirrored(env: BrawlEnv, game: int, seat: int) -> bool:
    """Whether left on the screen is right in the seat's own frame, in which its own start is on the left."""
    starts_high = int(env.fields()["home"][game, seat]) > 0
    return starts_high != env.config.mirrored


def keyboard_action(held: Collection[str], *, mirrored: bool) -> Tensor:
    """Returns the action `(10,)` int8 of a seat whose player holds these keys and looks at the screen.

    Args:
        held: Names of the keys that are held; keys that are no controls are ignored.
        mirrored: See `sees_mirrored`.
    """
    action = torch.zeros(KEYS, dtype=torch.int8)
    for control in CONTROLS:
        if control.name in held:
            action[_SWAPPED.get(control.key, control.key) if mirrored else control.key] = 1
    return action
