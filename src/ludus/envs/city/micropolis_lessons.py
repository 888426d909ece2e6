"""Lessons in reading Micropolis: what its picture says in words, and letters learnt from a year that shows them all."""

from collections.abc import Mapping

from ludus.core.errors import GameLostError
from ludus.envs.city.drivers.driver import Wait
from ludus.envs.city.drivers.micropolis_truth import MicropolisTruth
from ludus.envs.city.drivers.x11 import X11Driver
from ludus.envs.city.perception.fields import Field
from ludus.envs.city.perception.glyph_learning import Label, learn_all
from ludus.envs.city.perception.profiles import ProfileReader

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
CATEGORIES = ("VILLAGE", "TOWN", "CITY", "CAPITAL", "METROPOLIS", "MEGALOPOLIS")
MONTH_S = 0.04  # of the game's clock
_DIGITS = 1_234_567_890


def teach_letters(driver: X11Driver, perception: ProfileReader) -> int:
    """Learns the letters of all fields from a year of made-up figures, and keeps them; returns how many lines it was.

    The city is not what it was afterwards: begin another one.

    Raises:
        GameLostError: What was shown was not what had been made up.
    """
    truth, reader = MicropolisTruth(lambda: driver.prompt), perception.reader
    labels: list[Label] = []
    for month in range(len(MONTHS)):
        number = int(str(_DIGITS)[month % 10 :] + str(_DIGITS)[: month % 10])  # each digit is each place's in turn
        truth.set_funds(max(number % 10 ** (month % 7 + 1), 1))  # without money the budget would be asked for
        truth.set_year(1900 + number % 200)
        truth.set_tax_rate(number % 21)
        truth.set_evaluation(made_up_evaluation(number, month))
        driver.act([Wait(MONTH_S)])
        frame = driver.capture()
        texts = shown_texts(truth, reader.fields)
        labels += [Label(reader.fields[name].region.cut(frame).copy(), text) for name, text in texts.items()]
    learn_all(perception.bank, labels)
    unread = [label.text for label in labels if not _is_read(perception, label)]
    if unread:
        raise GameLostError(
            f"{len(unread)} of {len(labels)} lines of Micropolis are not what they should be: {unread[:3]}"
        )
    perception.save()
    return len(labels)


def _is_read(perception: ProfileReader, label: Label) -> bool:
    return "".join(perception.bank.read(label.crop)[0].split()) == "".join(label.text.split())


def made_up_evaluation(number: int, kind: int) -> dict[str, str]:
    """Returns words for the evaluation made of a number's digits."""
    return {
        "population": f"{number % 10 ** (kind % 7 + 1):,}",
        "migration": f"{(1 - 2 * (kind % 2)) * (number % 10 ** (kind % 5 + 1)):,}",
        "assessed": f"${number % 10 ** (kind % 6 + 1) * 1000:,}",
        "category": CATEGORIES[kind % len(CATEGORIES)],
        "score": str(number % 1001),
        "score_change": str(number % 601 - 300),
        "approval": f"{number % 101}%",
    }


def shown_texts(truth: MicropolisTruth, fields: Mapping[str, Field]) -> dict[str, str]:
    """Returns what the lines of these fields say, with the words before their values."""
    words = {
        "date": f"{MONTHS[truth.month() - 1]} {truth.year()}",
        "funds": f"${truth.funds():,}",
        "tax": f"{truth.tax_rate()}%",
        **truth.evaluation(),
    }
    return {name: f"{fields[name].prefix} {text}" for name, text in words.items() if name in fields}
