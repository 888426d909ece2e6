"""What the optimiser's own numbers say: entropy, KL divergence and the value loss."""

import numpy as np

from ludus.reports.doctor.finding import Change, Finding, Unknown, Verdict
from ludus.reports.doctor.measures import compare, finite, highest, outcome_points, rate_setting, scaled
from ludus.reports.doctor.measures import settled_episodes as comparable
from ludus.reports.run_data import RunData

COLLAPSED = 0.1  # share of the first entropy below which a policy hardly tries anything else
NARROW_NATS = 2.0  # of entropy lost a continuous action: the spread is a seventh of what it was
POOR_WIN_RATE = 0.5  # a policy without entropy that wins less than this has settled for too little
SPIKE_KL = 0.1  # ten times what PPO aims for
HUGE_KL = 1.0
SPIKES_SHARE = 0.02
EXPLODED = 10.0  # times the value loss of the first part of the run, by a critic that explains little
EXPLODED_ANYHOW = 1000.0  # times, whatever it explains
LITTLE_EXPLAINED = 0.3  # explained variance: rewards that are found late make the loss rise too, but are explained
FEWEST_ITERATIONS = 5
_GAUSSIAN_NATS = 1.4189  # entropy of a normal distribution of spread 1


def entropy_collapse(data: RunData) -> Verdict:
    """A policy that stopped trying before it got any better, or while it still loses."""
    if data.setting("algorithm", "ppo") != "ppo":
        return Unknown("the entropy of SAC and TD3 is theirs to choose")
    entropy = finite(data.metrics.numbers("entropy"))
    if len(entropy) < FEWEST_ITERATIONS:
        return Unknown(f"fewer than {FEWEST_ITERATIONS} iterations with an entropy")
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
        f"entropy {entropy[0]:.3g} at first, {entropy[-1]:.3g} at the end, below {threshold:.3g} since env step "
        f"{since:,.0f} (metrics.jsonl)",
        harm,
    )
    now = data.setting("ppo.entropy")
    better = max(10.0 * highest(now), 0.01) if highest(now) > 0 else 0.01
    remedy = "reward entropy more, so that it goes on trying; a lower learning rate helps too"
    changes = (Change("ppo.entropy", now, better),)
    return [Finding("its entropy collapsed: it does the same whatever comes", evidence, remedy, changes)]


def _threshold(data: RunData, entropy: np.ndarray) -> float:
    if entropy.min() >= 0.0:
        return COLLAPSED * float(entropy[0])
    each = _GAUSSIAN_NATS + float(data.setting("policy.log_std", 0.0))  # nats an action at first
    actions = max(round(float(entropy[0]) / each), 1) if each > 0.1 else 1
    return float(entropy[0]) - NARROW_NATS * actions


def _harm(data: RunData, since: float) -> str:
    """Returns how results show that the collapse came too early; empty if they got better or are good."""
    episodes = comparable(data)
    steps = episodes.numbers("env_steps")
    points = outcome_points(episodes)
    values, name = (points, "win rate") if points is not None else (episodes.numbers("reward"), "return")
    before, after = values[steps <= since], values[steps > since]
    if points is not None and len(after) >= 20 and after.mean() < POOR_WIN_RATE:
        return f"win rate {after.mean():.0%} since then ({len(after)} episodes in monitor.csv)"
    if len(before) < 5 or len(after) < 5:
        return "no results from before it to compare with" if len(after) >= 5 else ""
    compared = compare(name, before, after)
    return "" if compared.is_better else compared.text().replace("early", "before").replace("late", "since")


def kl_spikes(data: RunData) -> Verdict:
    """Updates that throw the policy far away."""
    divergence = data.metrics.numbers("approx_kl")
    if len(finite(divergence)) < FEWEST_ITERATIONS:
        return Unknown(f"fewer than {FEWEST_ITERATIONS} iterations with approx_kl")
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
    rate = data.setting(rate_setting(data))
    changes = [Change(rate_setting(data), rate, scaled(rate, 0.1 if np.nanmedian(divergence) > SPIKE_KL else 0.3))]
    if data.setting("ppo.target_kl") is None:
        changes.append(Change("ppo.target_kl", None, 0.02))
    remedy = "take smaller steps: lower the learning rate, and let updates stop when they have gone far enough"
    return [Finding("KL spikes: updates throw the policy far away", evidence, remedy, tuple(changes))]


def value_loss_exploding(data: RunData) -> Verdict:
    """A critic whose error grows without bound."""
    losses, explained = finite(data.metrics.numbers("value_loss")), finite(data.metrics.numbers("explained_variance"))
    if min(len(losses), len(explained)) < 2 * FEWEST_ITERATIONS:
        return Unknown(f"fewer than {2 * FEWEST_ITERATIONS} iterations of PPO with a value loss")
    width = max(len(losses) // 10, FEWEST_ITERATIONS)
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
        return "values without a discount grow for ever where games are cut off: discount them", (
            Change("ppo.gamma", gamma, 0.99),
        )
    changes = []
    if not data.setting("policy.normalise.returns"):
        changes.append(Change("policy.normalise.returns", False, True))
    rate = data.setting(rate_setting(data))
    changes.append(Change(rate_setting(data), rate, scaled(rate, 0.3)))
    return "normalise returns, or lower the learning rate", tuple(changes)
