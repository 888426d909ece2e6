"""A table of real games: each on a screen of its own, in a thread of its own, so that they run side by side."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, GameLostError
from ludus.core.random import stream_hash
from ludus.envs.base import EnvRequest
from ludus.envs.city.config import CityConfig
from ludus.envs.city.drivers.driver import Frame, Gesture
from ludus.envs.city.drivers.starting import check_installed
from ludus.envs.city.drivers.x11 import X11Driver
from ludus.envs.city.micropolis_lessons import teach_letters
from ludus.envs.city.perception.opencv import opencv
from ludus.envs.city.perception.profiles import STABLE_READS, ProfileReader
from ludus.envs.city.perception.reader import ScreenReader
from ludus.envs.city.perception.reading import Date, Reading
from ludus.envs.city.profile import GameProfile, load_profile
from ludus.envs.city.profile_catalogue import profile_catalogue
from ludus.envs.city.profile_lots import middle_lots
from ludus.envs.city.screen_explorer import SharedMenus
from ludus.envs.city.screen_game import Deeds, ScreenGame
from ludus.envs.city.table import CityTable, FieldKind, Pictures, Sight

MOST_GAMES = 16  # screens and processes side by side
_LANDS = 2**31 - 1
_TAUGHT = ("micropolis",)  # profiles with lessons; letters of other games are learnt by OCR as they come up
_PROOF_S = 30.0  # for readings that prove a new city; letters may have to be learnt first
_PROOF_POLL_S = 0.05
_T = TypeVar("_T")


class ScreenTable(CityTable):
    """Real games of one profile.

    Attributes:
        profile: What is known about the game.
        games: The games.
    """

    def __init__(self, config: CityConfig, request: EnvRequest) -> None:
        """Starts the games.

        Raises:
            GameNotFoundError: The game is not installed; names the packages.
            GameLostError: It did not come up.
        """
        self.profile: GameProfile = _with_lots(load_profile(config.game), config)
        check_installed(self.profile)
        if request.num_games > MOST_GAMES:
            raise ConfigError(f"{request.num_games} games on real screens; at most {MOST_GAMES} run side by side")
        self.num_games, self._config, self._request = request.num_games, config, request
        self.catalogue = profile_catalogue(self.profile, config.actions, config.cells, config.kinds)
        self._names = tuple(name for name, spec in self.profile.readings.items() if spec.kind != "text")
        self.fields = tuple(FieldKind(name, self.profile.readings[name].kind) for name in self._names)
        self.menus = len(self.profile.menus)
        self.sight = Sight(self.num_games, len(self.fields), self.catalogue, Pictures.wanted_by(config))
        self._cv2 = opencv("seeing the map")
        folder = Path(config.learned) if config.learned is not None else None
        self._perception = ProfileReader(self.profile, folder, use_ocr=config.ocr, names=self._names)
        self._menus = SharedMenus(self.profile, folder)
        self._pool = ThreadPoolExecutor(self.num_games, thread_name_prefix="ludus-game")
        self._seed, self._episode = request.seed, np.full(self.num_games, -1)
        self.games: list[ScreenGame] = []
        self._is_closed = False
        try:
            self._launch()
        except BaseException:
            self.close()
            raise

    def begin(self, games: NDArray[np.bool_] | None = None, *, seed: int | None = None) -> Sight:
        """Begins new cities; see `CityTable.begin`."""
        if seed is not None:
            self._seed = seed
            self._episode[:] = -1
        chosen = np.ones(self.num_games, np.bool_) if games is None or seed is not None else games
        self._episode[chosen] += 1
        numbers = np.flatnonzero(chosen).tolist()
        self._each(lambda number: self._begin(number), numbers)
        self.sight.forget(chosen)
        for number in numbers:
            self.sight.over[number] = self.sight.lost[number] = False
            self._write(number)
        self.sight.grow_older(chosen)
        return self.sight

    def play(self, decisions: NDArray[np.int64]) -> Sight:
        """Carries out decisions, in all games at once; see `CityTable.play`."""
        sight = self.sight
        sight.forget_deeds()
        numbers = list(range(self.num_games))
        done = self._each(lambda number: self.games[number].play(*map(int, decisions[number])), numbers)
        for number, deeds in zip(numbers, done, strict=True):
            self._note(number, deeds)
        sight.grow_older()
        return sight

    def picture(self, game: int) -> Frame:
        """Returns a copy of the picture of a game that was seen last."""
        return self.games[game].look.frame.copy()

    def done(self, game: int) -> Sequence[Gesture]:
        """Returns the gestures of a game's last decision."""
        return self.games[game].done

    def close(self) -> None:
        """Ends the games, their screens and threads; may be called twice."""
        if self._is_closed:
            return
        self._is_closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)
        for game in self.games:
            game.driver.close()
        self._perception.close()
        self._menus.save()

    # --- starting ---

    def _launch(self) -> None:
        """Starts the games; the first one alone, because what it looks like may have to be learnt."""
        for number in range(self.num_games):
            fields = list(self._perception.reader.fields.values())
            worker = self._perception.worker if self._config.ocr else None
            reader = ScreenReader(fields, self._perception.bank, worker, stable_reads=STABLE_READS)
            first = self.games[0].driver if self.games else None
            driver = X11Driver(self.profile, pictures=first.pictures if first is not None else None)
            seat = self._request.first_game + number
            self.games.append(ScreenGame(driver, reader, self.catalogue, self._config, self._menus, seat))
            if not number:
                self.games[0].launch(self._land(0, 0))
                self._teach(driver)
        self._each(lambda number: self.games[number].launch(self._land(number, 0)), list(range(1, self.num_games)))

    def _teach(self, driver: X11Driver) -> None:
        """Teaches letters to a reader that cannot read a new city, where there are lessons for its game."""
        perception, frame = self._perception, driver.capture()
        known = [perception.reader.read_field(frame, name).is_readable for name in self._names]
        if self.profile.name in _TAUGHT and not all(known):
            teach_letters(driver, perception)

    def _begin(self, number: int) -> None:
        game = self.games[number]
        game.begin(self._land(number, int(self._episode[number])))
        self._prove(game)

    def _prove(self, game: ScreenGame) -> None:
        """Waits until the fields that every new city shows can be read, and checks what they say.

        Raises:
            GameLostError: They do not say what they must.
        """
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
                raise GameLostError(f"a new city of {self.profile.title} is not to be seen: {', '.join(wrong)}")
            time.sleep(_PROOF_POLL_S)
            game.see()

    def _land(self, number: int, episode: int) -> int:
        """Returns the seed of the land of a game's city."""
        seat, lands = self._request.first_game + number, self._config.lands
        if lands:
            return lands[(seat + episode) % len(lands)]
        return 1 + stream_hash(self._seed, seat, episode) % _LANDS

    # --- seeing ---

    def _note(self, number: int, deeds: Deeds) -> None:
        sight = self.sight
        sight.placed[number], sight.changed[number] = deeds.placed, deeds.changed
        sight.discovered[number], sight.elements[number] = deeds.discovered, self.games[number].elements
        sight.trouble[number], sight.recovered[number] = deeds.trouble, deeds.recovered
        sight.over[number], sight.lost[number] = deeds.over, deeds.lost
        if not deeds.over and not deeds.lost:  # of a city that is gone, what was seen last stays
            self._write(number)

    def _write(self, number: int) -> None:
        sight, look = self.sight, self.games[number].look
        for column, name in enumerate(self._names):
            reading = look.readings[name]
            is_readable = reading.is_readable and reading.age_s == 0.0
            sight.values[number, column] = _value(reading) if is_readable else 0.0
            sight.readable[number, column] = is_readable
            sight.confidence[number, column] = reading.confidence if is_readable else 0.0
        sight.menu[number], sight.dialog[number] = look.menu, look.dialog
        if sight.map.size:
            self._shrink(self.games[number].gestures.region.cut(look.frame), sight.map[number])
        if sight.frame.size:
            self._shrink(look.frame, sight.frame[number])

    def _shrink(self, picture: Frame, out: NDArray[np.uint8]) -> None:
        out[...] = self._cv2.resize(picture, (out.shape[1], out.shape[0]), interpolation=self._cv2.INTER_AREA)

    def _each(self, work: Callable[[int], _T], numbers: Sequence[int]) -> list[_T]:
        """Does something for several games at once and returns what came of it."""
        waiting = [self._pool.submit(work, number) for number in numbers]
        return [future.result() for future in waiting]


def _with_lots(profile: GameProfile, config: CityConfig) -> GameProfile:
    """Returns a profile with the lots that decisions are about."""
    if config.lots is None or profile.lots is None:
        return profile
    return replace(profile, lots=middle_lots(profile.lots, *config.lots))


def _value(reading: Reading) -> float:
    if isinstance(reading.value, Date):
        return float(reading.value.days)
    return reading.value if isinstance(reading.value, float) else 0.0


def _says(reading: Reading, value: float | str) -> bool:
    return reading.age_s == 0.0 and (str(reading.value) == str(value) or reading.value == value)
