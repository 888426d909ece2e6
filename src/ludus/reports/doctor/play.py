"""Diagnoses of play (passivity, falls, overfitting to self-play, an ignored strategy encoder) and of reward terms."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ludus.core.intervals import Interval, wilson_interval
from ludus.core.tables import Table
from ludus.reports.doctor.finding import SELF, Change, Finding, Unknown, Verdict, is_early, late_part, weight_now
from ludus.reports.run_data import RunData

FEWEST_EPISODES = 20
PASSIVE_DAMAGE = 10.0  # dealt per minute; bots deal 60 to 200
PASSIVE_ATTACKS = 0.2  # per second
FALLS = 0.75  # stocks lost without a hit, per episode
FALLS_SHARE = 0.5  # of all stocks lost

_EARLY = "the run is in the first fifth of its budget"
GAP = 0.25  # win rate against snapshots minus that against bots
LOST = 0.4  # win rate below which an old snapshot counts as beating the learner
FEWEST_MATCHES = 20
OLD = 0.5  # share of the snapshots met that counts as old
_NUMBER = re.compile(r"\d+$")
SMALL_NORM = 0.01  # a latent this short has no effect on its readers
CONSTANT_STD = 1e-3  # of the latent's norm: it hardly changes between frames
CHANCE = 2.0  # times the separation by chance alone
FEWEST_OVER = 4  # segments more than opponents; with fewer, separation is meaningless
FEWEST_ROWS = 3
_LAST_ROWS = 5

LARGE_RETURN = 200.0  # discounted; value networks start near 0
SMALL_RETURN = 0.01
DOMINATES = 0.9  # share of the absolute reward
FEWEST_TERMS = 3  # of two, one is often meant to be small
FEWEST_TERM_EPISODES = 100  # in which a term should have occurred once
RESULTS = ("win", "wins", "loss", "losses")  # the result of a match may outweigh all else
_NO_TERMS = ("iteration", "env_steps", "total")


def passive(data: RunData) -> Verdict:
    """An agent that hardly attacks and deals no damage."""
    late = _late_means(data, ("damage_dealt", "survival_s", "attack_rate", "knockouts"))
    if late is None:
        return Unknown(f"fewer than {FEWEST_EPISODES} late episodes with damage and attacks in behavior_metrics.csv")
    if is_early(data):
        return Unknown(_EARLY)
    dealt_a_minute = 60.0 * late["damage_dealt"] / max(late["survival_s"], 1.0)
    if dealt_a_minute >= PASSIVE_DAMAGE or late["attack_rate"] >= PASSIVE_ATTACKS:
        return []
    evidence = (
        f"late in the run {dealt_a_minute:.2g} damage per minute, {late['attack_rate']:.2g} attacks per second and "
        f"{late['knockouts']:.2g} knockouts per episode (behavior_metrics.csv)",
    )
    terms = _weights(data)
    rewarded = [name for name in ("idle",) if terms.get(name, 0.0) > 0.0]
    punished = [name for name in ("attack_spam", "attack_near", "many_keys") if terms.get(name, 0.0) < -0.1]
    changes = tuple(Change(f"rewards.weights.{name}", terms[name], 0.0) for name in (*rewarded, *punished))
    if changes:
        remedy = "its rewards pay for doing nothing: remove these terms"
    else:
        remedy = "reward approaching and damage"
        better = 2.0 * terms["closing"] if terms.get("closing", 0.0) > 0.0 else 1.0
        changes = (Change("rewards.weights.closing", weight_now(data, "closing"), better),)
        if data.setting("rewards.base") != "dense":
            changes = (Change("rewards.base", data.setting("rewards.base"), "dense"), *changes)
    return [Finding("the agent is passive", evidence, remedy, changes)]


def falling_off(data: RunData) -> Verdict:
    """An agent that loses its stocks by falling."""
    late = _late_means(data, ("self_destructs", "knocked_out", "danger_share"))
    if late is None:
        return Unknown(f"fewer than {FEWEST_EPISODES} late episodes with self_destructs in behavior_metrics.csv")
    if is_early(data):
        return Unknown(_EARLY)
    falls, hit = late["self_destructs"], late["knocked_out"]
    if falls < FALLS or falls < FALLS_SHARE * (falls + hit):
        return []
    evidence = (
        f"late in the run {falls:.2f} stocks per episode are lost by falling, {hit:.2f} to hits; "
        f"{late['danger_share']:.1%} of the time is spent off the platforms (behavior_metrics.csv)",
    )
    terms = _weights(data)
    # Twice the configured weight; sets that have the term have it at -0.5.
    better = {name: 2.0 * terms[name] if terms.get(name, 0.0) < 0.0 else -1.0 for name in ("fall", "danger")}
    changes = tuple(Change(f"rewards.weights.{name}", weight_now(data, name), new) for name, new in better.items())
    steps = int(data.setting("total_env_steps", 0))
    if steps < 1_000_000:
        changes = (Change("total_env_steps", steps, 2_000_000), *changes)
    remedy = "penalise falls more, and train long enough: not falling is among the first things learned"
    return [Finding("it falls off by itself", evidence, remedy, changes)]


def _late_means(data: RunData, names: tuple[str, ...]) -> dict[str, float] | None:
    """Return means of the last fifth, weighted by episodes; None if there are too few or no such columns."""
    late = late_part(data.episode_metrics)
    if any(name not in late for name in names):
        return None
    episodes = late.numbers("episodes")
    if np.nansum(episodes) < FEWEST_EPISODES:
        return None
    return {name: float(np.average(late.numbers(name), weights=episodes)) for name in names}


def _weights(data: RunData) -> dict[str, float]:
    """Return the configured weights at their last point, without those of a named set."""
    found: dict[str, float] = {}
    for name, weight in (data.setting("rewards.weights") or {}).items():
        points = weight.get("points", ()) if isinstance(weight, dict) else [(0, weight)]
        found[name] = float(points[-1][1]) if points else math.nan
    return found


@dataclass(frozen=True, slots=True)
class Score:
    """Score of matches, a draw counting half: share of points with its 95 % interval, and number of matches."""

    rate: Interval
    matches: int

    def text(self) -> str:
        """Return the score in words."""
        return f"{self.rate.estimate:.0%} ({self.rate.low:.0%} to {self.rate.high:.0%}, {self.matches} matches)"


def score_of(table: Table) -> Score:
    """Add up rows with `matches`, `wins` and `draws`."""
    matches = int(np.nansum(table.numbers("matches")))
    points = float(np.nansum(table.numbers("wins")) + 0.5 * np.nansum(table.numbers("draws")))
    return Score(wilson_interval(min(round(points), matches), matches), matches)


def overfitting_to_self_play(data: RunData) -> Verdict:
    """A far higher win rate against snapshots than against bots."""
    late = late_part(data.opponents)
    is_self = late.texts("kind") == SELF
    against_self, file = score_of(late.rows(is_self)), "opponents.csv"
    against_bots = score_of(late.rows(~is_self))
    if len(data.evaluations):
        steps = data.evaluations.numbers("env_steps")
        last = data.evaluations.rows(steps == steps[-1])
        if "wins" in last:
            against_bots, file = score_of(last), "evaluation_results.csv"
    if min(against_self.matches, against_bots.matches) < FEWEST_MATCHES:
        return Unknown(f"fewer than {FEWEST_MATCHES} late matches against snapshots, or against bots")
    ours, theirs = against_self.rate, against_bots.rate
    if ours.low - theirs.high < 0 or ours.estimate - theirs.estimate < GAP:
        return []
    evidence = (
        f"late win rate against snapshots {against_self.text()} (opponents.csv)",
        f"against bots {against_bots.text()} ({file})",
    )
    changes = _more_kinds(data)
    if data.setting("league.sampler") != "pfsp":
        changes.append(Change("league.sampler", data.setting("league.sampler"), "pfsp"))
    remedy = "train against more kinds of opponents: more bots in the mix, and snapshots of all ages"
    return [Finding("it is overfitted to self-play", evidence, remedy, tuple(changes))]


def _more_kinds(data: RunData) -> list[Change]:
    """Return how bots get more of the matches; nothing for a curriculum, whose phases have their own mixes."""
    mix = data.setting("opponents")
    if not mix:
        return []
    weight = float(mix.get(SELF, 1.0))
    if any(share for name, share in mix.items() if name != SELF):
        return [Change("opponents.self", weight, 0.5 * weight)]
    names = list(dict.fromkeys(name for name in data.evaluations.texts("opponent").tolist() if name))[:3]
    paths = [name if name.replace("-", "").isalnum() else f'"{name}"' for name in names]
    return [
        Change(f"opponents.{path}", mix.get(name, "not set"), round(0.3 * weight / len(names), 4))
        for path, name in zip(paths, names, strict=True)
    ]


def _age(name: str) -> int:
    """Return the number in a snapshot's name, which grows with time; `start` has none and is the oldest."""
    number = _NUMBER.search(name)
    return int(number.group()) if number is not None else 0


