"""Tests of playing Brawl with a keyboard: screen directions are what the fighter does, on either side."""

import pytest
import torch

from ludus.envs import make_env
from ludus.worlds.brawl.display import CONTROLS, keyboard_action, sees_mirrored
from ludus.worlds.brawl.env import BrawlEnv
from ludus.worlds.brawl.rules import Key


def test_every_key_of_the_game_has_one_control() -> None:
    assert [control.key for control in CONTROLS] == list(Key)
    names = [control.name for control in CONTROLS]
    assert names == ["w", "a", "s", "d", "space", "h", "l", "j", "k", "g"]


def test_keys_become_an_action_and_a_mirrored_view_swaps_left_and_right() -> None:
    plain = keyboard_action({"d", "space", "q"}, mirrored=False)
    assert plain.dtype == torch.int8
    assert plain.tolist() == [0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
    assert keyboard_action({"d", "space"}, mirrored=True).tolist() == [0, 1, 0, 0, 1, 0, 0, 0, 0, 0]
    assert keyboard_action({"a"}, mirrored=True).tolist() == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    assert keyboard_action((), mirrored=True).sum() == 0


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("swap_sides", [False, True])
def test_d_goes_right_on_the_screen_for_both_seats(swap_sides: bool, mirrored: bool) -> None:
    with make_env("brawl", seed=4, config={"swap_sides": swap_sides, "mirrored": mirrored}) as env:
        assert isinstance(env, BrawlEnv)
        for _ in range(40):  # land first
            env.step(torch.zeros((1, 2, 10), dtype=torch.int8))
        before = [player.x for player in env.view(0).players]
        actions = [keyboard_action({"d"}, mirrored=sees_mirrored(env, 0, seat)) for seat in (0, 1)]
        for _ in range(5):
            env.step(torch.stack(actions).unsqueeze(0))
        after = [player.x for player in env.view(0).players]
    assert all(new > old + 0.4 for old, new in zip(before, after, strict=True))
