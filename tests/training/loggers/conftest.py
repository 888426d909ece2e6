"""Fixtures of the loggers' tests: iterations and evaluations as the loop sends them, and a clock set by hand."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from ludus.rollout.episodes import Episodes
from ludus.training.callbacks import Counters, Evaluated, Iteration

NAMES = ("based", "random")
METRICS = {"policy_loss": -0.01, "value_loss": 0.5, "entropy": 2.0, "approx_kl": 0.01, "episode_return": None}

MakeIteration = Callable[..., Iteration]
MakeEvaluated = Callable[..., Evaluated]


@dataclass
class Clock:
    """A clock that stands still."""

    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s


def _iteration(
    number: int,
    outcomes: Sequence[int] = (1, -1, 1),
    opponents: Sequence[int] = (0, 0, 1),
    *,
    names: tuple[str, ...] = NAMES,
    phase: str = "",
    metrics: Mapping[str, float | None] = METRICS,
    rewards: Mapping[str, float] | None = None,
    seconds: float = 0.5,
) -> Iteration:
    """Iteration of 1,000 env steps; each episode's reward is its outcome, its length 100."""
    count = len(outcomes)
    episodes = Episodes(
        rewards=np.array(outcomes, np.float64),
        lengths=np.full(count, 100, np.int64),
        outcomes=np.array(outcomes, np.int64),
        opponents=np.array(opponents, np.int64),
        leads=np.ones(count, np.bool_),
        sides=np.zeros(count, np.int64),
        names=names,
        side_names=("1v1",),
        episode_metrics={"damage": np.arange(count, dtype=np.float64)},
    )
    return Iteration(
        Counters(number * 1000, number, number * 8),
        metrics,
        seconds,
        episodes,
        {"win": 20.0, "idle": -5.0} if rewards is None else rewards,
        {"other": 0.05, "update": 0.15, "simulation": 0.2, "inference": 0.1},
        phase,
    )


def _evaluated(
    number: int, score: float, *, is_best: bool = True, seconds: float = 0.0, every_env_steps: int = 0
) -> Evaluated:
    row = {"opponent": "based", "matches": 50, "win_rate": 0.8, "win_rate_low": 0.67, "win_rate_high": 0.89}
    return Evaluated(
        Counters(number * 1000, number, number * 8),
        (row | {"damage_ratio": 1.5},),
        score,
        is_best,
        seconds=seconds,
        every_env_steps=every_env_steps,
    )


def _tried(number: int, *, steps_to_convergence: int | None = None) -> Evaluated:
    rows = tuple(
        {"opponent": "", "trial": trial, "matches": 20, "mean_length": 500.0, "distance_m": distance}
        for trial, distance in (("walk", 12.5), ("pushes", 8.0))
    )
    milestones = {"steps_to_convergence": steps_to_convergence}
    return Evaluated(Counters(number * 1000, number, 0), rows, 12.5, True, "distance_m", milestones)


@pytest.fixture
def make_tried() -> MakeEvaluated:
    """`make_tried(number, steps_to_convergence=...)`: an evaluation in two trials, judged by the distance."""
    return _tried


@pytest.fixture
def make_iteration() -> MakeIteration:
    """`make_iteration(number, outcomes, opponents, ...)`."""
    return _iteration


@pytest.fixture
def make_evaluated() -> MakeEvaluated:
    """`make_evaluated(number, score, is_best=...)`."""
    return _evaluated


@pytest.fixture
def clock() -> Clock:
    """A clock at 100 s that a test moves."""
    return Clock()
