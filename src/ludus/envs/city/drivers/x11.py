"""The driver of a real game: what a profile says, done on a virtual screen of the game's own.

Every driver has a screen for itself: several run side by side, and evaluation never shares one with training. A driver
is for one thread at a time; different drivers can be used by different threads.
"""

import time
from collections.abc import Sequence

from ludus.core.errors import GameLostError
from ludus.envs.city.drivers import proofs
from ludus.envs.city.drivers.driver import Driver, Frame, Gesture
from ludus.envs.city.drivers.hands import GameHands
from ludus.envs.city.drivers.prompt import GamePrompt
from ludus.envs.city.drivers.proofs import FieldReader
from ludus.envs.city.drivers.starting import check_installed, clock_speed, start_game
from ludus.envs.city.drivers.trouble import Incident, Trouble
from ludus.envs.city.learned import ENOUGH, LearnedPictures, cache_folder, likeness
from ludus.envs.city.profile import Deed, GameProfile
from ludus.envs.city.screen.resources import ResourceUse
from ludus.envs.city.screen.session import ScreenSession
from ludus.envs.city.screen.settling import wait_until_still
from ludus.envs.city.screen.windows import Window

_STILL_S = 2.0  # how long a window may take to draw itself when it has come up; a game that runs is never still
_UP_POLL_S = 0.05
_LEARN_ROUNDS = 5


