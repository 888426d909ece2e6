"""The three action spaces: what they offer, how they are decoded, what is clamped, and the input delay."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ludus.core.errors import ActionError
from ludus.envs.registry import make_env
from ludus.worlds.rocket.actions import action_table
from ludus.worlds.rocket.env import RocketEnv
from ludus.worlds.rocket.rules import Control

if TYPE_CHECKING:
    from tests.worlds.rocket.conftest import MakePitch

KEYS = {
    Control.THROTTLE: "throttle",
    Control.STEER: "steer",
    Control.PITCH: "pitch",
    Control.YAW: "yaw",
    Control.ROLL: "roll",
    Control.JUMP: "jump",
    Control.BOOST: "boost_key",
    Control.HANDBRAKE: "handbrake",
}


def pressed(env: RocketEnv) -> Tensor:
    """Returns the controls `(games, seats, 8)` that the cars had in the last tick."""
    fields = env.fields()
    return torch.stack([fields[KEYS[control]].float() for control in Control], -1)


def rocket(games: int, **settings: Any) -> RocketEnv:
    env = make_env("rocket", games, config={"threads": 1} | settings)
    assert isinstance(env, RocketEnv)
    return env


def test_the_table_has_ninety_different_useful_rows() -> None:
    table = action_table()
    assert table.shape == (90, 8)
    assert len({tuple(row) for row in table.tolist()}) == 90
    ground, air = table[:24], table[24:]
    assert (ground[:, [Control.PITCH, Control.ROLL, Control.JUMP]] == 0).all()
    assert (ground[:, Control.YAW] == ground[:, Control.STEER]).all()
    assert (ground[ground[:, Control.BOOST] == 1][:, Control.THROTTLE] == 1).all()
    assert (air[air[:, Control.JUMP] == 1][:, Control.YAW] == 0).all()
    assert (air[:, Control.THROTTLE] == air[:, Control.BOOST]).all()
    assert set(np.unique(table[:, :5])) == {-1.0, 0.0, 1.0}
    assert set(np.unique(table[:, 5:])) == {0.0, 1.0}
    # By hand: the ground's rows go from reverse and left to forward and right with boost and slide; the air begins with
    # the nose down, all to the left, nothing pressed.
    assert ground[0].tolist() == [-1, -1, 0, -1, 0, 0, 0, 0]
    assert ground[-1].tolist() == [1, 1, 0, 1, 0, 0, 1, 1]
    assert air[0].tolist() == [0, -1, -1, -1, -1, 0, 0, 0]


def test_the_table_is_what_cars_get() -> None:
    env = rocket(90)
    actions = torch.arange(90).unsqueeze(1).expand(90, 2)
    env.step(actions.contiguous())
    assert torch.equal(pressed(env)[:, 0], torch.from_numpy(action_table()))
    assert torch.equal(pressed(env)[:, 1], torch.from_numpy(action_table()))


def test_continuous_controls_are_clamped_and_nan_is_nothing() -> None:
    env = rocket(1, actions="continuous")
    nan, inf = float("nan"), float("inf")
    env.step(
        torch.tensor([[[1.5, -7.0, inf, -inf, nan, nan, 1e-6, 0.0], [0.25, -0.5, 0.0, 1.0, -1.0, -1.0, 0.3, inf]]])
    )
    first, second = pressed(env)[0].tolist()
    assert first == [1.0, -1.0, 1.0, -1.0, 0.0, 0.0, 1.0, 0.0]
    assert second == [0.25, -0.5, 0.0, 1.0, -1.0, 0.0, 1.0, 1.0]
    assert torch.isfinite(env.step(torch.full((1, 2, 8), nan)).observations["vector"]).all()


def test_numbers_outside_a_discrete_space_count_as_the_nearest() -> None:
    env = rocket(1)
    env.step(torch.tensor([[-5, 2**40]]))
    assert torch.equal(pressed(env)[0], torch.from_numpy(action_table()[[0, 89]]))


def test_both_types_of_whole_numbers_and_strided_tensors_mean_the_same() -> None:
    env, other = rocket(2), rocket(2)
    drawn = torch.randint(0, 2, (2, 2), generator=torch.Generator().manual_seed(3))
    env.step(drawn)
    other.step(drawn.to(torch.int32))
    assert torch.equal(env.cars, other.cars)
    strided = torch.stack([drawn, drawn], -1)[..., 0]
    env.step(drawn)
    other.step(strided)
    assert torch.equal(env.cars, other.cars)


def test_wrong_actions_are_refused() -> None:
    env = rocket(1)
    with pytest.raises(ActionError, match=r"\(1, 2\)"):
        env.step(torch.zeros((1, 3), dtype=torch.int64))
    with pytest.raises(ActionError, match=r"torch\.int64"):
        env.step(torch.zeros((1, 2)))


def test_delayed_controls_hold_from_the_decision_before(make_pitch: "MakePitch") -> None:
    speeds = []
    for delay in (0, 3, 8):
        pitch = make_pitch(input_delay_ticks=delay)
        pitch.step(steps=2)
        pitch.step({"throttle": 1.0})
        now = float(pitch.cars["velocity"][0, 0].norm())
        pitch.step({})
        speeds.append((now, float(pitch.cars["velocity"][0, 0].norm())))
    (at_once, after), (late, late_after), (next_one, next_after) = speeds
    assert at_once > late > 1.0  # it had 5 of 8 ticks to accelerate
    assert late == pytest.approx(at_once * 5 / 8, rel=0.1)
    assert next_one == pytest.approx(0.0, abs=1.0)
    assert after < at_once  # it coasts
    assert late_after > late * 0.9  # three more ticks of throttle, then it coasts
    assert next_after == pytest.approx(at_once, rel=0.02)  # all of it a decision later
