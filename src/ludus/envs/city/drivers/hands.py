"""Hands for a game: does what gestures and a profile's steps say, and waits until all of it has been drawn."""

import functools
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import GameLostError
from ludus.envs.city.drivers.driver import Click, Drag, Key, Move, Point, Region, Scroll, Wait
from ludus.envs.city.drivers.prompt import GamePrompt
from ludus.envs.city.learned import ENOUGH, LearnedPictures, likeness
from ludus.envs.city.profile import Ask, Deed, GameProfile, TickSpec
from ludus.envs.city.screen.capture import Box
from ludus.envs.city.screen.session import ScreenSession
from ludus.envs.city.screen.settling import FreezeWatch, wait_for_change, wait_until_still
from ludus.envs.city.screen.windows import Window

_SIGN_TRIES = 3
_CLOCK_TICK_S = 0.002  # games count in milliseconds
_PAUSE_TRIES = 3
_SLOWEST = 50.0  # times what its own time takes at best, on a busy machine
_COVERED_CAPTURES = 5  # equal ones in a row when a dialog or a menu has come up
_PATIENCE = 5  # times the game ran without any change, before a game without a sign counts as frozen


class GameHands:
    """Acts on one running game.

    Attributes:
        window: The game's main window.
        prompt: The game's prompt, if it has one.
        frozen: Whether the screen was found to show nothing new any more.
    """

    def __init__(
        self,
        session: ScreenSession,
        profile: GameProfile,
        pictures: LearnedPictures,
        window: Window,
        prompt: GamePrompt | None,
        clock_speed: float = 1.0,
    ) -> None:
        """Takes hold of a game.

        Args:
            session: Its screen.
            profile: What is known about it.
            pictures: What it looks like.
            window: Its main window.
            prompt: Its prompt, if it has one.
            clock_speed: How many times as fast as ours its clock runs.
        """
        self.window, self.prompt, self.frozen = window, prompt, False
        self._session, self._profile, self._pictures = session, profile, pictures
        self._openers = frozenset(menu.at for menu in profile.menus.values())
        self._turn, self._lag_s = 0, profile.settle.lag_s / clock_speed
        self._changes = FreezeWatch(_PATIENCE)

    def do(self, deeds: Sequence[Deed], seed: int = 0) -> None:
        """Does everything in order; returns when it has been drawn and the game is paused again.

        Raises:
            GameLostError: The game is gone or frozen, or something else is where it should be.
        """
        if not self._profile.pause:
            self._session.continue_process()
        before = self._look(()) if self._profile.settle.sign is None or self.is_covered else None
        times: list[float] = []
        for number, deed in enumerate(deeds):
            if number:
                time.sleep(self._profile.input.between_s)
            if not isinstance(deed, Wait):
                times.append(time.monotonic())
            self._do_one(deed, seed)
        if self._profile.park is not None:
            self._do_one(Move(self._profile.park), seed)
        self._settle(times, before)
        if any(isinstance(deed, Wait) for deed in deeds) and self._profile.settle.sign is None:
            self._changes.due(came=before is None or not np.array_equal(before, self._look(())))
        if self._changes.is_suspicious:
            raise self._freeze(f"nothing changed while the game ran {_PATIENCE} times")
        if self._profile.pause:
            self._make_paused()
        else:
            self._session.stop_process()
        if self.prompt is not None:
            self.prompt.drain()

    def see(self, region: Region) -> NDArray[np.uint8]:
        """Returns a part of the picture, RGB."""
        return self._session.capture.grab(self._box(region))

    @property
    def is_covered(self) -> bool:
        """Whether another window of the game lies over its picture: a dialog or an open menu."""
        return any(window.id != self.window.id for window in self._session.shown())

    @property
    def _has_dialog(self) -> bool:
        return any(window.id != self.window.id and not window.popup for window in self._session.shown())

    @property
    def is_paused(self) -> bool:
        """Whether the picture says that the game is paused; also if it has not been learned what that looks like."""
        name = self._profile.paused_region
        if name is None:
            return self._session.is_stopped
        return name not in self._pictures or self._looks_learned(name)

    def _looks_learned(self, name: str) -> bool:
        return likeness(self._pictures[name], self.see(self._profile.regions[name])) >= ENOUGH

    def _do_one(self, deed: Deed, seed: int = 0, ticks: int = 0) -> None:
        hands, slow = self._session.input, self._profile.input
        match deed:
            case Click():
                before = self._look(()) if deed.at in self._openers else None
                hands.click(*self._pixel(deed.at), deed.button, slow.hold_s)
                if before is not None:
                    self._wait_for_menu(before)
            case Move():
                hands.move(*self._pixel(deed.at))
            case Drag():
                hands.drag(self._pixel(deed.start), self._pixel(deed.end), deed.button, slow.drag_s)
            case Key():
                hands.key(deed.name, slow.hold_s)
            case Scroll():
                hands.scroll(*self._pixel(deed.at), deed.notches)
            case Wait():
                self._run_for(deed.seconds)
            case Ask():
                if self.prompt is None:
                    raise GameLostError(f"there is no prompt to ask {deed.command!r}; the game does not run")
                self.prompt.ask(deed.command.replace("{seed}", str(seed)).replace("{ticks}", str(ticks)))

    def _run_for(self, seconds: float) -> None:
        """Lets the game run, by its own clock or else by the clock on the wall."""
        if self._profile.ticks is not None:
            self._run_ticks(self._profile.ticks, seconds)
            return
        paused = self.is_paused
        for toggle in self._profile.pause if paused else ():
            self._do_one(toggle)
        time.sleep(seconds)
        for toggle in self._profile.pause:
            self._do_one(toggle)

    def _run_ticks(self, clock: TickSpec, seconds: float) -> None:
        """Lets the game run until it has paused by itself; it does not run while a dialog is open."""
        give_up = time.monotonic() + (
            seconds if self._has_dialog else self._profile.settle.timeout_s + _SLOWEST * seconds
        )
        for deed in clock.run:
            self._do_one(deed, ticks=max(1, round(seconds / clock.tick_s)))
        while self.prompt is not None and self.prompt.ask(clock.ended.ask).strip() != clock.ended.answer:
            if time.monotonic() < give_up:
                time.sleep(self._profile.settle.poll_s)
            elif self._has_dialog:
                for deed in clock.run:
                    self._do_one(deed)
                return
            else:
                raise self._freeze(f"it did not run for {seconds:g} s of its own time")

    def _make_paused(self) -> None:
        """Pauses a game that something that was done has set going."""
        for _ in range(_PAUSE_TRIES):
            if self.is_paused or self.is_covered:
                return
            before = self._look(())
            for toggle in self._profile.pause:
                self._do_one(toggle)
            self._settle((), before)
        raise GameLostError(f"the game could not be paused in {_PAUSE_TRIES} tries")

    def _wait_for_menu(self, before: NDArray[np.uint8]) -> None:
        """Waits until an opened menu has been drawn: the next click would go through to what is below it."""
        settle = self._profile.settle
        wait_for_change(lambda: self._look(()), before, settle.timeout_s, settle.poll_s)
        wait_until_still(lambda: self._look(()), settle.captures, self._lag_s, settle.poll_s)

    def _settle(self, times: Sequence[float], before: NDArray[np.uint8] | None) -> None:
        """Waits until all that was done has been drawn, and the picture is still.

        Args:
            times: When each thing was done that can show where the sign does.
            before: The picture before; None if a window that has come up since says enough.
        """
        settle = self._profile.settle
        if settle.sign is not None:
            self._session.wait_until_idle(settle.timeout_s)  # windows that come or go with it have done so then
        if settle.sign is not None and not self.is_covered:
            self._wait_for_sign(times)
        elif before is not None:
            wait_for_change(lambda: self._look(()), before, self._lag_s, settle.poll_s)
        still_captures = settle.captures if before is not None or not self.is_covered else _COVERED_CAPTURES
        wait_until_still(lambda: self._look(settle.watch), still_captures, settle.timeout_s, settle.poll_s)

    def _wait_for_sign(self, times: Sequence[float]) -> None:
        """Gives a sign and waits until it is seen.

        A game may put off the drawing of each thing by the same time, and draw it once for several changes. It is idle
        when the sign is given, so that all that was done is drawn before the sign is. But if the sign is where
        something was done shortly before, it is seen as early as that. The rest can still be to come, for as long as
        the sign was later; and on a busy machine it may be drawn later than it is due.
        """
        settle, sign = self._profile.settle, self._profile.settle.sign
        if sign is None:
            return
        look = functools.partial(self._look, (sign.region,))
        for attempt in range(_SIGN_TRIES):
            given, before = time.monotonic(), look()
            for deed in sign.second if self._turn % 2 else sign.first:
                self._do_one(deed)
            self._turn += 1
            # What was chosen last may be what the sign chooses: then nothing shows, and the other one must be tried.
            seen = wait_for_change(look, before, settle.timeout_s if attempt else self._lag_s, settle.poll_s)
            if not seen and not attempt and self._session.wait_until_idle(settle.timeout_s):
                seen = not np.array_equal(look(), before)
            if seen:
                earlier = [given - moment for moment in times if given - moment <= self._lag_s]
                if earlier:
                    time.sleep(max(earlier) + _CLOCK_TICK_S)
                    self._session.wait_until_idle(settle.timeout_s)
                return
        raise self._freeze(f"{_SIGN_TRIES} signs were not seen within {settle.timeout_s:g} s each")

    def _freeze(self, why: str) -> GameLostError:
        self.frozen = True
        return GameLostError(f"the screen of {self._profile.title} is frozen: {why}")

    def _look(self, regions: Sequence[Region]) -> NDArray[np.uint8]:
        """Returns the pixels of some regions in a row, or all of the picture, to compare."""
        raw = self._session.capture.raw
        if not regions:
            return raw(self.window.box)
        return np.concatenate([raw(self._box(region)).reshape(-1) for region in regions])

    def _box(self, region: Region) -> Box:
        left, top, right, bottom = region.pixels(self.window.width, self.window.height)
        return left + self.window.left, top + self.window.top, right + self.window.left, bottom + self.window.top

    def _pixel(self, point: Point) -> tuple[int, int]:
        x = min(max(int(point.x * self.window.width), 0), self.window.width - 1)
        y = min(max(int(point.y * self.window.height), 0), self.window.height - 1)
        return self.window.left + x, self.window.top + y
