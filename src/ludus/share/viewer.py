"""Agents of a world whose own scripts advance it in a page: the engine of such a page holds the policy alone."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ludus.envs.base import EnvSpec
from ludus.envs.registry import make_env
from ludus.envs.world import find_world, resolve
from ludus.share.program import SEED, ActionForm, Buffer, Program, capture_world, page_settings


def is_viewer(world: str) -> bool:
    """Return whether visitors of the page of a world watch and disturb the agent instead of playing against it."""
    browser = find_world(world).browser
    return browser is not None and resolve(browser).is_viewer


def page_program(world: str, settings: Mapping[str, Any]) -> Program:
    """Return what the engine of a page runs: the kernels of a game, or for a viewer the memory around policies.

    Args:
        world: A world, such as `mimic` or `mimic-v1`.
        settings: Settings of the world, such as those that an agent was trained with; the world's own replace them.

    Raises:
        UnsupportedError: The world has no page.
    """
    if not is_viewer(world):
        return capture_world(world, settings)
    chosen = page_settings(find_world(world), settings)
    with make_env(world, config=chosen) as env:
        return replace(policy_program(env.spec), settings=chosen)


def policy_program(spec: EnvSpec) -> Program:
    """Return a program without kernels: memory for what is observed and done, between which policies act."""
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
    )


def _size(dtype: str, count: int | np.integer[Any]) -> int:
    return np.dtype(dtype).itemsize * int(count)
