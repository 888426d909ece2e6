"""Diagnoses of learning: progress, instability, and the optimiser's numbers (entropy, KL divergence, value loss)."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ludus.core.tables import Numbers, Table
from ludus.reports.doctor.finding import (
    FEWEST_IN_ALL,
    Change,
    Comparison,
    Finding,
    Unknown,
    Verdict,
    compare,
    finite,
    has_weight_paths,
    highest,
    more_entropy,
    outcome_points,
    progress,
    scaled_rate,
    settled_episodes,
)
from ludus.reports.doctor.play import score_of
from ludus.reports.run_data import RunData

FEWEST_RETURNS = 10
SAME_RETURN = 1e-6  # relative difference of two returns that is rounding only
USUAL = 0.05  # share of the episodes on either side that may have another return: a reward found by accident
AVOIDED = 0.05  # share of the first penalties that is left where an agent does nothing; a good agent pays more
STILL_KL = 1e-7  # below this an update changes nothing: rounding alone is about 1e-9
SMALL_KL = 3e-4  # updates this small hardly move a policy
LARGE_KL = 0.03
FEWEST_ITERATIONS = 10
GOOD_WIN_RATE = 0.9  # above this there is little left to learn
USUAL_RATE = 3e-4
WINDOWS = 10  # parts of a run whose results are compared for falls
FALL = 0.15  # drop of the win rate below the best part that counts as a collapse; of the return, half of the gain
COLLAPSED = 0.1  # share of the initial entropy below which a policy hardly explores
NARROW_NATS = 2.0  # entropy lost per continuous action: the standard deviation is a seventh of the initial one
POOR_WIN_RATE = 0.5  # a policy without entropy below this has converged too early
SPIKE_KL = 0.1  # ten times what PPO aims for
HUGE_KL = 1.0
SPIKES_SHARE = 0.02
EXPLODED = 10.0  # times the value loss of the first part of the run, with little explained variance
EXPLODED_ANYHOW = 1000.0  # times, whatever the explained variance
LITTLE_EXPLAINED = 0.3  # explained variance: rewards found late raise the loss too, but are explained
FEWEST_UPDATES = 5
_GAUSSIAN_NATS = 1.4189  # entropy of a normal distribution of standard deviation 1


def not_learning(data: RunData) -> Verdict:
    """Find updates that change nothing, rewards without a signal, or results that did not improve."""
    divergence = finite(data.metrics.numbers("approx_kl"))
    if len(divergence) >= 3 and float(np.quantile(divergence, 0.9)) < STILL_KL:
        evidence = f"approx_kl is at most {divergence.max():.2g} in {len(divergence)} iterations (metrics.jsonl)"
        change = scaled_rate(data, 100.0)
        if not highest(change.now) > USUAL_RATE / 100:
            change = replace(change, better=USUAL_RATE)
        what = "it does not learn: updates do not change the policy"
        return [Finding(what, (evidence,), "raise the learning rate", (change,))]
    without_signal = _no_signal(data)
    if without_signal:
        return without_signal
    compared = progress(data) if len(data.metrics) >= FEWEST_ITERATIONS else []
    if not compared:
        return Unknown(
            f"fewer than {FEWEST_ITERATIONS} iterations, or than {FEWEST_IN_ALL} episodes of the last phase against "
            "opponents other than snapshots"
        )
    is_good = compared[0].name == "win rate" and compared[0].late >= GOOD_WIN_RATE
    if is_good or not all(comparison.is_flat for comparison in compared):
        return []
    evidence_lines = tuple(comparison.text() for comparison in compared)
    advice = list(_advice(data, float(np.median(divergence)) if len(divergence) else np.nan))
    remedy = "; or ".join(text for text, _ in advice)
    changes = tuple(change for _, change in advice)
    return [Finding("it does not learn: results did not improve", evidence_lines, remedy, changes)]


def _advice(data: RunData, divergence: float) -> Iterator[tuple[str, Change]]:
    """Suggest what may keep a changing policy from improving; the most likely first, two at most."""
    if divergence < SMALL_KL:
        yield f"updates are small (median approx_kl {divergence:.1g}): raise the learning rate", scaled_rate(data, 5.0)
    if divergence > LARGE_KL:
        text = f"updates are too large (median approx_kl {divergence:.1g}): lower the learning rate"
        yield text, scaled_rate(data, 0.2)
    has_memory = data.setting("policy.recurrent") or data.setting("policy.strategy")
    if data.setting("rewards.base") == "sparse":
        text = "rewards may be too sparse to learn from: add shaping terms"
        yield text, Change("rewards.base", "sparse", "dense")
    elif not data.is_off_policy and not has_memory:
        text = "the state may be partially observed: give the policy a memory"
        yield text, Change("policy.recurrent", None, {"size": 64})
    else:
        steps = int(data.setting("total_env_steps", 1))
        yield "check the rewards, and train for longer", Change("total_env_steps", steps, 4 * steps)


def _no_signal(data: RunData) -> list[Finding]:
    """Find constant returns, and penalties that an agent has learned to avoid by doing nothing."""
    episodes = settled_episodes(data)
    returns, lengths = episodes.numbers("r"), episodes.numbers("l")
    if len(returns) < FEWEST_RETURNS or outcome_points(episodes) is not None or has_weight_paths(data):
        return []  # too few, or wins and losses, or returns whose meaning changes with time
    first, last = returns[: len(returns) // 10 + 1], returns[-len(returns) // 5 :]
    early, late = float(first.mean()), float(last.mean())
    low, usual, high = np.quantile(returns, (USUAL, 0.5, 1.0 - USUAL))
    count = f"({len(returns)} episodes in monitor.csv)"
    if high - low <= SAME_RETURN * abs(usual) and not compare("return", first, last).is_better:
        share = float(np.mean(np.abs(returns - usual) <= SAME_RETURN * abs(usual)))
        what = "it does not learn for lack of a signal: nearly all episodes have the same return"
        evidence = f"return {usual:.4g} in {share:.1%} of the episodes, without improvement {count}"
    elif float(returns.max()) <= 0.0 and abs(late) <= AVOIDED * abs(early) and float(np.ptp(lengths)) == 0.0:
        what = "it has learned to do nothing: it avoids penalties and has never found a reward"
        evidence = (
            f"return {early:.3g} early and {late:.2g} late, never above 0, and every episode is truncated after "
            f"{lengths[0]:.0f} steps {count}"
        )
    else:
        return []
    advice = list(_signal_advice(data))
    remedy = "; or ".join(text for text, _ in advice)
    return [Finding(what, (evidence,), remedy, tuple(change for _, change in advice))]


def _signal_advice(data: RunData) -> Iterator[tuple[str, Change]]:
    """Suggest how a reward that was never found can be found."""
    if data.setting("rewards.base") == "sparse":
        yield "add shaping terms to the reward", Change("rewards.base", "sparse", "dense")
    if data.is_off_policy:
        path = f"{data.algorithm}.learning_starts"
        starts = int(data.setting(path, 0))
        yield "act randomly for longer at the start", Change(path, starts, max(10 * starts, 10_000))
        return
    entropy = finite(data.metrics.numbers("entropy"))
    is_continuous = bool(len(entropy)) and float(entropy.min()) < 0.0  # discrete entropy is never below 0
    if is_continuous and not data.setting("policy.state_dependent_exploration"):
        # MountainCarContinuous: this alone raised the return from 0 to 92 in 200k env steps; more entropy did nothing.
        text = "explore with noise that is correlated over many steps (gSDE)"
        yield text, Change("policy.state_dependent_exploration", False, True)
    elif not data.setting("policy.normalize.observations"):
        # MountainCar (speeds below 0.07): this alone raised the return from -200 to -110; more entropy did nothing.
        text = "observations may be badly scaled: normalise them"
        yield text, Change("policy.normalize.observations", False, True)
    else:
        yield "raise the entropy bonus, so that it keeps exploring", more_entropy(data)


def instability(data: RunData) -> Verdict:
    """Find rollbacks, or results that collapsed."""
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
    what = "it is unstable: NaN or infinite numbers, and the run was rolled back"
    remedy = (
        "fix the reward term, world or plugin that produces such numbers; the run's log names where they were first "
        "seen. If it is the update, lower the learning rate"
    )
    return [Finding(what, (evidence,), remedy, (scaled_rate(data, 0.3),))]


def _falls(data: RunData) -> list[Finding]:
    """Compare the best part of the run with its end, in evaluations and in episodes."""
    texts = [text for text in (_evaluations_fell(data), _episodes_fell(data)) if text]
    if not texts:
        return []
    changes = [scaled_rate(data, 0.3)]
    if not data.is_off_policy and data.setting("ppo.target_kl") is None:
        changes.append(Change("ppo.target_kl", None, 0.02))
    remedy = (
        "take smaller steps: lower the learning rate, or stop updates early by KL. The checkpoint `best` is still there"
    )
    return [Finding("it is unstable: performance collapsed", tuple(texts), remedy, tuple(changes))]


def _evaluations_fell(data: RunData) -> str:
    table = data.evaluations
    if "wins" not in table:
        return ""
    steps = table.numbers("env_steps")
    rates = [(int(when), score_of(table.rows(steps == when)).rate) for when in np.unique(steps)]
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
    values, name, _ = _results(episodes)
    parts = np.array_split(values, WINDOWS)
    if len(parts[-1]) < 20:
        return ""
    best_place = int(np.argmax([part.mean() for part in parts]))
    best, last, first = parts[best_place], parts[-1], parts[0]
    if best_place == WINDOWS - 1:
        return ""
    fall = compare(name, best, last)
    returns = np.array_split(episodes.numbers("r"), WINDOWS)
    if not _is_fall(fall, first) or compare("return", returns[best_place], returns[-1]).is_better:
        return ""  # an agent that wins less for more reward did what it was trained to
    return (
        f"{name} {fall.early:.3g} in part {best_place + 1} of {WINDOWS} of the run, {fall.late:.3g} in the last one "
        f"({len(values)} episodes in monitor.csv)"
    )


def _results(episodes: Table) -> tuple[Numbers, str, Numbers | None]:
    """Return the points of episodes and `win rate`, or else their rewards and `return`; then the points or None."""
    points = outcome_points(episodes)
    return (episodes.numbers("r"), "return", None) if points is None else (points, "win rate", points)


def _is_fall(fall: Comparison, first: Numbers) -> bool:
    lost, gained = fall.early - fall.late, fall.early - float(first.mean())
    if fall.gain_high > 0.0:  # it may be chance
        return False
    return lost >= FALL if fall.name == "win rate" else lost >= 0.5 * gained > 0 and lost > 0.5 * fall.spread


def entropy_collapse(data: RunData) -> Verdict:
    """A policy that stopped exploring before it improved, or while it still loses."""
    if data.is_off_policy:
        return Unknown("SAC and TD3 set their own entropy")
    entropy = finite(data.metrics.numbers("entropy"))
    if len(entropy) < FEWEST_UPDATES:
        return Unknown(f"fewer than {FEWEST_UPDATES} iterations with an entropy")
    steps = data.metrics.numbers("env_steps")[np.isfinite(data.metrics.numbers("entropy"))]
    threshold = _threshold(data, entropy)
    is_low = entropy < threshold
    if not is_low[-1]:
        return []
    since = float(steps[len(is_low) - int(np.argmin(is_low[::-1]))]) if not is_low.all() else float(steps[0])
    harm = _harm(data, since)
    if not harm:
        return []
    evidence = (
        f"entropy {entropy[0]:.3g} at the start, {entropy[-1]:.3g} at the end, below {threshold:.3g} since env step "
        f"{since:,.0f} (metrics.jsonl)",
        harm,
    )
    remedy = "raise the entropy bonus, so that it keeps exploring; a lower learning rate helps too"
    changes = (more_entropy(data),)
    return [Finding("entropy collapse: the policy is nearly deterministic", evidence, remedy, changes)]


def _threshold(data: RunData, entropy: np.ndarray) -> float:
    if entropy.min() >= 0.0:
        return COLLAPSED * float(entropy[0])
    each = _GAUSSIAN_NATS + float(data.setting("policy.log_std", 0.0))  # nats per action at first
    actions = max(round(float(entropy[0]) / each), 1) if each > 0.1 else 1
    return float(entropy[0]) - NARROW_NATS * actions


def _harm(data: RunData, since: float) -> str:
    """Return how results show that the collapse came too early; empty if they improved or are good."""
    episodes = settled_episodes(data)
    steps = episodes.numbers("env_steps")
    values, name, points = _results(episodes)
    before, after = values[steps <= since], values[steps > since]
    if points is not None and len(after) >= 20 and after.mean() < POOR_WIN_RATE:
        return f"win rate {after.mean():.0%} since then ({len(after)} episodes in monitor.csv)"
    if len(before) < 5 or len(after) < 5:
        return "no earlier results to compare with" if len(after) >= 5 else ""
    compared = compare(name, before, after)
    return "" if compared.is_better else compared.text().replace("early", "before").replace("late", "since")


def kl_spikes(data: RunData) -> Verdict:
    """Find updates that change the policy too much."""
    divergence = data.metrics.numbers("approx_kl")
    if len(finite(divergence)) < FEWEST_UPDATES:
        return Unknown(f"fewer than {FEWEST_UPDATES} iterations with approx_kl")
    spikes = divergence > SPIKE_KL
    count = int(spikes.sum())
    if not (count >= max(2, SPIKES_SHARE * len(divergence)) or bool((divergence > HUGE_KL).any())):
        return []
    worst = int(np.nanargmax(divergence))
    evidence = (
        f"approx_kl above {SPIKE_KL:g} in {count} of {len(divergence)} iterations, {divergence[worst]:.3g} in "
        f"iteration {data.metrics.numbers('iteration')[worst]:.0f}, median {np.nanmedian(divergence):.2g} "
        "(metrics.jsonl)",
    )
    changes = [scaled_rate(data, 0.1 if np.nanmedian(divergence) > SPIKE_KL else 0.3)]
    if data.setting("ppo.target_kl") is None:
        changes.append(Change("ppo.target_kl", None, 0.02))
    remedy = "take smaller steps: lower the learning rate, and stop updates early by KL"
    return [Finding("KL spikes: updates change the policy too much", evidence, remedy, tuple(changes))]


def value_loss_exploding(data: RunData) -> Verdict:
    """A critic whose error explodes."""
    losses, explained = finite(data.metrics.numbers("value_loss")), finite(data.metrics.numbers("explained_variance"))
    if min(len(losses), len(explained)) < 2 * FEWEST_UPDATES:
        return Unknown(f"fewer than {2 * FEWEST_UPDATES} iterations of PPO with a value loss")
    width = max(len(losses) // 10, FEWEST_UPDATES)
    early, late = float(np.median(losses[:width])), float(np.median(losses[-width:]))
    explains = float(np.median(explained[-width:]))
    if late < (EXPLODED if explains < LITTLE_EXPLAINED else EXPLODED_ANYHOW) * max(early, 1e-6):
        return []
    evidence = (
        f"value_loss {early:.3g} in the first {width} iterations, {late:.3g} in the last; explained_variance "
        f"{explains:.2g} there (metrics.jsonl)",
    )
    return [Finding("the value loss explodes", evidence, *_value_remedy(data))]


def _value_remedy(data: RunData) -> tuple[str, tuple[Change, ...]]:
    gamma = data.setting("ppo.gamma", 0.99)
    if gamma >= 1.0:
        remedy = "undiscounted values diverge where episodes are truncated: discount them"
        return remedy, (Change("ppo.gamma", gamma, 0.99),)
    normalise = Change("policy.normalize.returns", False, True)
    changes = (() if data.setting("policy.normalize.returns") else (normalise,)) + (scaled_rate(data, 0.3),)
    return "normalise returns, or lower the learning rate", changes
