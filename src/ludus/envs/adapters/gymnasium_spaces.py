"""Translates a Gymnasium environment's spaces into ours, and into the plan that fills our arrays."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from ludus.core.errors import UnsupportedError
from ludus.envs.adapters.gymnasium_worker import Entry
from ludus.envs.base import EnvSpec
from ludus.envs.choices import choice_faults

_MASK = "action_mask"  # as many libraries call that entry of a Dict observation


def observation_entries(space: spaces.Space[Any]) -> tuple[spaces.Dict, tuple[Entry, ...]]:
    """Returns our observation space and how its entries are filled.

    A Box becomes the entry `pixels` if it is a picture of uint8, else `vector` in float32; Discrete becomes one-hot;
    a Dict of these keeps its names.

    Raises:
        UnsupportedError: A space of another kind.
    """
    if isinstance(space, spaces.Dict):
        parts = {name: _entry(name, name, part) for name, part in space.spaces.items()}
    else:
        picture = isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) == 3
        name = "pixels" if picture else "vector"
        parts = {name: _entry(name, None, space)}
    return (
        spaces.Dict({name: box for name, (box, _) in parts.items()}),
        tuple(entry for _, entry in parts.values()),
    )


def _entry(name: str, key: str | None, space: spaces.Space[Any]) -> tuple[spaces.Box, Entry]:
    if isinstance(space, spaces.Discrete):
        shape = (int(space.n),)
        return spaces.Box(0.0, 1.0, shape, np.float32), Entry(name, key, shape, "float32", int(space.start))
    if isinstance(space, spaces.MultiBinary):
        return spaces.Box(0.0, 1.0, space.shape, np.float32), Entry(name, key, space.shape, "float32")
    if isinstance(space, spaces.Box):
        if space.dtype == np.uint8:
            return space, Entry(name, key, space.shape, "uint8")
        low, high = space.low.astype(np.float32), space.high.astype(np.float32)
        return spaces.Box(low, high, dtype=np.float32), Entry(name, key, space.shape, "float32")
    raise UnsupportedError(
        f"observation space {space} is not supported; valid: Box, Discrete, MultiBinary or a Dict of these; "
        "wrap the environment with gymnasium.wrappers.FlattenObservation"
    )


def action_form(space: spaces.Space[Any]) -> tuple[spaces.Space[Any], str]:
    """Returns our action space, counted from 0, and the type that actions are stored as.

    Raises:
        UnsupportedError: A space of another kind.
    """
    if isinstance(space, spaces.Discrete):
        return spaces.Discrete(int(space.n)), "int64"
    if isinstance(space, spaces.MultiDiscrete):
        return spaces.MultiDiscrete(space.nvec), "int64"
    if isinstance(space, spaces.MultiBinary):
        return space, "int8"
    if isinstance(space, spaces.Box):
        low, high = space.low.astype(np.float32), space.high.astype(np.float32)
        return spaces.Box(low, high, dtype=np.float32), "float32"
    raise UnsupportedError(f"action space {space} is not supported; valid: Discrete, MultiDiscrete, MultiBinary, Box")


def batched_spec(env: gym.Env[Any, Any], env_id: str) -> EnvSpec:
    """Returns our spec of a Gymnasium environment."""
    name, version = env_id, 0
    limit: int | None = None
    if env.spec is not None:
        name = env.spec.name if env.spec.namespace is None else f"{env.spec.namespace}/{env.spec.name}"
        version, limit = env.spec.version or 0, env.spec.max_episode_steps
    metadata: Mapping[str, Any] = env.metadata or {}
    observations, actions = observation_entries(env.observation_space)[0], action_form(env.action_space)[0]
    return EnvSpec(
        name=f"gym:{name}",
        version=version,
        teams=(0,),
        observation_space=observations,
        action_space=actions,
        rate_hz=float(metadata.get("render_fps") or 30.0),
        step_limit=limit,
        events=("reward",),
        device_types=("cpu",),
        snapshots=False,
        action_mask=_mask_entry(observations, actions),
    )


def _mask_entry(observations: spaces.Dict, actions: spaces.Space[Any]) -> str | None:
    """Returns the entry of an observation that is by its name and size a mask of allowed actions."""
    is_mask = _MASK in observations.spaces and not list(choice_faults(observations, actions, _MASK, (), ()))
    return _MASK if is_mask else None
