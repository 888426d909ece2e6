"""Who sits in a seat: scripted players, agents and people."""

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

import torch
from torch import Tensor

from ludus.algorithms.ppo.stepping import Stepper
from ludus.core.errors import ConfigError, UnsupportedError
from ludus.envs.base import BatchedEnv, Observations
from ludus.envs.stage import Thought
from ludus.evaluation.stage import playable, stage_of
from ludus.policies.choosing import kind_shares
from ludus.policies.memory import Memory
from ludus.policies.policy import Policy


class Actor(Protocol):
    """Plays some seats of the games of a batch."""

    def act(self, observations: Observations, actions: Tensor, *, first: bool) -> None:
        """Writes the actions of its seats.

        Args:
            observations: `(games, seats, ...)` an entry.
            actions: `(games, seats, ...)`; all seats but its own stay as they are.
            first: Whether this is the first frame of a match, so that memory has to be forgotten.
        """


class Player(Actor, Protocol):
    """Plays one seat of every game of a batch.

    Attributes:
        name: What people are shown.
    """

    name: str


class BotRoster:
    """Scripted players of the world, any of them in any seat."""

    def __init__(self, env: BatchedEnv, names: Sequence[str], assignment: Tensor) -> None:
        """Seats them.

        Args:
            env: The games.
            names: The bots.
            assignment: `(games, seats)` int32, index into `names`, or -1 for a seat that no bot plays.
        """
        self._bots, self._assignment = env.bots(names), assignment

    def act(self, observations: Observations, actions: Tensor, *, first: bool) -> None:  # noqa: ARG002 - bots see all
        """Writes the bots' actions; see `Actor.act`."""
        self._bots.act(self._assignment, actions)

    def keep(self, games: Tensor) -> None:
        """Goes on in the games of this mask `(games,)` alone, so that the others cost nothing."""
        self._assignment = torch.where(games.unsqueeze(1), self._assignment, -1)


class BotPlayer:
    """A scripted player of the world, in the same seat of every game."""

    def __init__(self, env: BatchedEnv, seat: int, bot: str) -> None:
        self.name = bot
        self._roster = BotRoster(env, [bot], one_seat(env, seat).int() - 1)

    def act(self, observations: Observations, actions: Tensor, *, first: bool) -> None:
        """Writes the bot's actions; see `Actor.act`."""
        self._roster.act(observations, actions, first=first)


class AgentPlayer:
    """A policy, with a memory of its own for every seat that it plays; its statistics do not change.

    Attributes:
        name: What people are shown.
        hear: Is told before every step what it thinks in the first of its seats; None if nobody listens.
    """

    def __init__(
        self,
        env: BatchedEnv,
        seats: Tensor,
        policy: Policy,
        *,
        name: str = "agent",
        seed: int = 0,
        deterministic: bool = False,
        stepper: Stepper | None = None,
    ) -> None:
        """Seats the policy.

        Args:
            env: The games.
            seats: `(games, seats)` bool, which seats it plays; `one_seat` gives the same one of all games.
            policy: Who plays, on the device of the games.
            name: What people are shown.
            seed: Of actions that are drawn.
            deterministic: Whether the most likely action is taken instead.
            stepper: Who steps the policy where actions are drawn; plain calls if None.

        Raises:
            ConfigError: The policy is on another device than the games.
        """
        if policy.device.type != env.device.type:
            raise ConfigError(f"the agent is on {policy.device}, the games are on {env.device}; load it there")
        self.name = name
        self.hear: Callable[[Thought], None] | None = None
        self._policy, self._stepper, self._deterministic = policy, stepper or policy, deterministic
        self._generator = torch.Generator(policy.device).manual_seed(seed)
        self._seats = env.spec.seats
        self._index = seats.flatten().nonzero().squeeze(1)
        self._memory: Memory = {}
        self._noise: Tensor | None = None

    def act(self, observations: Observations, actions: Tensor, *, first: bool) -> None:
        """Writes the policy's actions; see `Actor.act`."""
        if first:
            self._memory, self._noise = self._policy.initial(len(self._index)), None
        rows = {name: tensor.flatten(0, 1).index_select(0, self._index) for name, tensor in observations.items()}
        starts = torch.full(self._index.shape, first, dtype=torch.bool, device=self._index.device)
        if self.hear is not None:
            self.hear(self._think(rows, starts))
        noise = self._draw()
        if noise is None:
            step = self._policy.step(rows, self._memory, starts)
        else:
            step = self._stepper.step(rows, self._memory, starts, noise)
        self._memory = step.memory
        chosen = self._policy.clip_actions(step.actions).to(actions.dtype)
        actions.flatten(0, 1).index_copy_(0, self._index, chosen)

    def keep(self, games: Tensor) -> None:
        """Goes on in the games of this mask `(games,)` alone, so that the others cost nothing."""
        kept = games[self._index.div(self._seats, rounding_mode="floor")]
        self._index = self._index[kept]
        self._memory = {name: tensor[kept] for name, tensor in self._memory.items()}
        self._noise = None

    def _think(self, rows: Observations, starts: Tensor) -> Thought:
        memory = {name: tensor.clone() for name, tensor in self._memory.items()}  # the step itself will use it up
        one = {name: tensor.unsqueeze(0) for name, tensor in rows.items()}
        shares = kind_shares(self._policy, one, memory, starts.unsqueeze(0), explores=False)
        return Thought(tuple(shares[0, 0].tolist()), float(self._policy.value(rows, memory, starts)[0]))

    def _draw(self) -> Tensor | None:
        """Draws noise for every step, or for as long as the same games are played if the head holds it."""
        if not self._deterministic and (self._noise is None or not self._policy.head.hold_noise):
            self._noise = self._policy.draw_noise(1, len(self._index), self._generator)[0]
        return self._noise


class KeyboardPlayer:
    """A person at the keyboard, in a batch of one game."""

    def __init__(self, env: BatchedEnv, seat: int, name: str = "you") -> None:
        """Seats the person.

        Raises:
            UnsupportedError: The world cannot be played with a keyboard.
        """
        maker = stage_of(env.spec.id).keyboard
        if maker is None:
            raise UnsupportedError(f"{env.spec.id} cannot be played with a keyboard; valid: {', '.join(playable())}")
        self.name = name
        self._keyboard, self._seat = maker(env, seat), seat
        self._held: frozenset[str] = frozenset()

    def press(self, held: Collection[str]) -> None:
        """Takes the names of the keys that are held from now on."""
        self._held = frozenset(held)

    def act(self, observations: Observations, actions: Tensor, *, first: bool) -> None:  # noqa: ARG002 - people look
        """Writes what the held keys ask for; see `Actor.act`."""
        actions[0, self._seat] = self._keyboard.action(self._held)


def one_seat(env: BatchedEnv, seat: int) -> Tensor:
    """Returns the mask `(games, seats)` of one seat of every game."""
    seats = torch.zeros((env.num_games, env.spec.seats), dtype=torch.bool, device=env.device)
    seats[:, seat] = True
    return seats
