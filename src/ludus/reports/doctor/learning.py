"""Does it learn at all, and does it keep what it learned?"""

from collections.abc import Iterator

import numpy as np

from ludus.reports.doctor.finding import Change, Finding, Unknown, Verdict
from ludus.reports.doctor.measures import (
    FEWEST_IN_ALL,
    Comparison,
    compare,
    finite,
    highest,
    outcome_points,
    progress,
    rate_setting,
    scaled,
    settled_episodes,
)
from ludus.reports.doctor.opponents import score_of
from ludus.reports.run_data import Numbers, RunData

STILL_KL = 1e-7  # below this an update changes nothing: rounding alone gives about 1e-9
SMALL_KL = 3e-4  # updates this small hardly move a policy
LARGE_KL = 0.03
FEWEST_ITERATIONS = 10
GOOD_WIN_RATE = 0.9  # who wins this often has not much left to learn
USUAL_RATE = 3e-4
WINDOWS = 10  # parts of a run whose results are compared for falls
FALL = 0.15  # of the win rate, or half of what was gained in return: a part this far below the best is a fall


def not_learning(data: RunData) -> Verdict:
    """Updates that change nothing, or results that surely got no better."""
    divergence = finite(data.metrics.numbers("approx_kl"))
    if len(divergence) >= 3 and float(np.quantile(divergence, 0.9)) < STILL_KL:
        evidence = f"approx_kl is at most {divergence.max():.2g} in {len(divergence)} iterations (metrics.jsonl)"
        rate = data.setting(rate_setting(data))
        better = USUAL_RATE if not highest(rate) > USUAL_RATE / 100 else scaled(rate, 100.0)
        change = Change(rate_setting(data), rate, better)
        what = "it does not learn: updates leave the policy as it is"
        return [Finding(what, (evidence,), "raise the learning rate", (change,))]
    compared = progress(data) if len(data.metrics) >= FEWEST_ITERATIONS else []
    if not compared:
        return Unknown(
            f"fewer than {FEWEST_ITERATIONS} iterations, or than {FEWEST_IN_ALL} episodes of the last stage against "
            "others than past selves"
        )
    is_good = compared[0].name == "win rate" and compared[0].late >= GOOD_WIN_RATE
    if is_good or not all(comparison.is_flat for comparison in compared):
        return []
    evidence_lines = tuple(comparison.text() for comparison in compared)
    advice = list(_advice(data, float(np.median(divergence)) if len(divergence) else np.nan))
    remedy = "; or ".join(text for text, _ in advice)
    changes = tuple(change for _, change in advice)
    return [Finding("it does not learn: results got no better", evidence_lines, remedy, changes)]


def _advice(data: RunData, divergence: float) -> Iterator[tuple[str, Change]]:
    """Advises on what may keep a policy that changes from getting better; the first guess first, and two at most."""
    rate = data.setting(rate_setting(data))
    if divergence < SMALL_KL:
        text = f"updates are small (median approx_kl {divergence:.1g}): raise the learning rate"
        yield text, Change(rate_setting(data), rate, scaled(rate, 5.0))
    if divergence > LARGE_KL:
        text = f"updates are too large (median approx_kl {divergence:.1g}): lower the learning rate"
        yield text, Change(rate_setting(data), rate, scaled(rate, 0.2))
    has_memory = data.setting("policy.recurrent") or data.setting("policy.strategy")
    if data.setting("rewards.base") == "sparse":
        text = "rewards may be too rare to learn from: add terms that point the way"
        yield text, Change("rewards.base", "sparse", "dense")
    elif data.setting("algorithm", "ppo") == "ppo" and not has_memory and not data.setting("ppo.mirror"):
        text = "what matters may be hidden from a policy without memory: give it one"
        yield text, Change("policy.recurrent", None, {"kind": "lstm", "size": 64})
    else:
        steps = int(data.setting("total_env_steps", 1))
        yield "look at the rewards, and train for longer", Change("total_env_steps", steps, 4 * steps)


