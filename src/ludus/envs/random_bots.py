"""A scripted player for worlds that have none: evenly drawn actions among those that are allowed."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from gymnasium import spaces
from torch import Tensor

from ludus.core.errors import UnknownNameError
from ludus.core.random import mix, stream_hash_tensor, uniform
from ludus.envs.base import BatchedEnv, Observations
from ludus.envs.spaces import action_bounds, draw_actions

RANDOM = "random"  # its name
_STREAM = 0x7B07  # keeps these numbers apart from other uses of the same counters


class BotView(NamedTuple):
    """What a random player goes by."""

    episodes: Tensor  # `(games,)` int64
    frames: Tensor  # `(games,)` int64, steps of the running episodes
    observations: Observations  # one `(games, seats, ...)` tensor per entry, for the mask of allowed actions


class RandomBots:
    """Random players; see `ludus.envs.base.Bots`.

    What they do is a function of (seed, game, episode, frame, seat), whatever else is in the batch.
    """

    def __init__(self, env: BatchedEnv, names: Sequence[str], view: Callable[[], BotView]) -> None:
        for name in names:
            if name not in env.spec.bots:
                raise UnknownNameError(f"bot of {env.spec.id}", name, env.spec.bots)
        self.names = tuple(names)
        self._env, self._view = env, view
        self._games = env.first_game + torch.arange(env.num_envs).unsqueeze(1)
        self._seats = _STREAM + torch.arange(env.spec.seats)

    def act(self, assignment: Tensor, actions: Tensor) -> None:
        """Write random actions into the seats that are assigned."""
        env, view = self._env, self._view()
        clock = view.episodes.unsqueeze(1), view.frames.unsqueeze(1)
        drawn = self._draw(stream_hash_tensor(env.seed, self._games, *clock, self._seats), view.observations)
        played = (assignment >= 0).view(*assignment.shape, *(1,) * (actions.dim() - 2))
        actions.copy_(torch.where(played, drawn.to(actions.dtype), actions))

    def _draw(self, bits: Tensor, observations: Observations) -> Tensor:
        """Return actions `(games, seats, ...)` from random bits `(games, seats)`."""
        spec = self._env.spec
        space, mask = spec.action_space, None if spec.actions.mask is None else observations[spec.actions.mask]
        if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
            factors = len(spec.choices.counts)
            noise = torch.stack([uniform(mix(bits, factor + 1)) for factor in range(factors)], -1)
            return draw_actions(spec.choices, mask, noise)
        shape = tuple(space.shape or ())
        places = range(torch.Size(shape).numel())
        noise = torch.stack([uniform(mix(bits, place + 1)) for place in places], -1).view(*bits.shape, *shape)
        if isinstance(space, spaces.MultiBinary):
            return noise < 0.5
        # An axis without bounds is drawn from -1 to 1, as far as it goes.
        low, high = (bound.clamp(-1.0, 1.0) if not bound.isfinite().all() else bound for bound in action_bounds(space))
        return low + (high - low) * noise
