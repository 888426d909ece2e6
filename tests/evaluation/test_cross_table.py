"""The cross table of bots: sums and means of the first match of every game, for all seats."""

import pytest
import torch
from benchmarks.cross_table import play_cross_table

from ludus.core.errors import ConfigError


def test_scores_sums_and_means_by_hand() -> None:
    table = play_cross_table("duel", ("rock", "cycle"), 3, config={"rounds": 2})
    assert table.names == ("rock", "cycle")
    assert table.steps.tolist() == [[[2.0] * 3] * 2] * 2
    # The cycle plays rock, then paper: against rock it wins the second round, against itself it draws.
    assert table.scores().tolist() == [[[0.5] * 3, [0.0] * 3], [[1.0] * 3, [0.5] * 3]]
    assert table.events["reward"][0, 1].tolist() == [[-1.0, 1.0]] * 3
    assert (
        table.state_metrics["lead"][0, 1].tolist() == [[-0.5, 0.5]] * 3
    )  # 0 after the first round, 1 after the second
    assert torch.equal(table.events["reward"][1, 0], table.events["reward"][0, 1].flip(1))


def test_a_bot_plays_all_seats_of_its_team() -> None:
    table = play_cross_table("tug", ("strong", "idle"), 2, config={"blue": 2, "orange": 1})
    assert table.events["wins"].shape == (2, 2, 2, 3)
    assert table.scores()[0, 1].tolist() == [1.0, 1.0]
    assert table.scores()[1, 0].tolist() == [0.0, 0.0]
    assert table.events["wins"][0, 1].tolist() == [[1.0, 1.0, 0.0]] * 2


def test_a_table_needs_two_teams_and_matches() -> None:
    with pytest.raises(ConfigError, match="rps-v1 has 1"):
        play_cross_table("rps", ("rock",), 1)
    with pytest.raises(ConfigError, match=r"matches.*got 0"):
        play_cross_table("duel", ("rock",), 0)