def forgetting(data: RunData) -> Verdict:
    """An agent that loses to its old snapshots."""
    late = late_part(data.opponents)
    selves = late.rows(late.texts("kind") == SELF)
    names = selves.texts("opponent")
    met = sorted(set(data.opponents.texts("opponent")[data.opponents.texts("kind") == SELF].tolist()), key=_age)
    old = met[: int(len(met) * OLD)]
    scores = {name: score_of(selves.rows(names == name)) for name in old}
    judged = {name: score for name, score in scores.items() if score.matches >= FEWEST_MATCHES}
    if not judged:
        return Unknown(f"fewer than {FEWEST_MATCHES} late matches against any old snapshot")
    beaten_by = {name: score for name, score in judged.items() if score.rate.estimate < LOST and score.rate.high < 0.5}
    if not beaten_by:
        return []
    worst = sorted(beaten_by, key=lambda name: beaten_by[name].rate.estimate)[:3]
    evidence = (
        f"late in the run it loses to {len(beaten_by)} of {len(judged)} old snapshots (opponents.csv)",
        *(f"win rate against {name} {beaten_by[name].text()}" for name in worst),
    )
    sampler, power = data.setting("league.sampler"), data.setting("league.pfsp_power", 2.0)
    change = Change("league.sampler", sampler, "pfsp")
    if sampler == "pfsp":
        change = Change("league.pfsp_power", power, 2.0 * power)
    remedy = "let snapshots that beat it play more often, so that it stays able to beat them all"
    return [Finding("it forgets: it loses to old snapshots of itself", evidence, remedy, (change,))]


