"""The audit of perception on the real Micropolis: figures are set by its prompt and read off its screen."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from ludus.envs.city.drivers.driver import Frame, Wait
from ludus.envs.city.drivers.micropolis_truth import MicropolisTruth
from ludus.envs.city.drivers.x11 import X11Driver
from ludus.envs.city.perception.glyph_learning import Label, learn_all
from ludus.envs.city.perception.profiles import ProfileReader
from ludus.envs.city.perception.reader import ScreenReader
from ludus.envs.city.perception.reading import Date, Reading, Value
from ludus.envs.city.profile import load_profile

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
FIELDS = ("date", "funds", "tax")
_LESSONS = 40  # and more until every month was seen
_MOST_LESSONS = 200
_RUN_S = (0.05, 0.5)  # that the game runs for between states: up to a year of its time
_SETTLE_S = 3.0
_MAX_DIGITS = 7


def audit_micropolis(
    count: Callable[[ScreenReader, Frame, dict[str, Reading], dict[str, Value]], None],
    states: int,
    seed: int,
    folder: Path | None,
) -> None:
    """Compares readings with what the game's prompt says; letters are learnt from states before those that count."""
    profile = load_profile("micropolis")
    perception = ProfileReader(profile, folder, use_ocr=False, names=FIELDS)
    random = np.random.default_rng([seed, 2])
    with X11Driver(profile) as driver:
        driver.launch()
        truth = MicropolisTruth(lambda: driver.prompt)
        reader, labels = perception.reader, list[Label]()
        months: set[int] = set()
        for lesson in range(_MOST_LESSONS):
            if lesson >= _LESSONS and len(months) == len(_MONTHS):
                break
            _change(driver, truth, random)
            months.add(truth.month())
            frame, texts = driver.capture(), _texts(truth)
            labels += [Label(reader.fields[name].region.cut(frame).copy(), text) for name, text in texts.items()]
        learn_all(perception.bank, labels)
        perception.save()
        for _ in range(states):
            _change(driver, truth, random)
            readings = reader.settle(driver.capture, _SETTLE_S)
            count(reader, driver.capture(), readings, _values(truth))
    perception.close()


def _change(driver: X11Driver, truth: MicropolisTruth, random: np.random.Generator) -> None:
    """Gives the city other figures, lets it run for a moment so that they are drawn, and waits for that."""
    truth.set_funds(int(10 ** random.uniform(0.0, _MAX_DIGITS)))
    truth.set_year(int(random.integers(1900, 2100)))
    truth.set_tax_rate(int(random.integers(0, 21)))
    driver.act([Wait(float(random.uniform(*_RUN_S)))])


def _date(truth: MicropolisTruth) -> Date:
    return Date(truth.year(), truth.month())


def _values(truth: MicropolisTruth) -> dict[str, Value]:
    return {"date": _date(truth), "funds": float(truth.funds()), "tax": float(truth.tax_rate())}


def _texts(truth: MicropolisTruth) -> dict[str, str]:
    date = _date(truth)
    return {
        "date": f"Date: {_MONTHS[date.month - 1]} {date.year}",
        "funds": f"Funds: ${truth.funds():,}",
        "tax": f"Tax Rate: {truth.tax_rate()}%",
    }
