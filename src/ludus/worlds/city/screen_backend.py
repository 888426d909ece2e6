"""The backend for real games: each has its own screen and its own thread, so that they run side by side."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, GameLostError
from ludus.core.random import stream_hash
from ludus.envs.base import EnvRequest
from ludus.worlds.city.actions import CONFIRMED, NOT_JUDGED, Catalogue, ProfileGestures, profile_catalogue
from ludus.worlds.city.backend import CityBackend, FieldKind, Sight
from ludus.worlds.city.config import CityConfig
from ludus.worlds.city.drivers.driver import Frame, Gesture, Key, Point, Trouble, Wait
from ludus.worlds.city.drivers.launch import check_installed
from ludus.worlds.city.drivers.micropolis import teach_letters
from ludus.worlds.city.drivers.x11 import X11Driver
from ludus.worlds.city.explorer import CHANGED_SHARE, MenuGraph, ScreenExplorer
from ludus.worlds.city.perception.pictures import opencv
from ludus.worlds.city.perception.reader import STABLE_READS, ProfileReader, ScreenReader
from ludus.worlds.city.perception.reading import Date, Reading
from ludus.worlds.city.profile import load_profile
from ludus.worlds.city.profile_schema import Accounts, Ask, GameProfile, Operation, Rest

_MOST_READS = 4  # pictures in a row; two equal ones make a value count, and the game stands still
_READ_POLL_S = 0.01
_RECOVERY_TRIES = 5
_SIGN_TRIES = 3
_SELF_MADE = ("menu", "explore", "funding")  # groups that may open dialogs


@dataclass(slots=True)
class Outcome:
    """What a decision led to, by the names of arrays of `Sight`."""

    placed: int = NOT_JUDGED  # see `ActionKind.judge`
    changed: bool = False  # whether an exploring action changed the picture before time passed
    discovered: int = 0  # elements that were never seen before
    elements: int = 0  # elements of the interface that are remembered
    trouble: int = 0  # things that went wrong
    recovered: int = 0  # how many of them were overcome
    over: bool = False  # whether the city has ended by its own rules
    lost: bool = False  # whether it was lost with the game, so that its episode is cut off


@dataclass(slots=True)
class Look:
    """What is seen of a game."""

    frame: Frame  # the window `(height, width, 3)`
    readings: dict[str, Reading] = field(default_factory=dict)  # by field
    menu: int = -1  # number of the open menu, -1 for none
    dialog: bool = False  # whether a dialog covers the picture
    sign: int = 0  # which of the two signs of finished pictures shows

    def number(self, name: str) -> float | None:
        """Return the number that a field says now, the days of a date; None if it cannot be read."""
        reading = self.readings.get(name)
        value = None if reading is None or reading.age_s > 0.0 else reading.value
        if isinstance(value, Date):
            return float(value.days)
        return value if isinstance(value, float) else None


class ScreenGame:
    """A game on its own screen; for one thread at a time.

    Attributes:
        look: What was seen last.
        done: Gestures of the last decision.
    """

    def __init__(
        self,
        driver: X11Driver,
        reader: ScreenReader,
        catalogue: Catalogue,
        config: CityConfig,
        menus: MenuGraph,
        number: int,
    ) -> None:
        """Take a driver, whose game need not run yet; `number` is that of the game, for random draws."""
        profile: GameProfile = driver.profile
        self.driver, self._reader, self._catalogue, self._number = driver, reader, catalogue, number
        self.gestures = ProfileGestures(profile, catalogue, config.cells)
        self.look = Look(np.zeros((profile.height, profile.width, 3), np.uint8))
        self.done: tuple[Gesture, ...] = ()
        self._accounts: Accounts = profile.accounts
        self._wait = Wait(profile.wait_s if config.wait_s is None else config.wait_s)
        self._closes = config.closes
        self._menus = [menu.at for menu in profile.menus.values()]
        self._opened = 0  # menu that was opened last
        self._explorer = ScreenExplorer(profile, self.gestures, menus, config.menu_buffer)
        self._turn = self._land = 0

    def launch(self, land: int) -> None:
        """Start the game, on the land of a seed."""
        self.driver.seed = land
        self._insist(self.driver.launch)

    def begin(self, land: int) -> None:
        """Start a new city on the land of a seed and look at it."""
        self._turn, self._land = 0, land
        self.driver.seed = land  # for a game that must be restarted for it
        self._explorer.forget()
        self.gestures.begin()
        self._insist(lambda: self.driver.reset(land))
        self._reader.forget()
        self.see()

    def play(self, kind: int, cell: int) -> Outcome:
        """Carry out a decision and read the resulting screen."""
        outcome, before = Outcome(), self.look
        self._turn += 1
        self._guard(lambda: self._do(kind, cell, outcome), outcome)
        if not outcome.over and not outcome.lost and self._guard(self.see, outcome):
            self._judge(kind, before, outcome)
        outcome.elements = len(self._explorer)
        return outcome

    # --- acting ---

    def _do(self, kind: int, cell: int, outcome: Outcome) -> Trouble | None:
        """Do the gestures of a decision, let time pass, and return what is wrong then."""
        group = self._catalogue.kinds[kind].group
        if self.look.dialog and (self._closes or self._catalogue.kinds[kind].name == "escape"):
            self.driver.recover()  # closes dialogs by the profile's recipes
        elif self.look.menu >= 0 and self._closes:
            self.driver.do((Key("Escape"),))
        if group == "explore":
            self._explore(kind, cell, outcome)
            self.driver.do((self._wait,))
        else:
            *first, last = self._parts(kind, cell, self.look.number("tax"))
            for part in first:
                self.driver.do(part)
            self.driver.do((*last, self._wait))
        trouble = self.driver.trouble()
        if trouble is not None and trouble.kind == "dialog" and (group in _SELF_MADE or self.look.dialog):
            return None  # the player has opened it
        return trouble

    def _parts(
        self, kind: int, cell: int, tax: float | None, target: Point | None = None
    ) -> Sequence[Sequence[Operation]]:
        """Return the operations of a decision, part by part, and note the gestures."""
        parts = self.gestures.of(kind, cell, tax, target)
        self.done = tuple(step for part in parts for step in part if not isinstance(step, Ask | Rest))
        return parts

    def _explore(self, kind: int, cell: int, outcome: Outcome) -> None:
        """Do an exploring action and note what it has shown."""
        name, target, before = self._catalogue.kinds[kind].name, None, self.look.frame
        if name == "explore_menu":
            target = self._explorer.next_in_menus(is_open=self.look.menu >= 0)
            self._opened = self._menus.index(target) if target in self._menus else self._opened
        elif name == "click_element":
            target = self._explorer.next_element(self._number, self._land, self._turn)
        for part in self._parts(kind, cell, None, target):
            self.driver.do(part)
        # Signs that pictures are finished have two looks in turn, and a slow game is given more than one: the picture
        # is compared under the sign of before.
        for _ in range(_SIGN_TRIES):
            if self.driver.sign == self.look.sign:
                break
            self.driver.do(())
        frame = self.driver.capture()
        differs = np.any(frame != before, axis=-1)
        outcome.changed = bool(np.count_nonzero(differs) > CHANGED_SHARE * differs.size)
        if outcome.changed or name == "observe":
            outcome.discovered = self._explorer.note(frame, None if name == "observe" else differs)

    # --- observing ---

    def see(self) -> None:
        """Look at the game until two pictures in a row say the same."""
        driver = self.driver
        self._reader.read(driver.capture())
        for _ in range(_MOST_READS - 1):
            frame = driver.capture()
            readings = self._reader.read(frame)
            if all(reading.age_s == 0.0 for reading in readings.values()):
                break
            time.sleep(_READ_POLL_S)
        menu = self._opened if driver.has_menu() else -1
        self.look = Look(frame.copy(), readings, menu, bool(driver.open_dialogs()), driver.sign)

    def _judge(self, kind: int, before: Look, outcome: Outcome) -> None:
        """Judge a placement by the fall of the funds, unless money came or went by itself meanwhile."""
        what = self._catalogue.kinds[kind]
        funds, left = before.number("funds"), self.look.number("funds")
        if what.most_cost > 0.0 and funds is not None and left is not None:
            first, last = (_period(look.readings.get("date"), self._accounts) for look in (before, self.look))
            # Accounts may be settled on another day than the first: a fall that fits nothing tells nothing.
            if first is not None and first == last and (left == funds or what.judge(funds - left) == CONFIRMED):
                outcome.placed = what.judge(funds - left)

    # --- failures ---

    def _guard(self, attempt: Callable[[], Trouble | None], outcome: Outcome) -> bool:
        """Return whether an attempt goes well; else recover, or find that the city is over or lost."""
        try:
            trouble = attempt()
        except GameLostError as error:
            trouble = self.driver.trouble() or Trouble("layout", str(error))
        if trouble is None:
            return True
        outcome.over = trouble.kind == "over"
        if not outcome.over:
            outcome.trouble += 1
            outcome.lost = self._insist(self.driver.recover) is False
            outcome.recovered += 1
        return False

    def _insist(self, attempt: Callable[[], bool | None]) -> bool | None:
        """Try to bring the game into a state, with fresh processes and more patience each time.

        Return what the attempt returned, False if the game had to be restarted; raise GameLostError if all fails.
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
        raise GameLostError(
            f"the game could not be brought back in {len(failures)} tries: {'; '.join(dict.fromkeys(failures))}"
        )