def encoder_ignored(data: RunData) -> Verdict:
    """A strategy latent that does not depend on the opponent."""
    table = data.strategy
    if len(table) < FEWEST_ROWS:
        return Unknown(
            f"fewer than {FEWEST_ROWS} rows in strategy_analysis.csv, which runs with a strategy encoder have"
        )
    last = slice(-_LAST_ROWS, None)
    norm, spread = (float(np.median(table.numbers(name)[last])) for name in ("latent_norm", "latent_std"))
    if norm < SMALL_NORM:
        evidence = f"latent_norm {norm:.2g} at the end, {table.numbers('latent_norm')[0]:.2g} at the start"
        return [_finding(data, "its latent is nearly 0", evidence)]
    if spread < CONSTANT_STD * norm:
        evidence = f"latent_std {spread:.2g} at the end, with latent_norm {norm:.2g}"
        return [_finding(data, "its latent is constant", evidence)]
    separation, opponents, segments = (table.numbers(name) for name in ("separation", "opponents", "segments"))
    judged = np.flatnonzero(np.isfinite(separation) & (opponents >= 2) & (segments - opponents >= FEWEST_OVER))
    if not len(judged):
        return []
    judged = judged[last]
    # Expected ratio of the variance between opponents to that within them if the encoder sees no difference.
    by_chance = float(np.median((opponents - 1)[judged] / (segments - opponents)[judged]))
    middle = float(np.median(separation[judged]))
    if middle > CHANCE * by_chance:
        return []
    evidence = (
        f"separation {middle:.2g} between {opponents[judged].max():.0f} opponents in the last {len(judged)} rows that "
        f"have one; chance alone gives {by_chance:.2g}"
    )
    return [_finding(data, "its latent is the same for all opponents", evidence)]


def _finding(data: RunData, how: str, evidence: str) -> Finding:
    decay = data.setting("ppo.weight_decay", 0.0) or 0.0
    if decay > 0.01:
        remedy, change = "weight decay pulls the encoder to 0: lower it", Change("ppo.weight_decay", decay, 0.0)
    else:
        predict = data.setting("policy.strategy.predict_actions", 0.0) or 0.0
        remedy = (
            "train the encoder to predict the opponent's actions or to classify the bots "
            "(policy.strategy.classify), and against different opponents; or remove it (policy.strategy=null) if "
            "there is nothing to classify"
        )
        change = Change("policy.strategy.predict_actions", predict, max(3.0 * predict, 0.1))
    what = f"the strategy encoder is ignored: {how}"
    return Finding(what, (f"{evidence} (strategy_analysis.csv)",), remedy, (change,))


