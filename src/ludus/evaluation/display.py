"""The one game that is shown: a world with the settings of its agent, of a scenario and of the command line."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from ludus.config import read_overrides
from ludus.core.errors import ConfigFileError
from ludus.envs.base import BatchedEnv
from ludus.envs.display import Pictures, display_of
from ludus.envs.registry import make_env
from ludus.envs.world import registered_worlds
from ludus.envs.world_parts import choose_scenarios, merge_settings
from ludus.evaluation.rendering import with_card
from ludus.evaluation.video import VideoWriter
from ludus.evaluation.window import Window


def playable() -> tuple[str, ...]:
    """Return the names of the worlds that a person can play."""
    names = {world.name for world in registered_worlds()}
    displays = {name: display_of(name) for name in names}
    return tuple(sorted(name for name, display in displays.items() if display.keyboard or display.play))


def shown_settings(world: str, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the settings of an agent, overridden by those with which the world is shown to people."""
    return {**(settings or {}), **display_of(world).shown}


def display_settings(
    world: str, settings: Mapping[str, Any] | None = None, scenario: str | None = None, words: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the settings of a world to show it with.

    Args:
        world: Name of the world.
        settings: Those that the agent was trained with.
        scenario: One of the world's scenarios, which overrides them.
        words: Settings as `key=value`, which override both.

    Raises:
        UnknownNameError: The world has no such scenario.
        ConfigError: The world has no scenarios.
        ConfigFileError: A word is not `key=value`.
    """
    merged = dict(settings or {})
    if scenario is not None:
        merged = merge_settings(merged, choose_scenarios(world, [scenario])[scenario])
    documents = read_overrides(words)
    faults = [fault for document in documents for fault in document.faults]
    if faults:
        raise ConfigFileError(faults)
    for document in documents:
        said = document.root.plain()
        merged = merge_settings(merged, said if isinstance(said, Mapping) else {})
    return merged


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


def film_pictures(
    source: Pictures,
    env: BatchedEnv,
    path: Path,
    rate_hz: float,
    *,
    frames: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Write a world's own pictures as a video and return the number of frames in the file.

    Args:
        source: Yields the pictures.
        env: Games of the world.
        path: Name of the video.
        rate_hz: Pictures per second.
        frames: Pictures after which to end, or None for all.
        progress: Called with the number of pictures after each.
    """
    with closing(source(env, rate_hz)) as pictures:
        first = next(pictures)
        with VideoWriter(path, (first.shape[1], first.shape[0]), rate_hz) as video:
            for shown, picture in enumerate(itertools.chain([first], pictures), start=1):
                video.write(picture)
                progress(shown)
                if shown == frames:
                    break
    return video.frames


def show_pictures(
    source: Pictures, env: BatchedEnv, window: Window, rate_hz: float, *, frames: int | None = None
) -> None:
    """Show a world's own pictures in a window, in real time, over and over until it is closed; P pauses, Esc ends.

    Args:
        source: Yields the pictures.
        env: Games of the world.
        window: The window.
        rate_hz: Pictures per second.
        frames: Pictures after which to end, or None.
    """
    shown, paused = 0, False
    while True:
        with closing(source(env, rate_hz)) as pictures:
            picture = next(pictures)
            while frames is None or shown < frames:
                keys = window.look()
                if keys.closed or "escape" in keys.pressed:
                    return
                paused ^= "p" in keys.pressed
                window.show(with_card(picture, "Paused", ("P resume   Esc quit",)) if paused else picture)
                window.wait(rate_hz)
                shown += 1
                following = picture if paused else next(pictures, None)
                if following is None:
                    break
                picture = following
            else:
                return
