"""Several motions in one environment: commands, transitions, curves, ways that do not go ahead, and their mirror."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from ludus.core.errors import ConfigError, UnsupportedError
from ludus.envs.base import EnvRequest
from ludus.envs.check import CheckOptions, run_checks
from ludus.worlds.mimic.browser import describe
from ludus.worlds.mimic.env import MimicEnv
from ludus.worlds.mimic.metrics import METRICS

pytestmark = pytest.mark.train

TWO = ("walk", "stand")
SIDES = ("side-left", "walk", "side-right")


def make(walkers: int = 4, seed: int = 3, first_game: int = 0, **config: Any) -> MimicEnv:
    return MimicEnv(EnvRequest(walkers, "cpu", seed, first_game, {"threads": 1, **config}))


def still(env: MimicEnv) -> torch.Tensor:
    return torch.zeros(env.num_envs, 1, len(env.walker.joints))


def test_one_motion_goes_over_into_another_while_the_stride_goes_on() -> None:
    with make(
        8, motions=TWO, mirror=False, speed_change_s=0.1, start_noise=0.0, largest_tilt_deg=120.0, lowest_height=0.2
    ) as env:
        env.reset()
        first = env._state["motion"].clone()
        changed = torch.zeros(8, dtype=torch.bool)
        for _ in range(60):
            env.step(still(env))
            state, (walk, stand) = env._state, env.reference.parts
            changed |= state["motion"] != first
            blend = state["blend"]
            assert torch.equal(blend < 1.0, (state["previous"] != state["motion"]) & (blend < 1.0))
            for game in range(8):
                rows = [
                    env.reference.rows(state["speed"][game : game + 1], state["phase"][game : game + 1], motion)
                    for motion in (state["previous"][game : game + 1], state["motion"][game : game + 1])
                ]
                share = float(blend[game])
                torch.testing.assert_close(env._rows[game], ((1.0 - share) * rows[0] + share * rows[1])[0])
        assert (walk.name, stand.name) == TWO
        assert stand.speeds == (0.0, 0.0)
        assert bool(changed.any())
        shares = env._observe()["vector"][:, 0, -2:]
        torch.testing.assert_close(shares.sum(1), torch.ones(8))
        assert env.spec.fields["vector"][-2:] == ("motion.walk", "motion.stand")


def test_a_transition_takes_eighty_steps_and_no_other_begins_meanwhile() -> None:
    with make(1, motions=TWO, mirror=False, command=None, speed_change_s=0.0, starts="fixed") as env:
        env.reset()
        env._switch(torch.ones(1, dtype=torch.bool), torch.tensor([0.75]))  # the second of two
        assert (int(env._state["previous"]), int(env._state["motion"]), float(env._state["blend"])) == (0, 1, 0.0)
        blends = []
        for _ in range(81):
            env._move_reference()
            blends.append(float(env._state["blend"]))
        assert blends[39] == pytest.approx(0.5, abs=1e-5)
        assert blends[78] < 1.0
        assert blends[80] == 1.0


def test_a_command_never_changes_and_has_its_own_speeds() -> None:
    with make(6, motions=("walk", "march"), command="march", speed_change_s=0.05) as env:
        env.reset()
        for _ in range(30):
            result = env.step(still(env))
            desired = result.state_metrics["desired"]
            assert float(desired.min()) >= 0.72 - 1e-6
            assert float(desired.max()) <= 1.08 + 1e-6
        assert env._state["motion"].tolist() == [1.0] * 6


def test_fixed_starts_take_turns_with_the_motions() -> None:
    with make(6, motions=("walk", "march", "stand"), mirror=False, starts="fixed") as env:
        env.reset()
        assert env._state["motion"].tolist() == [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("name", "way"), [("backward", (-1.0, 0.0)), ("side-left", (0.0, 1.0)), ("side-right", (0.0, -1.0))]
)
def test_distance_and_speed_are_those_along_the_way(name: str, way: tuple[float, float]) -> None:
    with make(64, motion=name, mirror=False, start_noise=0.0, speed_change_s=0.0) as env:
        env.reset()
        assert env.ways[0].tolist() == pytest.approx(way, abs=1e-9)
        before = torch.from_numpy(env._host.positions[:, :2].copy())
        result = env.step(still(env))
        moved = (torch.from_numpy(env._host.positions[:, :2]) - before).float()
        travelled = moved @ torch.tensor(way)
        torch.testing.assert_close(result.events["distance"][:, 0], travelled, rtol=0.0, atol=1e-6)
        assert float(travelled.mean()) * 100.0 == pytest.approx(float(result.state_metrics["desired"].mean()), rel=0.2)


def test_turning_walkers_turns_where_they_face_and_where_they_go() -> None:
    with make(1, start_noise=0.0) as env:
        env.reset()
        host = env._host
        host.positions[0, 3:7] = (1.0, 0.0, 0.0, 0.0)
        host.velocities[0, :6] = (1.0, 0.0, 0.2, 0.3, 0.4, 0.5)
        host.turn(np.array([math.pi / 2.0]))
        assert host.positions[0, 3:7] == pytest.approx((math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)))
        assert host.velocities[0, :6] == pytest.approx((0.0, 1.0, 0.2, 0.3, 0.4, 0.5))  # rates are about its own axes


def test_a_curve_is_followed_by_facing_ahead_in_a_world_that_turns() -> None:
    """A body at rest turns by -35 degrees per second for its policy; the reference faces ahead and turns at +35."""
    with make(1, walker="walker-13", motion="turn-left", mirror=False, start_noise=0.0) as env:
        env.reset()
        assert float(env.turns[0]) == pytest.approx(math.radians(0.35))
        frames = env.reference.at(torch.full((128,), 0.77), torch.arange(128) / 128)
        assert float(frames.root[:, 3].mean()) == pytest.approx(0.0, abs=1e-3)
        assert float(frames.root_velocity[:, 5].mean()) == pytest.approx(math.radians(35.0), rel=1e-3)
        assert float(frames.root_velocity[:, 1].mean()) == pytest.approx(0.0, abs=0.02)
        yaw = env._observe()["vector"][0, 0, 7]
        turned, rate = env._turned(), env.spec.rate_hz
        assert turned is not None
        env._turn(turned.double())
        later = env._observe()["vector"][0, 0, 7]
        assert float(later - yaw) * rate == pytest.approx(-math.radians(35.0), rel=1e-3)


def test_the_mirror_image_of_a_motion_is_its_twin() -> None:
    with make(1, motions=SIDES, mirror=False) as env:
        mirror = env.spec.mirror
        assert mirror is not None
        told = len(env.spec.fields["vector"]) - 3
        assert mirror.observations["vector"].source[told:] == (told + 2, told + 1, told)
        assert mirror.observations["vector"].sign[told:] == (1.0, 1.0, 1.0)
    with make(1, motion="side-left", mirror=False) as env:
        assert env.spec.mirror is None


def test_it_passes_the_conformance_kit() -> None:
    def maker(num_envs: int, seed: int, first_game: int) -> MimicEnv:
        settings = {"motions": SIDES, "mirror": False, "episode_s": 0.2, "speed_change_s": 0.05}
        return make(num_envs, seed, first_game, **settings)

    report = run_checks(maker, CheckOptions(num_envs=3, steps=10, end_steps=25))
    assert {name: faults for name, faults in report.failed.items() if name != "render"} == {}  # that needs OpenGL


def metrics(distance_m: float, desired_m_s: float, completed: float = 1.0) -> dict[str, float]:
    """Metrics of a walk of 15 s at 100 Hz."""
    sums = dict.fromkeys(("reward", "energy", "pushes", "faults", "speed"), 1.0)
    sums |= {f"{name}_{side}": 1.0 for name in ("strikes", "step", "swing", "stance") for side in ("right", "left")}
    sums |= {"distance": distance_m, "desired": 1_500 * desired_m_s, "completed": completed, "mass": 1_500 * 75.0}
    sums |= {"error_right_knee": 0.0}
    arrays = {name: np.array([value]) for name, value in sums.items()}
    return {name: float(value[0]) for name, value in METRICS.per_episode(arrays, np.array([1_500]), 100.0).items()}


@pytest.mark.parametrize(
    ("distance_m", "desired_m_s", "is_stable"),
    [
        (7.4, 0.8, False),  # of 12 m: 7.5 m are needed
        (7.6, 0.8, True),
        (7.6, 1.4, True),
        (3.7, 0.4, False),  # of 6 m: 0.625 of them are 3.75 m
        (3.8, 0.4, True),
        (-1.4, 0.0, True),  # standing may drift by 0.1 m/s
        (-1.6, 0.0, False),
    ],
)
def test_slow_walks_are_stable_that_go_most_of_their_way(
    distance_m: float, desired_m_s: float, is_stable: bool
) -> None:
    assert metrics(distance_m, desired_m_s)["stable"] == float(is_stable)
    assert metrics(distance_m, desired_m_s, completed=0.0)["stable"] == 0.0


def test_the_error_of_speed_is_that_of_the_way_and_finite_in_standing() -> None:
    assert metrics(10.8, 0.8)["speed_error"] == pytest.approx(0.1)
    assert metrics(0.3, 0.0)["speed_error"] == pytest.approx(0.2)  # 0.02 m/s of 0.1 m/s


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"motions": ("walk",)}, "two or more different ones"),
        ({"motions": ("walk", "walk")}, "two or more different ones"),
        ({"motions": TWO, "motion": "walk"}, "without motion beside them"),
        ({"motions": TWO, "command": "march"}, "command march is none of motions; valid: walk, stand"),
        ({"motions": SIDES}, "set mirror: false"),
        ({"motions": ("walk", "stairs-up")}, "set it alone, motion=stairs-up"),
    ],
)
def test_motions_that_do_not_fit_are_told(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        make(1, **settings)
    assert said in str(error.value)


def test_a_page_refuses_several_motions() -> None:
    with make(1, motions=TWO, mirror=False) as env, pytest.raises(UnsupportedError, match="one motion"):
        describe(env)
