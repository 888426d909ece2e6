"""Seating: whole teams, equal chances, and worlds whose teams do not fit."""

from dataclasses import replace

import pytest
import torch

from ludus import make_env
from ludus.core.errors import ConfigError
from ludus.envs.base import BatchedEnv
from ludus.league.seating import Seating


def _with_teams(games: int, teams: tuple[int, ...]) -> BatchedEnv:
    env = make_env("duel", games)
    env.spec = replace(env.spec, teams=teams)
    return env


def test_the_learner_plays_all_seats_of_one_team() -> None:
    env = _with_teams(900, (0, 1, 0, 2, 2, 1))
    seating = Seating(env, seed=1)
    teams = {(True, False, True, False, False, False): 0, (False, True, False, False, False, True): 1}
    teams |= {(False, False, False, True, True, False): 2}
    drawn = [teams[tuple(row)] for row in seating.learner.tolist()]
    for team in range(3):  # three standard deviations of a third among 900: 3 * sqrt(2 / 9 / 900) = 0.047
        assert drawn.count(team) / 900 == pytest.approx(1 / 3, abs=0.047)
    everyone = torch.cat((seating.learner_index, seating.other_index), dim=1).sort(dim=1).values
    assert torch.equal(everyone.flatten(), torch.arange(900 * 6))
    assert torch.equal(seating.learner_index.flatten(), seating.learner.flatten().nonzero().squeeze(1))


def test_only_the_given_games_are_seated_anew() -> None:
    seating = Seating(_with_teams(500, (0, 1)), seed=1)
    before = seating.learner.clone()
    seating.episodes += 1
    seating.seat(torch.arange(100, 300))
    moved = (before != seating.learner).any(1)
    assert moved[100:300].float().mean().item() == pytest.approx(0.5, abs=0.11)
    assert not moved[:100].any()
    assert not moved[300:].any()


@pytest.mark.parametrize(("teams", "fault"), [((0, 0), "2 seats in one team"), ((0, 0, 1), "unequal size")])
def test_teams_that_cannot_meet_are_refused(teams: tuple[int, ...], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        Seating(_with_teams(4, teams), seed=0)
