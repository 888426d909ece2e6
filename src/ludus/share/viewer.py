"""Agents of a world whose own scripts advance it in a page: the engine of such a page holds the policy alone."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ludus.envs.base import BatchedEnv
from ludus.envs.world import World, resolve
from ludus.share.program import SEED, ActionForm, Buffer, Program


def is_viewer(world: World) -> bool:
    """Return whether visitors of the page of a world watch and disturb the agent instead of playing against it."""
    return world.browser is not None and resolve(world.browser).is_viewer


def policy_program(env: BatchedEnv, settings: Mapping[str, Any]) -> Program:
    """Return a program without kernels: memory for what is observed and done, between which policies act.

    Args:
        env: The environment whose spaces it has.
        settings: Those of the environment.
    """
    spec = env.spec
    action = ActionForm.of(spec.action_space)
    numbers = [Buffer("actions", bytes(_size(action.dtype, len(action.counts) * spec.seats)), action.dtype, ())]
    for name, space in spec.observation_space.items():
        shape = (1, spec.seats, *(space.shape or ()))
        numbers.append(Buffer(f"observations.{name}", bytes(_size(str(space.dtype), np.prod(shape))), "float32", shape))
    flags = [Buffer(name, bytes(1), "bool", (1,)) for name in ("chosen", "terminated", "truncated")]
    return Program(
        world=spec.id,
        rate_hz=spec.rate_hz,
        seats=spec.seats,
        action=action,
        sources={},
        buffers=(Buffer(SEED, bytes(8), "uint32", (2,)), *flags, *numbers),
        operations={},
        state=(SEED,),
        observations=tuple(spec.observation_space),
        events=tuple(spec.events),
        state_metrics=tuple(spec.state_metrics),
        bots=(),
        seed_words=(),
        settings=dict(settings),
    )


def _size(dtype: str, count: int | np.integer[Any]) -> int:
    return np.dtype(dtype).itemsize * int(count)
