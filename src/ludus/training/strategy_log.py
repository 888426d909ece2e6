"""The strategy log: what the strategy encoder makes of its opponents, in numbers for `strategy_analysis.csv`.

A row is made every few iterations from a bounded sample of the last rollout's segments, so that it costs a run well
below a hundredth of its time. A segment is `whole` if no episode starts inside it: its frames are of one episode
against one opponent. Past selves count as one opponent, `self`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ludus.core.errors import StateError
from ludus.core.state import StateModel
from ludus.training.callbacks import Counters
from ludus.training.components import Components
from ludus.training.loggers.csv_logger import Cell

_MOST_SEGMENTS = 256
_FEWEST_SEGMENTS = 8
_SHARE_OF_ROLLOUT = 8  # at most one segment in so many, so that small rollouts stay cheap too
_ATTENTION_SEGMENTS = 64  # attention weights by age cost several times as much as latents
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True, slots=True)
class Sample:
    """Latents of some segments, on the host."""

    latents: Tensor  # `(steps, segments, latent)` float64
    whole: Tensor  # `(segments,)` bool, segments in which no episode starts after the first frame
    opponents: tuple[str, ...]  # for each segment, the name of the opponent at its first frame


class StrategyState(StateModel):
    """What `StrategyLog` saves as JSON: the mean latent of each opponent."""

    means: dict[str, list[float]]


class StrategyLog:
    """Makes the rows; what it remembers is the mean latent of each opponent in the last one."""

    def __init__(self, components: Components, every_iterations: int) -> None:
        """Make a row after the first iteration and then after every so many; none without a strategy encoder."""
        self._components, self._every = components, every_iterations
        self._means: dict[str, list[float]] = {}

    def look(self, counters: Counters) -> list[dict[str, Cell]]:
        """Return the row of the last rollout if one is due after it, and nothing otherwise; wait for the device."""
        if self._components.policy.memory.strategy is None or (counters.iterations - 1) % self._every:
            return []
        sample, entropy = self._take()
        means = mean_latents(sample)
        row = {
            "latent_mean": float(sample.latents.mean()),
            "latent_std": float(sample.latents.flatten(0, 1).std(0, correction=0).mean()),
            "latent_norm": float(sample.latents.norm(dim=-1).mean()),
            "attention_entropy": entropy,
            "drift_within_episodes": drift_within(sample),
            "drift_between_iterations": drift_between(self._means, means),
            "separation": separation(sample),
        }
        self._means |= means
        head: dict[str, Cell] = {
            "iteration": counters.iterations,
            "env_steps": counters.env_steps,
            "segments": len(sample.opponents),
            "opponents": len(means),
        }
        return [head | {name: None if value is None else float(f"{value:.6g}") for name, value in row.items()}]

    @torch.no_grad()
    def _take(self) -> tuple[Sample, float]:
        """Encode a sample of segments; return it and the entropy of the attention over frames."""
        policy, buffer = self._components.policy, self._components.buffer
        chosen = spread(sample_size(buffer.segments), buffer.segments).to(policy.device)
        batch = buffer.minibatch(chosen)
        latents = policy.strategy_latent(batch.observations, batch.memory, batch.episode_starts)
        few = min(_ATTENTION_SEGMENTS, len(chosen))
        weights = policy.attention(
            {name: tensor[:, :few] for name, tensor in batch.observations.items()},
            {name: tensor[:few] for name, tensor in batch.memory.items()},
            batch.episode_starts[:, :few],
        )
        opponents, components = self._components.trace.opponents, self._components.opponents
        chunks = chosen.div(buffer.rows, rounding_mode="floor")
        against = opponents[chunks * buffer.sequence_length, chosen.remainder(buffer.rows)].tolist()
        kinds = (*(components.kinds if components is not None else ()), "")  # -1: no opponent
        sample = Sample(
            latents.double().cpu(), ~batch.episode_starts[1:].any(0).cpu(), tuple(kinds[index] for index in against)
        )
        return sample, float(entropy_of(weights["pooling"].double()))

    def state(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return {"means": {name: list(mean) for name, mean in self._means.items()}}

    def load_state(self, state: object) -> None:
        """Restore the state returned by `state()`.

        Raises:
            StateError: It is not of this policy's strategy encoder.
        """
        means = StrategyState.read(state, "course.strategy").means
        strategy = self._components.policy.config.strategy
        size = 0 if strategy is None else strategy.latent
        for name, mean in means.items():
            if len(mean) != size:
                raise StateError(
                    f"course.strategy.means.{name} has {len(mean)} numbers, expected {size}; use the same policy config"
                )
        self._means = means


def sample_size(segments: int) -> int:
    """Return how many of a rollout's segments are looked at."""
    return min(segments, max(_FEWEST_SEGMENTS, min(_MOST_SEGMENTS, segments // _SHARE_OF_ROLLOUT)))


def spread(count: int, total: int) -> Tensor:
    """Return `(count,)` different numbers below `total`, int64, spread evenly however long the rows of a grid are.

    Steps of equal length would fall on the same rows again and again if the length divided their number; these are of
    the golden section of the total, which the next number without a common divisor stands for.
    """
    stride = max(1, round(_GOLDEN * total))
    while math.gcd(stride, total) > 1:
        stride += 1
    return torch.arange(count) * stride % total


def entropy_of(weights: Tensor) -> Tensor:
    """Return the mean entropy in nats, `()`, of distributions over the last axis: 0 where one frame has all."""
    return -torch.xlogy(weights, weights).sum(-1).mean()


def mean_latents(sample: Sample) -> dict[str, list[float]]:
    """Return the mean latent of each opponent over its whole segments."""
    return {name: vectors.mean(0).tolist() for name, vectors in _by_opponent(sample).items()}


def drift_within(sample: Sample) -> float | None:
    """Return the mean distance between the latents of a segment's first and last frame, over whole segments."""
    if not sample.whole.any():
        return None
    latents = sample.latents[:, sample.whole]
    return float((latents[-1] - latents[0]).norm(dim=-1).mean())


def drift_between(before: Mapping[str, Sequence[float]], after: Mapping[str, Sequence[float]]) -> float | None:
    """Return the mean distance that the opponents' mean latents have moved; None if no opponent is in both."""
    both = [math.dist(before[name], mean) for name, mean in after.items() if name in before]
    return sum(both) / len(both) if both else None


def separation(sample: Sample) -> float | None:
    """Return how far the opponents' segments lie apart: the variance between opponents over that within them.

    Each whole segment is its mean latent; squared distances are averaged over segments. Where the encoder sees no
    difference it is about (opponents - 1) / segments. None with fewer than two opponents, or with no variance within.
    """
    groups = list(_by_opponent(sample).values())
    within = sum(float((group - group.mean(0)).square().sum()) for group in groups)
    if len(groups) < 2 or within == 0.0:
        return None
    middle = torch.cat(groups).mean(0)
    between = sum(len(group) * float((group.mean(0) - middle).square().sum()) for group in groups)
    return between / within


def _by_opponent(sample: Sample) -> dict[str, Tensor]:
    """Return for each opponent the mean latents `(segments, latent)` of its whole segments."""
    vectors, whole = sample.latents.mean(0), sample.whole.tolist()
    places: dict[str, list[int]] = {}
    for place, name in enumerate(sample.opponents):
        if whole[place]:
            places.setdefault(name, []).append(place)
    return {name: vectors[chosen] for name, chosen in sorted(places.items())}
