"""Showing games: matches in a window, with or without a person, or as a video; replays likewise."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from ludus.envs.replay import Replay, replay_env, resimulate
from ludus.evaluation.exhibition import Exhibition, Outcome
from ludus.evaluation.painting import Image, Painter, make_painter, with_card
from ludus.evaluation.players import KeyboardPlayer
from ludus.evaluation.video import VideoWriter
from ludus.evaluation.window import Window

Progress: TypeAlias = Callable[[int], None]

MOST_PICTURES_HZ = 30.0  # worlds that decide more often are drawn after every few steps
_SLOWEST = 4  # times as many steps between two pictures are taken at most where drawing is slow
_START_CARD_S = 4.0
_END_CARD_S = 1.5
_HINT = "P pause   R new match   Esc quit"


def steps_a_picture(rate_hz: float) -> int:
    """Returns after how many steps a world of this rate is drawn, for a video that plays in real time."""
    return max(1, math.ceil(rate_hz / MOST_PICTURES_HZ - 1e-9))


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
    pace = _Pace(rate_hz)
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
            outcome = _advance(exhibition, pace.steps)
            if outcome is None:  # a match that ended has begun anew: keep its last picture
                picture = painter()
            else:
                on_outcome(outcome)
        begins = tick < _START_CARD_S * pace.pictures_hz
        window.show(_with_status(picture, exhibition, outcome, key_lines, paused=paused, begins=begins))
        pace.note(window.wait(pace.pictures_hz))


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
        pace, paused = _Pace(env.spec.rate_hz), False
        while True:
            keys = window.look()
            if keys.closed or "escape" in keys.pressed:
                return False
            if "p" in keys.pressed:
                paused = not paused
            if not paused:
                played = list(itertools.islice(results, pace.steps))
                if not played:
                    return True
                if not bool(played[-1].ended[0]):
                    picture = painter()
            window.show(with_card(picture, "Paused", ("P go on   Esc quit",)) if paused else picture)
            pace.note(window.wait(pace.pictures_hz))


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
        steps = steps_a_picture(env.spec.rate_hz)
        with _writer(path, picture, env.spec.rate_hz / steps) as video:
            video.write(picture)
            for step, result in enumerate(resimulate(replay, env), start=1):
                if step % steps == 0 and not bool(result.ended[0]):
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
    """Plays a match and writes it as a video that ends with the result; a player alone has one if it failed.

    Args:
        exhibition: The match.
        path: Name of the video.
        frames: Pictures after the first after which to stop, or None for the whole match.
        debug: Whether to draw the debug layer.
        progress: Called with the number of pictures after the first.

    Returns:
        How the match ended, or None if it was stopped before.
    """
    env = exhibition.env
    painter: Painter = make_painter(env, exhibition.names, debug=debug)
    picture, outcome, drawn = painter(), None, 0
    steps = steps_a_picture(env.spec.rate_hz)
    with _writer(path, picture, env.spec.rate_hz / steps) as video:
        video.write(picture)
        while outcome is None and (frames is None or drawn < frames):
            outcome = _advance(exhibition, steps)
            if outcome is None:
                picture = painter()
                video.write(picture)
            drawn += 1
            progress(drawn)
        if outcome is not None and (len(exhibition.names) > 1 or not outcome.cut_off):
            last = with_card(picture, result_title(outcome, exhibition.names))
            for _ in range(round(_END_CARD_S * env.spec.rate_hz / steps)):
                video.write(last)
    return outcome


def result_title(outcome: Outcome, names: Sequence[str]) -> str:
    """Says who won, for a card, or when it was over for who played alone."""
    if len(names) == 1:
        return f"{'Time is up' if outcome.cut_off else 'Over'} after {outcome.seconds:.1f} s"
    if outcome.winner is None:
        return "Draw"
    name = names[outcome.winner]
    return "You win" if name == "you" else f"{name} wins"


def _advance(exhibition: Exhibition, steps: int) -> Outcome | None:
    """Plays some steps, fewer if the match ends before."""
    outcome = None
    for _ in range(steps):
        outcome = exhibition.step()
        if outcome is not None:
            break
    return outcome


class _Pace:
    """How many steps lie between two pictures of a window, so that a game runs in real time.

    Where one step is drawn at a time it stays so: nobody who plays may miss a frame. Where several are, there may be
    more if drawing is slow.

    Attributes:
        steps: Until the next picture.
        pictures_hz: Pictures a second, if drawing is fast enough.
    """

    def __init__(self, rate_hz: float) -> None:
        self._rate_hz, self._fewest = rate_hz, steps_a_picture(rate_hz)
        self.steps, self.pictures_hz = self._fewest, rate_hz / self._fewest

    def note(self, passed_s: float) -> None:
        """Takes the time that the last picture took."""
        if self._fewest > 1:
            self.steps = min(max(round(passed_s * self._rate_hz), self._fewest), _SLOWEST * self._fewest)


def _writer(path: Path, picture: Image, rate_hz: float) -> VideoWriter:
    return VideoWriter(path, (picture.shape[1], picture.shape[0]), rate_hz)


def _with_status(
    picture: Image,
    exhibition: Exhibition,
    outcome: Outcome | None,
    key_lines: Sequence[str],
    *,
    paused: bool,
    begins: bool,
) -> Image:
    """Adds the card that the moment asks for: result, pause, or the keys at the start."""
    if outcome is not None:
        return with_card(picture, result_title(outcome, exhibition.names), (_HINT,))
    if paused:
        return with_card(picture, "Paused", (*key_lines, "", _HINT))
    if begins and len(exhibition.names) > 1:
        return with_card(picture, " against ".join(exhibition.names), (*key_lines, "", _HINT))
    return picture
