"""Families of bots, `habits`: names, what each family does, and sets of matches."""

from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.envs.bots import is_bot
from ludus.worlds.brawl.bots import parse_bot
from ludus.worlds.brawl.kernels.bot_styles import FAMILIES
from ludus.worlds.brawl.kernels.bots import DRAWN, HABITS
from ludus.worlds.brawl.rules import Key

if TYPE_CHECKING:
    from tests.worlds.brawl.conftest import MakeStage, Stage

FRAMES = 400


def key_shares(stage: "Stage", name: str, matches: int = 1, in_a_set: int = 1) -> Tensor:
    """Returns how often `(matches, games, seats, 10)` a bot that plays against `aggressive` holds each key."""
    env = stage.env
    env.play_sets(in_a_set)
    env.reset(seed=3)
    bots = env.bots([name, "aggressive:noise=0"])
    assignment = torch.tensor([[0, 1]], dtype=torch.int32).repeat(env.num_envs, 1)
    actions = torch.zeros((env.num_envs, 2, 10), dtype=torch.int8)
    shares = torch.zeros(matches, env.num_envs, 2, 10)
    for match in range(matches):
        for _ in range(FRAMES):
            bots.act(assignment, actions)
            shares[match] += actions
            env.step(actions)
    return shares / FRAMES


def test_names() -> None:
    drawn = parse_bot("habits")
    assert (drawn.style, drawn.family, drawn.delay, drawn.noise) == (HABITS, DRAWN, DRAWN, DRAWN)
    fixed = parse_bot("habits:family=3,delay=2,noise=0")
    assert (fixed.family, fixed.delay, fixed.noise) == (3, 2, 0.0)
    with pytest.raises(ConfigError, match=f"family must be a number from 0 to {FAMILIES - 1}, got '8'"):
        parse_bot("habits:family=8")
    with pytest.raises(ConfigError, match=r"script.*family"):
        parse_bot("habits:script=x.yaml")
    with pytest.raises(UnknownNameError, match="habits"):
        parse_bot("habit")


def test_they_play_where_they_are_named_and_not_among_all_bots(make_stage: "MakeStage") -> None:
    spec = make_stage(1).env.spec
    assert "habits" not in spec.bots
    assert is_bot("habits:family=1", spec)


def test_families_fight_as_their_traits_say(make_stage: "MakeStage") -> None:
    """From the air or not, with heavy or light blows; patient ones strike less."""
    stage = make_stage(96, weapon_spawns=True, move_table=None, stocks=99, step_limit=100_000)
    shares = [key_shares(stage, f"habits:family={family}")[0, :, 0].mean(0) for family in range(FAMILIES)]
    for family in range(FAMILIES):
        heavy, light = shares[family][Key.HEAVY], shares[family][Key.LIGHT]
        assert (heavy > light) == bool(family & 2), family
    for family in range(0, FAMILIES, 2):
        assert shares[family + 1][Key.JUMP] > shares[family][Key.JUMP], family
    blows = [float(share[Key.HEAVY] + share[Key.LIGHT]) for share in shares]
    assert sum(blows[4:]) < sum(blows[:4])


def test_habits_last_for_a_match_or_a_set(make_stage: "MakeStage") -> None:
    """By the keys of four matches of each game: the first two and the last two are alike if they are sets."""
    stage = make_stage(96, weapon_spawns=True, move_table=None, stocks=99, step_limit=FRAMES)
    ratios = []
    for in_a_set in (1, 2):
        shares = key_shares(stage, "habits", matches=4, in_a_set=in_a_set)[:, :, 0]
        within = (shares[0] - shares[1]).abs().mean() + (shares[2] - shares[3]).abs().mean()
        between = (shares[1] - shares[2]).abs().mean() + (shares[0] - shares[3]).abs().mean()
        ratios.append(float(within / between))
    assert ratios[0] > 0.9
    assert ratios[1] < 0.8


def test_a_match_is_a_function_of_its_seed(make_stage: "MakeStage") -> None:
    stages = [make_stage(32, weapon_spawns=True, move_table=None, step_limit=FRAMES) for _ in range(2)]
    one, other = (key_shares(stage, "habits") for stage in stages)
    assert torch.equal(one, other)
    assert not torch.equal(one, key_shares(stages[0], "habits:delay=0,noise=0"))
    assert len(set(map(tuple, one[0, :, 0].tolist()))) == 32  # every game has a bot of its own
