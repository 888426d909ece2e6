"""State setters: every scene is valid, each is what its name says, and mixtures follow their weights."""

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch import Tensor

from ludus.worlds.rocket.kernels.structs import setter_bounds
from ludus.worlds.rocket.layout import KICKOFFS
from ludus.worlds.rocket.rules import BALL_REST_Z, CAR_REST_Z, GOAL_HALF_WIDTH, SETTERS, Setter

if TYPE_CHECKING:
    from tests.worlds.rocket.conftest import MakePitch, Pitch

GAMES = 512


def forward(rotation: Tensor) -> Tensor:
    """Returns where the noses `(..., 3)` of cars with these rotations `(..., 4)` point."""
    x, y, z, w = rotation.unbind(-1)
    return torch.stack([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)], -1)


def assert_valid(pitch: "Pitch") -> None:
    """No car or ball in a wall or in another one, nothing faster than it may be."""
    cars, ball = pitch.cars, pitch.ball
    for position, radius in ((cars["position"], 16.9), (ball["position"].unsqueeze(1), BALL_REST_Z - 0.1)):
        x, y, z = position[..., 0].abs(), position[..., 1].abs(), position[..., 2]
        assert (x <= 4096 - radius).all()
        assert (y <= 5120 - radius).all()
        assert (x + y <= 8064 - 2**0.5 * radius).all()
        assert (z >= radius).all()
        assert (z <= 2044 - radius).all()
    everything = torch.cat([cars["position"], ball["position"].unsqueeze(1)], 1)
    apart = torch.cdist(everything, everything) + 1e6 * torch.eye(everything.shape[1])
    assert apart.min() > 219.0
    assert (cars["velocity"].norm(dim=-1) <= 2300).all()
    assert (ball["velocity"].norm(dim=-1) <= 6000).all()
    assert (cars["spin"].norm(dim=-1) <= 5.5).all()
    assert (cars["rotation"].norm(dim=-1) - 1).abs().max() < 1e-5
    assert ((cars["boost"] >= 0) & (cars["boost"] <= 100)).all()


@pytest.mark.parametrize("setter", SETTERS)
@pytest.mark.parametrize("mode", ["1v1", "3v3", "1v2"])
def test_scenes_are_valid(make_pitch: "MakePitch", setter: str, mode: str) -> None:
    pitch = make_pitch(GAMES, mode=mode, setters={setter: 1.0}, episode_s=0.05)
    for _ in range(3):
        assert pitch.match["setter"].tolist() == [Setter[setter.upper()]] * GAMES
        assert_valid(pitch)
        before = pitch.cars["position"].clone()
        result = pitch.step()  # ends the episode: every step begins a new scene
        assert result.ended.all()
        moved = (result.state_metrics["z"] - before[..., 2]).abs()
        assert moved.max() < 120.0  # nothing is thrown out of a wall
        assert not torch.equal(before, pitch.cars["position"])


def test_kickoffs_are_fair_and_use_all_slots(make_pitch: "MakePitch") -> None:
    pitch = make_pitch(GAMES, mode="2v2")
    position, rotation = pitch.cars["position"], pitch.cars["rotation"]
    assert torch.equal(position[:, 2:, :2], -position[:, :2, :2])
    assert torch.allclose(forward(rotation[:, 2:])[..., :2], -forward(rotation[:, :2])[..., :2], atol=1e-6)
    assert (position[..., 2] == CAR_REST_Z).all()
    assert (pitch.ball["asleep"] == 1).all()
    slots = [(x, y) for x, y, _ in KICKOFFS]
    taken = [[slots.index((x, y)) for x, y in game] for game in position[:, :2, :2].tolist()]
    assert {tuple(pair) for pair in taken} == {(a, b) for a in range(5) for b in range(5) if a != b}
    heading = KICKOFFS[1][2]
    game = next(i for i, pair in enumerate(taken) if pair[0] == 1)
    assert forward(rotation[game, 0]).tolist() == pytest.approx([np.cos(heading), np.sin(heading), 0.0], abs=1e-6)


