"""Perception of the embedded game: where its fields are, and letters that are learnt from labelled first pictures."""

from functools import lru_cache
from pathlib import Path

import numpy as np

from ludus.envs.city.drivers.city_games import CityGames
from ludus.envs.city.game.rules import MONTH_DAYS
from ludus.envs.city.interface.display import CityDisplay
from ludus.envs.city.interface.figures import DEMANDS
from ludus.envs.city.interface.layout import Layout
from ludus.envs.city.interface.theme import FIELDS, Theme
from ludus.envs.city.perception.fields import Field
from ludus.envs.city.perception.glyph_file import known_glyphs, save_glyphs
from ludus.envs.city.perception.glyph_learning import Label, learn_all
from ludus.envs.city.perception.glyphs import GlyphBank
from ludus.envs.city.perception.parsing import Notation
from ludus.envs.city.perception.reader import ScreenReader
from ludus.envs.city.perception.reading import Kind

KINDS: dict[str, Kind] = {"date": "date", "funds": "money", "balance": "money", "population": "number"}
_LESSONS = 96  # pictures that letters are learnt from: every month eight times
_FRAME = 1  # pixels of a sunken field's edge
_SHARES = ("happiness", "traffic", "pollution", "value")


def embedded_fields(layout: Layout, theme: Theme) -> tuple[Field, ...]:
    """Returns the fields of the HUD in a layout and a theme; those without a kind of their own are percentages."""
    form = theme.format
    notation = Notation(form.thousands, form.point, grouped=True, currencies=(form.currency,))
    regions = {
        name: layout.fields[name].value.inset(_FRAME, _FRAME).region(layout.width, layout.height) for name in FIELDS
    }
    return tuple(Field(name, KINDS.get(name, "percent"), regions[name], notation) for name in FIELDS)


def embedded_reader(games: CityGames, game: int, folder: Path | None = None) -> ScreenReader:
    """Returns a reader for a game of a batch; one picture is enough for a value, since pictures are never torn.

    Args:
        games: The batch.
        game: Which of its games.
        folder: Where letters are kept; they are learnt anew in every process if None.
    """
    interface, display = games.interfaces[game], games.display
    bank = embedded_bank(interface.theme.name, display.width, display.height, folder)
    return ScreenReader(embedded_fields(interface.layout, interface.theme), bank)


@lru_cache(maxsize=64)
def embedded_bank(theme: str, width: int, height: int, folder: Path | None = None) -> GlyphBank:
    """Returns the letters of a theme at a size; games that look alike share them.

    They are learnt from pictures of a game of its own whose figures are made up and therefore known: the labels. No
    truth about a game that is played goes into them.
    """
    file = folder / f"glyphs-embedded-{theme}-{width}x{height}.json" if folder is not None else None
    if file is not None and len(bank := known_glyphs(file)):
        return bank
    bank = GlyphBank()
    games = CityGames(1, display=CityDisplay(themes=(theme,), width=width, height=height), seed=0)
    try:
        fields = embedded_fields(games.layout(0), games.interfaces[0].theme)
        learn_all(bank, _labels(games, fields))
    finally:
        games.close()
    if file is not None:
        save_glyphs(bank, file)
    return bank


def make_up_figures(games: CityGames, game: int, random: np.random.Generator) -> None:
    """Gives a city figures of all sizes, drawn at random; they hold until its time passes."""
    city = games.simulation.city
    city["funds"][game] = _amount(random, 7)
    city["balance"][game] = _amount(random, 5)
    city["population"][game] = abs(_amount(random, 6))
    city["day"][game] = int(random.integers(0, 200 * 12 * MONTH_DAYS))
    city["tax"][game] = int(random.integers(0, 21))
    for name in _SHARES:
        city[name][game] = float(random.uniform(0.0, 100.0))
    for name in DEMANDS:
        city[name][game] = float(random.uniform(-100.0, 100.0))


def _amount(random: np.random.Generator, digits: int) -> int:
    """Draws an amount whose number of digits is as likely as any other, with either sign."""
    size = int(10 ** random.uniform(0.0, digits))
    return -size if random.random() < 0.3 else size


def _labels(games: CityGames, fields: tuple[Field, ...]) -> list[Label]:
    random = np.random.default_rng(0)
    labels = []
    for lesson in range(_LESSONS):
        make_up_figures(games, 0, random)
        games.simulation.city["day"][0] += (
            (lesson - int(games.simulation.city["day"][0]) // MONTH_DAYS) % 12 * MONTH_DAYS
        )
        frame, texts = games.capture(0), games.texts(0)
        labels += [Label(field.region.cut(frame).copy(), texts[field.name]) for field in fields]
    return labels
