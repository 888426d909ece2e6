"""The one game that is shown: a world with the settings of its agent, of a trial and of the command line."""

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

from ludus.config import read_overrides
from ludus.core.errors import ConfigFileError, UnknownNameError
from ludus.envs.base import BatchedEnv
from ludus.envs.brawl.env import BrawlEnv
from ludus.envs.registry import GYMNASIUM_PREFIX, make_env, registered_envs, world_package
from ludus.envs.stage import Stage
from ludus.envs.trials import choose_trials, laid_over

_MODULE = "stage"

_GYMNASIUM_DRAWS: Mapping[str, Any] = {"env_kwargs": {"render_mode": "rgb_array"}}


def stage_of(world: str) -> Stage:
    """Finds what a world offers to people; one that is not registered, or has no module `stage`, offers the least.

    Args:
        world: Name with or without version, or `gym:ID`.
    """
    try:
        package = world_package(world)
    except UnknownNameError:
        return Stage()
    name = f"{package}.{_MODULE}"
    if not package or importlib.util.find_spec(name) is None:
        return Stage()
    stage: Stage = importlib.import_module(name).STAGE
    return stage


def playable() -> tuple[str, ...]:
    """Returns the names of the worlds that a person can play."""
    names = {env_id.rpartition("-v")[0] for env_id in registered_envs()}
    return tuple(sorted(name for name in names if stage_of(name).keyboard is not None))


def shown_settings(world: str, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Returns the settings of an agent, with those in their place with which the world is shown to people."""
    return {**(settings or {}), **stage_of(world).shown}


def stage_settings(
    world: str, settings: Mapping[str, Any] | None = None, trial: str | None = None, words: Sequence[str] = ()
) -> dict[str, Any]:
    """Returns the settings of a world to show it with.

    Args:
        world: Where.
        settings: Those that the agent was trained with.
        trial: One of the world's trials, which is laid over them.
        words: Settings as `key=value`, laid over both.

    Raises:
        UnknownNameError: The world has no such trial.
        ConfigError: The world has no trials.
        ConfigFileError: A word is not `key=value`.
    """
    merged = dict(settings or {})
    if trial is not None:
        merged = laid_over(merged, choose_trials(world, [trial])[trial])
    documents = read_overrides(words)
    faults = [fault for document in documents for fault in document.faults]
    if faults:
        raise ConfigFileError(faults)
    for document in documents:
        said = document.root.plain()
        merged = laid_over(merged, said if isinstance(said, Mapping) else {})
    return merged


def make_stage(
    world: str, *, seed: int = 0, settings: Mapping[str, Any] | None = None, left_first: bool = False
) -> BatchedEnv:
    """Makes the one game that is shown.

    Args:
        world: Where.
        seed: Of the game.
        settings: Of the world.
        left_first: Whether the first seat shall start on the left, where a world draws the sides.
    """
    chosen = laid_over(settings, _GYMNASIUM_DRAWS) if world.startswith(GYMNASIUM_PREFIX) else dict(settings or {})
    env = make_env(world, seed=seed, config=chosen)
    if left_first and isinstance(env, BrawlEnv) and env.view(0).players[0].x > 0.0:
        env.close()
        return make_env(world, seed=seed, config=laid_over(chosen, {"swap_sides": not env.config.swap_sides}))
    return env
