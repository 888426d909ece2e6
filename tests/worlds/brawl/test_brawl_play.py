"""How scripted players play: who falls by itself, whether sides are even, and whether styles can be told apart."""

from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

from ludus.core.intervals import wilson_interval

if TYPE_CHECKING:
    from tests.worlds.brawl.conftest import MakeStage

pytestmark = pytest.mark.train

STYLES = (
    "based",
    "aggressive",
    "defensive",
    "hit-and-run",
    "aerial",
    "heavy-spammer",
    "weapon-seeker",
    "edge-guarder",
)
SPARRING = ("based-safe", "aggressive")
DEEDS = ("attacks", "hits", "damage_dealt", "damage_taken", "pickups", "falls")
HABITS = ("x", "y", "distance", "heading", "grounded", "weapon", "keys_held")


def one_match_each(make_stage: "MakeStage", names: tuple[str, str], matches: int) -> tuple[dict[str, Tensor], Tensor]:
    """Plays whole matches; returns event sums `(matches, 2)` by name and the sides `(matches, 2)`, +1 high ground."""
    stage = make_stage(matches, weapon_spawns=True, move_table=None, threads=None)
    env = stage.env
    env.reset(seed=1)
    homes = stage.fields["home"].clone()
    bots = env.bots(names)
    assignment = torch.tensor([[0, 1]] * matches, dtype=torch.int32)
    actions = torch.zeros((matches, 2, 10), dtype=torch.int8)
    totals = {name: torch.zeros(matches, 2) for name in env.spec.events}
    playing = torch.ones(matches, 1)
    while bool(playing.any()):
        bots.act(assignment, actions)
        result = env.step(actions)
        for name, total in totals.items():
            total.addcmul_(result.events[name], playing)
        playing[result.terminated] = 0.0
    return totals, homes


def test_based_against_itself_is_even_between_the_sides(make_stage: "MakeStage") -> None:
    totals, homes = one_match_each(make_stage, ("based", "based"), 1000)
    wins = int((totals["wins"] * (homes > 0)).sum())
    losses = int((totals["losses"] * (homes > 0)).sum())
    share = wilson_interval(wins, wins + losses)
    assert share.low <= 0.5 <= share.high, f"the high ground wins {wins} and loses {losses} of 1,000 matches"


def test_seats_are_even(make_stage: "MakeStage") -> None:
    totals, _ = one_match_each(make_stage, ("aggressive", "aggressive"), 500)
    wins, losses = (int(totals[name][:, 0].sum()) for name in ("wins", "losses"))
    share = wilson_interval(wins, wins + losses, 0.999)
    assert share.low <= 0.5 <= share.high


def test_based_walks_into_the_gap_and_based_safe_does_not(make_stage: "MakeStage") -> None:
    falls = {
        name: float(one_match_each(make_stage, (name, "constant"), 100)[0]["falls"][:, 0].mean())
        for name in ("based", "based-safe:noise=0")
    }
    assert 0.5 < falls["based"] < 2.0  # a stock or two a match
    assert falls["based-safe:noise=0"] < 0.1


def test_random_keys_lose_to_nobody_at_all_by_falling(make_stage: "MakeStage") -> None:
    totals, _ = one_match_each(make_stage, ("random", "constant"), 100)
    assert float(totals["losses"][:, 0].sum()) > 90
    assert float(totals["falls"][:, 0].mean()) > 1


def _behaviour(make_stage: "MakeStage", matches: int, seed: int) -> tuple[Tensor, Tensor]:
    """Plays short matches of every style; returns features `(games, features)` of what it did, and its style."""
    games, frames = len(STYLES) * len(SPARRING) * matches, 900
    stage = make_stage(games, weapon_spawns=True, move_table=None, threads=None)
    env = stage.env
    env.reset(seed=seed)
    bots = env.bots([*STYLES, *SPARRING])
    index = torch.arange(games)
    styles = index % len(STYLES)
    rivals = len(STYLES) + index // len(STYLES) % len(SPARRING)
    assignment = torch.stack([styles, rivals], 1).int()
    actions = torch.zeros((games, 2, 10), dtype=torch.int8)
    sums = torch.zeros(games, len(DEEDS) + len(HABITS) + 13 + 10)
    for _ in range(frames):
        bots.act(assignment, actions)
        result = env.step(actions)
        seen = [result.events[name] for name in DEEDS] + [result.state_metrics[name] for name in HABITS]
        states = torch.nn.functional.one_hot(result.state_metrics["state"][:, 0].long(), 13)
        sums += torch.cat([torch.stack([values[:, 0] for values in seen], 1), states, actions[:, 0]], 1)
    return sums / frames, styles


def test_styles_can_be_told_apart_by_what_they_do(make_stage: "MakeStage") -> None:
    """The nearest of the styles' mean behaviours names the style of a match of 30 s that it has not seen."""
    known, labels = _behaviour(make_stage, 10, seed=1)
    center, spread = known.mean(0), known.std(0) + 1e-6
    known = (known - center) / spread
    centroids = torch.stack([known[labels == style].mean(0) for style in range(len(STYLES))])
    fresh, truth = _behaviour(make_stage, 10, seed=2)
    guesses = torch.cdist((fresh - center) / spread, centroids).argmin(1)
    right = [float((guesses[truth == style] == style).float().mean()) for style in range(len(STYLES))]
    assert sum(right) / len(right) > 0.75, dict(zip(STYLES, right, strict=True))  # chance is 0.125
    assert min(right) > 0.4, dict(zip(STYLES, right, strict=True))
