"""The one game that is shown: a world with the settings of its agent, of a scenario and of the command line."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ludus.config import read_overrides
from ludus.core.errors import ConfigFileError
from ludus.envs.base import BatchedEnv
from ludus.envs.display import display_of
from ludus.envs.registry import make_env
from ludus.envs.stored import StoredSettings
from ludus.envs.world import registered_worlds
from ludus.envs.world_parts import choose_scenarios, merge_settings


def playable() -> tuple[str, ...]:
    """Return the names of the worlds that a person can play."""
    names = {world.name for world in registered_worlds()}
    displays = {name: display_of(name) for name in names}
    return tuple(sorted(name for name, display in displays.items() if display.keyboard or display.play))


def shown_settings(world: str, settings: Mapping[str, Any] | StoredSettings | None = None) -> StoredSettings:
    """Return the settings of an agent, overridden by those with which the world is shown to people."""
    stored = settings if isinstance(settings, StoredSettings) else StoredSettings(settings or {}, is_trusted=True)
    return replace(stored, values={**stored.values, **display_of(world).shown})


def display_settings(
    world: str,
    settings: Mapping[str, Any] | StoredSettings | None = None,
    scenario: str | None = None,
    words: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the settings of a world to show it with.

    Args:
        world: Name of the world.
        settings: Those that the agent was trained with.
        scenario: One of the world's scenarios, which overrides them.
        words: Settings as `key=value`, which override both.

    Raises:
        UnknownNameError: The world has no such scenario.
        ConfigError: The world has no scenarios, or settings from a file name something outside.
        ConfigFileError: A word is not `key=value`.
    """
    documents = read_overrides(words)
    faults = [fault for document in documents for fault in document.faults]
    if faults:
        raise ConfigFileError(faults)
    over = {} if scenario is None else dict(choose_scenarios(world, [scenario])[scenario])
    for document in documents:
        said = document.root.plain()
        over = merge_settings(over, said if isinstance(said, Mapping) else {})
    merged = settings.checked(world, over) if isinstance(settings, StoredSettings) else settings
    return merge_settings(merged, over)


def make_shown_env(
    world: str, *, seed: int = 0, settings: Mapping[str, Any] | None = None, left_first: bool = False
) -> BatchedEnv:
    """Make the one game that is shown.

    Args:
        world: Name of the world.
        seed: Seed of the game.
        settings: Settings of the world.
        left_first: Whether the first seat starts on the left, in worlds that draw the sides.
    """
    display = display_of(world)
    chosen = merge_settings(settings, display.drawn)
    env = make_env(world, seed=seed, config=chosen)
    turned = display.left_first(env) if left_first and display.left_first is not None else None
    if turned is None:
        return env
    env.close()
    return make_env(world, seed=seed, config=merge_settings(chosen, turned))
