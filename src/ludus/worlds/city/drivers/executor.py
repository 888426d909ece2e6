"""Execute gestures and steps of a profile in a running game, and wait until they have been drawn."""

import functools
import signal
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import GameLostError
from ludus.worlds.city.drivers.driver import Box, Click, Drag, Key, Move, Point, Scroll, Wait
from ludus.worlds.city.drivers.launch import GamePrompt, clock_speed
from ludus.worlds.city.perception.pictures import LIKENESS, LearnedPictures, likeness
from ludus.worlds.city.profile_schema import Ask, GameProfile, Operation, Rest, Sign, Ticks, operations
from ludus.worlds.city.screen.session import ScreenSession
from ludus.worlds.city.screen.xserver import Window, wait_for_change, wait_until, wait_until_still

_SIGN_TRIES = 3
_CLOCK_TICK_S = 0.002  # games count in milliseconds
_PAUSE_TRIES = 3
_SLOWEST = 50.0  # times what its own time takes at best, on a busy machine
_COVERED_CAPTURES = 5  # equal ones in a row when a dialog or a menu has come up
_PATIENCE = 5  # times the game ran without any change, before a game without a sign counts as frozen


class GestureExecutor:
    """Acts on one running game, through its main window."""

    def __init__(
        self,
        session: ScreenSession,
        profile: GameProfile,
        pictures: LearnedPictures,
        window: Window,
        prompt: GamePrompt | None,
        patience: float,
    ) -> None:
        """Attach to a running game.

        `patience` is by how much longer than its profile says the game is given to see clicks and to react to them.
        """
        self.session, self.window, self.prompt, self.frozen = session, window, prompt, False
        self._profile, self._pictures = profile, pictures
        self._toggle = operations(profile.pause.steps)
        self._openers = frozenset(
            (*(menu.at for menu in profile.menus.values()), *(tool.group for tool in profile.tools.values()))
        )
        self._patience, self._between_s = patience, patience * profile.input.between_s
        self._turn, self._lag_s = 0, profile.settle.lag_s / clock_speed(profile)
        self._missed = 0  # changes that were due in a row and did not come

    def do(self, steps: Sequence[Operation], seed: int = 0) -> None:
        """Do everything in order; return when it has been drawn and the game is paused again."""
        if not self._toggle:
            self.session.signal(signal.SIGCONT)
        before = self._look() if self._profile.settle.sign is None or self.is_covered else None
        times: list[float] = []
        for number, step in enumerate((*steps, *(operations(self._profile.input.after) if steps else ()))):
            if number:
                time.sleep(self._between_s)
            if number < len(steps) and not isinstance(step, Wait):
                times.append(time.monotonic())
            self._do_all((step,), seed)
        if self._profile.input.park is not None:
            self.session.input.move(*self._pixel(self._profile.input.park))
        self._settle(times, before)
        # A paused game shows the same picture for as long as it is paused: only after it ran is a change due.
        if any(isinstance(step, Wait) for step in steps) and self._profile.settle.sign is None:
            has_changed = before is None or not np.array_equal(before, self._look())
            self._missed = 0 if has_changed else self._missed + 1
        if self._missed >= _PATIENCE:
            raise self._freeze(f"nothing changed while the game ran {_PATIENCE} times")
        if self._toggle:
            self._make_paused()
        else:
            self.session.signal(signal.SIGSTOP)
        if self.prompt is not None:
            self.prompt.drain()

    @property
    def sign(self) -> int:
        """Which of the two signs of finished pictures was given last."""
        return self._turn % 2

    @property
    def is_covered(self) -> bool:
        """Whether another window of the game covers its picture: a dialog or an open menu."""
        return any(window.id != self.window.id for window in self.session.shown())

    def dialogs(self) -> list[Window]:
        """Return the game's other windows, without open menus."""
        return [window for window in self.session.shown() if window.id != self.window.id and not window.popup]

    @property
    def is_paused(self) -> bool:
        """Whether the picture shows that the game is paused; True before that picture has been learned."""
        name = self._profile.pause.region
        if name is None:
            return self.session.is_stopped
        if name not in self._pictures:
            return True
        seen = self.session.capture.grab(self._box(name))
        return likeness(self._pictures[name], seen) >= LIKENESS

    def _do_all(self, steps: Sequence[Operation], seed: int = 0, ticks: int = 0) -> None:
        hands, slow = self.session.input, self._profile.input
        for step in steps:
            match step:
                case Click():
                    before = self._look() if step.at in self._openers else None
                    hands.click(*self._pixel(step.at), step.button, self._patience * slow.hold_s)
                    if before is not None:
                        # Wait until the menu has been drawn: the next click would go through to what is below it.
                        settle = self._profile.settle
                        wait_for_change(self._look, before, settle.timeout_s, settle.poll_s)
                        wait_until_still(self._look, settle.captures, self._lag_s, settle.poll_s)
                case Move():
                    hands.move(*self._pixel(step.at))
                case Drag():
                    hands.drag(self._pixel(step.start), self._pixel(step.end), step.button, slow.drag_s)
                case Key():
                    hands.key(step.name, self._patience * slow.hold_s)
                case Scroll():
                    hands.scroll(*self._pixel(step.at), step.notches)
                case Wait():
                    self._run_for(step.seconds)
                case Rest():
                    time.sleep(self._patience * step.seconds)
                case Ask():
                    if self.prompt is None:
                        raise GameLostError(f"there is no prompt to ask {step.command!r}; the game does not run")
                    self.prompt.ask(step.command.replace("{seed}", str(seed)).replace("{ticks}", str(ticks)))

    def _run_for(self, seconds: float) -> None:
        """Let the game run, by its own clock or else by the wall clock."""
        if self._profile.pause.ticks is not None:
            self._run_ticks(self._profile.pause.ticks, seconds)
            return
        if self.is_paused:
            self._do_all(operations(self._profile.pause.resume) or self._toggle)
        time.sleep(seconds)
        self._do_all(self._toggle)

    def _run_ticks(self, clock: Ticks, seconds: float) -> None:
        """Let the game run until it pauses itself; it does not run while a dialog is open."""
        settle, prompt = self._profile.settle, self.prompt
        most_s = seconds if self.dialogs() else settle.timeout_s + _SLOWEST * seconds
        self._do_all(operations(clock.run), ticks=max(1, round(seconds / clock.tick_s)))
        ask, answer = clock.ended.ask, clock.ended.answer
        if prompt is None or wait_until(lambda: prompt.ask(ask).strip() == answer, most_s, settle.poll_s):
            return
        if not self.dialogs():
            raise self._freeze(f"it did not run for {seconds:g} s of its clock")
        self._do_all(operations(clock.run))

    def _make_paused(self) -> None:
        """Pause a game that an operation has started."""
        for _ in range(_PAUSE_TRIES):
            if self.is_paused or self.is_covered:
                return
            before = self._look()
            self._do_all(self._toggle)
            self._settle((), before)
        raise GameLostError(f"the game could not be paused in {_PAUSE_TRIES} tries")

    def _settle(self, times: Sequence[float], before: NDArray[np.uint8] | None) -> None:
        """Wait until everything that was done has been drawn and the picture is still.

        `times` says when each operation was done; `before` is None if a new window is evidence enough.
        """
        settle = self._profile.settle
        if settle.sign is not None:
            self.session.wait_until_idle(settle.timeout_s)  # windows that come or go with it have done so then
        if settle.sign is not None and not self.is_covered:
            self._wait_for_sign(settle.sign, times)
        elif before is not None:
            wait_for_change(self._look, before, self._lag_s, settle.poll_s)
        still_captures = settle.captures if before is not None or not self.is_covered else _COVERED_CAPTURES
        wait_until_still(lambda: self._look(*settle.watch), still_captures, settle.timeout_s, settle.poll_s)

    def _wait_for_sign(self, sign: Sign, times: Sequence[float]) -> None:
        """Give a sign and wait until it shows.

        A game may delay the drawing of each change by the same time, and draw several changes at once. It is idle when
        the sign is given, so everything before is drawn before the sign. But if something changed the region of the
        sign shortly before, the sign is seen as early as that change. The rest may still be pending, for as long as the
        sign was later; on a busy machine it may be drawn even later.
        """
        settle, look = self._profile.settle, functools.partial(self._look, sign.region)
        for attempt in range(_SIGN_TRIES):
            given, before = time.monotonic(), look()
            self._do_all(operations(sign.second if self._turn % 2 else sign.first))
            self._turn += 1
            # What was chosen last may be what the sign chooses: then nothing shows, and the other one must be tried.
            seen = wait_for_change(look, before, settle.timeout_s if attempt else self._lag_s, settle.poll_s)
            if not seen and not attempt and self.session.wait_until_idle(settle.timeout_s):
                seen = not np.array_equal(look(), before)
            if seen:
                if earlier := [given - moment for moment in times if given - moment <= self._lag_s]:
                    time.sleep(max(earlier) + _CLOCK_TICK_S)
                    self.session.wait_until_idle(settle.timeout_s)
                return
        raise self._freeze(f"{_SIGN_TRIES} signs were not seen within {settle.timeout_s:g} s each")

    def _freeze(self, why: str) -> GameLostError:
        self.frozen = True
        return GameLostError(f"the screen of {self._profile.title} is frozen: {why}")

    def _look(self, *regions: str) -> NDArray[np.uint8]:
        """Return the pixels of some regions in a row, or all of the picture, to compare."""
        raw = self.session.capture.raw
        if not regions:
            return raw(self.window.box)
        return np.concatenate([raw(self._box(region)).reshape(-1) for region in regions])

    def _box(self, region: str) -> Box:
        left, top, width, height = self.window.box
        box = self._profile.regions[region].box(width, height)
        return box._replace(left=box.left + left, top=box.top + top)

    def _pixel(self, point: Point) -> tuple[int, int]:
        left, top, width, height = self.window.box
        x, y = point.pixel(width, height)
        return left + x, top + y
