"""What the processes of a run join after an iteration: the guard's verdict and the metrics that are a rank's own."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ludus.algorithms.learner import Learner
from ludus.algorithms.ppo.learner import PpoLearner
from ludus.training.callbacks import Episodes
from ludus.training.guard import Fault
from ludus.training.ranks import Ranks

_ORDER = ("observation", "reward", "policy output", "loss", "gradient", "parameter")  # causes before effects
_COUNTS = ("lengths", "outcomes", "opponents", "leads", "sides")


def join_faults(ranks: Ranks, fault: Fault | None) -> Fault | None:
    """Returns one fault for all processes: the first cause that any of them found; None if none did."""
    if ranks.place.count == 1 or not ranks.any(fault is not None):
        return fault
    told = ranks.gather_texts("" if fault is None else f"{fault.kind}\n{fault.place}")
    found = [(_ORDER.index(text.partition("\n")[0]), rank, text) for rank, text in enumerate(told) if text]
    _, rank, text = min(found)
    kind, _, place = text.partition("\n")
    return Fault(kind, f"{place}, on process {rank}")


def join_metrics(ranks: Ranks, metrics: Mapping[str, float], learner: Learner) -> dict[str, float]:
    """Returns the metrics of the whole batch: what the update measured is joined already, the rollouts are not."""
    if ranks.place.count == 1:
        return dict(metrics)
    assert isinstance(learner, PpoLearner)  # noqa: S101 - `Place.share` refuses others
    buffer = learner.rollout
    missed = buffer.returns - buffer.values
    moments = torch.stack((missed.mean(), missed.var(), buffer.returns.mean(), buffer.returns.var())).tolist()
    names = ("episodes", "episode_return", "episode_length", "reward")
    rows = ranks.gather_numbers([metrics[name] for name in names] + moments)
    episodes = sum(row[0] for row in rows)
    sums = [sum(row[0] * row[column] for row in rows if row[0]) for column in (1, 2)]
    joined = {
        "episodes": episodes,
        "episode_return": sums[0] / episodes if episodes else math.nan,
        "episode_length": sums[1] / episodes if episodes else math.nan,
        "reward": sum(row[3] for row in rows) / len(rows),
    }
    size = buffer.steps * buffer.rows
    spread = _joined_variance([(row[6], row[7]) for row in rows], size)
    left = _joined_variance([(row[4], row[5]) for row in rows], size)
    joined["explained_variance"] = 1.0 - left / spread if spread else math.nan
    return {**metrics, **joined}


def join_episodes(ranks: Ranks, episodes: Episodes, rewards: Mapping[str, float]) -> tuple[Episodes, dict[str, float]]:
    """Returns the episodes of all processes, by rank, and the sums of their reward terms; the same on each of them."""
    if ranks.place.count == 1:
        return episodes, dict(rewards)
    own = {
        "totals": episodes.rewards.tolist(),
        "counts": [getattr(episodes, name).tolist() for name in _COUNTS],
        "terms": {name: values.tolist() for name, values in episodes.terms.items()},
        "behaviour": {name: values.tolist() for name, values in episodes.behaviour.items()},
        "rewards": dict(rewards),
    }
    told: list[dict[str, Any]] = [json.loads(text) for text in ranks.gather_texts(json.dumps(own))]
    counts = {name: _joined([each["counts"][column] for each in told], np.int64) for column, name in enumerate(_COUNTS)}
    full = [each for each in told if each["totals"]]  # a process without episodes has no names of their parts
    tables = {
        part: {
            name: _joined([each[part][name] for each in full], np.float64) for name in (full[0][part] if full else ())
        }
        for part in ("terms", "behaviour")
    }
    joined = Episodes(
        rewards=_joined([each["totals"] for each in told], np.float64),
        lengths=counts["lengths"],
        outcomes=counts["outcomes"],
        opponents=counts["opponents"],
        leads=counts["leads"].astype(np.bool_),
        sides=counts["sides"],
        names=episodes.names,
        side_names=episodes.side_names,
        terms=tables["terms"],
        behaviour=tables["behaviour"],
    )
    return joined, {name: sum(each["rewards"][name] for each in told) for name in rewards}


def _joined(parts: Sequence[Sequence[float]], kind: type) -> NDArray[Any]:
    return np.concatenate([np.asarray(part, dtype=kind) for part in parts])


def _joined_variance(groups: list[tuple[float, float]], size: int) -> float:
    """Returns the variance over groups of `size` numbers each, of which mean and variance are known."""
    mean = sum(group_mean for group_mean, _ in groups) / len(groups)
    squares = sum((size - 1) * variance + size * (group_mean - mean) ** 2 for group_mean, variance in groups)
    return squares / (size * len(groups) - 1)