def reward_scale(data: RunData) -> Verdict:
    """Find returns that are too large or too small for a critic that does not normalise them."""
    rewards, lengths = data.episodes.numbers("r"), data.episodes.numbers("l")
    if len(rewards) < 10:
        return Unknown("fewer than 10 episodes")
    if data.setting("policy.normalize.returns") or data.is_off_policy:
        return []
    gamma = float(data.setting("ppo.gamma", 0.99))
    horizon = 1.0 / max(1.0 - gamma, 1e-6)
    size = math.sqrt(float(np.mean(rewards**2)))
    discounted = size * min(1.0, horizon / max(float(lengths.mean()), 1.0))
    if discounted == 0.0 or SMALL_RETURN <= discounted <= LARGE_RETURN:
        return []
    evidence = [
        f"an episode's reward is {size:.3g} (root mean square of {len(rewards)} in monitor.csv), {discounted:.3g} as "
        f"seen with gamma {gamma:g}; {SMALL_RETURN:g} to {LARGE_RETURN:g} is what a critic can fit"
    ]
    loss = data.metrics.numbers("value_loss")
    if len(loss):
        evidence.append(f"value_loss started at {loss[0]:.3g} (metrics.jsonl)")
    size_word = "large" if discounted > LARGE_RETURN else "small"
    remedy = f"normalise returns, or {'lower' if size_word == 'large' else 'raise'} all weights of the rewards"
    change = Change("policy.normalize.returns", False, True)
    return [Finding(f"the rewards are too {size_word}", tuple(evidence), remedy, (change,))]


def zero_terms(data: RunData) -> Verdict:
    """Find terms that never contributed."""
    if len(data.episodes) < FEWEST_TERM_EPISODES:
        return Unknown(f"fewer than {FEWEST_TERM_EPISODES} episodes, in which rare terms may not have occurred")
    phases = data.setting("curriculum", []) or []
    if phases and data.episodes.texts("stage")[-1] != phases[-1].get("name"):
        return Unknown("the run has not reached its last phase, whose terms may differ")
    found = []
    steps = data.rewards.numbers("env_steps")
    for term in _terms(data):
        if np.any(data.rewards.numbers(term) != 0.0):
            continue
        weight = weight_now(data, term)
        weights = [_weight_at(weight, step) for step in (0.0, *steps.tolist())]
        if not isinstance(weight, str) and not any(weights):
            if steps[-1] < float(data.setting("total_env_steps", 0)) and _weight_at(weight, math.inf):
                continue  # it may still rise
            found.append(_never_weighed(term, weight, int(steps[-1])))
        else:
            found.append(_never_happened(term, weight, len(data.episodes)))
    return found


def _never_weighed(term: str, weight: Any, env_steps: int) -> Finding:  # noqa: ANN401
    evidence = (
        f"its weight was 0 up to env step {env_steps:,} (config.yaml), and so was its contribution "
        "(reward_breakdown.csv)"
    )
    goal, what = _weight_at(weight, math.inf), f"the reward term {term} is always zero: its weight never rose"
    remedy = "raise its weight within the run, or remove it" if goal else "give it a weight, or remove it"
    return Finding(what, (evidence,), remedy, (Change(f"rewards.weights.{term}", weight, goal or 0.0),))


def _never_happened(term: str, weight: Any, episodes: int) -> Finding:  # noqa: ANN401
    evidence = f"its contribution is 0 in every iteration of {episodes} episodes (reward_breakdown.csv)"
    what = f"the reward term {term} is always zero: what it rewards never happened"
    remedy = "fix the term, or add a shaping term; if it is of no use, remove it"
    return Finding(what, (evidence,), remedy, (Change(f"rewards.weights.{term}", weight, 0.0),))


def dominating_term(data: RunData) -> Verdict:
    """A term next to which the others hardly count."""
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
        f"{term} is {share:.1%} of the absolute reward, {second}, the next, "
        f"{sizes[second] / total:.1%} (reward_breakdown.csv)",
    )
    now = weight_now(data, term)
    peak = max((level for _, level in _points(now)), key=abs, default=0.0)
    # As large as all others together; the weight of a named set is unknown, and a tenth is a guess.
    better = peak * (1.0 - share) / share if peak else 0.1
    change = Change(f"rewards.weights.{term}", now, better)
    remedy = "lower its weight, so that the others count too"
    return [Finding(f"the reward term {term} dominates", evidence, remedy, (change,))]


def _terms(data: RunData) -> tuple[str, ...]:
    return tuple(name for name in data.rewards.names if name not in _NO_TERMS)


def _points(weight: Any) -> list[tuple[float, float]]:  # noqa: ANN401
    if isinstance(weight, Mapping):
        return [(float(step), float(level)) for step, level in weight.get("points", ())]
    return [(0.0, float(weight))] if isinstance(weight, int | float) else []


def _weight_at(weight: Any, env_steps: float) -> float:  # noqa: ANN401
    """Return a weight at a time; between two points it is 0 only if both are, which is all that is needed here."""
    points = _points(weight)
    before = [level for step, level in points if step <= env_steps]
    after = [level for step, level in points if step > env_steps]
    if not before or not after:
        return (before or [level for _, level in points[:1]] or [0.0])[-1]
    is_inside = all(step != env_steps for step, _ in points)
    return before[-1] or (after[0] if is_inside else 0.0)