def _period(date: Reading | None, accounts: Accounts) -> tuple[float, ...] | None:
    """Return the stretch of time in which money does not come or go by itself; None if the date cannot be read."""
    if date is None or date.age_s > 0.0 or date.value is None or isinstance(date.value, str):
        return None
    if not isinstance(date.value, Date):
        return (date.value,)
    return (date.value.year, date.value.month, date.value.day)[: 1 + ("year", "month", "day").index(accounts)]


MOST_GAMES = 16  # screens and processes side by side
_LANDS = 2**31 - 1
_TAUGHT = ("micropolis",)  # profiles with lessons; letters of other games are learned by OCR as they come up
_PROOF_S = 30.0  # for readings that prove a new city; letters may have to be learned first
_PROOF_POLL_S = 0.05


class ScreenBackend(CityBackend):
    """Real games of one profile."""

    def __init__(self, config: CityConfig, request: EnvRequest) -> None:
        """Start the games; raise GameNotFoundError if they are not installed, GameLostError if one does not start."""
        self.profile = load_profile(config.game)
        if config.lots is not None:
            self.profile = self.profile.with_middle_lots(*config.lots)
        check_installed(self.profile)
        if request.num_envs > MOST_GAMES:
            raise ConfigError(f"{request.num_envs} games on real screens; at most {MOST_GAMES} run side by side")
        self.num_envs, self._config, self._request = request.num_envs, config, request
        self.catalogue = profile_catalogue(self.profile, config.actions, config.cells, config.kinds)
        plan = self.profile.lots.plan if config.cells == "lots" and self.profile.lots is not None else None
        if plan is not None and all(step.build in self.catalogue for step in (*plan.first, *plan.then)):
            self.plan = plan
        self._names = tuple(name for name, spec in self.profile.readings.items() if spec.kind != "text")
        self.fields = tuple(FieldKind(name, self.profile.readings[name].kind) for name in self._names)
        self.menus = tuple(self.profile.menus)
        self.sight = Sight(self.num_envs, len(self.fields), self.catalogue, config)
        self._cv2 = opencv("seeing the map")
        self._perception = ProfileReader(self.profile, use_ocr=config.ocr, names=self._names)
        self._menus = MenuGraph(self.profile.width, self.profile.height)
        self._pool = ThreadPoolExecutor(self.num_envs, thread_name_prefix="ludus-game")
        self._seed, self._episode = request.seed, np.full(self.num_envs, -1)
        self.games: list[ScreenGame] = []
        self._is_closed = False
        try:
            self._launch()
        except BaseException:
            self.close()
            raise

    def begin(self, games: NDArray[np.bool_] | None = None, *, seed: int | None = None) -> Sight:
        """Start new cities; see `CityBackend.begin`."""
        if seed is not None:
            self._seed = seed
            self._episode[:] = -1
        chosen = np.ones(self.num_envs, np.bool_) if games is None or seed is not None else games
        self._episode[chosen] += 1
        numbers = np.flatnonzero(chosen).tolist()
        list(self._pool.map(self._begin, numbers))
        self.sight.forget(chosen)
        self.sight.over[chosen] = self.sight.lost[chosen] = False
        for number in numbers:
            self._write(number)
        self.sight.grow_older(chosen)
        return self.sight

    def play(self, decisions: NDArray[np.int64]) -> Sight:
        """Carry out decisions, in all games at once; see `CityBackend.play`."""
        sight = self.sight
        sight.forget_outcome()
        outcomes = list(self._pool.map(ScreenGame.play, self.games, *decisions.T.tolist()))
        for number, outcome in enumerate(outcomes):
            for name, value in asdict(outcome).items():
                getattr(sight, name)[number] = value
            if not outcome.over and not outcome.lost:  # of a city that is gone, what was seen last stays
                self._write(number)
        sight.grow_older()
        return sight

    def picture(self, game: int) -> Frame:
        """Return a copy of the picture of a game that was seen last."""
        return self.games[game].look.frame.copy()

    def done(self, game: int) -> Sequence[Gesture]:
        """Return the gestures of a game's last decision."""
        return self.games[game].done

    def close(self) -> None:
        """End the games, their screens and threads; may be called twice."""
        if self._is_closed:
            return
        self._is_closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)
        for game in self.games:
            game.driver.close()
        self._perception.close()

    # --- starting ---

    def _launch(self) -> None:
        """Start the games; the first one alone, because what it looks like may have to be learned."""
        perception = self._perception
        fields, worker = list(perception.reader.fields.values()), perception.worker if self._config.ocr else None
        for number in range(self.num_envs):
            reader = ScreenReader(fields, perception.bank, worker, stable_reads=STABLE_READS)
            driver = X11Driver(self.profile, pictures=self.games[0].driver.pictures if self.games else None)
            seat = self._request.first_game + number
            self.games.append(ScreenGame(driver, reader, self.catalogue, self._config, self._menus, seat))
        first = self.games[0]
        first.launch(self._land(0, 0))
        frame = first.driver.capture()
        known = [perception.reader.read_field(frame, name).is_readable for name in self._names]
        if self.profile.name in _TAUGHT and not all(known):
            teach_letters(first.driver, perception)
        list(self._pool.map(lambda number: self.games[number].launch(self._land(number, 0)), range(1, self.num_envs)))

    def _begin(self, number: int) -> None:
        game = self.games[number]
        game.begin(self._land(number, int(self._episode[number])))
        self._check_new_city(game)

    def _check_new_city(self, game: ScreenGame) -> None:
        """Wait until the fields that every new city shows can be read; raise GameLostError if they are wrong."""
        give_up = time.monotonic() + _PROOF_S
        while True:
            wrong = [
                f"{name} reads {reading.value!r}"
                for name, value in self.profile.reset.expect.items()
                if name in game.look.readings and not _says(reading := game.look.readings[name], value)
            ]
            if not wrong:
                return
            if time.monotonic() > give_up:
                raise GameLostError(f"a new city of {self.profile.title} is not visible: {', '.join(wrong)}")
            time.sleep(_PROOF_POLL_S)
            game.see()

    def _land(self, number: int, episode: int) -> int:
        """Return the seed of the land of a game's city."""
        seat, lands = self._request.first_game + number, self._config.lands
        if lands:
            return lands[(seat + episode) % len(lands)]
        return 1 + stream_hash(self._seed, seat, episode) % _LANDS

    # --- observing ---

    def _write(self, number: int) -> None:
        sight, look = self.sight, self.games[number].look
        for column, name in enumerate(self._names):
            value = look.number(name)
            sight.values[number, column] = value or 0.0
            sight.readable[number, column] = value is not None
            sight.confidence[number, column] = 0.0 if value is None else look.readings[name].confidence
        sight.menu[number], sight.dialog[number] = look.menu, look.dialog
        if sight.map.size:
            self._shrink(self.games[number].gestures.region.cut(look.frame), sight.map[number])
        if sight.frame.size:
            self._shrink(look.frame, sight.frame[number])

    def _shrink(self, picture: Frame, out: NDArray[np.uint8]) -> None:
        out[...] = self._cv2.resize(picture, (out.shape[1], out.shape[0]), interpolation=self._cv2.INTER_AREA)


def _says(reading: Reading, value: float | str) -> bool:
    return reading.age_s == 0.0 and (str(reading.value) == str(value) or reading.value == value)
