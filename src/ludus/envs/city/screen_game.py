"""One real game as City's world plays it: decisions become gestures, pictures become readings, trouble is overcome."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ludus.core.errors import GameLostError
from ludus.envs.city.catalogue import CONFIRMED, NOT_JUDGED, Catalogue
from ludus.envs.city.config import CityConfig
from ludus.envs.city.drivers.driver import Frame, Gesture, Key, Point, Wait
from ludus.envs.city.drivers.trouble import Trouble
from ludus.envs.city.drivers.x11 import X11Driver
from ludus.envs.city.perception.reader import ScreenReader
from ludus.envs.city.perception.reading import Date, Reading
from ludus.envs.city.profile import Ask, Deed, GameProfile
from ludus.envs.city.profile_file import Accounts
from ludus.envs.city.profile_gestures import ProfileGestures
from ludus.envs.city.screen_explorer import CHANGED_SHARE, ScreenExplorer, SharedMenus

_MOST_READS = 4  # pictures in a row; two equal ones make a value count, and the game stands still
_READ_POLL_S = 0.01
_RECOVERY_TRIES = 5
_SELF_MADE = ("menu", "explore", "funding")  # groups that may open dialogs


@dataclass(slots=True)
class Deeds:
    """What a decision led to.

    Attributes:
        placed: See `ActionKind.judge`.
        changed: Whether an exploring action changed the picture before time passed.
        discovered: Elements that were never seen before.
        trouble: Things that went wrong.
        recovered: How many of them were overcome.
        over: Whether the city has ended by its own rules.
        lost: Whether it was lost with the game, so that its episode is cut off.
    """

    placed: int = NOT_JUDGED
    changed: bool = False
    discovered: int = 0
    trouble: int = 0
    recovered: int = 0
    over: bool = False
    lost: bool = False


@dataclass(slots=True)
class Look:
    """What is seen of a game.

    Attributes:
        frame: The window `(height, width, 3)`.
        readings: By field.
        menu: Number of the open menu, -1 for none.
        dialog: Whether a dialog lies over the picture.
    """

    frame: Frame
    readings: dict[str, Reading] = field(default_factory=dict)
    menu: int = -1
    dialog: bool = False

    def number(self, name: str) -> float | None:
        """Returns the number that a field says now; None if it cannot be read."""
        reading = self.readings.get(name)
        if reading is None or reading.age_s > 0.0:
            return None
        return reading.value if isinstance(reading.value, float) else None


class ScreenGame:
    """A game on a screen of its own; for one thread at a time.

    Attributes:
        driver: Of the game.
        look: What was seen last.
        elements: Elements of the interface that are remembered.
        done: Gestures of the last decision.
    """

    def __init__(
        self,
        driver: X11Driver,
        reader: ScreenReader,
        catalogue: Catalogue,
        config: CityConfig,
        menus: SharedMenus,
        number: int,
    ) -> None:
        """Takes a driver, whose game need not run yet.

        Args:
            driver: Of the game.
            reader: For this game alone.
            catalogue: What can be done.
            config: Of the world.
            menus: What is known of the game's menus, which all its instances share.
            number: Of the game, for what is drawn by lot.
        """
        profile: GameProfile = driver.profile
        self.driver, self._reader, self._catalogue, self._number = driver, reader, catalogue, number
        self.gestures = ProfileGestures(profile, catalogue, config.cells)
        self.look = Look(np.zeros((profile.height, profile.width, 3), np.uint8))
        self.done: tuple[Gesture, ...] = ()
        self._accounts: Accounts = profile.accounts
        self._wait = Wait(profile.wait_s if config.wait_s is None else config.wait_s)
        self._closes, self._judges = config.closes, config.confirm
        self._menus = [menu.at for menu in profile.menus.values()]
        self._opened = 0  # menu that was opened last
        self._explorer = ScreenExplorer(profile, self.gestures, menus, config.menu_buffer)
        self._turn = self._land = 0

    @property
    def elements(self) -> int:
        """How many elements of the interface are remembered."""
        return len(self._explorer)

    def launch(self, land: int) -> None:
        """Starts the game, on the land of a seed."""
        self.driver.seed = land
        self._insist(self.driver.launch)

    def begin(self, land: int) -> None:
        """Begins a new city on the land of a seed and looks at it."""
        self._turn, self._land = 0, land
        self.driver.seed = land  # of a game that has to be started anew for it
        self._explorer.forget()
        self.gestures.begin()
        self._insist(lambda: self.driver.reset(land))
        self._reader.forget()
        self.see()

    def play(self, kind: int, cell: int) -> Deeds:
        """Carries out a decision and looks at what has become of the city."""
        deeds, before = Deeds(), self.look
        self._turn += 1
        try:
            self._do(kind, cell, deeds)
            trouble = self._unexpected(kind)
        except GameLostError as error:
            trouble = self.driver.trouble() or Trouble("layout", str(error))
        if trouble is not None:
            self._meet(trouble, deeds)
        if not deeds.over and not deeds.lost:
            try:
                self.see()
            except GameLostError as error:
                self._meet(self.driver.trouble() or Trouble("layout", str(error)), deeds)
            else:
                self._judge(kind, before, deeds)
        return deeds

    # --- doing ---

    def _do(self, kind: int, cell: int, deeds: Deeds) -> None:
        group = self._catalogue.kinds[kind].group
        if self.look.dialog and (self._closes or self._catalogue.kinds[kind].name == "escape"):
            self.driver.recover()  # closes dialogs by the profile's recipes
        elif self.look.menu >= 0 and self._closes:
            self.driver.do((Key("Escape"),))
        if group == "explore":
            self._explore(kind, cell, deeds)
            self.driver.do((self._wait,))
            return
        *first, last = self._parts(kind, cell, self.look.number("tax"))
        for part in first:
            self.driver.do(part)
        self.driver.do((*last, self._wait))

    def _parts(self, kind: int, cell: int, tax: float | None, target: Point | None = None) -> Sequence[Sequence[Deed]]:
        """Returns what is done for a decision, part by part, and notes the gestures."""
        parts = self.gestures.of(kind, cell, tax, target)
        self.done = tuple(deed for part in parts for deed in part if not isinstance(deed, Ask))
        return parts

    def _explore(self, kind: int, cell: int, deeds: Deeds) -> None:
        """Does something for the sake of what it shows, and notes what it has shown."""
        name, target, before = self._catalogue.kinds[kind].name, None, self.look.frame
        if name == "explore_menu":
            target = self._explorer.next_in_menus(is_open=self.look.menu >= 0)
            self._opened = self._menus.index(target) if target in self._menus else self._opened
        elif name == "click_element":
            target = self._explorer.next_element(self._number, self._land, self._turn)
        for part in self._parts(kind, cell, None, target):
            self.driver.do(part)
        self.driver.do(())  # signs that pictures are finished have two looks in turn: now it is that of before
        frame = self.driver.capture()
        differs = np.any(frame != before, axis=-1)
        deeds.changed = bool(np.count_nonzero(differs) > CHANGED_SHARE * differs.size)
        if deeds.changed or name == "observe":
            deeds.discovered = self._explorer.note(frame, None if name == "observe" else differs)

    # --- seeing ---

    def see(self) -> None:
        """Looks at the game until two pictures in a row say the same."""
        driver, reader = self.driver, self._reader
        readings = reader.read(driver.capture())
        for _ in range(_MOST_READS - 1):
            frame = driver.capture()
            readings = reader.read(frame)
            if all(reading.age_s == 0.0 for reading in readings.values()):
                break
            time.sleep(_READ_POLL_S)
        menu = self._opened if driver.has_menu() else -1
        self.look = Look(frame.copy(), readings, menu, bool(driver.open_dialogs()))

    def _judge(self, kind: int, before: Look, deeds: Deeds) -> None:
        """Judges a placement by the fall of the funds, unless money came or went by itself meanwhile."""
        what = self._catalogue.kinds[kind]
        funds, left = before.number("funds"), self.look.number("funds")
        if self._judges and what.most_cost > 0.0 and funds is not None and left is not None:
            first, last = (_period(look.readings.get("date"), self._accounts) for look in (before, self.look))
            # Accounts may be settled on another day than the first: a fall that fits nothing tells nothing.
            if first is not None and first == last and (left == funds or what.judge(funds - left) == CONFIRMED):
                deeds.placed = what.judge(funds - left)

    # --- trouble ---

    def _unexpected(self, kind: int) -> Trouble | None:
        """Returns what is wrong now; a dialog that the player has opened is not."""
        trouble = self.driver.trouble()
        is_own = self._catalogue.kinds[kind].group in _SELF_MADE or self.look.dialog
        return None if trouble is not None and trouble.kind == "dialog" and is_own else trouble

    def _meet(self, trouble: Trouble, deeds: Deeds) -> None:
        """Recovers from trouble, or finds that the city is over or lost."""
        if trouble.kind == "over":
            deeds.over = True
            return
        deeds.trouble += 1
        goes_on = self._insist(self.driver.recover)
        deeds.recovered += 1
        deeds.lost = goes_on is False

    def _insist(self, attempt: Callable[[], bool | None]) -> bool | None:
        """Tries to bring the game into a state, with fresh processes and more patience each time.

        Returns:
            What the attempt returned; False if the game had to be started anew.

        Raises:
            GameLostError: It could not be done.
        """
        failures: list[str] = []
        for tried in range(_RECOVERY_TRIES):
            try:
                if not tried:
                    return attempt()
                time.sleep(tried)
                self.driver.launch()
            except GameLostError as error:
                failures.append(str(error))
            else:
                return False
        raise GameLostError(f"the game could not be brought back in {len(failures)} tries: {'; '.join(failures)}")


def _period(date: Reading | None, accounts: Accounts) -> tuple[float, ...] | None:
    """Returns the stretch of time in which money does not come or go by itself; None if the date cannot be read."""
    if date is None or date.age_s > 0.0 or date.value is None or isinstance(date.value, str):
        return None
    if not isinstance(date.value, Date):
        return (date.value,)
    return (date.value.year, date.value.month, date.value.day)[: 1 + ("year", "month", "day").index(accounts)]
