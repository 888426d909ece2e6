"""How it plays, from the behaviour numbers of worlds that have them: passive, or falling off."""

import math

import numpy as np

from ludus.reports.doctor.finding import Change, Finding, Unknown, Verdict
from ludus.reports.doctor.measures import is_early, late_part, weight_now
from ludus.reports.run_data import RunData

FEWEST_EPISODES = 20
PASSIVE_DAMAGE = 10.0  # dealt a minute; scripted players deal 60 to 200
PASSIVE_ATTACKS = 0.2  # begun a second; less is hardly any
FALLS = 0.75  # stocks lost without a hit, an episode
FALLS_SHARE = 0.5  # of all stocks lost

_EARLY = "the run is in the first fifth of its budget"


def passive(data: RunData) -> Verdict:
    """It hardly attacks, and hurts nobody."""
    late = _late_means(data, ("damage_dealt", "survival_s", "attack_rate", "knockouts"))
    if late is None:
        return Unknown(f"fewer than {FEWEST_EPISODES} late episodes with damage and attacks in behavior_metrics.csv")
    if is_early(data):
        return Unknown(_EARLY)
    dealt_a_minute = 60.0 * late["damage_dealt"] / max(late["survival_s"], 1.0)
    if dealt_a_minute >= PASSIVE_DAMAGE or late["attack_rate"] >= PASSIVE_ATTACKS:
        return []
    evidence = (
        f"late in the run {dealt_a_minute:.2g} damage a minute, {late['attack_rate']:.2g} attacks a second and "
        f"{late['knockouts']:.2g} knockouts an episode (behavior_metrics.csv)",
    )
    terms = _weights(data)
    rewarded = [name for name in ("idle",) if terms.get(name, 0.0) > 0.0]
    punished = [name for name in ("attack_spam", "attack_near", "many_keys") if terms.get(name, 0.0) < -0.1]
    changes = tuple(Change(f"rewards.weights.{name}", terms[name], 0.0) for name in (*rewarded, *punished))
    if changes:
        remedy = "its rewards pay for doing nothing: take these terms out"
    else:
        remedy = "pay for coming near and for damage"
        better = 2.0 * terms["closing"] if terms.get("closing", 0.0) > 0.0 else 1.0
        changes = (Change("rewards.weights.closing", weight_now(data, "closing"), better),)
        if data.setting("rewards.base") != "dense":
            changes = (Change("rewards.base", data.setting("rewards.base"), "dense"), *changes)
    return [Finding("the agent is passive", evidence, remedy, changes)]


def falling_off(data: RunData) -> Verdict:
    """It loses its stocks by itself."""
    late = _late_means(data, ("self_destructs", "knocked_out", "danger_share"))
    if late is None:
        return Unknown(f"fewer than {FEWEST_EPISODES} late episodes with self_destructs in behavior_metrics.csv")
    if is_early(data):
        return Unknown(_EARLY)
    falls, hit = late["self_destructs"], late["knocked_out"]
    if falls < FALLS or falls < FALLS_SHARE * (falls + hit):
        return []
    evidence = (
        f"late in the run {falls:.2f} stocks an episode are lost by falling, {hit:.2f} to hits; "
        f"{late['danger_share']:.1%} of the time is spent below the grounds (behavior_metrics.csv)",
    )
    terms = _weights(data)
    # Twice what the settings say; a set that has the term has it at -0.5.
    better = {name: 2.0 * terms[name] if terms.get(name, 0.0) < 0.0 else -1.0 for name in ("fall", "danger")}
    changes = tuple(
        Change(f"rewards.weights.{name}", weight_now(data, name), weight) for name, weight in better.items()
    )
    steps = int(data.setting("total_env_steps", 0))
    if steps < 1_000_000:
        changes = (Change("total_env_steps", steps, 2_000_000), *changes)
    remedy = "make falls cost more, and train long enough: not to fall is among the first things that are learned"
    return [Finding("it falls off by itself", evidence, remedy, changes)]


def _late_means(data: RunData, names: tuple[str, ...]) -> dict[str, float] | None:
    """Returns means of the last fifth, weighed by episodes; None if there are too few or no such numbers."""
    late = late_part(data.behaviour)
    if any(name not in late for name in names):
        return None
    episodes = late.numbers("episodes")
    if np.nansum(episodes) < FEWEST_EPISODES:
        return None
    return {name: float(np.average(late.numbers(name), weights=episodes)) for name in names}


def _weights(data: RunData) -> dict[str, float]:
    """Returns the weights that the settings name, at their last point; those of a named set are not among them."""
    found: dict[str, float] = {}
    for name, weight in (data.setting("rewards.weights") or {}).items():
        points = weight.get("points", ()) if isinstance(weight, dict) else [(0, weight)]
        found[name] = float(points[-1][1]) if points else math.nan
    return found