class X11Driver(Driver):
    """A real game, played through a screen.

    Attributes:
        profile: What is known about the game.
        pictures: What has been learned about how it looks.
        read: Reads fields of the picture, to prove that the game is there and that a new city has begun; without it
            the learned pictures and the game's prompt have to do.
        incidents: All troubles that were recovered from, in order.
        seed: Of the present city.
    """

    def __init__(
        self, profile: GameProfile, read: FieldReader | None = None, pictures: LearnedPictures | None = None
    ) -> None:
        """Prepares a driver; `launch` starts the game."""
        self.profile, self.read = profile, read
        self.width, self.height = profile.width, profile.height
        if pictures is None:
            pictures = LearnedPictures(cache_folder() / f"{profile.name}-{profile.fingerprint}")
        self.pictures = pictures
        self.incidents: list[Incident] = []
        self.seed = 0
        self._session: ScreenSession | None = None
        self._hands: GameHands | None = None
        self._terrains: dict[int, Frame] = {}

    def launch(self) -> None:
        """Starts the screen and the game, learns what it looks like if that is not known, and begins a city."""
        check_installed(self.profile)
        self.close()
        self._session = ScreenSession(*self.profile.screen)
        try:
            if set(self.profile.learned_regions) <= set(self.pictures):
                self.reset(self.seed)
            else:
                self._prove_new(self.seed, self._learn())
        except BaseException:
            self.close()
            raise

    def capture(self) -> Frame:
        """Returns what the game's window shows."""
        hands = self._checked_hands()
        return self._running_session().capture.grab(hands.window.box)

    def act(self, gestures: Sequence[Gesture]) -> None:
        """Does the gestures, lets the game run where they wait, and returns when all of it has been drawn."""
        self.do(gestures)

    def reset(self, seed: int) -> None:
        """Begins a new city and verifies it by the prompt, the date, the funds and the land."""
        failures: list[str] = []
        for attempt in range(self.profile.reset.tries):
            try:
                if attempt or self.profile.reset.relaunch or self._lost() is not None:
                    self._start(seed)
                self._prove_new(seed, self._begin(seed))
            except GameLostError as error:
                failures.append(str(error))
            else:
                return
        raise GameLostError(f"no new city in {len(failures)} tries: {'; '.join(failures)}")

    def close(self) -> None:
        """Ends the game, the screen and everything started for them; may be called twice."""
        if self._hands is not None and self._hands.prompt is not None:
            self._hands.prompt.close()
        if self._session is not None:
            self._session.close()
        self._hands = self._session = None

    @property
    def prompt(self) -> GamePrompt:
        """The game's prompt, for truth and audits; never for an agent.

        Raises:
            GameLostError: The game has none, or does not run.
        """
        if self._hands is None or self._hands.prompt is None:
            raise GameLostError(f"{self.profile.title} has no prompt, or it does not run; call launch()")
        return self._hands.prompt

    def connect(self) -> None:
        """Proves that the game is there: process, window, picture, landmarks and, with a reader, its readings.

        Raises:
            GameLostError: It is not, or is not what it should be.
        """
        frame = self.capture()
        proofs.prove_picture(frame, f"the window of {self.profile.title}")
        proofs.prove_landmarks(self.profile, self.pictures, frame)
        if self.read is not None:
            proofs.prove_readings(self.profile, self.read, frame)

    def trouble(self) -> Trouble | None:
        """Returns what is wrong now, the worst first, or None; looks only, does nothing."""
        try:
            return self._look_for_trouble()
        except GameLostError as error:
            return self._lost() or Trouble("screen", str(error))

    def recover(self) -> bool:
        """Makes the game playable again, whatever is wrong; returns whether the same city goes on.

        Raises:
            GameLostError: It could not be done.
        """
        trouble, started = self.trouble(), time.monotonic()
        if trouble is None:
            return True
        goes_on = not trouble.loses_city and self._mend()
        if not goes_on:
            if self._session is None or not self._session.screen.is_alive:
                self.launch()
            else:
                self._start(self.seed)
                self.reset(self.seed)
        self.incidents.append(Incident(trouble, goes_on, time.monotonic() - started))
        return goes_on

    def open_dialogs(self) -> tuple[str, ...]:
        """Returns the dialogs that lie over the picture: their names in the profile, or the titles of unknown ones."""
        return tuple(self._dialog_name(window) or window.title for window in self._dialogs())

    def has_menu(self) -> bool:
        """Returns whether a menu, or a hint, lies over the picture."""
        return self._hands is not None and any(window.popup for window in self._running_session().shown())

    def do(self, deeds: Sequence[Deed]) -> None:
        """Does steps of the profile, such as `profile.camera["left"]`, like `act`."""
        self._checked_hands().do(deeds, self.seed)
        self._checked_hands()  # a click can end the game

    def resource_use(self) -> ResourceUse:
        """Returns what the screen and the game take."""
        return self._running_session().screen.resource_use()

    def _start(self, seed: int) -> None:
        """Starts the game's process and waits for its window."""
        session, profile = self._running_session(), self.profile
        if self._hands is not None and self._hands.prompt is not None:
            self._hands.prompt.close()
        self._hands = None
        prompt = start_game(session, profile, seed)
        try:
            window = session.wait_for(self._is_main, f"the window of {profile.title}", profile.launch.timeout_s)
            self._wait_until_up(session, window)
        except BaseException:
            if prompt is not None:
                prompt.close()
            raise
        self._hands = GameHands(session, profile, self.pictures, window, prompt, clock_speed(profile))

    def _wait_until_up(self, session: ScreenSession, window: Window) -> None:
        """Waits until a window shows something, and the same for long enough; a game that moves is up too."""
        launch, poll_s = self.profile.launch, self.profile.settle.poll_s
        give_up = time.monotonic() + launch.timeout_s
        while session.capture.grab(window.box).std() < proofs.LEAST_CONTRAST and time.monotonic() < give_up:
            time.sleep(_UP_POLL_S)
        captures = max(2, round(launch.still_s / poll_s))
        wait_until_still(lambda: session.capture.raw(window.box), captures, _STILL_S + launch.still_s, poll_s)

    def _begin(self, seed: int) -> Frame:
        """Does the reset recipe, checks the prompt's truth and returns the picture of the new city."""
        hands = self._checked_hands()
        hands.do(self.profile.reset.steps, seed)
        proofs.prove_truth(self.profile, hands.prompt)
        return self.capture()

    def _prove_new(self, seed: int, frame: Frame) -> None:
        """Proves by its picture that a city has just begun, on the land of its seed."""
        land = self.profile.reset.terrain.cut(frame).copy()
        proofs.prove_fresh(self.profile, self.pictures, self.read, frame)
        proofs.prove_terrain(seed, land, self._terrains)
        self._terrains[seed], self.seed = land, seed
        self.connect()

    def _learn(self) -> Frame:
        """Learns what a fresh game looks like; two starts in a row must look the same, or it is not known.

        Returns:
            The picture of the city that has been begun.
        """
        regions, last = self.profile.regions, dict[str, Frame]()
        for _ in range(_LEARN_ROUNDS):
            self._start(self.seed)
            frame = self._begin(self.seed)
            seen = {name: regions[name].cut(frame).copy() for name in self.profile.learned_regions}
            for landmark in self.profile.landmarks.values():
                proofs.prove_picture(seen[landmark.region], f"the landmark {landmark.region}")
            if self.read is not None:
                proofs.prove_readings(self.profile, self.read, frame)
            if last and all(likeness(last[name], seen[name]) >= ENOUGH for name in seen):
                self.pictures.learn(seen)
                return frame
            last = seen
        raise GameLostError(f"{self.profile.title} looks different whenever it is started; mark what stays the same")

    def _mend(self) -> bool:
        """Closes dialogs and brings landmarks back; returns whether all is well then."""
        try:
            for window in self._dialogs():
                name = self._dialog_name(window)
                if name is None:
                    self._running_session().windows.ask_to_close(window)
                else:
                    self.do(self.profile.dialogs[name].close)
            frame = self.capture().copy()
            for landmark in self.profile.landmarks.values():
                if landmark.restore and not self._is_seen(landmark.region, frame):
                    self.do(landmark.restore)
            self.do(())
        except GameLostError:
            return False
        return self.trouble() is None

    def _look_for_trouble(self) -> Trouble | None:
        lost = self._lost()
        if lost is not None or self._hands is None:
            return lost
        for window in self._dialogs():
            name = self._dialog_name(window)
            words = f"the dialog {name}" if name else f"an unexpected window {window.title!r}"
            return Trouble("dialog", f"{words} lies over the picture")
        if not self._hands.is_covered:
            frame = self._running_session().capture.grab(self._hands.window.box)
            for name, landmark in self.profile.landmarks.items():
                if not self._is_seen(landmark.region, frame):
                    return Trouble("layout", f"the landmark {name} is not to be seen")
        return None

    def _lost(self) -> Trouble | None:
        """Returns what is gone for good, if something is."""
        try:
            return self._look_for_loss()
        except GameLostError as error:
            return Trouble("screen", str(error))

    def _look_for_loss(self) -> Trouble | None:
        if self._session is None or not self._session.screen.is_alive:
            return Trouble("screen", "the virtual screen is gone")
        if self._hands is None or not self._session.is_running:
            return Trouble("process", f"the process of {self.profile.title} is gone")
        if self._hands.frozen or (self.profile.pause and self._session.is_stopped):
            return Trouble("frozen", "the screen shows nothing new any more")
        shown = self._session.shown()
        for window in shown:
            name = self._dialog_name(window)
            if name is not None and self.profile.dialogs[name].ends_game:
                return Trouble("over", f"the city is over: {name}")
        if all(window != self._hands.window for window in shown):
            return Trouble("window", f"the window of {self.profile.title} is gone")
        return None

    def _is_main(self, window: Window) -> bool:
        fits = (window.width, window.height) == (self.profile.width, self.profile.height)
        return fits and self.profile.window_title.fullmatch(window.title) is not None

    def _dialogs(self) -> list[Window]:
        """Returns the game's other windows, without open menus."""
        if self._hands is None:
            return []
        main = self._hands.window.id
        return [window for window in self._running_session().shown() if window.id != main and not window.popup]

    def _dialog_name(self, window: Window) -> str | None:
        fitting = (name for name, dialog in self.profile.dialogs.items() if dialog.title.fullmatch(window.title))
        return next(fitting, None)

    def _is_seen(self, region: str, frame: Frame) -> bool:
        return likeness(self.pictures[region], self.profile.regions[region].cut(frame)) >= ENOUGH

    def _running_session(self) -> ScreenSession:
        if self._session is None:
            raise GameLostError(f"{self.profile.title} does not run; call launch()")
        return self._session

    def _checked_hands(self) -> GameHands:
        """Returns the hands if the game is there to be touched and seen."""
        lost = self._lost()
        if lost is not None or self._hands is None:
            raise GameLostError(lost.what if lost is not None else f"{self.profile.title} does not run; call launch()")
        return self._hands
