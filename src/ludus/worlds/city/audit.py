"""How right and how fast perception is: readings compared with the hidden truth, and pictures and steps per second."""

import csv
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import numpy as np

from ludus.core.errors import ConfigError, FormatError, UnknownNameError
from ludus.core.files import JSON, read_regular_text
from ludus.core.intervals import wilson_interval
from ludus.worlds.city.drivers.city_games import CityGames
from ludus.worlds.city.drivers.driver import Click, Frame, Point, Wait
from ludus.worlds.city.drivers.micropolis import MicropolisTruth, made_up_evaluation, teach_letters
from ludus.worlds.city.drivers.x11 import X11Driver
from ludus.worlds.city.interface.theme import RESOLUTIONS, THEMES, CityDisplay
from ludus.worlds.city.perception.embedded import DemandReader, embedded_reader, make_up_figures
from ludus.worlds.city.perception.glyph_learning import Label, learn_all
from ludus.worlds.city.perception.glyphs import GlyphBank
from ludus.worlds.city.perception.pictures import read_picture
from ludus.worlds.city.perception.reader import OcrWorker, ProfileReader, ScreenReader
from ludus.worlds.city.perception.reading import Date, Field, Reading, Value, parse
from ludus.worlds.city.profile import load_profile
from ludus.worlds.city.profile_schema import GameProfile

FIELDS = (
    "date", "funds", "tax", "population", "migration", "assessed", "score", "score_change", "approval", "category",
)  # fmt: skip
_RUN_S = (0.02, 0.5)  # that the game runs for between states: up to a year of its time
_SETTLE_S = 3.0
_MAX_DIGITS = 7
_SEEDS = 50  # of states on the land of one city
GAMES = ("embedded", "micropolis")
FIGURES, PICTURES = "figures.csv", "pictures"  # beside a new profile: what people typed, and what they saw
_MAX_BYTES = 1_000_000


