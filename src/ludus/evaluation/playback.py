"""Showing games: matches in a window, with or without a person, or as a video; replays likewise."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from ludus.envs.base import BatchedEnv
from ludus.envs.replay import Replay, replay_env, resimulate
from ludus.envs.stage import Image, Painter
from ludus.evaluation.exhibition import Exhibition, Outcome
from ludus.evaluation.pace import MOST_PICTURES_HZ, pace_of, picture_steps, shown_hz
from ludus.evaluation.painting import DEFAULT_LOOK, Look, with_card
from ludus.evaluation.players import KeyboardPlayer
from ludus.evaluation.video import VideoWriter
from ludus.evaluation.window import Window

Progress: TypeAlias = Callable[[int], None]

_START_CARD_S = 4.0
_END_CARD_S = 1.5
_HINT, _TURN_HINT = "P pause   R new match   Esc quit", "   C camera"
_TURN = "c"


def play_in_window(
    exhibition: Exhibition,
    person: KeyboardPlayer | None,
    window: Window,
    *,
    key_lines: Sequence[str] = (),
    frames: int | None = None,
    look: Look = DEFAULT_LOOK,
    on_outcome: Callable[[Outcome], None] = lambda _: None,
) -> None:
    """Shows matches in real time until the window is closed; a person may play.

    Args:
        exhibition: The match, with the person in one of its seats if there is one.
        person: Takes the keys; None to watch others.
        window: Where to show it.
        key_lines: What the keys do, shown in the first seconds and while paused.
        frames: Pictures after which to end, or None.
        look: How it is drawn.
        on_outcome: Called with every result.
    """
    painter = look.painter(exhibition.env, exhibition.names)
    exhibition.tell(painter)
    pace = pace_of(exhibition.env)
    status = _Status(exhibition, (*key_lines, "", _HINT + (_TURN_HINT if painter.views else "")))
    picture, outcome, paused, taps = painter.paint(), None, False, frozenset[str]()
    for tick in itertools.count():
        keys = window.look()
        if keys.closed or "escape" in keys.pressed or (frames is not None and tick >= frames):
            return
        if "r" in keys.pressed:
            exhibition.restart()
            painter.take()
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
                outcome, taps = _advance(exhibition, pace.steps), frozenset()
                if outcome is None:  # a match that ended has begun anew: keep its last picture
                    painter.take()
                    pace.stretch(painter.stretch)
                else:
                    on_outcome(outcome)
            if outcome is None:
                picture = painter.paint(pace.share())
        elif turns and outcome is None:
            picture = painter.paint()
        begins = tick < _START_CARD_S * pace.pictures_hz
        window.show(status.over(picture, outcome, paused=paused, begins=begins))
        pace.note(window.wait(pace.pictures_hz), window.busy_s)


def show_replay(
    replay: Replay, window: Window, *, look: Look = DEFAULT_LOOK, files: Mapping[str, Path] | None = None
) -> bool:
    """Plays a replay in a window, in real time, and checks it; P pauses, C turns to the next view, Esc ends.

    Returns:
        Whether it was shown to its end.
    """
    with replay_env(replay, files) as env:
        painter = look.painter(env, replay.players)
        picture = painter.paint()
        results = resimulate(replay, env)
        pace, paused, is_last = pace_of(env), False, False
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
                        painter.take()
                        pace.stretch(painter.stretch)
                share = pace.share()
                if not is_last:  # the next game has begun already
                    picture = painter.paint(share)
            window.show(with_card(picture, "Paused", ("P go on   Esc quit",)) if paused else picture)
            pace.note(window.wait(pace.pictures_hz), window.busy_s)


def film_replay(
    replay: Replay,
    path: Path,
    *,
    look: Look = DEFAULT_LOOK,
    wish_hz: float = MOST_PICTURES_HZ,
    files: Mapping[str, Path] | None = None,
    progress: Progress = lambda _: None,
) -> int:
    """Writes a replay as a video, without a screen, and checks it; returns the number of frames."""
    with replay_env(replay, files) as env:
        painter = look.painter(env, replay.players)
        picture = painter.paint()
        film = _Film(env, painter, wish_hz)
        with film.writer(path, picture) as video:
            video.write(picture)
            for step, result in enumerate(resimulate(replay, env), start=1):
                if step % film.steps == 0 and not bool(result.ended[0]):
                    for picture in film.pictures():
                        video.write(picture)
                progress(step)
        return video.frames


def film_match(
    exhibition: Exhibition,
    path: Path,
    *,
    frames: int | None = None,
    look: Look = DEFAULT_LOOK,
    wish_hz: float = MOST_PICTURES_HZ,
    progress: Progress = lambda _: None,
) -> Outcome | None:
    """Plays a match and writes it as a video that ends with the result; a player alone has one if it failed.

    Args:
        exhibition: The match.
        path: Name of the video.
        frames: Pictures after the first after which to stop, or None for the whole match.
        look: How it is drawn.
        wish_hz: Pictures a second, if the world can be drawn so often.
        progress: Called with the number of pictures after the first.

    Returns:
        How the match ended, or None if it was stopped before.
    """
    env = exhibition.env
    painter = look.painter(env, exhibition.names)
    exhibition.tell(painter)
    picture, outcome, drawn = painter.paint(), None, 0
    film = _Film(env, painter, wish_hz)
    with film.writer(path, picture) as video:
        video.write(picture)
        while frames is None or drawn < frames:
            outcome = _advance(exhibition, film.steps)
            if outcome is not None:
                drawn += 1
                progress(drawn)
                break
            for picture in itertools.islice(film.pictures(), None if frames is None else frames - drawn):
                video.write(picture)
                drawn += 1
                progress(drawn)
        if outcome is not None and (len(exhibition.names) > 1 or not outcome.cut_off):
            last = with_card(picture, result_title(outcome, exhibition.sides))
            for _ in range(round(_END_CARD_S * film.rate_hz)):
                video.write(last)
    return outcome


def result_title(outcome: Outcome, names: Sequence[str]) -> str:
    """Says which side won, for a card, or when it was over for who played alone."""
    if len(names) == 1:
        return f"{'Time is up' if outcome.cut_off else 'Over'} after {outcome.seconds:.1f} s"
    if outcome.winner is None:
        return "Draw"
    name = names[outcome.winner]
    return "You win" if "you" in name.split(" and ") else f"{name} wins"


def _advance(exhibition: Exhibition, steps: int) -> Outcome | None:
    """Plays some steps, fewer if the match ends before."""
    outcome = None
    for _ in range(steps):
        outcome = exhibition.step()
        if outcome is not None:
            break
    return outcome


class _Film:
    """How a video is made of a game: after how many steps a picture comes, or how many pictures after each step."""

    def __init__(self, env: BatchedEnv, painter: Painter, wish_hz: float) -> None:
        self._painter = painter
        self.steps, self._parts = picture_steps(env, wish_hz)
        self.rate_hz = shown_hz(env) * self._parts / self.steps

    def writer(self, path: Path, picture: Image) -> VideoWriter:
        """Begins the video."""
        return VideoWriter(path, (picture.shape[1], picture.shape[0]), self.rate_hz)

    def pictures(self) -> Iterator[Image]:
        """Gives the pictures of the steps that were just made."""
        self._painter.take()
        parts = max(round(self._parts * self._painter.stretch), 1)
        for part in range(1, parts + 1):
            yield self._painter.paint(part / parts)


class _Status:
    """The card that a moment asks for: result, pause, or the keys at the start."""

    def __init__(self, exhibition: Exhibition, lines: Sequence[str]) -> None:
        self._exhibition, self._lines = exhibition, tuple(lines)

    def over(self, picture: Image, outcome: Outcome | None, *, paused: bool, begins: bool) -> Image:
        """Returns the picture with its card."""
        sides = self._exhibition.sides
        if outcome is not None:
            return with_card(picture, result_title(outcome, sides), self._lines[-1:])
        if paused:
            return with_card(picture, "Paused", self._lines)
        if begins and len(sides) > 1:
            return with_card(picture, " against ".join(sides), self._lines)
        return picture
