"""Worlds as Gymnasium environments: one game, or the whole batch as a vector environment."""

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, UnsupportedError
from ludus.envs.adapters.seating import (
    ActionStyle,
    HostObservations,
    SeatedBatch,
    SeatedStep,
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
    holds the step's `events` and `state_metrics` by name and the learner's `seat`; in a world with a mask of allowed
    actions also `action_mask`, which `action_masks` gives to sb3-contrib's MaskablePPO.
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
        """Make the game.

        Args:
            world: Registered name, such as `brawl-v1`.
            opponent: Bot in every seat but the learner's.
            seat: The learner's seat; a random one every episode if None.
            reward: Weight of each reward term or event; the reward of `ludus train` if None.
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
        """Start an episode; without a seed the first one is random, as Gymnasium requires."""
        super().reset(seed=seed, options=options)
        if seed is None and not self._seeded:
            seed = int(self.np_random.integers(2**63))
        self._seeded = True
        restarted = self._restarted if seed is None else None  # by the world, when the last episode ended
        observations = self._batch.reset(seed=seed) if restarted is None else restarted
        self._restarted = None
        self._shown = rows(observations, 0)
        return self._shown, {"seat": int(self._batch.seats[0])} | mask_info(self._batch.env.spec, self._shown)

    def step(self, action: Any) -> tuple[HostObservations, float, bool, bool, dict[str, Any]]:  # noqa: ANN401
        """Play one step against the bots."""
        seat = int(self._batch.seats[0])
        step = self._batch.step(np.asarray(action)[None])
        terminated, truncated = bool(step.terminated[0]), bool(step.truncated[0])
        ended = terminated or truncated
        self._restarted = step.observations if ended else None
        info = {
            "events": {name: float(values[0]) for name, values in step.events.items()},
            "state_metrics": {name: float(values[0]) for name, values in step.state_metrics.items()},
            "seat": seat,
        }
        self._shown = seen = rows(step.final_observations if ended else step.observations, 0)
        info |= mask_info(self._batch.env.spec, seen)
        return seen, float(step.rewards[0]), terminated, truncated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which choices are allowed now, `(choices,)`; UnsupportedError without a mask or a started game."""
        mask = None if self._shown is None else mask_of(self._batch.env.spec, self._shown)
        if mask is None:
            raise UnsupportedError(f"{self._batch.env.spec.id} has no mask of allowed actions, or reset was not called")
        return mask

    def render(self) -> NDArray[np.uint8] | None:
        """Draw the game, if a render mode was asked for."""
        return None if self.render_mode is None else self._batch.env.render(0)

    def close(self) -> None:
        """Release what the world holds."""
        self._batch.env.close()


def can_render(env: BatchedEnv) -> bool:
    """Return whether a world has its own renderer."""
    return type(env).render is not BatchedEnv.render


def render_metadata(env: BatchedEnv) -> dict[str, Any]:
    """Return Gymnasium's metadata of a world."""
    return {"render_modes": list(RENDER_MODES) if can_render(env) else [], "render_fps": env.spec.rate_hz}


def checked_render_mode(env: BatchedEnv, mode: str | None) -> str | None:
    """Return the render mode, or raises ConfigError if the world cannot be drawn that way."""
    valid = RENDER_MODES if can_render(env) else ()
    if mode is not None and mode not in valid:
        raise ConfigError(f"render_mode {mode!r} is not one of {env.spec.id}; valid: {', '.join(valid) or 'only None'}")
    return mode


class LudusVectorEnv(gym.vector.VectorEnv[Any, Any, NDArray[Any]]):
    """Many games of any world, for `gymnasium.make_vec("ludus/Brawl-v1", num_envs=1024)`.

    Games that end restart within the step (`AutoresetMode.SAME_STEP`): `infos["final_obs"]` holds the last
    observation of each (None for the others), `infos["final_info"]` what happened in that step. `infos["events"]`
    and `infos["state_metrics"]` hold one array per name, `infos["action_mask"]` what is allowed, in worlds with a mask.
    """

    def __init__(
        self,
        world: str,
        num_envs: int = 1,
        *,
        opponent: str | None = None,
        seat: int | None = None,
        reward: Mapping[str, float] | None = None,
        actions: ActionStyle = "native",
        config: Mapping[str, Any] | None = None,
        device: str | torch.device = "cpu",
        render_mode: str | None = None,
    ) -> None:
        """Make the games; the arguments are those of `LudusEnv`, and the device that the games live on."""
        env = make_env(world, num_envs, device, config=config)
        self._batch = SeatedBatch(env, Seating(opponent, seat, reward, actions))
        self.num_envs = num_envs
        self.metadata = render_metadata(env) | {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.render_mode = checked_render_mode(env, render_mode)
        self.single_observation_space = self._batch.observation_space
        self.single_action_space = self._batch.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._seeded = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[HostObservations, dict[str, Any]]:
        """Start new episodes, in all games or in those of `options["reset_mask"]` `(num_envs,)` bool."""
        super().reset(seed=seed)
        mask = None if options is None else options.get("reset_mask")
        if seed is None and not self._seeded:
            seed = int(self.np_random.integers(2**63))
            if mask is not None:
                self._batch.reset(seed=seed)
                seed = None
        self._seeded = True
        observations = self._batch.reset(mask, seed=seed)
        everyone = np.ones(self.num_envs, dtype=np.bool_)
        mask = mask_info(self._batch.env.spec, observations)
        return observations, {"seat": self._batch.seats, "_seat": everyone} | _masked(mask, everyone)

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[HostObservations, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Play one step of all games against the bots."""
        step = self._batch.step(actions)
        return step.observations, step.rewards, step.terminated, step.truncated, self._infos(step)

    def _infos(self, step: SeatedStep) -> dict[str, Any]:
        everyone = np.ones(self.num_envs, dtype=np.bool_)
        infos = {
            "events": _masked(step.events, everyone),
            "_events": everyone,
            "state_metrics": _masked(step.state_metrics, everyone),
            "_state_metrics": everyone,
        } | _masked(mask_info(self._batch.env.spec, step.observations), everyone)
        ended = step.terminated | step.truncated
        if ended.any():
            final = np.full(self.num_envs, None, dtype=object)
            for game in np.flatnonzero(ended).tolist():
                final[game] = rows(step.final_observations, game)
            infos |= {
                "final_obs": final,
                "_final_obs": ended,
                "final_info": {"events": _masked(step.events, ended), "_events": ended},
                "_final_info": ended,
            }
        return infos

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """Draw all games, if a render mode was asked for."""
        if self.render_mode is None:
            return None
        return tuple(self._batch.env.render(game) for game in range(self.num_envs))

    def close_extras(self) -> None:
        """Release what the world holds."""
        self._batch.env.close()


def _masked(named: Mapping[str, NDArray[Any]], mask: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
    """Return arrays with their `_name` masks, as Gymnasium keeps infos."""
    return {key: value for name, values in named.items() for key, value in ((name, values), (f"_{name}", mask))}
