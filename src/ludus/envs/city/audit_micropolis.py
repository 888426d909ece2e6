"""The audit of perception on the real Micropolis: figures are set by its prompt and read off its screen."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from ludus.envs.city.drivers.driver import Frame, Wait
from ludus.envs.city.drivers.micropolis_truth import MicropolisTruth
from ludus.envs.city.drivers.x11 import X11Driver
from ludus.envs.city.micropolis_lessons import made_up_evaluation, teach_letters
from ludus.envs.city.perception.profiles import ProfileReader
from ludus.envs.city.perception.reader import ScreenReader
from ludus.envs.city.perception.reading import Date, Reading, Value
from ludus.envs.city.profile import load_profile

FIELDS = (
    "date", "funds", "tax", "population", "migration", "assessed", "score", "score_change", "approval", "category",
)  # fmt: skip
_RUN_S = (0.02, 0.5)  # that the game runs for between states: up to a year of its time
_SETTLE_S = 3.0
_MAX_DIGITS = 7
_SEEDS = 50  # of states on the land of one city


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
    try:
        with X11Driver(profile) as driver:
            driver.launch()
            truth = MicropolisTruth(lambda: driver.prompt)
            teach_letters(driver, perception)
            for state in range(states):
                if state % _SEEDS == 0:
                    driver.reset(seed + state // _SEEDS)
                _change(driver, truth, random)
                readings = perception.reader.settle(driver.capture, _SETTLE_S)
                count(perception.reader, driver.capture(), readings, _values(truth))
    finally:
        perception.close()


def _change(driver: X11Driver, truth: MicropolisTruth, random: np.random.Generator) -> None:
    """Gives the city other figures, lets it run for a moment so that they are drawn, and waits for that."""
    truth.set_funds(int(10 ** random.uniform(0.0, _MAX_DIGITS)))
    truth.set_year(int(random.integers(1900, 2100)))
    truth.set_tax_rate(int(random.integers(0, 21)))
    truth.set_evaluation(made_up_evaluation(int(random.integers(10**_MAX_DIGITS)), int(random.integers(100))))
    driver.act([Wait(float(random.uniform(*_RUN_S)))])


def _values(truth: MicropolisTruth) -> dict[str, Value]:
    said = truth.evaluation()
    numbers = {name: float(said[name].strip("$%").replace(",", "")) for name in said if name != "category"}
    figures: dict[str, Value] = {"funds": float(truth.funds()), "tax": float(truth.tax_rate())}
    return {"date": Date(truth.year(), truth.month()), "category": said["category"], **figures, **numbers}
