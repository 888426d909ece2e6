"""What a world shows without any player: its package may have a module `showcase` with pictures of its own.

`pictures(env, rate_hz)` gives them one after the other, as many a second of game time as were asked for; the world
decides how long they go on, and releases what it draws with when the iterator is closed.
"""

import importlib
import importlib.util
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

from ludus.core.errors import UnknownNameError
from ludus.envs.base import BatchedEnv
from ludus.envs.registry import world_package
from ludus.envs.stage import Image
from ludus.evaluation.painting import with_card
from ludus.evaluation.video import VideoWriter
from ludus.evaluation.window import Window

Showcase: TypeAlias = Callable[[BatchedEnv, float], Generator[Image, None, None]]

_MODULE = "showcase"


def find_showcase(world: str) -> Showcase | None:
    """Finds the pictures that a world shows without any player; None if it has none."""
    try:
        package = world_package(world)
    except UnknownNameError:
        return None
    name = f"{package}.{_MODULE}"
    if not package or importlib.util.find_spec(name) is None:
        return None
    pictures: Showcase = importlib.import_module(name).pictures
    return pictures


def film_showcase(
    showcase: Showcase,
    env: BatchedEnv,
    path: Path,
    rate_hz: float,
    *,
    frames: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Writes a showcase as a video and returns its number of frames.

    Args:
        showcase: What to show.
        env: Of which world.
        path: Name of the video.
        rate_hz: Pictures a second.
        frames: Pictures after which to end, or None for all.
        progress: Called with the number of pictures after each.
    """
    with closing(showcase(env, rate_hz)) as pictures:
        first = next(pictures)
        with VideoWriter(path, (first.shape[1], first.shape[0]), rate_hz) as video:
            video.write(first)
            progress(1)
            while frames is None or video.frames < frames:
                picture = next(pictures, None)
                if picture is None:
                    break
                video.write(picture)
                progress(video.frames)
    return video.frames


def show_showcase(
    showcase: Showcase, env: BatchedEnv, window: Window, rate_hz: float, *, frames: int | None = None
) -> None:
    """Shows a showcase in a window, in real time, again and again until it is closed; P pauses, Esc ends.

    Args:
        showcase: What to show.
        env: Of which world.
        window: Where.
        rate_hz: Pictures a second.
        frames: Pictures after which to end, or None.
    """
    shown, paused = 0, False
    while True:
        with closing(showcase(env, rate_hz)) as pictures:
            picture = next(pictures)
            while frames is None or shown < frames:
                keys = window.look()
                if keys.closed or "escape" in keys.pressed:
                    return
                paused ^= "p" in keys.pressed
                window.show(with_card(picture, "Paused", ("P go on   Esc quit",)) if paused else picture)
                window.wait(rate_hz)
                shown += 1
                following = picture if paused else next(pictures, None)
                if following is None:
                    break
                picture = following
            else:
                return