def instability(data: RunData) -> Verdict:
    """Faults that were rolled back, or results that fell far below what they had been."""
    found = [*_rollbacks(data), *_falls(data)]
    if not found and not len(data.metrics):
        return Unknown("no iterations")
    return found


def _rollbacks(data: RunData) -> list[Finding]:
    rollbacks = finite(data.metrics.numbers("rollbacks"))
    if not len(rollbacks) or rollbacks.max() < 1:
        return []
    iteration = int(data.metrics.numbers("iteration")[int(np.argmax(data.metrics.numbers("rollbacks") >= 1))])
    evidence = f"{rollbacks.max():.0f} rollbacks, the first before iteration {iteration} (metrics.jsonl)"
    rate = data.setting(rate_setting(data))
    return [
        Finding(
            "it is unstable: numbers became NaN or infinite and the run went back",
            (evidence,),
            "mend the reward term, world or plugin that gives such numbers; the run's log names where they began. If "
            "it is the update, lower the learning rate",
            (Change(rate_setting(data), rate, scaled(rate, 0.3)),),
        )
    ]


def _falls(data: RunData) -> list[Finding]:
    """Compares the best part of the run with its end, in evaluations if there are any and else in episodes."""
    texts = [text for text in (_evaluations_fell(data), _episodes_fell(data)) if text]
    if not texts:
        return []
    rate = data.setting(rate_setting(data))
    changes = [Change(rate_setting(data), rate, scaled(rate, 0.3))]
    if data.setting("algorithm", "ppo") == "ppo" and data.setting("ppo.target_kl") is None:
        changes.append(Change("ppo.target_kl", None, 0.02))
    remedy = "take smaller steps: lower the learning rate, or end an update that goes too far. `best` is still there"
    return [Finding("it is unstable: it lost much of what it had learned", tuple(texts), remedy, tuple(changes))]


def _evaluations_fell(data: RunData) -> str:
    table = data.evaluations
    if "wins" not in table:
        return ""
    steps = table.numbers("env_steps")
    rates = []
    for when in np.unique(steps):
        rows = table.rows(steps == when)
        rates.append((int(when), score_of(rows).rate))
    if len(rates) < 2:
        return ""
    (best_when, best), (_, last) = max(rates, key=lambda rate: rate[1].estimate), rates[-1]
    if last.high > best.low or best.estimate - last.estimate < FALL:
        return ""
    return (
        f"win rate in evaluations {best.estimate:.0%} at env step {best_when:,}, {last.estimate:.0%} at the end "
        "(evaluation_results.csv)"
    )


def _episodes_fell(data: RunData) -> str:
    episodes = settled_episodes(data)
    points = outcome_points(episodes)
    values, name = (points, "win rate") if points is not None else (episodes.numbers("reward"), "return")
    parts = np.array_split(values, WINDOWS)
    if len(parts[-1]) < 20:
        return ""
    best_place = int(np.argmax([part.mean() for part in parts]))
    best, last, first = parts[best_place], parts[-1], parts[0]
    if best_place == WINDOWS - 1:
        return ""
    fall = compare(name, best, last)
    returns = np.array_split(episodes.numbers("reward"), WINDOWS)
    if not _is_fall(fall, first) or compare("return", returns[best_place], returns[-1]).is_better:
        return ""  # an agent that wins less for more reward learned what it was asked to
    return (
        f"{name} {fall.early:.3g} in part {best_place + 1} of {WINDOWS} of the run, {fall.late:.3g} in the last one "
        f"({len(values)} episodes in monitor.csv)"
    )


def _is_fall(fall: Comparison, first: Numbers) -> bool:
    lost, gained = fall.early - fall.late, fall.early - float(first.mean())
    if fall.gain_high > 0.0:  # it may be chance
        return False
    return lost >= FALL if fall.name == "win rate" else lost >= 0.5 * gained > 0 and lost > 0.5 * fall.spread
