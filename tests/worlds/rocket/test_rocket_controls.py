"""Tests of driving with a keyboard: keys become controls, controls the nearest action of every action space."""

import numpy as np
import pytest
import torch

from ludus.core.errors import UnsupportedError
from ludus.envs import make_env
from ludus.worlds.rocket.actions import action_table
from ludus.worlds.rocket.config import RocketConfig
from ludus.worlds.rocket.display import DISPLAY, DRIVING, DrivingKeyboard, action_of, held_controls
from ludus.worlds.rocket.env import RocketEnv
from ludus.worlds.rocket.rendering.camera import Camera


def test_keys_become_controls() -> None:
    # throttle, steer, pitch, yaw, roll, jump, boost, handbrake
    assert held_controls({"w"}).tolist() == [1, 0, -1, 0, 0, 0, 0, 0]
    assert held_controls({"s", "d", "q"}).tolist() == [-1, 1, 1, 1, -1, 0, 0, 0]
    assert held_controls({"up", "left", "right shift"}).tolist() == [1, -1, -1, -1, 0, 0, 1, 0]
    assert held_controls({"space", "p", "f5"}).tolist() == [0, 0, 0, 0, 0, 1, 0, 0]
    assert held_controls({"left shift"}).tolist() == [1, 0, 0, 0, 0, 0, 1, 0]  # boost drives by itself
    assert held_controls({"x", "a"}).tolist() == [0, -1, 0, 0, -1, 0, 0, 1]  # sliding keys roll in the air
    assert held_controls({"w", "s", "a", "d"}).tolist() == [0] * 8
    assert held_controls(()).tolist() == [0] * 8


def test_no_key_does_two_things_and_every_key_is_explained() -> None:
    names = [name for keys in DRIVING for name in keys.names]
    assert len(names) == len(set(names))
    assert not {"p", "r", "c", "escape"} & set(names)  # the window's own
    assert [key.name for key in DISPLAY.keys][:3] == ["w or up", "s or down", "a or left"]


def test_continuous_actions_are_the_controls() -> None:
    controls = held_controls({"w", "a", "space"})
    plain = action_of(controls, RocketConfig(actions="continuous"), on_ground=True)
    assert plain.tolist() == [1, -1, -1, -1, 0, 1, -1, -1]  # buttons are pressed above 0
    assert plain.dtype == torch.float32


@pytest.mark.parametrize(
    ("held", "on_ground", "expected"),
    [
        ({"w"}, True, (1, 0, 0, 0, 0, 0, 0, 0)),
        ({"s", "d"}, True, (-1, 1, 0, 1, 0, 0, 0, 0)),
        ({"w", "a", "left shift"}, True, (1, -1, 0, -1, 0, 0, 1, 0)),
        ({"w", "d", "x"}, True, (1, 1, 0, 1, 0, 0, 0, 1)),
        ((), True, (0, 0, 0, 0, 0, 0, 0, 0)),
        ({"space"}, True, (0, 0, 0, 0, 0, 1, 0, 0)),
        ({"s"}, False, (0, 0, 1, 0, 0, 0, 0, 0)),  # nose up
        ({"s", "left shift"}, False, (1, 0, 1, 0, 0, 0, 1, 0)),
        ({"e"}, False, (0, 0, 0, 0, 1, 0, 0, 0)),
        ({"space", "w"}, False, (0, 0, -1, 0, 0, 1, 0, 1)),  # a dodge forward
    ],
)
def test_the_nearest_row_of_the_table(held: set[str], on_ground: bool, expected: tuple[int, ...]) -> None:
    action = action_of(held_controls(held), RocketConfig(actions="table"), on_ground=on_ground)
    assert action.dtype == torch.int64
    row = action_table()[int(action)].tolist()
    matters = (0, 1, 5, 6, 7) if on_ground else range(8)  # on the ground nothing turns in the air
    assert [row[control] for control in matters] == [expected[control] for control in matters]


@pytest.mark.parametrize("actions", ["continuous", "table"])
@pytest.mark.parametrize("seat", [0, 1])
def test_d_turns_to_the_right_as_the_driver_sees_it(actions: str, seat: int) -> None:
    with make_env("rocket", seed=4, config={"actions": actions, "threads": 1}) as env:
        assert isinstance(env, RocketEnv)
        keyboard = DrivingKeyboard(env, seat)
        start = env.view(0).cars[seat]
        space = env.spec.action_space
        idle = torch.zeros((1, 2, *(space.shape or ())), dtype=keyboard.action(()).dtype)
        for _ in range(12):
            idle[0, :] = keyboard.action(())
            idle[0, seat] = keyboard.action({"w", "d"})
            env.step(idle)
        end = env.view(0).cars[seat]
    way = np.array(end.velocity)
    start_way = -np.array(start.position) * (1.0, 1.0, 0.0)  # kickoffs face the middle
    behind = Camera(np.array(start.position) - start_way, np.array(start.position) + start_way, (1280, 720), 90.0)
    seen = behind.pixel(end.position)
    assert np.linalg.norm(way) > 300.0
    assert seen is not None
    assert seen[0] > 645.0


def test_another_world_is_refused() -> None:
    with make_env("rps") as env, pytest.raises(UnsupportedError, match="rps-v1"):
        DrivingKeyboard(env, 0)
