"""The driver of a real game on its own virtual screen, as its profile describes it.

Several drivers run side by side, and evaluation never shares a screen with training. A driver is for one thread at a
time; different drivers can be used by different threads.
"""

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ludus.core.errors import GameLostError
from ludus.worlds.city.drivers.driver import Frame, Incident, Trouble, TroubleKind
from ludus.worlds.city.drivers.executor import GestureExecutor
from ludus.worlds.city.drivers.launch import GamePrompt, check_installed, forget_clock, start_game
from ludus.worlds.city.perception.pictures import LIKENESS, LearnedPictures, cache_folder, likeness
from ludus.worlds.city.profile_schema import GameProfile, Operation, operations
from ludus.worlds.city.screen.session import ScreenSession
from ludus.worlds.city.screen.xserver import Window, wait_until, wait_until_still

_STILL_S = 2.0  # how long a window may take to draw itself when it has come up; a game that runs is never still
_UP_POLL_S = 0.05
_DYING_S = 5.0  # from the loss of a window to the end of its process
_MOST_PATIENCE = 8.0  # times as long as a profile says
_LEARN_ROUNDS = 5
_SAME_LAND = 0.99  # share of equal pixels from which two pictures of land are the same
_LEAST_CONTRAST = 3.0  # standard deviation of a picture's values; an empty window has 0