def attackers_first(pitch: "Pitch") -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns position and velocity of the ball and position of the attacking and the other car, seen as the attacker.

    The attacker of one against one is the one whose own goal is farther from the way of the ball; here: who looks at
    the ball from the side of its own goal.
    """
    side = torch.where(pitch.ball["velocity"][:, 1] > 0, 1.0, -1.0).unsqueeze(1)
    turn = torch.cat([side, side, torch.ones_like(side)], 1)
    attacker = torch.where(side[:, 0] > 0, 0, 1)
    rows = torch.arange(pitch.env.num_envs)
    cars = pitch.cars["position"]
    return (
        pitch.ball["position"] * turn,
        pitch.ball["velocity"] * turn,
        cars[rows, attacker] * turn,
        cars[rows, 1 - attacker] * turn,
    )


def test_a_goalie_faces_a_shot(make_pitch: "MakePitch") -> None:
    pitch = make_pitch(GAMES, setters={"goalie": 1.0})
    ball, velocity, attacker, keeper = attackers_first(pitch)
    arrival = (5120 - ball[:, 1]) / velocity[:, 1]
    assert ((ball + velocity * arrival.unsqueeze(1))[:, 0].abs() < GOAL_HALF_WIDTH).all()
    assert (arrival < 4.0).all()
    assert (keeper[:, 1] > 4000).all()
    assert (attacker[:, 1] < ball[:, 1]).float().mean() > 0.95
    blue_attacks = (pitch.ball["velocity"][:, 1] > 0).float().mean()
    assert 0.4 < blue_attacks < 0.6
    goals = torch.zeros(GAMES, dtype=torch.bool)
    for _ in range(45):
        goals |= pitch.step().terminated
    assert goals.float().mean() > 0.5  # nobody moves: most of the shots go in


def test_a_shooter_is_behind_the_ball(make_pitch: "MakePitch") -> None:
    pitch = make_pitch(GAMES, setters={"shooter": 1.0})
    cars, ball = pitch.cars["position"], pitch.ball["position"]
    near = (cars - ball.unsqueeze(1)).norm(dim=-1)
    assert (near.min(1).values < 2200).all()
    nose = forward(pitch.cars["rotation"])
    way = torch.nn.functional.normalize((ball.unsqueeze(1) - cars)[..., :2], dim=-1)
    assert ((nose[..., :2] * way).sum(-1) > 0.999).all()  # all look at the ball


def test_aerials_and_walls_and_recoveries_are_off_the_floor(make_pitch: "MakePitch") -> None:
    pitch = make_pitch(GAMES, setters={"aerial": 1.0})
    assert (pitch.ball["position"][:, 2] >= 600).all()
    assert 0.3 < (pitch.cars["position"][..., 2].max(1).values > 100).float().mean() < 0.7
    pitch = make_pitch(GAMES, setters={"wall": 1.0})
    assert (pitch.ball["position"][:, 0].abs() > 3800).all()
    on_wall = pitch.cars["position"][..., 0].abs() > 4000
    assert 0.3 < on_wall.any(1).float().mean() < 0.7
    pitch.step()
    assert (pitch.cars["on_ground"][on_wall] == 1).float().mean() > 0.9  # their wheels hold the wall
    pitch = make_pitch(GAMES, setters={"recovery": 1.0})
    assert (pitch.cars["position"][..., 2] >= 300).all()
    assert (pitch.cars["boost"] <= 30).all()


def test_scenes_have_no_side(make_pitch: "MakePitch") -> None:
    pitch = make_pitch(4096, setters={"random": 1.0})
    for values in (pitch.ball["position"][:, :2], pitch.cars["position"][..., :2].flatten(0, 1)):
        spread = values.std(0) / len(values) ** 0.5
        assert (values.mean(0).abs() < 4 * spread).all()


def test_mixtures_follow_their_weights(make_pitch: "MakePitch") -> None:
    pitch = make_pitch(4096, setters={"kickoff": 1, "random": 2.0, "wall": 1.0, "aerial": 0.0})
    shares = torch.bincount(pitch.match["setter"].long(), minlength=len(SETTERS)) / 4096
    expected = {Setter.KICKOFF: 0.25, Setter.RANDOM: 0.5, Setter.WALL: 0.25}
    for setter in Setter:
        assert float(shares[setter]) == pytest.approx(expected.get(setter, 0.0), abs=0.03)
    assert (pitch.match["kickoff"] == (pitch.match["setter"] == 0)).all()


def test_bounds_of_weights() -> None:
    assert setter_bounds({"random": 3, "kickoff": 1}).tolist() == [0.25] + [2.0] * 6
    assert setter_bounds({"recovery": 0.1}).tolist() == [0.0] * 6 + [2.0]
