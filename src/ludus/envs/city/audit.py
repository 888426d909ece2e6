"""The audit of perception: every reading is compared with the hidden truth, over states drawn at random."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.core.files import JSON
from ludus.core.intervals import wilson_interval
from ludus.envs.city.drivers.city_games import CityGames
from ludus.envs.city.drivers.driver import Click, Frame, Point, Wait
from ludus.envs.city.interface.display import RESOLUTIONS, CityDisplay
from ludus.envs.city.interface.themes import THEMES
from ludus.envs.city.perception.demand import DemandReader
from ludus.envs.city.perception.embedded import embedded_reader, make_up_figures
from ludus.envs.city.perception.reader import ScreenReader
from ludus.envs.city.perception.reading import Reading, Value

GAMES = ("embedded", "micropolis")
Count: TypeAlias = Callable[[ScreenReader, Frame, dict[str, Reading], dict[str, Value]], None]


@dataclass(slots=True)
class _Tally:
    """Counts of one field."""

    right: int = 0
    wrong: int = 0
    unreadable: int = 0
    times_s: list[float] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)

    def count(self, reading: Reading, truth: Value) -> None:
        """Counts a reading; what is old was not read now."""
        if not reading.is_readable or reading.age_s > 0.0:
            self.unreadable += 1
        elif reading.value == truth:
            self.right += 1
            return
        else:
            self.wrong += 1
        if len(self.examples) < 3:
            self.examples.append(f"{truth} read as {reading.text!r}")


class _Audit:
    def __init__(self) -> None:
        self.tallies: dict[str, _Tally] = {}
        self.states = 0

    def count(self, reader: ScreenReader, frame: Frame, readings: dict[str, Reading], truth: dict[str, Value]) -> None:
        self.states += 1
        for name, reading in readings.items():
            if name in truth:
                crop = reader.fields[name].region.cut(frame)
                start = time.perf_counter()
                reader.bank.read(crop, reader.fields[name].alphabet)
                self.note(reading, truth[name], time.perf_counter() - start)

    def note(self, reading: Reading, truth: Value, taken_s: float) -> None:
        """Counts one reading, and how long it takes."""
        tally = self.tallies.setdefault(reading.field, _Tally())
        tally.count(reading, truth)
        tally.times_s.append(taken_s)

    def document(self, game: str) -> dict[str, JSON]:
        fields: list[JSON] = []
        for name, tally in self.tallies.items():
            total = tally.right + tally.wrong + tally.unreadable
            share = wilson_interval(tally.right, total)
            examples: list[JSON] = [*tally.examples]
            fields.append(
                {
                    "field": name,
                    "accuracy": share.estimate,
                    "low": share.low,
                    "high": share.high,
                    "unreadable": tally.unreadable / total,
                    "wrong": tally.wrong / total,
                    "latency_ms": float(np.median(tally.times_s)) * 1e3,
                    "states": total,
                    "examples": examples,
                }
            )
        return {"game": game, "states": self.states, "fields": fields}


def audit_city(game: str, states: int = 300, seed: int = 0, folder: Path | None = None) -> dict[str, JSON]:
    """Compares every reading of a game with the truth and returns accuracy by field with 95 % intervals.

    Args:
        game: One of `GAMES`.
        states: How many states to compare, over all themes and sizes of the embedded game.
        seed: Of the states.
        folder: Where learnt letters are kept; None learns them anew.

    Raises:
        UnknownNameError: There is no such game.
        GameNotFoundError: It is not installed.
    """
    if game not in GAMES:
        raise UnknownNameError("game to audit", game, GAMES)
    if states < 1:
        raise ConfigError(f"{states} states cannot be compared; valid: at least 1")
    audit = _Audit()
    if game == "embedded":
        _audit_embedded(audit, states, seed, folder)
    else:
        from ludus.envs.city.audit_micropolis import audit_micropolis

        audit_micropolis(audit.count, states, seed, folder)
    return audit.document(game)


def _audit_embedded(audit: _Audit, states: int, seed: int, folder: Path | None) -> None:
    random = np.random.default_rng([seed, 1])  # other figures than those that letters are learnt from
    looks = [(theme, size) for theme in THEMES for size in RESOLUTIONS]
    for number, (theme, (width, height)) in enumerate(looks):
        count = states * (number + 1) // len(looks) - states * number // len(looks)
        if count:
            games = CityGames(1, display=CityDisplay(themes=(theme,), width=width, height=height), seed=seed)
            try:
                reader = embedded_reader(games, 0, folder)
                bars = DemandReader(games.layout(0).demand, games.interfaces[0].theme)
                for _ in _states(games, count, random):
                    frame, said = games.capture(0), games.said(0)
                    audit.count(reader, frame, reader.read(frame), said)
                    start = time.perf_counter()
                    demands = bars.read(frame)
                    taken_s = (time.perf_counter() - start) / len(demands)
                    for reading in demands:
                        audit.note(reading, said[reading.field], taken_s)
            finally:
                games.close()


def _states(games: CityGames, count: int, random: np.random.Generator) -> Iterator[None]:
    """Goes through states: half of them cities played by random clicks, half of them with made-up figures."""
    for state in range(count):
        if bool(games.over()[0]):
            games.restart()
        clicks = [Click(Point(float(random.random()), float(random.random()))) for _ in range(3)]
        games.act(0, [*clicks, Wait(float(random.uniform(0.0, 2.0)))])
        games.advance()
        if state % 2:
            make_up_figures(games, 0, random)
        yield
