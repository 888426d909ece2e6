"""Lessons in reading for Micropolis: its prompt sets figures, and crops of its screen are labelled with them.

Only letters are learnt from the prompt, once, before anything is played; what a city says is then read off its screen.
"""

from collections.abc import Callable, Iterable

import numpy as np

from ludus.core.errors import GameLostError
from ludus.envs.city.drivers.driver import Wait
from ludus.envs.city.drivers.micropolis_truth import MicropolisTruth
from ludus.envs.city.drivers.x11 import X11Driver
from ludus.envs.city.perception.fields import Field
from ludus.envs.city.perception.glyph_learning import Label, learn_all
from ludus.envs.city.perception.glyphs import GlyphBank

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LESSONS = 24  # and more until every month was seen
_MOST_LESSONS = 80
_RUN_S = (0.04, 0.4)  # one to ten months
_MAX_DIGITS = 7
_SEED = 8


def teach_micropolis(driver: X11Driver, bank: GlyphBank, fields: Iterable[Field]) -> None:
    """Teaches a bank the letters of Micropolis, and leaves a city behind that is good for nothing else.

    Raises:
        GameLostError: Not all months came up.
    """
    truth, random, wanted = MicropolisTruth(lambda: driver.prompt), np.random.default_rng(_SEED), tuple(fields)
    labels: list[Label] = []
    months: set[int] = set()
    for lesson in range(_MOST_LESSONS):
        if lesson >= _LESSONS and len(months) == len(MONTHS):
            learn_all(bank, labels)
            return
        truth.set_funds(int(10 ** random.uniform(0.0, _MAX_DIGITS)))
        truth.set_year(int(random.integers(1900, 2100)))
        truth.set_tax_rate(int(random.integers(0, 21)))
        driver.act([Wait(float(random.uniform(*_RUN_S)))])
        words = _words(random)
        truth.set_evaluation(words)
        driver.act(())
        months.add(truth.month())
        frame = driver.capture()
        texts = micropolis_texts(truth) | {
            field.name: f"{field.prefix} {words[field.name]}" for field in wanted if field.name in words
        }
        labels += [Label(field.region.cut(frame).copy(), texts[field.name]) for field in wanted if field.name in texts]
    raise GameLostError(f"only {len(months)} months of Micropolis came up in {_MOST_LESSONS} lessons")


def micropolis_texts(truth: MicropolisTruth) -> dict[str, str]:
    """Returns what the lines of the head say, letter by letter."""
    return {
        "date": f"Date: {MONTHS[truth.month() - 1]} {truth.year()}",
        "funds": f"Funds: ${truth.funds():,}",
        "tax": f"Tax Rate: {truth.tax_rate()}%",
    }


def _words(random: np.random.Generator) -> dict[str, str]:
    """Returns what an evaluation could say."""

    def number(digits: int) -> int:
        return int(10 ** random.uniform(0.0, digits)) * int(random.random() > 0.1)

    def signed(digits: int) -> str:
        return str(number(digits) * (-1 if random.random() < 0.5 else 1))

    return {
        "population": str(number(6)),
        "migration": signed(5),
        "assessed": f"${number(8):,}",
        "score": str(int(random.integers(0, 1001))),
        "score_change": signed(3),
        "approval": f"{int(random.integers(0, 101))}%",
    }


LESSONS: dict[str, Callable[[X11Driver, GlyphBank, Iterable[Field]], None]] = {"micropolis": teach_micropolis}
"""Games by the names of their profiles whose letters are taught; those of others are learnt by OCR as they come up."""
