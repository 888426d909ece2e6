"""A world as a single Gymnasium environment: one game, one learner, bots in the other seats."""

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, UnsupportedError
from ludus.envs.adapters.seating import (
    ActionStyle,
    HostObservations,
    SeatedBatch,
    Seating,
    mask_info,
    mask_of,
    rows,
)
from ludus.envs.base import BatchedEnv
from ludus.envs.registry import make_env

RENDER_MODES = ("rgb_array",)


class LudusEnv(gym.Env[Any, Any]):
    """One game of any world, for `gymnasium.make("ludus/Brawl-v1", opponent="based")`.

    Observations and actions are those of the world for one seat; a dict of one entry becomes that entry. `info`
    holds the step's `events` and `measures` by name and the learner's `seat`; in a world with a mask of allowed actions
    also `action_mask`, which `action_masks` gives to sb3-contrib's MaskablePPO.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": list(RENDER_MODES), "render_fps": 30}  # type: ignore[misc]

    def __init__(
        self,
        world: str,
        *,
        opponent: str | None = None,
        seat: int | None = None,
        reward: Mapping[str, float] | None = None,
        actions: ActionStyle = "native",
        config: Mapping[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Makes the game.

        Args:
            world: Registered name, such as `brawl-v1`.
            opponent: Bot in every seat but the learner's.
            seat: The learner's seat; a random one every episode if None.
            reward: Weight of each event; a default for the world if None.
            actions: `multi_discrete` presents on/off keys as MultiDiscrete.
            config: The world's own settings.
            render_mode: `rgb_array` or None.
        """
        env = make_env(world, 1, config=config)
        self._batch = SeatedBatch(env, Seating(opponent, seat, reward, actions))
        self.observation_space = self._batch.observation_space
        self.action_space = self._batch.action_space
        self.metadata = render_metadata(env)  # type: ignore[misc]
        self.render_mode = checked_render_mode(env, render_mode)
        self._seeded = False
        self._restarted: HostObservations | None = None
        self._shown: HostObservations | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[HostObservations, dict[str, Any]]:
        """Starts an episode; without a seed the first one is drawn by chance, as Gymnasium asks for."""
        super().reset(seed=seed, options=options)
        if seed is None and not self._seeded:
            seed = int(self.np_random.integers(2**63))
        if seed is not None:
            self._seeded = True
            observations = self._batch.reset(seed=seed)
        elif self._restarted is not None:
            observations = self._restarted  # the world has started anew already, when the last episode ended
        else:
            observations = self._batch.reset()
        self._restarted = None
        self._shown = rows(observations, 0)
        return self._shown, {"seat": int(self._batch.seats[0])} | mask_info(self._batch.env.spec, self._shown)

    def step(self, action: Any) -> tuple[HostObservations, float, bool, bool, dict[str, Any]]:  # noqa: ANN401
        """Plays one step against the bots."""
        seat = int(self._batch.seats[0])
        step = self._batch.step(np.asarray(action)[None])
        terminated, truncated = bool(step.terminated[0]), bool(step.truncated[0])
        ended = terminated or truncated
        self._restarted = step.observations if ended else None
        info = {
            "events": {name: float(values[0]) for name, values in step.events.items()},
            "measures": {name: float(values[0]) for name, values in step.measures.items()},
            "seat": seat,
        }
        self._shown = seen = rows(step.final_observations if ended else step.observations, 0)
        info |= mask_info(self._batch.env.spec, seen)
        return seen, float(step.rewards[0]), terminated, truncated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns which choices are allowed now, `(choices,)`.

        Raises:
            UnsupportedError: The world has no mask, or no game was started.
        """
        mask = None if self._shown is None else mask_of(self._batch.env.spec, self._shown)
        if mask is None:
            raise UnsupportedError(f"{self._batch.env.spec.id} has no mask of allowed actions, or reset was not called")
        return mask

    def render(self) -> NDArray[np.uint8] | None:
        """Draws the game, if a render mode was asked for."""
        return None if self.render_mode is None else self._batch.env.render(0)

    def close(self) -> None:
        """Releases what the world holds."""
        self._batch.env.close()


def can_render(env: BatchedEnv) -> bool:
    """Says whether a world has a renderer of its own."""
    return type(env).render is not BatchedEnv.render


def render_metadata(env: BatchedEnv) -> dict[str, Any]:
    """Returns Gymnasium's metadata of a world."""
    return {"render_modes": list(RENDER_MODES) if can_render(env) else [], "render_fps": env.spec.rate_hz}


def checked_render_mode(env: BatchedEnv, mode: str | None) -> str | None:
    """Returns the render mode, or raises ConfigError if the world cannot be drawn that way."""
    valid = RENDER_MODES if can_render(env) else ()
    if mode is not None and mode not in valid:
        raise ConfigError(f"render_mode {mode!r} is not one of {env.spec.id}; valid: {', '.join(valid) or 'only None'}")
    return mode
