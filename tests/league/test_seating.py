"""Seating: whole teams, equal chances, and worlds whose teams do not fit."""

from dataclasses import replace

import pytest
import torch

from ludus import make_env
from ludus.core.errors import ConfigError
from ludus.envs.base import BatchedEnv
from ludus.league.seating import TeamAssignment, learner_seats


def _with_teams(games: int, teams: tuple[int, ...]) -> BatchedEnv:
    env = make_env("duel", games)
    env.spec = replace(env.spec, teams=teams)
    return env


def _check_indices(seating: TeamAssignment, seats: int) -> None:
    """Holds that every seat is somebody's, in the order of games, and that games are told right."""
    everyone = torch.cat((seating.learner_index, seating.other_index)).sort().values
    assert torch.equal(everyone, torch.arange(seats))
    assert torch.equal(seating.learner_index, seating.learner.flatten().nonzero().squeeze(1))
    assert torch.equal(seating.other_index, (~seating.learner).flatten().nonzero().squeeze(1))
    assert torch.equal(seating.other_games, seating.other_index // seating.learner.shape[1])


def test_the_learner_plays_all_seats_of_one_team() -> None:
    env = _with_teams(900, (0, 1, 0, 2, 2, 1))
    seating = TeamAssignment(env, seed=1)
    teams = {(True, False, True, False, False, False): 0, (False, True, False, False, False, True): 1}
    teams |= {(False, False, False, True, True, False): 2}
    drawn = [teams[tuple(row)] for row in seating.learner.tolist()]
    for team in range(3):  # three standard deviations of a third among 900: 3 * sqrt(2 / 9 / 900) = 0.047
        assert drawn.count(team) / 900 == pytest.approx(1 / 3, abs=0.047)
    _check_indices(seating, 900 * 6)


def test_only_the_given_games_are_seated_anew() -> None:
    seating = TeamAssignment(_with_teams(500, (0, 1)), seed=1)
    before = seating.learner.clone()
    seating.episodes += 1
    seating.seat(torch.arange(100, 300))
    moved = (before != seating.learner).any(1)
    assert moved[100:300].float().mean().item() == pytest.approx(0.5, abs=0.11)
    assert not moved[:100].any()
    assert not moved[300:].any()


def test_in_mirrored_games_the_learner_plays_all_seats() -> None:
    seating = TeamAssignment(_with_teams(10, (0, 0, 1, 1)), seed=1, mirrored=7)
    for _ in range(4):
        assert seating.learner[:7].all()
        assert torch.equal(seating.learner[7:].sum(1), torch.full((3,), 2))
        _check_indices(seating, 40)
        seating.episodes += 1
        seating.seat(torch.arange(10))
    assert len(seating.learner_index) == learner_seats(_with_teams(1, (0, 0, 1, 1)).spec, 10, 7) == 7 * 4 + 3 * 2
    assert seating.sides == ("",) * 7 + ("2v2",) * 3


def test_in_unequal_teams_games_take_turns_and_rows_never_change() -> None:
    env = _with_teams(9, (0, 1, 1))
    seating = TeamAssignment(env, seed=3, mirrored=2)
    assert seating.sides == ("", "", *("1v2", "2v1") * 3, "1v2")
    counts = [3, 3, *(1, 2) * 3, 1]
    for _ in range(3):
        assert seating.learner.sum(1).tolist() == counts
        assert torch.equal(seating.learner[3], torch.tensor([False, True, True]))
        _check_indices(seating, 27)
        seating.episodes += 1
        seating.seat(torch.tensor([0, 3, 4, 8]))
    assert learner_seats(env.spec, 9, 2) == sum(counts)


def test_among_teams_of_one_size_the_learner_s_is_drawn() -> None:
    seating = TeamAssignment(_with_teams(800, (0, 1, 1, 2)), seed=5)  # two singles and a pair
    assert seating.sides[:2] == ("1v1v2", "2v1v1")
    singles = seating.learner[::2]
    assert not singles[:, 1:3].any()
    assert singles[:, 0].float().mean().item() == pytest.approx(0.5, abs=0.075)  # 3 * sqrt(0.25 / 400)


def test_all_games_may_be_mirrored() -> None:
    seating = TeamAssignment(_with_teams(3, (0, 1)), seed=0, mirrored=3)
    assert seating.learner.all()
    _check_indices(seating, 6)


@pytest.mark.parametrize(("teams", "fault"), [((0, 0), "2 seats in one team"), ((0,), "one seat")])
def test_teams_that_cannot_meet_are_refused(teams: tuple[int, ...], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        TeamAssignment(_with_teams(4, teams), seed=0)
