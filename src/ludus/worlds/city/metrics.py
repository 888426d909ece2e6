"""Episode metrics of City: sums over an episode, and the numbers computed from them."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

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
