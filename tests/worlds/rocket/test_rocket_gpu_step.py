"""A decision taken apart for a GPU, played on the CPU: the same bits as in one kernel; and what counts as alike."""

from typing import Any

import pytest
import torch

from ludus.envs.registry import make_env
from ludus.envs.warp_tools import struct_views
from ludus.worlds.rocket import env as env_module
from ludus.worlds.rocket.bots import BOT_NAMES
from ludus.worlds.rocket.env import RocketEnv
from ludus.worlds.rocket.kernels.structs import Ball
from ludus.worlds.rocket.rules import SETTERS

pytestmark = pytest.mark.compile

GAMES = 60
SETTINGS: dict[str, dict[str, Any]] = {
    "goals": {"mode": "2v2", "setters": dict.fromkeys(SETTERS, 1.0), "no_touch_s": 6.0, "input_delay_ticks": 3},
    "matches": {"mode": "1v2", "episode": "match", "match_s": 12.0},
    "seldom": {"mode": "3v3", "ticks": 24, "setters": {"random": 1.0}},
    "late": {"episode_s": 9.0, "setters": {"random": 1.0}, "input_delay_ticks": 8},
}


def rocket(settings: dict[str, Any]) -> RocketEnv:
    env = make_env("rocket", GAMES, seed=12, config=settings)
    assert isinstance(env, RocketEnv)
    return env


@pytest.mark.parametrize("name", SETTINGS)
def test_a_decision_taken_apart_gives_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rocket(SETTINGS[name])
    monkeypatch.setattr(env_module, "runs_in_lockstep", lambda _: True)
    apart = rocket(SETTINGS[name])
    rosters = [env.bots(BOT_NAMES) for env in (whole, apart)]
    seats = torch.arange(GAMES * whole.spec.seats, dtype=torch.int32).view(GAMES, -1)
    assignment = (seats * 5 + seats // 13) % len(BOT_NAMES)
    ended, apart_games, met_games = 0, 0, 0
    for step in range(200):
        results = []
        for env, roster in zip((whole, apart), rosters, strict=True):
            actions = torch.zeros((GAMES, env.spec.seats), dtype=torch.int64)
            roster.act(assignment, actions)
            results.append(env.step(actions))
        for key, tensor in whole.snapshot().items():
            assert torch.equal(tensor, apart.snapshot()[key]), (step, key)
        one, other = results
        assert torch.equal(one.observations["vector"], other.observations["vector"]), step
        assert torch.equal(one.terminated, other.terminated), step
        assert torch.equal(one.truncated, other.truncated), step
        assert all(torch.equal(one.events[key], other.events[key]) for key in one.events), step
        assert all(torch.equal(one.state_metrics[key], other.state_metrics[key]) for key in one.state_metrics), step
        ended += int((one.terminated | one.truncated).sum())
        assert apart._gpu is not None
        meet = apart._gpu._of_games > 0
        met_games += int(meet.sum())
        apart_games += int((~meet).sum())
        assert (one.events["touches"][~meet] == 0.0).all(), step
    assert ended > 0
    assert met_games > 0
    assert apart_games > 0


def test_who_can_meet_others_in_a_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env_module, "runs_in_lockstep", lambda _: True)
    env = rocket({"setters": {"kickoff": 1.0}})
    fields, ball = env.fields(), struct_views(env.balls, Ball)
    ball["position"][:] = torch.tensor([0.0, 0.0, 1500.0])
    fields["position"][:, 0] = torch.tensor([3000.0, -3000.0, 17.0])
    fields["position"][:, 1] = torch.tensor([-3000.0, 3000.0, 17.0])
    ball["position"][1] = torch.tensor([2750.0, -3000.0, 100.0])  # 264 from a car
    ball["position"][2] = torch.tensor([2300.0, -3000.0, 100.0])  # 705 from it, but fast
    ball["velocity"][2] = torch.tensor([5900.0, 0.0, 0.0])
    ball["position"][3] = torch.tensor([2300.0, -3000.0, 100.0])  # as far, and slow
    fields["position"][4, 1] = torch.tensor([2500.0, -3000.0, 17.0])  # a car beside the other
    fields["demolished_s"][5, 0] = 2.0
    env.step(torch.zeros((GAMES, 2), dtype=torch.int64))
    assert env._gpu is not None
    assert env._gpu._of_games[:7].tolist() == [0, 1, 1, 0, 2, 2, 0]


def test_cars_that_are_alike_are_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env_module, "runs_in_lockstep", lambda _: True)
    env = rocket({"setters": {"kickoff": 1.0}})
    fields = env.fields()
    fields["position"][1::3, :, 2] = 900.0  # every third game in the air, every third on its roof
    fields["position"][2::3, :, 2] = 38.0
    fields["rotation"][2::3] = torch.tensor([1.0, 0.0, 0.0, 0.0])
    fields["wheels"][1::3] = fields["wheels"][2::3] = 0
    env.step(torch.zeros((GAMES, 2), dtype=torch.int64))
    assert env._gpu is not None
    games = env._gpu._car_order // 2
    assert sorted(env._gpu._car_order.tolist()) == list(range(2 * GAMES))
    assert (games[:40] % 3 == 1).all()
    assert (games[40:80] % 3 == 0).all()
    assert (games[80:] % 3 == 2).all()
