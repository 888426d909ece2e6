"""What the account of the rewards says: their scale, terms that are always zero, terms that drown all others."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ludus.reports.doctor.finding import Change, Finding, Unknown, Verdict
from ludus.reports.doctor.measures import weight_now
from ludus.reports.run_data import RunData

LARGE_RETURN = 200.0  # discounted, and a policy's networks begin with values near 0
SMALL_RETURN = 0.01
DOMINATES = 0.9  # share of all that was rewarded and punished
FEWEST_TERMS = 3  # of two, one is often meant to be a trifle
FEWEST_EPISODES = 100  # in which a term should have been seen once
RESULTS = ("win", "wins", "loss", "losses")  # what a match is about may outweigh all else
_NO_TERMS = ("iteration", "env_steps", "total")


def reward_scale(data: RunData) -> Verdict:
    """Returns that are far too large or too small for a critic that does not normalise them."""
    rewards, lengths = data.episodes.numbers("reward"), data.episodes.numbers("length")
    if len(rewards) < 10:
        return Unknown("fewer than 10 episodes")
    if data.setting("policy.normalise.returns") or data.setting("algorithm", "ppo") != "ppo":
        return []
    gamma = float(data.setting("ppo.gamma", 0.99))
    horizon = 1.0 / max(1.0 - gamma, 1e-6)
    size = math.sqrt(float(np.mean(rewards**2)))
    discounted = size * min(1.0, horizon / max(float(lengths.mean()), 1.0))
    if discounted == 0.0 or SMALL_RETURN <= discounted <= LARGE_RETURN:
        return []
    evidence = [
        f"an episode's reward is {size:.3g} (root mean square of {len(rewards)} in monitor.csv), {discounted:.3g} as "
        f"seen with gamma {gamma:g}; {SMALL_RETURN:g} to {LARGE_RETURN:g} is what the critic can take",
    ]
    loss = data.metrics.numbers("value_loss")
    if len(loss):
        evidence.append(f"value_loss began at {loss[0]:.3g} (metrics.jsonl)")
    size_word = "large" if discounted > LARGE_RETURN else "small"
    remedy = f"normalise returns, or {'lower' if size_word == 'large' else 'raise'} all weights of the rewards"
    change = Change("policy.normalise.returns", False, True)
    return [Finding(f"the rewards are too {size_word}", tuple(evidence), remedy, (change,))]


def zero_terms(data: RunData) -> Verdict:
    """Terms that were never rewarded."""
    if len(data.episodes) < FEWEST_EPISODES:
        return Unknown(f"fewer than {FEWEST_EPISODES} episodes, in which rare terms may not have come up")
    stages = data.setting("curriculum", []) or []
    if stages and data.episodes.texts("stage")[-1] != stages[-1].get("name"):
        return Unknown("the run has not reached its last stage, whose terms may be others")
    found = []
    steps = data.rewards.numbers("env_steps")
    for term in _terms(data):
        if np.any(data.rewards.numbers(term) != 0.0):
            continue
        weight = weight_now(data, term)
        weights = [_weight_at(weight, step) for step in (0.0, *steps.tolist())]
        if not isinstance(weight, str) and not any(weights):
            if steps[-1] < float(data.setting("total_env_steps", 0)) and _weight_at(weight, math.inf):
                continue  # it may come yet
            found.append(_never_weighed(term, weight, int(steps[-1])))
        else:
            found.append(_never_happened(term, weight, len(data.episodes)))
    return found


def _never_weighed(term: str, weight: Any, env_steps: int) -> Finding:  # noqa: ANN401
    evidence = (
        f"its weight was 0 up to env step {env_steps:,} (config.yaml), and so was its part (reward_breakdown.csv)"
    )
    goal = _weight_at(weight, math.inf)
    return Finding(
        f"the reward term {term} is always zero: its weight never rose",
        (evidence,),
        "let its weight rise within the run, or take it out" if goal else "give it a weight, or take it out",
        (Change(f"rewards.weights.{term}", weight, goal or 0.0),),
    )


def _never_happened(term: str, weight: Any, episodes: int) -> Finding:  # noqa: ANN401
    evidence = f"its part is 0 in every iteration of {episodes} episodes (reward_breakdown.csv)"
    return Finding(
        f"the reward term {term} is always zero: what it rewards never happened",
        (evidence,),
        "mend the term, or reward the way there too; if it is of no use, take it out",
        (Change(f"rewards.weights.{term}", weight, 0.0),),
    )


def dominating_term(data: RunData) -> Verdict:
    """A term beside which the others hardly count."""
    terms = _terms(data)
    if len(terms) < FEWEST_TERMS:
        return Unknown(f"fewer than {FEWEST_TERMS} reward terms")
    if len(data.rewards) < 3:
        return Unknown("fewer than three iterations in reward_breakdown.csv")
    sizes = {term: float(np.nansum(np.abs(data.rewards.numbers(term)))) for term in terms}
    total = sum(sizes.values())
    term = max(sizes, key=lambda name: sizes[name])
    if term in RESULTS or total == 0.0 or sizes[term] / total < DOMINATES:
        return []
    if sum(size > 0 for size in sizes.values()) < FEWEST_TERMS:
        return []
    share, second = sizes[term] / total, sorted(sizes, key=lambda name: -sizes[name])[1]
    evidence = (
        f"{term} makes {share:.1%} of all that was rewarded and punished, {second}, the next, "
        f"{sizes[second] / total:.1%} (reward_breakdown.csv)",
    )
    now = weight_now(data, term)
    peak = _peak(now)
    # So that it is as large as all others together; the weight of a named set is not known, and a tenth is a guess.
    better = peak * (1.0 - share) / share if peak else 0.1
    change = Change(f"rewards.weights.{term}", now, better)
    remedy = "lower its weight until the others count too"
    return [Finding(f"the reward term {term} dominates", evidence, remedy, (change,))]


def _terms(data: RunData) -> tuple[str, ...]:
    return tuple(name for name in data.rewards.names if name not in _NO_TERMS)


def _points(weight: Any) -> list[tuple[float, float]]:  # noqa: ANN401
    if isinstance(weight, Mapping):
        return [(float(step), float(level)) for step, level in weight.get("points", ())]
    return [(0.0, float(weight))] if isinstance(weight, int | float) else []


def _peak(weight: Any) -> float:  # noqa: ANN401
    return max((level for _, level in _points(weight)), key=abs, default=0.0)


def _weight_at(weight: Any, env_steps: float) -> float:  # noqa: ANN401
    """Returns a weight at a time; between two points it is 0 only if both are, which is all that matters here."""
    points = _points(weight)
    before = [level for step, level in points if step <= env_steps]
    after = [level for step, level in points if step > env_steps]
    if not before or not after:
        return (before or [level for _, level in points[:1]] or [0.0])[-1]
    return before[-1] or (after[0] if _is_inside(points, env_steps) else 0.0)


def _is_inside(points: list[tuple[float, float]], env_steps: float) -> bool:
    return all(step != env_steps for step, _ in points)