class X11Driver(contextlib.AbstractContextManager["X11Driver"]):
    """A real game, played through a screen.

    Attributes:
        pictures: What has been learned about how it looks.
        incidents: All failures that were recovered from, in order.
    """

    def __init__(self, profile: GameProfile, pictures: LearnedPictures | None = None) -> None:
        """Prepare a driver; `launch` starts the game."""
        self.profile, self.width, self.height = profile, profile.width, profile.height
        if pictures is None:
            pictures = LearnedPictures(cache_folder() / f"{profile.name}-{profile.fingerprint}")
        self.pictures = pictures
        self.incidents: list[Incident] = []
        self.seed = 0
        self._session: ScreenSession | None = None
        self._executor: GestureExecutor | None = None
        self._terrains: dict[int, Frame] = {}
        self._patience = 1.0

    def launch(self) -> None:
        """Start the screen and the game, learn its pictures if they are not known, and start a city."""
        with self._new_screen():
            if set(self.profile.learned_regions) <= set(self.pictures):
                self.reset(self.seed)
            else:
                self._check_new(self.seed, self._learn())

    def open(self, seed: int = 1) -> Frame:
        """Start the screen, the game and a city, and check none of its looks, which may not be known yet."""
        with self._new_screen():
            self._start(seed)
            return self._begin(seed)

    @contextlib.contextmanager
    def _new_screen(self) -> Iterator[None]:
        """Start a screen, which is closed again if what is done on it fails."""
        check_installed(self.profile)
        self.close()
        self._session = ScreenSession(*self.profile.screen)
        try:
            yield
        except BaseException:
            self.close()
            raise

    def capture(self) -> Frame:
        """Return a capture of the game's window."""
        hands = self._checked_executor()
        return hands.session.capture.grab(hands.window.box)

    def reset(self, seed: int) -> None:
        """Start a new city and verify it by the prompt, the date, the funds and the land."""
        failures: list[str] = []
        for attempt in range(self.profile.reset.tries):
            try:
                if attempt or self.profile.reset.relaunch or self._lost() is not None:
                    self._start(seed)
                self._check_new(seed, self._begin(seed))
            except GameLostError as error:
                failures.append(str(error))
                # On a busy machine a game may see clicks late, or not at all if they are short.
                self._patience = min(2.0 * self._patience, _MOST_PATIENCE)
            else:
                self._patience = max(0.5 * self._patience, 1.0)
                return
        raise GameLostError(f"no new city in {len(failures)} tries: {'; '.join(dict.fromkeys(failures))}")

    def close(self) -> None:
        """End the game, the screen and everything started for them; may be called twice."""
        self._forget_game()
        if self._session is not None:
            self._session.close()
        self._session = None

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def prompt(self) -> GamePrompt:
        """The game's prompt, for truth and audits, never for an agent; raises GameLostError if there is none."""
        if self._executor is None or self._executor.prompt is None:
            raise GameLostError(f"{self.profile.title} has no prompt, or it does not run; call launch()")
        return self._executor.prompt

    def connect(self) -> None:
        """Check the process, the window, the picture and the landmarks; raise GameLostError if a check fails."""
        frame = self.capture()
        _check_contrast(frame, f"the window of {self.profile.title}")
        self._check_looks((landmark.region for landmark in self.profile.landmarks.values()), frame)

    def trouble(self) -> Trouble | None:
        """Return the worst present failure, or None; does not act."""
        try:
            lost = self._lost()
            if lost is not None or self._executor is None:
                return lost
            for window in self._executor.dialogs():
                name = self._dialog_name(window)
                words = f"the dialog {name}" if name else f"an unexpected window {window.title!r}"
                return Trouble("dialog", f"{words} covers the picture")
            if not self._executor.is_covered:
                frame = self._executor.session.capture.grab(self._executor.window.box)
                for name, landmark in self.profile.landmarks.items():
                    if not self._is_seen(landmark.region, frame):
                        return Trouble("layout", f"the landmark {name} is not visible")
        except GameLostError as error:
            return self._lost() or Trouble("screen", str(error))
        return None

    def recover(self) -> bool:
        """Recover from a failure, or raise GameLostError; return whether the same city continues."""
        trouble, started = self.trouble(), time.monotonic()
        if trouble is None:
            return True
        goes_on = trouble.kind in ("dialog", "layout") and self._mend()  # of the others the city is lost
        if not goes_on:
            if self._session is None or not self._session.screen.is_alive:
                self.launch()
            else:
                self._start(self.seed)
                self.reset(self.seed)
        self.incidents.append(Incident(trouble, goes_on, time.monotonic() - started))
        return goes_on

    def open_dialogs(self) -> tuple[str, ...]:
        """Return the dialogs that cover the picture: their names in the profile, or the titles of unknown ones."""
        windows = self._executor.dialogs() if self._executor is not None else ()
        return tuple(self._dialog_name(window) or window.title for window in windows)

    def has_menu(self) -> bool:
        """Return whether a menu or a tooltip covers the picture."""
        return self._executor is not None and any(window.popup for window in self._executor.session.shown())

    @property
    def sign(self) -> int:
        """Which of the two signs of finished pictures the game shows."""
        return self._checked_executor().sign

    def do(self, steps: Sequence[Operation]) -> None:
        """Do gestures or steps of the profile, let the game run where they wait; return when everything is drawn."""
        self._checked_executor().do(steps, self.seed)
        self._checked_executor()  # a click can end the game

    def _start(self, seed: int) -> None:
        """Start the game's process and wait for its window."""
        session, profile = self._session, self.profile
        if session is None:
            raise GameLostError(f"{profile.title} does not run; call launch()")
        self._forget_game()
        capture, launch, poll_s = session.capture, profile.launch, profile.settle.poll_s
        prompt = start_game(session, profile, seed)
        try:
            window = session.wait_for(self._is_main, f"the window of {profile.title}", launch.timeout_s)
            # Until it shows something and stays still, or for a while if the game is animated.
            wait_until(lambda: bool(capture.grab(window.box).std() >= _LEAST_CONTRAST), launch.timeout_s, _UP_POLL_S)
            captures = max(2, round(launch.still_s / poll_s))
            wait_until_still(lambda: capture.raw(window.box), captures, _STILL_S + launch.still_s, poll_s)
            forget_clock(session.pid)
        except BaseException:
            if prompt is not None:
                prompt.close()
            raise
        self._executor = GestureExecutor(session, profile, self.pictures, window, prompt, self._patience)

    def _forget_game(self) -> None:
        if self._executor is not None and self._executor.prompt is not None:
            self._executor.prompt.close()
        self._executor = None

    def _begin(self, seed: int) -> Frame:
        """Do the reset steps, check the prompt's truth and return the picture of the new city."""
        hands = self._checked_executor()
        if self.profile.reset.relaunch and self.profile.settle.sign is not None:
            hands.do(())  # a game may lose input before its first pictures: its sign shows that it listens
        hands.do(operations(self.profile.reset.steps), seed)
        for truth in self.profile.reset.truth:
            answer = hands.prompt.ask(truth.ask).strip() if hands.prompt is not None else "nothing"
            if answer != truth.answer:
                raise GameLostError(
                    f"the prompt answers {answer!r} to {truth.ask!r} in a new city, not {truth.answer!r}"
                )
        return self.capture()

    def _check_new(self, seed: int, frame: Frame) -> None:
        """Check by its picture that a city has just started, on the land of its seed."""
        reset, pause = self.profile.reset, self.profile.pause
        self._check_looks((*reset.fresh, *([pause.region] if pause.region else [])), frame)
        land = self.profile.regions[reset.terrain].cut(frame).copy()
        _check_contrast(land, "the land of a new city")
        if seed in self._terrains and likeness(self._terrains[seed], land) < _SAME_LAND:
            raise GameLostError(f"the land of seed {seed} differs from before")
        for other, known in self._terrains.items():
            if other != seed and not reset.same_land and np.array_equal(known, land):
                raise GameLostError(f"the land of seed {seed} is that of seed {other}: no new city was started")
        self._terrains[seed], self.seed = land, seed
        self.connect()

    def _check_looks(self, regions: Iterable[str], frame: Frame) -> None:
        """Raise GameLostError if a region does not look as it was learned."""
        for name in regions:
            self.pictures.check(name, self.profile.regions[name].cut(frame))

    def _learn(self) -> Frame:
        """Learn the pictures of a fresh game, whose starts must look the same; return that of the new city."""
        regions, last = self.profile.regions, dict[str, Frame]()
        for _ in range(_LEARN_ROUNDS):
            self._start(self.seed)
            frame = self._begin(self.seed)
            seen = {name: regions[name].cut(frame).copy() for name in self.profile.learned_regions}
            for landmark in self.profile.landmarks.values():
                _check_contrast(seen[landmark.region], f"the landmark {landmark.region}")
            if last and all(likeness(last[name], seen[name]) >= LIKENESS for name in seen):
                self.pictures.learn(seen)
                return frame
            last = seen
        raise GameLostError(
            f"{self.profile.title} looks different after every start; choose landmarks that stay the same"
        )

    def _mend(self) -> bool:
        """Close dialogs and restore landmarks; return whether that was enough."""
        try:
            hands = self._checked_executor()
            for window in hands.dialogs():
                name = self._dialog_name(window)
                if name is None:
                    hands.session.windows.ask_to_close(window)
                else:
                    self.do(operations(self.profile.dialogs[name].close))
            frame = self.capture()
            for landmark in self.profile.landmarks.values():
                if landmark.restore and not self._is_seen(landmark.region, frame):
                    self.do(operations(landmark.restore))
            self.do(())
        except GameLostError:
            return False
        return self.trouble() is None

    def _lost(self) -> Trouble | None:
        """Return an unrecoverable failure, if any."""
        if self._session is None or not self._session.screen.is_alive:
            return Trouble("screen", "the virtual screen is gone")
        if self._executor is None or not self._session.is_running:
            return Trouble("process", f"the process of {self.profile.title} is gone")
        if self._executor.frozen or (self.profile.pause.steps and self._session.is_stopped):
            return Trouble("frozen", "the screen does not change any more")
        try:
            shown = self._session.shown()
        except GameLostError as error:
            return Trouble("screen", str(error))
        for window in shown:
            name = self._dialog_name(window)
            if name is not None and self.profile.dialogs[name].ends_game:
                return Trouble("over", f"the city is over: {name}")
        if self._executor.window not in shown:
            session = self._session  # it drops the windows of a dying process before the process has ended
            ended = wait_until(lambda: not session.is_running, _DYING_S, _UP_POLL_S)
            what: TroubleKind = "process" if ended else "window"
            return Trouble(what, f"the {what} of {self.profile.title} is gone")
        return None

    def _is_main(self, window: Window) -> bool:
        main = self.profile.window
        return window.box[2:] == main.size and main.title.fullmatch(window.title) is not None

    def _dialog_name(self, window: Window) -> str | None:
        fitting = (name for name, dialog in self.profile.dialogs.items() if dialog.window.fullmatch(window.title))
        return next(fitting, None)

    def _is_seen(self, region: str, frame: Frame) -> bool:
        return likeness(self.pictures[region], self.profile.regions[region].cut(frame)) >= LIKENESS

    def _checked_executor(self) -> GestureExecutor:
        """Return the executor if the game can be seen and acted on."""
        lost = self._lost()
        if lost is not None or self._executor is None:
            raise GameLostError(lost.what if lost is not None else f"{self.profile.title} does not run; call launch()")
        return self._executor


def _check_contrast(frame: Frame, what: str) -> None:
    """Raise GameLostError if a picture is empty or black."""
    contrast = float(frame.std())
    if contrast < _LEAST_CONTRAST:
        raise GameLostError(
            f"{what} is empty: the contrast is {contrast:.1f}, at least {_LEAST_CONTRAST:g} is required"
        )
