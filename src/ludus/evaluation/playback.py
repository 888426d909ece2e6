"""Show games in a window, with or without a person, or as a video: live matches, replays and a world's own pictures."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from ludus.envs.base import BatchedEnv
from ludus.envs.display import Image, Painter, Pictures, display_of
from ludus.envs.replay import Replay, replay_env, resimulate
from ludus.envs.world_parts import merge_settings
from ludus.evaluation.frame_rates import MAX_FRAME_RATE_HZ, display_hz, frame_schedule, make_pacer
from ludus.evaluation.live_match import LiveMatch, Outcome
from ludus.evaluation.players import KeyboardPlayer
from ludus.evaluation.rendering import DEFAULT_RENDER_OPTIONS, RenderOptions, with_card
from ludus.evaluation.video import VideoWriter
from ludus.evaluation.window import Window

Progress: TypeAlias = Callable[[int], None]

_START_CARD_S = 4.0
_END_CARD_S = 1.5
_HINT, _TURN_HINT = "P pause   R new match   Esc quit", "   C camera"
_TURN = "c"


def play_in_window(
    match: LiveMatch,
    person: KeyboardPlayer | None,
    window: Window,
    *,
    key_lines: Sequence[str] = (),
    frames: int | None = None,
    render: RenderOptions = DEFAULT_RENDER_OPTIONS,
    on_outcome: Callable[[Outcome], None] = lambda _: None,
) -> None:
    """Show matches in real time until the window is closed, with or without a person.

    Args:
        match: The match, with the person in one of its seats if there is one.
        person: The player at the keyboard; None to watch others.
        window: The window.
        key_lines: Help on the keys, shown in the first seconds and while paused.
        frames: Frames after which to stop, or None.
        render: Render options.
        on_outcome: Called with every result.
    """
    painter = render.painter(match.env, match.names)
    match.send_policy_outputs(painter)
    pace = make_pacer(match.env)
    status = _Status(match, (*key_lines, "", _HINT + (_TURN_HINT if painter.views else "")))
    picture, outcome, paused, taps = painter.paint(), None, False, frozenset[str]()
    for tick in itertools.count():
        keys = window.look()
        if keys.closed or "escape" in keys.pressed or (frames is not None and tick >= frames):
            return
        if "r" in keys.pressed:
            match.restart()
            painter.on_step()
            pace.restart()
            picture, outcome, paused = painter.paint(), None, False
        paused ^= "p" in keys.pressed
        turns, taps = _TURN in keys.pressed and bool(painter.views), taps | keys.pressed
        if turns:
            painter.turn()
        if outcome is None and not paused:
            if pace.is_due():
                if person is not None:
                    person.press(keys.held | taps)
                outcome, taps = _advance(match, pace.steps), frozenset()
                if outcome is None:  # a match that ended has been reset: keep its last frame
                    painter.on_step()
                    pace.stretch(painter.stretch)
                else:
                    on_outcome(outcome)
            if outcome is None:
                picture = painter.paint(pace.share())
        elif turns and outcome is None:
            picture = painter.paint()
        begins = tick < _START_CARD_S * pace.frame_rate_hz
        window.show(status.over(picture, outcome, paused=paused, begins=begins))
        pace.note(window.wait(pace.frame_rate_hz), window.busy_s)


def show_replay(
    replay: Replay,
    window: Window,
    *,
    render: RenderOptions = DEFAULT_RENDER_OPTIONS,
    files: Mapping[str, Path] | None = None,
) -> bool:
    """Play and verify a replay in a window in real time; P pauses, C switches the camera, Esc ends.

    Returns:
        Whether it was shown to its end.
    """
    with _shown_env(replay, files) as env:
        painter = render.painter(env, replay.players)
        picture = painter.paint()
        results = resimulate(replay, env)
        pace, paused, is_last = make_pacer(env), False, False
        while True:
            keys = window.look()
            if keys.closed or "escape" in keys.pressed:
                return False
            paused ^= "p" in keys.pressed
            if _TURN in keys.pressed:
                painter.turn()
            if not paused:
                if pace.is_due():
                    played = list(itertools.islice(results, pace.steps))
                    if not played:
                        return True
                    is_last = bool(played[-1].ended[0])
                    if not is_last:
                        painter.on_step()
                        pace.stretch(painter.stretch)
                share = pace.share()
                if not is_last:  # the next game has started already
                    picture = painter.paint(share)
            window.show(with_card(picture, "Paused", ("P resume   Esc quit",)) if paused else picture)
            pace.note(window.wait(pace.frame_rate_hz), window.busy_s)


def film_replay(
    replay: Replay,
    path: Path,
    *,
    render: RenderOptions = DEFAULT_RENDER_OPTIONS,
    fps: float = MAX_FRAME_RATE_HZ,
    files: Mapping[str, Path] | None = None,
    progress: Progress = lambda _: None,
) -> int:
    """Verify a replay and write it as a video, without a screen; return the number of frames in the file."""
    with _shown_env(replay, files) as env:
        painter = render.painter(env, replay.players)
        picture = painter.paint()
        film = _Film(env, painter, fps)
        with film.writer(path, picture) as video:
            video.write(picture)
            for step, result in enumerate(resimulate(replay, env), start=1):
                if step % film.steps == 0 and not bool(result.ended[0]):
                    for picture in film.pictures():
                        video.write(picture)
                progress(step)
        return video.frames


def _shown_env(replay: Replay, files: Mapping[str, Path] | None) -> BatchedEnv:
    """Make the game of a replay with the settings that it needs to be drawn."""
    drawn = display_of(replay.world_id).drawn
    return replay_env(replace(replay, config=merge_settings(replay.config, drawn)) if drawn else replay, files)


def film_match(
    match: LiveMatch,
    path: Path,
    *,
    frames: int | None = None,
    render: RenderOptions = DEFAULT_RENDER_OPTIONS,
    fps: float = MAX_FRAME_RATE_HZ,
    progress: Progress = lambda _: None,
) -> tuple[Outcome | None, int]:
    """Play a match and write it as a video that ends with the result; a single player's only if it failed.

    Args:
        match: The match.
        path: Name of the video.
        frames: Frames after the first after which to stop, or None for the whole match.
        render: Render options.
        fps: Frames per second, if the world can be drawn that often.
        progress: Called with the number of frames after the first.

    Returns:
        The outcome, or None if it was stopped before; and the number of frames in the file.
    """
    env = match.env
    painter = render.painter(env, match.names)
    match.send_policy_outputs(painter)
    picture, outcome, drawn = painter.paint(), None, 0
    film = _Film(env, painter, fps)
    with film.writer(path, picture) as video:
        video.write(picture)
        while frames is None or drawn < frames:
            outcome = _advance(match, film.steps)
            if outcome is not None:
                drawn += 1
                progress(drawn)
                break
            for picture in itertools.islice(film.pictures(), None if frames is None else frames - drawn):
                video.write(picture)
                drawn += 1
                progress(drawn)
        if outcome is not None and (len(match.names) > 1 or not outcome.truncated):
            last = with_card(picture, result_title(outcome, match.sides))
            for _ in range(round(_END_CARD_S * film.rate_hz)):
                video.write(last)
    return outcome, video.frames


def result_title(outcome: Outcome, names: Sequence[str]) -> str:
    """Return the title of a result card: the winner, or the time of a single player."""
    if len(names) == 1:
        return f"{'Time is up' if outcome.truncated else 'Over'} after {outcome.seconds:.1f} s"
    if outcome.winner is None:
        return "Draw"
    name = names[outcome.winner]
    return "You win" if "you" in name.split(" and ") else f"{name} wins"


def _advance(match: LiveMatch, steps: int) -> Outcome | None:
    """Play some steps, fewer if the match ends."""
    outcome = None
    for _ in range(steps):
        outcome = match.step()
        if outcome is not None:
            break
    return outcome


class _Film:
    """Frames of a game for a video: one every few steps, or several per step."""

    def __init__(self, env: BatchedEnv, painter: Painter, fps: float) -> None:
        self._painter = painter
        self.steps, self._parts = frame_schedule(env, fps)
        self.rate_hz = display_hz(env) * self._parts / self.steps

    def writer(self, path: Path, picture: Image) -> VideoWriter:
        """Start the video."""
        return VideoWriter(path, (picture.shape[1], picture.shape[0]), self.rate_hz)

    def pictures(self) -> Iterator[Image]:
        """Yield the frames of the last steps."""
        self._painter.on_step()
        parts = max(round(self._parts * self._painter.stretch), 1)
        for part in range(1, parts + 1):
            yield self._painter.paint(part / parts)


class _Status:
    """Overlay cards: the result, the pause, or the keys at the start."""

    def __init__(self, match: LiveMatch, lines: Sequence[str]) -> None:
        self._match, self._lines = match, tuple(lines)

    def over(self, picture: Image, outcome: Outcome | None, *, paused: bool, begins: bool) -> Image:
        """Return the picture with its card."""
        sides = self._match.sides
        if outcome is not None:
            return with_card(picture, result_title(outcome, sides), self._lines[-1:])
        if paused:
            return with_card(picture, "Paused", self._lines)
        if begins and len(sides) > 1:
            return with_card(picture, " against ".join(sides), self._lines)
        return picture


def film_pictures(
    source: Pictures,
    env: BatchedEnv,
    path: Path,
    rate_hz: float,
    *,
    frames: int | None = None,
    progress: Progress = lambda _: None,
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
