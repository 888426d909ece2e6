"""Showing games: matches in a window, with or without a person, or as a video; replays likewise."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from ludus.envs.base import BatchedEnv
from ludus.envs.replay import Replay, replay_env, resimulate
from ludus.evaluation.exhibition import Exhibition, Outcome
from ludus.evaluation.painting import Image, Painter, make_painter, with_card
from ludus.evaluation.players import KeyboardPlayer
from ludus.evaluation.video import VideoWriter
from ludus.evaluation.window import Window

Progress: TypeAlias = Callable[[int], None]

_START_CARD_S = 4.0
_END_CARD_S = 1.5
_HINT = "P pause   R new match   Esc quit"


def play_in_window(
    exhibition: Exhibition,
    person: KeyboardPlayer | None,
    window: Window,
    *,
    key_lines: Sequence[str] = (),
    frames: int | None = None,
    debug: bool = False,
    on_outcome: Callable[[Outcome], None] = lambda _: None,
) -> None:
    """Shows matches in real time until the window is closed; a person may play.

    Args:
        exhibition: The match, with the person in one of its seats if there is one.
        person: Takes the keys; None to watch others.
        window: Where to show it.
        key_lines: What the keys do, shown in the first seconds and while paused.
        frames: Pictures after which to end, or None.
        debug: Whether to draw the debug layer.
        on_outcome: Called with every result.
    """
    rate_hz = exhibition.env.spec.rate_hz
    painter = make_painter(exhibition.env, exhibition.names, debug=debug)
    picture, outcome, paused = painter(), None, False
    for tick in itertools.count():
        keys = window.look()
        if keys.closed or "escape" in keys.pressed or (frames is not None and tick >= frames):
            return
        if "r" in keys.pressed:
            exhibition.restart()
            picture, outcome, paused = painter(), None, False
        if "p" in keys.pressed:
            paused = not paused
        if outcome is None and not paused:
            if person is not None:
                person.press(keys.held)
            outcome = exhibition.step()
            if outcome is None:  # a match that ended has begun anew: keep its last picture
                picture = painter()
            else:
                on_outcome(outcome)
        window.show(_with_status(picture, exhibition, outcome, key_lines, paused=paused, tick=tick))
        window.wait(rate_hz)


def show_replay(
    replay: Replay, window: Window, *, debug: bool = False, files: Mapping[str, Path] | None = None
) -> bool:
    """Plays a replay in a window, in real time, and checks it; P pauses, Esc ends.

    Returns:
        Whether it was shown to its end.
    """
    with replay_env(replay, files) as env:
        painter = make_painter(env, replay.players, debug=debug)
        picture = painter()
        results = resimulate(replay, env)
        paused = False
        while True:
            keys = window.look()
            if keys.closed or "escape" in keys.pressed:
                return False
            if "p" in keys.pressed:
                paused = not paused
            if not paused:
                result = next(results, None)
                if result is None:
                    return True
                if not bool(result.ended[0]):
                    picture = painter()
            window.show(with_card(picture, "Paused", ("P go on   Esc quit",)) if paused else picture)
            window.wait(env.spec.rate_hz)


def film_replay(
    replay: Replay,
    path: Path,
    *,
    debug: bool = False,
    files: Mapping[str, Path] | None = None,
    progress: Progress = lambda _: None,
) -> int:
    """Writes a replay as a video, without a screen, and checks it; returns the number of frames."""
    with replay_env(replay, files) as env:
        painter = make_painter(env, replay.players, debug=debug)
        picture = painter()
        with _writer(path, picture, env) as video:
            video.write(picture)
            for step, result in enumerate(resimulate(replay, env), start=1):
                if not bool(result.ended[0]):
                    video.write(painter())
                progress(step)
        return video.frames


def film_match(
    exhibition: Exhibition,
    path: Path,
    *,
    frames: int | None = None,
    debug: bool = False,
    progress: Progress = lambda _: None,
) -> Outcome | None:
    """Plays a match and writes it as a video that ends with the result.

    Args:
        exhibition: The match.
        path: Name of the video.
        frames: Steps after which to stop, or None for the whole match.
        debug: Whether to draw the debug layer.
        progress: Called with the number of steps after each.

    Returns:
        How the match ended, or None if it was stopped before.
    """
    env = exhibition.env
    painter: Painter = make_painter(env, exhibition.names, debug=debug)
    picture, outcome = painter(), None
    with _writer(path, picture, env) as video:
        video.write(picture)
        while outcome is None and (frames is None or exhibition.steps < frames):
            outcome = exhibition.step()
            if outcome is None:
                picture = painter()
                video.write(picture)
            progress(exhibition.steps)
        if outcome is not None:
            last = with_card(picture, result_title(outcome, exhibition.names))
            for _ in range(round(_END_CARD_S * env.spec.rate_hz)):
                video.write(last)
    return outcome


def result_title(outcome: Outcome, names: Sequence[str]) -> str:
    """Says who won, for a card."""
    if outcome.winner is None:
        return "Draw"
    name = names[outcome.winner]
    return "You win" if name == "you" else f"{name} wins"


def _writer(path: Path, picture: Image, env: BatchedEnv) -> VideoWriter:
    return VideoWriter(path, (picture.shape[1], picture.shape[0]), env.spec.rate_hz)


def _with_status(
    picture: Image,
    exhibition: Exhibition,
    outcome: Outcome | None,
    key_lines: Sequence[str],
    *,
    paused: bool,
    tick: int,
) -> Image:
    """Adds the card that the moment asks for: result, pause, or the keys at the start."""
    if outcome is not None:
        return with_card(picture, result_title(outcome, exhibition.names), (_HINT,))
    if paused:
        return with_card(picture, "Paused", (*key_lines, "", _HINT))
    if tick < _START_CARD_S * exhibition.env.spec.rate_hz:
        return with_card(picture, " against ".join(exhibition.names), (*key_lines, "", _HINT))
    return picture
