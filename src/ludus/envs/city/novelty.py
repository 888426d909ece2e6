"""Novelty of the interface: menus, dialogs and windows that are open for the first time in an episode."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.envs.city.extras import Extra, Rows, Turn


class Novelty(Extra):
    """Follows which parts of the interface all games have shown.

    `new_menus` counts menus, and the first dialog and the first window, that are open for the first time in an episode;
    the event is a reward term too. Elements have an event of their own, `discovered`.
    """

    events = ("new_menus",)

    def __init__(self, menus: int, games: int) -> None:
        self._menus = menus
        self._seen: NDArray[np.bool_] = np.zeros((games, menus + 2), np.bool_)

    def begin(self, turn: Turn, games: Rows) -> None:
        """See `Extra`; what is open from the beginning is not new."""
        self._seen[games] = self._open(turn)[games]

    def follow(self, turn: Turn, events: NDArray[np.float32], measures: NDArray[np.float32]) -> None:  # noqa: ARG002
        """See `Extra`."""
        is_open = self._open(turn)
        events[:, 0] = (is_open & ~self._seen).sum(axis=1)
        self._seen |= is_open

    def state(self) -> dict[str, Tensor]:
        """See `Extra`."""
        return {"menus_seen": torch.from_numpy(self._seen)}

    def _open(self, turn: Turn) -> NDArray[np.bool_]:
        """Says what is open, `(games, menus + 2)`: each menu, a dialog, a window."""
        sight = turn.sight
        menus = sight.menu[:, None] == np.arange(self._menus)
        return np.concatenate((menus, sight.dialog[:, None], sight.window[:, None]), axis=1)
