"""A table of real games to which faults are done now and then, and the record of what became of them."""

import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import GameLostError
from ludus.envs.base import EnvRequest
from ludus.worlds.city.backend import Sight
from ludus.worlds.city.config import CityConfig
from ludus.worlds.city.drivers.driver import Click
from ludus.worlds.city.drivers.x11 import X11Driver
from ludus.worlds.city.screen.session import ScreenSession
from ludus.worlds.city.screen_backend import ScreenBackend

SHOT_WIDTH = 600  # pixels of a kept picture
SHOT_DECISIONS = 20  # of a game between two pictures


def _session(driver: X11Driver) -> ScreenSession:
    """Returns what a driver hides from everybody who means it well."""
    if driver._session is None:  # noqa: SLF001
        raise GameLostError("the game does not run")
    return driver._session  # noqa: SLF001


def kill_game(driver: X11Driver) -> None:
    """Ends the game's process at once."""
    os.kill(_session(driver).pid, signal.SIGKILL)


def stop_game(driver: X11Driver) -> None:
    """Stops the game's process, so that its screen is frozen."""
    os.kill(_session(driver).pid, signal.SIGSTOP)


def destroy_window(driver: X11Driver) -> None:
    """Takes the game's window away."""
    session, title = _session(driver), driver.profile.window.title
    connection = session._connection  # noqa: SLF001
    for window in session.shown():
        if title.fullmatch(window.title):
            connection.create_resource_object("window", window.id).destroy()
    connection.sync()


def kill_screen(driver: X11Driver) -> None:
    """Ends the virtual screen."""
    os.kill(_session(driver).screen.pid, signal.SIGKILL)


def open_dialog(driver: X11Driver) -> None:
    """Opens the budget by its menu, as somebody who passes by could."""
    menu = driver.profile.menus["windows"]
    driver.do([Click(menu.at), Click(menu.items["budget"])])


def dismiss_panel(driver: X11Driver) -> None:
    """Closes the panel that the population is read from."""
    driver.do([Click(driver.profile.regions["dismiss_evaluation"].middle)])


FAULTS: dict[str, Callable[[X11Driver], None]] = {
    "dialog opened": open_dialog,
    "game killed": kill_game,
    "panel closed": dismiss_panel,
    "game stopped": stop_game,
    "window destroyed": destroy_window,
    "screen killed": kill_screen,
}


class FaultyBackend(ScreenBackend):
    """A table whose games are disturbed every so often, in turn, once it has played for a while.

    Attributes:
        folder: Where the record goes; set it before a table is made.
        every_s: Seconds between faults.
        quiet_decisions: Decisions of all games before the first fault.
        faults: What is done, by names of `FAULTS` in turn.
    """

    folder = Path()
    every_s = 150.0
    quiet_decisions = 500
    faults: Sequence[str] = tuple(FAULTS)
    _tables = 0

    def __init__(self, config: CityConfig, request: EnvRequest) -> None:
        FaultyBackend._tables += 1
        self._number = FaultyBackend._tables
        self._begun_s = self._last_s = time.monotonic()
        self._faults = self._decisions = 0
        self._length = np.zeros(request.num_envs, np.int64)
        super().__init__(config, request)

    def play(self, decisions: NDArray[np.int64]) -> Sight:
        """Disturbs a game if it is time to, and plays."""
        self._decisions += self.num_envs
        is_due = self._decisions > self.quiet_decisions and time.monotonic() - self._last_s >= self.every_s
        sight = self._play_disturbed(decisions) if is_due else super().play(decisions)
        self._length += 1
        if sight.trouble.any() and not is_due:
            self._record("troubles", games=np.flatnonzero(sight.trouble).tolist())
        if self._decisions % (SHOT_DECISIONS * self.num_envs) == 0:
            self.shoot(0)
        return sight

    def _play_disturbed(self, decisions: NDArray[np.int64]) -> Sight:
        name, game = self.faults[self._faults % len(self.faults)], self._faults % self.num_envs
        self._faults, self._last_s = self._faults + 1, time.monotonic()
        driver = self.games[game].driver
        known = len(driver.incidents)
        try:
            FAULTS[name](driver)
        except GameLostError as error:
            self._record("faults", fault=name, game=game, failed=str(error))
            return super().play(decisions)
        started_s = time.monotonic()
        sight = super().play(decisions)
        met = driver.incidents[known:]
        self._record(
            "faults",
            fault=name,
            game=game,
            noticed=bool(sight.trouble[game]),
            kinds=[incident.trouble.kind for incident in met],
            recovered=bool(sight.recovered[game]),
            city_went_on=not bool(sight.lost[game]),
            decision_s=round(time.monotonic() - started_s, 2),
            recovery_s=round(sum(incident.seconds for incident in met), 2),
        )
        return sight

    def begin(self, games: NDArray[np.bool_] | None = None, *, seed: int | None = None) -> Sight:
        """Notes how the cities stood that are left, and begins others."""
        for game in np.flatnonzero(games).tolist() if games is not None else ():
            if self._length[game]:
                look = self.games[game].look
                said = {name: look.number(name) for name in ("population", "funds", "score", "approval")}
                self._record(
                    "cities",
                    game=game,
                    decisions=int(self._length[game]),
                    lost=bool(self.sight.lost[game]),
                    land=self.games[game].driver.seed,
                    **said,
                )
            self._length[game] = 0
        return super().begin(games, seed=seed)

    def shoot(self, game: int) -> None:
        """Keeps a picture of a game, made smaller."""
        picture = self.picture(game)
        size = (SHOT_WIDTH, round(picture.shape[0] * SHOT_WIDTH / picture.shape[1]))
        small = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
        cv2.imwrite(
            str(self.folder / f"shot-{self._number}-{self._decisions:06d}-{self._length[game]:03d}.png"),
            small[..., ::-1],
        )

    def _record(self, name: str, **what: object) -> None:
        at = {"table": self._number, "at_s": round(time.monotonic() - self._begun_s, 1), "played": self._decisions}
        with (self.folder / f"{name}.jsonl").open("a") as file:
            file.write(json.dumps(at | what) + "\n")
