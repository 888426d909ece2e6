"""Episode metrics of City: sums over an episode, the numbers computed from them, and the report on a guide.

The report says how often a guide was asked, answered and followed in a run, and whether following it paid.
"""

from collections.abc import Mapping
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.core.intervals import Interval, mean_interval, wilson_interval
from ludus.core.tables import Table
from ludus.envs.world_parts import EpisodeMetrics, Extreme
from ludus.rewards.step_info import StepInfo
from ludus.worlds.city.guide import BUDGET, CAUSES
from ludus.worlds.city.tracker import GROUP_EVENTS

RATIOS: Mapping[str, tuple[str, str]] = {
    "placed_share": ("placements", "placement_tries"),
    # With a guide: how often its advice was followed, and people who came until the next question.
    "guide_followed_share": ("guide_followed", "guide_advised"),
    "guide_gain_followed": ("guide_people_followed", "guide_followed"),
    "guide_gain_ignored": ("guide_people_ignored", "guide_ignored"),
}
EXTREMES: Mapping[str, tuple[str, Extreme]] = {
    "population_min": ("population", "min"),
    "population_max": ("population", "max"),
    "funds_min": ("funds", "min"),
}
_EVENTS = (
    *("final_population", "final_funds", "peak_gain", "milestone", "placed", "refused"),
    *("unreadable", "discovered", "changed", "bankrupt", "trouble", "recovered"),
)
# Events that only some settings have, and the numbers that are their sums over a city.
_SOMETIMES = {
    "final_happiness": "happiness",
    "goals_reached": "goals_reached",
    "new_menus": "new_menus",
    "guided": "guided",
    "guide_asked": "guide_questions",
    "guide_cached": "guide_cached",
    "guide_failed": "guide_failures",
    **{f"guide_no_{cause}": f"guide_no_{cause}" for cause in CAUSES},
    "guide_followed": "guide_followed",
    "guide_ignored": "guide_ignored",
    "people_followed": "guide_people_followed",
    "people_ignored": "guide_people_ignored",
}


def per_step(info: StepInfo) -> dict[str, Tensor]:
    """Return the quantities whose sums over an episode are wanted, in the shape of the step's tensors."""
    names = (*_EVENTS, *GROUP_EVENTS, *(name for name in _SOMETIMES if name in info.events))
    quantities = {name: info.events[name] for name in names}
    if "guided" in info.events:
        came = info.events["population_gain"] - info.events["population_loss"]
        quantities["people_followed"] = came * info.events["guide_following"]
        quantities["people_ignored"] = came * info.events["guide_ignoring"]
    return quantities


def per_episode(
    sums: Mapping[str, NDArray[np.float64]], lengths: NDArray[np.int64], rate_hz: float
) -> dict[str, NDArray[np.float64]]:
    """Return the numbers of each city from the sums of what `per_step` gave; all arrays are `(cities,)`."""
    tries = sums["placed"] + sums["refused"]
    numbers = {
        "population": sums["final_population"],
        "population_most": sums["peak_gain"],
        "funds": sums["final_funds"],
        "milestones": sums["milestone"],
        "bankrupt": sums["bankrupt"],
        "solvent": (sums["final_funds"] >= 0.0).astype(np.float64),
        "game_s": lengths / rate_hz,
        "placements": sums["placed"],
        "placement_tries": tries,
        "placed_share": sums["placed"] / np.maximum(tries, 1.0),
        "unreadable_share": sums["unreadable"] / lengths,
        "discovered": sums["discovered"],
        "visible_changes": sums["changed"],
        "troubles": sums["trouble"],
        "recovered": sums["recovered"],
    }
    numbers |= {number: sums[name] for name, number in _SOMETIMES.items() if name in sums}
    if "guided" in sums:
        numbers["guide_answers"] = sums["guide_asked"] - sums["guide_failed"] - sums[f"guide_no_{BUDGET}"]
        numbers["guide_advised"] = sums["guide_followed"] + sums["guide_ignored"]
        for name, (above, below) in RATIOS.items():
            numbers[name] = numbers[above] / np.maximum(numbers[below], 1.0)
    return numbers | {f"{name}_share": sums[name] / lengths for name in GROUP_EVENTS}


METRICS = EpisodeMetrics(per_step, per_episode, ratios=RATIOS, extremes=EXTREMES)


COUNTS = (
    *("guide_questions", "guide_answers", "guide_cached", "guide_failures", *(f"guide_no_{cause}" for cause in CAUSES)),
    *("guide_advised", "guide_followed"),
)


class GuideReport(TypedDict):
    """What a run says about its guide."""

    counts: dict[str, float]  # totals over all finished cities, by the names of the episode metrics
    followed_share: Interval | None  # of all advice; None without any
    gain_followed: Interval | None  # people who came from followed advice to the next question
    gain_ignored: Interval | None  # the same of advice that was not followed
    difference: Interval | None  # the former minus the latter; None unless there was advice of both sorts


def guide_report(table: Table) -> GuideReport:
    """Return the report from the episode metrics of a run, with intervals of 95 %.

    The independent samples of the gains are the rows of the table, each of which is about the cities that ended in one
    iteration: what comes of the advice in one city is not independent. The share takes every advice for a sample.

    Raises:
        ConfigError: The run had no guide, or no city has ended yet.
    """
    if "guide_questions" not in table or not len(table):
        raise ConfigError("no city of this run has ended with a guide; train with world.settings.guide")
    rows = np.isfinite(table.numbers("guide_questions"))

    def totals(name: str) -> NDArray[np.float64]:
        return (table.numbers(name) * table.numbers("episodes"))[rows]

    followed, ignored = totals("guide_followed"), totals("guide_ignored")
    advised = round(followed.sum() + ignored.sum())
    paid = _samples(totals("guide_people_followed"), followed)
    unpaid = _samples(totals("guide_people_ignored"), ignored)
    return {
        "counts": {name: float(totals(name).sum()) for name in COUNTS},
        "followed_share": wilson_interval(round(followed.sum()), advised) if advised else None,
        "gain_followed": _interval(paid),
        "gain_ignored": _interval(unpaid),
        "difference": _interval(None if paid is None or unpaid is None else paid - unpaid),
    }


def _samples(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return values `(rows,)` whose mean is the ratio r of the totals and that vary as it does; None without any.

    Delta method: r + (above - r * below) / mean(below); see `ratio_estimate`.
    """
    if below.sum() <= 0.0:
        return None
    ratio = above.sum() / below.sum()
    samples: NDArray[np.float64] = ratio + (above - ratio * below) / below.mean()
    return samples


def _interval(samples: NDArray[np.float64] | None) -> Interval | None:
    return None if samples is None else mean_interval(samples.tolist())
