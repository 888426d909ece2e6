"""The match loop: a batch is played until each of its games has finished its first match, and each step is watched.

Only the first match of a game counts. Counting every match that ends within some time would count short ones, which
are often the decided ones, more often than long ones.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import torch
from torch import Tensor

from ludus.envs.base import BatchedEnv, StepResult, action_dtypes
from ludus.evaluation.players import Actor

Watch: TypeAlias = Callable[[StepResult, Tensor], None]
"""Is given every step, and `(games,)` bool: the games whose first match it belongs to."""
ShareDone: TypeAlias = Callable[[float], None]
"""Is told which share of the work is done, 0 to 1."""

_LOOK_EVERY = 16  # steps between questions to the device, each of which waits for it
_WORTH_DROPPING = 0.75  # drop finished games when fewer than this share of those played is left
_MOST_STEPS = 27_000  # of a match in a world without a limit of its own

logger = logging.getLogger(__name__)


class Leaving(Actor, Protocol):
    """An actor that can leave games that are over."""

    def keep(self, games: Tensor) -> None:
        """Goes on in the games of this mask `(games,)` alone."""


def play_first_matches(
    env: BatchedEnv,
    actors: Sequence[Leaving],
    watch: Watch,
    *,
    seed: int,
    counted: Tensor | None = None,
    progress: ShareDone = lambda _: None,
) -> Tensor:
    """Plays every game from its beginning until its first match is over.

    Args:
        env: The games; they are started anew with `seed`.
        actors: Who plays; together they play all seats of the games that count.
        watch: Is given every step.
        seed: Of the games.
        counted: `(games,)` bool, games that count; all if None.
        progress: Is told now and then.

    Returns:
        Steps that each match took, `(games,)` int64; 0 where none was played. Matches of a world without a step limit
        are cut off after 27,000 steps, with a warning.
    """
    space = env.spec.action_space
    shape = (env.num_games, env.spec.seats, *(space.shape or ()))
    actions = torch.zeros(shape, dtype=action_dtypes(space)[0], device=env.device)
    observations = env.reset(seed=seed)
    everyone = torch.ones(env.num_games, dtype=torch.bool, device=env.device)
    playing = everyone if counted is None else counted.clone()
    steps = torch.zeros(env.num_games, dtype=torch.int64, device=env.device)
    limit = env.spec.step_limit or _MOST_STEPS
    total = left = seated = int(playing.sum())
    for step in range(limit):
        for actor in actors:
            actor.act(observations, actions, first=step == 0)
        result = env.step(actions)
        watch(result, playing)
        steps += playing
        playing &= ~result.ended
        observations = result.observations
        if step % _LOOK_EVERY == _LOOK_EVERY - 1 or step == limit - 1:
            left = int(playing.sum())
            progress(max(1.0 - left / total, (step + 1) / limit))
            if left == 0:
                break
            # A large batch costs a GPU hardly more than a small one, and its graphs have a fixed size.
            if env.device.type == "cpu" and left < _WORTH_DROPPING * seated:
                seated = left
                for actor in actors:
                    actor.keep(playing)
    if left:
        logger.warning("[WARN] %d of %d matches were cut off after %d steps", left, total, limit)
    return steps
