"""Which charts a report has: every number that a run logs, under a title that says what it is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ludus.reports import run_data as files
from ludus.reports.page.curves import MOST_POINTS, Curve, curve_of
from ludus.reports.page.runs import Group

LEARNING, OPTIMISER, BEHAVIOUR, STRATEGY = "learning", "optimiser", "behaviour", "strategy"
_FEWEST_POINTS = 60
_CURVE_BYTES = 2_400_000  # of all curves together
_POINT_BYTES = 26  # of x, mean, lowest and highest as JSON

# Title and what to know of it; what is not here is shown under its own name.
_KNOWN: dict[str, tuple[str, str, str]] = {
    "episode_return": (LEARNING, "Return of an episode", "Sum of the weighed reward, mean of the iteration's episodes"),
    "episode_length": (LEARNING, "Length of an episode", "Environment steps"),
    "rating_elo": (LEARNING, "Elo rating, live", "Follows the training matches; starts at 1,000"),
    "episodes": (LEARNING, "Episodes an iteration", "How many ended"),
    "reward": (LEARNING, "Reward a step", "Mean over the rollout"),
    "rating_openskill": (LEARNING, "openskill rating, live", "Mean less three deviations"),
    "policy_loss": (OPTIMISER, "Policy loss", "What the clipped objective gives; its size says little"),
    "value_loss": (OPTIMISER, "Value loss", "Squared error of the value estimate"),
    "entropy": (OPTIMISER, "Entropy", "Of the action distribution, in nats; near 0 it explores no more"),
    "approx_kl": (OPTIMISER, "KL divergence", "Between the policy before and after the update, estimated"),
    "clip_fraction": (OPTIMISER, "Clip fraction", "Share of samples whose ratio was clipped"),
    "explained_variance": (OPTIMISER, "Explained variance", "Of the returns, by the value estimate; 1 is perfect"),
    "learning_rate": (OPTIMISER, "Learning rate", "As scheduled"),
    "exploration_frequency": (OPTIMISER, "Exploration", "Share of decisions in which another action may be played"),
    "gradient_norm": (OPTIMISER, "Gradient norm", "Before clipping"),
    "ratio_error": (OPTIMISER, "Ratio error", "How far the first ratios are from 1; rounding alone if all is well"),
    "skipped_updates": (OPTIMISER, "Skipped updates", "Left out because of the target KL or of numbers not finite"),
    "rollbacks": (OPTIMISER, "Rollbacks", "Times that training went back to a checkpoint"),
    "separation": (STRATEGY, "Separation of opponents", "Variance of latents between opponents over that within them"),
    "attention_entropy": (STRATEGY, "Attention entropy", "Over frames, in nats; 0 where one frame has all of it"),
    "latent_norm": (STRATEGY, "Size of the latent", "Mean length of the vector"),
    "latent_std": (STRATEGY, "Spread of the latent", "Mean standard deviation of its parts"),
    "latent_mean": (STRATEGY, "Mean of the latent", "Over all of its parts"),
    "drift_within_episodes": (STRATEGY, "Drift within an episode", "From the first to the last frame of a segment"),
    "drift_between_iterations": (STRATEGY, "Drift between rows", "How far the opponents' mean latents have moved"),
}
_COUNTS_OF_FAULTS = ("skipped_updates", "rollbacks")  # worth a chart only where there were any
_COUNTERS = ("iteration", "env_steps", "updates", "stage", "segments", "opponents")
_UNITS = {"episode_length": "steps", "entropy": "nats", "survival_s": "s", "attention_entropy": "nats"}


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart of lines.

    Attributes:
        name: Column that it shows.
        section: Where it stands.
        title: What it is.
        note: What to know of it.
        unit: Of its values; may be empty.
        curves: One for each group, None where a group has none.
    """

    name: str
    section: str
    title: str
    note: str
    unit: str
    curves: tuple[Curve | None, ...]


def make_panels(groups: Sequence[Group]) -> tuple[Panel, ...]:
    """Returns a panel for each number that any run has; those with a known title come first, in their order."""
    found = list(_columns(groups))
    curves = max(len(found) * len(groups), 1)
    points = min(MOST_POINTS, max(_FEWEST_POINTS, _CURVE_BYTES // (_POINT_BYTES * curves)))
    order = {name: place for place, name in enumerate(_KNOWN)}
    panels = []
    for file, name in sorted(found, key=lambda column: order.get(column[1].partition("/")[0], len(order))):
        lines = tuple(curve_of([run.tables[file] for run in group.runs], name, points) for group in groups)
        if not any(lines) or (name in _COUNTS_OF_FAULTS and not any(line and line.high.any() for line in lines)):
            continue
        default = BEHAVIOUR if file == files.BEHAVIOUR else STRATEGY if file == files.STRATEGY else OPTIMISER
        plain, _, mode = name.partition("/")  # numbers of a mode are called rating_elo/1v1
        section, title, note = _KNOWN.get(plain, (default, plain.replace("_", " ").capitalize(), ""))
        title = f"{title}, {mode}" if mode else title
        panels.append(Panel(name, section, title, note, _UNITS.get(name, ""), lines))
    return tuple(panels)


def stage_starts(group: Group) -> list[tuple[int, str]]:
    """Returns where the stages of a curriculum begin in a group's first run that has any: env steps and name."""
    for run in group.runs:
        table = run.tables[files.METRICS]
        if "stage" not in table:
            continue
        steps, names = table.numbers("env_steps"), table.texts("stage")
        changes = np.flatnonzero(np.append(True, names[1:] != names[:-1]))[: len(names)]
        return [(int(steps[place]), str(names[place])) for place in changes if names[place] and steps[place] >= 0]
    return []


def _columns(groups: Sequence[Group]) -> Iterator[tuple[str, str]]:
    """Gives file and column of everything that is logged every iteration, once."""
    seen: set[tuple[str, str]] = set()
    for file in (files.METRICS, files.BEHAVIOUR, files.STRATEGY):
        for group in groups:
            for run in group.runs:
                for name in run.tables[file].names:
                    if name not in _COUNTERS and (name != "episodes" or file == files.METRICS):
                        if (file, name) not in seen:
                            yield file, name
                        seen.add((file, name))