def _audit_micropolis(audit: "Audit", profile: GameProfile, states: int, seed: int, folder: Path | None) -> None:
    """Compare readings with what the game's prompt says; letters are learned from states before those that count."""
    perception = ProfileReader(profile, folder, use_ocr=False, names=FIELDS)
    random = np.random.default_rng([seed, 2])
    with closing(perception), X11Driver(profile) as driver:
        driver.launch()
        truth = MicropolisTruth(driver)
        teach_letters(driver, perception)
        for state in range(states):
            if state % _SEEDS == 0:
                driver.reset(seed + state // _SEEDS)
            _change(driver, truth, random)
            readings = perception.reader.settle(driver.capture, _SETTLE_S)
            audit.count(perception.reader, driver.capture(), readings, _values(truth))


def _change(driver: X11Driver, truth: MicropolisTruth, random: np.random.Generator) -> None:
    """Set random figures, let the game run until they are drawn, and wait for that."""
    truth.set_number("Funds", int(10 ** random.uniform(0.0, _MAX_DIGITS)))
    truth.set_number("Year", int(random.integers(1900, 2100)))
    truth.set_number("TaxRate", int(random.integers(0, 21)))
    truth.set_evaluation(made_up_evaluation(int(random.integers(10**_MAX_DIGITS)), int(random.integers(100))))
    driver.do([Wait(float(random.uniform(*_RUN_S)))])


def _values(truth: MicropolisTruth) -> dict[str, Value]:
    said = truth.evaluation()
    numbers = {name: float(said[name].strip("$%").replace(",", "")) for name in said if name != "category"}
    figures: dict[str, Value] = {"funds": float(truth.number("Funds")), "tax": float(truth.number("TaxRate"))}
    return {"date": Date(truth.number("Year"), truth.month()), "category": said["category"], **figures, **numbers}


class Audit:
    """All readings of an audit, by field: whether they were right, what they said, and how long they took."""

    def __init__(self) -> None:
        self.notes: dict[str, list[tuple[str, str, float]]] = {}
        self.states = 0

    def count(self, reader: ScreenReader, frame: Frame, readings: dict[str, Reading], truth: dict[str, Value]) -> None:
        """Note the readings of a state."""
        self.states += 1
        for name, reading in readings.items():
            if name in truth:
                crop = reader.fields[name].cut(frame)
                start = time.perf_counter()
                reader.bank.read(crop, reader.fields[name].alphabet)
                self.note(reading, truth[name], time.perf_counter() - start)

    def note(self, reading: Reading, truth: Value, taken_s: float) -> None:
        """Note one reading; what is old was not read now."""
        is_new = reading.is_readable and reading.age_s == 0.0
        outcome = "unreadable" if not is_new else "right" if reading.value == truth else "wrong"
        self.notes.setdefault(reading.field, []).append((outcome, f"{truth} read as {reading.text!r}", taken_s))

    def document(self, game: str) -> dict[str, JSON]:
        """Return the accuracy of every field."""
        fields: list[JSON] = []
        for name, notes in self.notes.items():
            counts = Counter(outcome for outcome, _, _ in notes)
            examples: list[JSON] = [said for outcome, said, _ in notes if outcome != "right"]
            share = wilson_interval(counts["right"], len(notes))
            fields.append(
                {
                    "field": name,
                    "accuracy": share.estimate,
                    "low": share.low,
                    "high": share.high,
                    "unreadable": counts["unreadable"] / len(notes),
                    "wrong": counts["wrong"] / len(notes),
                    "latency_ms": float(np.median([taken_s for _, _, taken_s in notes])) * 1e3,
                    "states": len(notes),
                    "examples": examples[:3],
                }
            )
        return {"game": game, "states": self.states, "fields": fields}


def audit_city(game: str, states: int = 300, seed: int = 0, folder: Path | None = None) -> dict[str, JSON]:
    """Compare every reading of a game with the truth and return accuracy by field with 95 % intervals.

    The states cover all themes and sizes of the embedded game. `folder` caches learned letters; None relearns them.

    Raises:
        UnknownNameError: There is no such game.
        GameNotFoundError: It is not installed.
    """
    is_file = game.endswith((".yaml", ".yml"))
    if game not in GAMES and not is_file:
        raise UnknownNameError("game to audit", game, (*GAMES, "the path of a profile beside typed figures"))
    if states < 1:
        raise ConfigError(f"{states} states cannot be compared; valid: at least 1")
    audit = Audit()
    if game == "embedded":
        _audit_embedded(audit, states, seed, folder)
        return audit.document(game)
    profile = load_profile(game)
    if is_file and profile.launch.prompt is None:
        _audit_typed(audit, profile, Path(game).parent, folder)
    else:
        _audit_micropolis(audit, profile, states, seed, folder)
    return audit.document(game)


def _audit_typed(audit: Audit, profile: GameProfile, pictures: Path, folder: Path | None) -> None:
    """Compare readings of pictures with figures that people typed, and keep the letters that all of them teach.

    Each picture is read with the letters that the other pictures teach, and by OCR where those are not enough.
    """
    perception = ProfileReader(profile, folder)
    fields, labels = perception.reader.fields, list[tuple[int, Field, Value, Label]]()
    with closing(perception):
        for number, (frame, typed) in enumerate(typed_figures(pictures, fields)):
            audit.states += 1
            for name, (value, text) in typed.items():
                crop = fields[name].cut(frame).copy()
                labels.append((number, fields[name], value, Label(crop, f"{fields[name].prefix} {text}".strip())))
        for number in range(audit.states):
            bank = GlyphBank()
            learn_all(bank, [label for other, _, _, label in labels if other != number])
            worker = OcrWorker(perception.worker.engines, bank)
            for _, field, value, label in (entry for entry in labels if entry[0] == number):
                start = time.perf_counter()
                reading = field.understood(*bank.read(label.crop, field.alphabet), "glyphs")
                taken_s = time.perf_counter() - start
                audit.note(reading if reading.is_readable else worker.read(field, label.crop), value, taken_s)
        learn_all(perception.bank, [label for _, _, _, label in labels])


def typed_figures(folder: Path, fields: Mapping[str, Field]) -> Iterator[tuple[Frame, dict[str, tuple[Value, str]]]]:
    """Yield every picture for which figures were typed, and by field what they mean and how they are written.

    Raises:
        FormatError: The file or a picture is missing or damaged, or a figure is not of the kind of its field.
        UnknownNameError: A column is not the name of a field.
    """
    text = read_regular_text(folder / FIGURES, limit=_MAX_BYTES)
    for line, row in enumerate(csv.DictReader(text.splitlines()), start=2):
        number, typed = row.pop("picture", ""), dict[str, tuple[Value, str]]()
        for name, words in ((name, (words or "").strip()) for name, words in row.items()):
            if name not in fields:
                raise UnknownNameError(f"field in {folder / FIGURES}", str(name), fields)
            kind = fields[name].kind
            value = parse(words, kind, fields[name].notation)
            if words and value is None:
                raise FormatError(
                    f"{folder / FIGURES}:{line}: {words!r} is no {kind}; type {name} as the picture has it"
                )
            if value is not None:
                typed[name] = (value, words)
        frame = read_picture(folder / PICTURES / f"{number}.png") if typed else None
        if frame is not None:
            yield frame, typed
        elif typed:
            raise FormatError(f"{folder / PICTURES / str(number)}.png is missing or no picture; remove line {line}")


def _audit_embedded(audit: Audit, states: int, seed: int, folder: Path | None) -> None:
    random = np.random.default_rng([seed, 1])  # other figures than those that letters are learned from
    looks = [(theme, size) for theme in THEMES for size in RESOLUTIONS]
    for number, (theme, (width, height)) in enumerate(looks):
        count = states * (number + 1) // len(looks) - states * number // len(looks)
        if not count:
            continue
        display = CityDisplay(themes=(theme,), width=width, height=height)
        with closing(CityGames(1, display=display, seed=seed)) as games:
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


def _states(games: CityGames, count: int, random: np.random.Generator) -> Iterator[None]:
    """Go through states: half of them cities played by random clicks, half of them with made-up figures."""
    for state in range(count):
        if bool(games.over()[0]):
            games.restart()
        clicks = [Click(Point(float(random.random()), float(random.random()))) for _ in range(3)]
        games.act(0, [*clicks, Wait(float(random.uniform(0.0, 2.0)))])
        games.advance()
        if state % 2:
            make_up_figures(games, 0, random)
        yield
