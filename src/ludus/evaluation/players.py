"""Who sits in a seat: scripted players and people; agents take the same place."""

from collections.abc import Collection
from typing import Protocol

import torch
from torch import Tensor

from ludus.envs.base import BatchedEnv, Observations
from ludus.envs.brawl.controls import keyboard_action, sees_mirrored
from ludus.envs.brawl.env import BrawlEnv


class Player(Protocol):
    """Plays one seat of every game of a batch.

    Attributes:
        name: What people are shown.
    """

    name: str

    def act(self, observations: Observations, actions: Tensor, *, first: bool) -> None:
        """Writes the actions of its seat.

        Args:
            observations: `(games, seats, ...)` an entry.
            actions: `(games, seats, ...)`; all seats but its own stay as they are.
            first: Whether this is the first frame of a match, so that memory has to be forgotten.
        """


class BotPlayer:
    """A scripted player of the world."""

    def __init__(self, env: BatchedEnv, seat: int, bot: str) -> None:
        self.name = bot
        self._bots = env.bots([bot])
        self._assignment = torch.full((env.num_games, env.spec.seats), -1, dtype=torch.int32, device=env.device)
        self._assignment[:, seat] = 0

    def act(self, observations: Observations, actions: Tensor, *, first: bool) -> None:  # noqa: ARG002 - bots see all
        """Writes the bot's actions; see `Player.act`."""
        self._bots.act(self._assignment, actions)


class KeyboardPlayer:
    """A person at the keyboard, in a game of Brawl."""

    def __init__(self, env: BrawlEnv, seat: int, name: str = "you") -> None:
        self.name = name
        self._env, self._seat = env, seat
        self._held: frozenset[str] = frozenset()

    def press(self, held: Collection[str]) -> None:
        """Takes the names of the keys that are held from now on."""
        self._held = frozenset(held)

    def act(self, observations: Observations, actions: Tensor, *, first: bool) -> None:  # noqa: ARG002 - people look
        """Writes what the held keys ask for; see `Player.act`."""
        for game in range(self._env.num_games):
            mirrored = sees_mirrored(self._env, game, self._seat)
            actions[game, self._seat] = keyboard_action(self._held, mirrored=mirrored)
