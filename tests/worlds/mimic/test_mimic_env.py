"""The walkers as a batched world: contract, starts, speeds, falls, pushes, mirrors, faults, snapshots."""

import math
from itertools import pairwise
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env as gymnasium_check

from ludus.core.errors import ConfigError, DeviceError
from ludus.envs.base import EnvRequest
from ludus.envs.check import CheckOptions, check_env
from ludus.envs.registry import make_env
from ludus.envs.world_parts import merge_settings
from ludus.worlds.mimic.env import MimicEnv
from ludus.worlds.mimic.observation import euler_angles, joint_reflection
from ludus.worlds.mimic.physics import MujocoPhysics
from ludus.worlds.mimic.scenarios import SCENARIOS

pytestmark = pytest.mark.train

JOINTS = 8


def make(games: int = 4, seed: int = 0, first_game: int = 0, **config: Any) -> MimicEnv:
    return MimicEnv(EnvRequest(games, "cpu", seed, first_game, config))


def still(env: MimicEnv) -> torch.Tensor:
    return torch.zeros(env.num_envs, 1, len(env.walker.joints))


def test_every_number_that_is_seen_has_a_name() -> None:
    with make(3, walker="walker-13") as env:
        seen, names = env.reset(seed=4)["vector"][:, 0], env.spec.fields["vector"]
        assert seen.shape[1] == len(names) == 40
        torch.testing.assert_close(seen[:, names.index("speed.desired")], env._state["desired"])
        knee = 7 + [joint.name for joint in env.walker.joints].index("right_knee")
        unmirrored = ~env._mirrored()
        angles = torch.tensor([env.positions(game)[knee] for game in range(3)]).float()
        torch.testing.assert_close(seen[unmirrored, names.index("angles.right_knee")], angles[unmirrored])
        assert unmirrored.any()


@pytest.mark.usefixtures("opengl")
@pytest.mark.parametrize("config", [{}, {"walker": "walker-13", "mirror": False, "action": "torque"}, {"threads": 1}])
def test_it_passes_the_conformance_kit(config: dict[str, Any]) -> None:
    def maker(num_envs: int, seed: int, first_game: int) -> MimicEnv:
        return make(num_envs, seed, first_game, **config)

    report = check_env(maker, CheckOptions(num_envs=3, steps=20, end_steps=300))
    assert not report.failed, str(report)


def test_gymnasium_accepts_it() -> None:
    env = gym.make("ludus/Mimic-v1")
    gymnasium_check(env.unwrapped, skip_render_check=True)
    env.close()


def test_walkers_start_on_the_reference() -> None:
    env = make(64, start_noise=0.0)
    env.reset(seed=3)
    frame = env.frame()
    for game in range(0, 64, 7):
        assert env.positions(game)[7:] == pytest.approx(frame.angles[game].double().numpy(), abs=1e-6)
        assert env.positions(game)[2] == pytest.approx(float(frame.root[game, 0]), abs=1e-6)


def test_a_walker_on_the_reference_gets_nearly_all_of_the_reward() -> None:
    env = make(64, start_noise=0.0)
    env.reset(seed=1)
    result = env.step(still(env))
    assert float(result.events["reward"].mean()) > 0.8
    assert float(result.state_metrics["pose_error"].max()) < 0.02
    assert float(result.state_metrics["effector_error"].max()) < 0.01
    assert float(result.state_metrics["root_error"].max()) < 0.05


def test_fixed_starts_are_all_different_and_the_same_every_time() -> None:
    env = make(400, starts="fixed", start_noise=0.0, speed_change_s=0.0)
    first = env.reset(seed=1)["vector"][:, 0].clone()
    assert torch.equal(first, env.reset(seed=2)["vector"][:, 0])
    assert torch.allclose(first[:20, 2].sort().values, torch.linspace(0.8, 1.4, 20))
    assert float(first[:4, 2].max() - first[:4, 2].min()) > 0.4  # few walks cover the range too
    phases = torch.atan2(first[:, 1], first[:, 0]) % (2.0 * math.pi)  # of a step: left steps look as right ones
    for count, least_gap in ((20, 0.01), (400, 0.001)):
        gaps = phases[:count].sort().values.diff() / (2.0 * math.pi)
        assert float(gaps.min()) > least_gap
        assert float(gaps.max()) < 2.0 / count
    sides = env.snapshot()["mimic-v1/walker-8/phase"] >= 0.5
    assert sides.tolist() == [False, True] * 200


@pytest.mark.parametrize("trial", SCENARIOS)
@pytest.mark.parametrize("walker", ["walker-8", "walker-13"])
def test_twenty_walks_of_a_trial_are_twenty_trajectories_even_in_a_mirror(trial: str, walker: str) -> None:
    env = make(20, **merge_settings({"walker": walker, "lowest_height": 0.2}, SCENARIOS[trial]))
    reflection = joint_reflection(env.walker.joints)
    env.reset()
    walks = []
    for _ in range(5):
        env.step(still(env))
        walks.append(torch.stack([torch.from_numpy(env.positions(game)[7:]) for game in range(20)]))
    paths = torch.stack(walks, dim=1)
    mirrored = reflection.apply(paths)
    for game in range(20):
        others = torch.cat((paths[:game], paths[game + 1 :], mirrored[:game], mirrored[game + 1 :]))
        assert float((others - paths[game]).abs().amax(dim=(1, 2)).min()) > 0.005


@pytest.fixture
def half_a_stride_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two games start in the right and in the left step: mirror images of each other."""
    starts = (torch.tensor([0.375, 0.875]), torch.full((2,), 1.1))
    monkeypatch.setattr("ludus.worlds.mimic.env.draw_starts", lambda *_: starts)


def test_desired_speed_changes_within_an_episode_and_the_reference_follows() -> None:
    env = make(16, speed_change_s=1.0, lowest_height=0.2, largest_tilt_deg=120.0, episode_s=10.0)
    env.reset(seed=5)
    seen, speeds = [], []
    for _ in range(250):
        vector = env.step(still(env)).observations["vector"]
        speeds.append(vector[0, 0, 2].item())
        seen.append(vector[0, 0, 3].item())
    assert len(set(seen)) >= 2
    assert max(abs(a - b) for a, b in pairwise(speeds)) < 0.7  # but at restarts, small changes
    constant = make(4, speed=1.3)
    constant.reset()
    assert torch.equal(constant.step(still(constant)).state_metrics["desired"], torch.full((4, 1), 1.3))


def test_a_walker_without_torques_falls_and_that_is_a_termination() -> None:
    env = make(8, speed=1.0, action="torque")
    env.reset(seed=0)
    falls = torch.zeros(8)
    for _ in range(150):
        result = env.step(still(env))
        falls += result.events["falls"][:, 0]
        assert torch.equal(result.terminated, result.events["falls"][:, 0] > 0)
        assert not result.truncated.any()
    assert (falls > 0).all()


def test_the_time_limit_is_a_truncation() -> None:
    env = make(4, episode_s=0.1)
    env.reset()
    results = [env.step(still(env)) for _ in range(10)]
    assert not any(bool(result.ended.any()) for result in results[:9])
    assert bool(results[9].truncated.all())
    assert not results[9].terminated.any()
    assert torch.equal(results[9].events["completed"], torch.ones(4, 1))


@pytest.mark.usefixtures("half_a_stride_apart")
def test_left_steps_are_seen_as_right_steps() -> None:
    env = make(2, start_noise=0.0, speed=1.1)
    vectors = env.reset(seed=0)["vector"]
    assert torch.allclose(vectors[0], vectors[1], atol=1e-5)
    actions = torch.rand(1, 1, JOINTS).repeat(2, 1, 1) - 0.5
    for _ in range(20):
        vectors = env.step(actions).observations["vector"]
        assert torch.allclose(vectors[0], vectors[1], atol=1e-3)
    right, left = env.positions(0)[7:], env.positions(1)[7:]
    reflected = joint_reflection(env.walker.joints).apply(torch.from_numpy(right))
    assert left == pytest.approx(reflected.numpy(), abs=1e-3)


@pytest.mark.usefixtures("half_a_stride_apart")
def test_a_world_in_the_mirror_is_the_mirror_of_the_world() -> None:
    env = make(2, mirror=False, start_noise=0.0, speed=1.1)
    mirror = env.spec.mirror
    assert mirror is not None
    vectors = env.reset()["vector"]
    assert torch.allclose(mirror.observations["vector"].apply(vectors[0]), vectors[1], atol=1e-5)
    action = torch.rand(1, JOINTS) - 0.5
    result = env.step(torch.stack((action, mirror.actions.apply(action))))
    after = result.observations["vector"]
    assert torch.allclose(mirror.observations["vector"].apply(after[0]), after[1], atol=1e-4)


def test_pushes_move_walkers_aside() -> None:
    quiet, pushed = (
        make(32, seed=4, pushes={"impulse_ns": impulse, "every_s": 0.1}, lowest_height=0.2, largest_tilt_deg=120.0)
        for impulse in (0.0, 60.0)
    )
    for env in (quiet, pushed):
        env.reset()
    pushes = torch.zeros(32)
    for _ in range(25):
        a, b = quiet.step(still(quiet)), pushed.step(still(pushed))
        assert not a.events["pushes"].any()
        pushes += b.events["pushes"][:, 0]
    assert pushes.tolist() == [2.0] * 32
    moved = [np.abs(pushed.positions(game)[:2] - quiet.positions(game)[:2]).max() for game in range(32)]
    assert float(np.median(moved)) > 0.01


def test_physics_that_breaks_ends_the_episode_and_nothing_else() -> None:
    env, other = make(3), make(3)
    env.reset(seed=0)
    other.reset(seed=0)
    assert isinstance(env._physics, MujocoPhysics)
    env._physics.velocities[1, 8] = np.nan
    result, usual = env.step(still(env)), other.step(still(other))
    assert result.terminated.tolist() == [False, True, False]
    assert result.events["faults"][:, 0].tolist() == [0.0, 1.0, 0.0]
    for tensors in (result.observations, result.final_observations, result.events, result.state_metrics):
        assert all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values())
    assert torch.equal(result.observations["vector"][0], usual.observations["vector"][0])
    following = env.step(still(env))
    assert not following.events["faults"].any()


def test_actions_that_are_not_numbers_do_not_break_it() -> None:
    env = make(2)
    env.reset()
    result = env.step(torch.full((2, 1, JOINTS), float("nan")))
    assert torch.isfinite(result.observations["vector"]).all()


def test_peaks_add_up_to_the_largest_torque() -> None:
    env = make(1, action="torque", lowest_height=0.2, largest_tilt_deg=120.0)
    env.reset(seed=0)
    total, largest = 0.0, 0.0
    knee = [joint.name for joint in env.walker.joints].index("right_knee")
    for step in range(20):
        actions = still(env)
        actions[0, 0, knee] = share = math.sin(step) * 0.7
        if env.snapshot()["mimic-v1/walker-8/phase"][0] >= 0.5:  # a left step: the action is for the left knee
            continue
        total += float(env.step(actions).events["peak_right_knee"][0, 0])
        largest = max(largest, abs(share) * env.walker.limits_nm[knee])
    assert total == pytest.approx(largest, rel=1e-4)


def test_targets_reach_from_the_lowest_to_the_highest_angle() -> None:
    target = make(1, action="target", mirror=False)
    target.reset(seed=0)
    controls = target._controls
    low, high = np.deg2rad(target.walker.joints[2].range_deg)
    assert controls.of(np.ones((1, JOINTS)))[0, 2] == pytest.approx(high)
    assert controls.of(-np.ones((1, JOINTS)))[0, 2] == pytest.approx(low)


def test_euler_angles_undo_quaternions() -> None:
    from ludus.worlds.mimic.reference import quaternions

    angles = np.array([[0.1, -0.4, 0.9], [-0.7, 0.2, -2.0]])
    back = euler_angles(torch.from_numpy(quaternions(angles)))
    assert back.numpy() == pytest.approx(angles)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"height_m": 17.5}, "height_m: .* less than or equal to 2.2, got 17.5"),
        ({"control_rate_hz": 130.0}, "must be a whole number"),
        ({"control_rate_hz": 400.0}, "must be a whole number"),
        ({"speed_range": (1.4, 0.8)}, "from low to high"),
        ({"walker": "walker-9"}, "walker"),
        ({"speeed": 1.0}, "did you mean 'speed'"),
        ({"pushes": {"impulse": 3.0}}, "pushes"),
    ],
)
def test_wrong_settings_are_named(config: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make_env("mimic", config=config)


def test_with_mujoco_it_lives_on_the_host_only() -> None:
    with pytest.raises(DeviceError, match="lives on cpu, not on cuda"):
        make_env("mimic", games_device="cuda", config={"physics": "mujoco"})


def test_a_closed_world_says_so() -> None:
    env = make(2)
    env.reset()
    env.close()
    env.close()
    with pytest.raises(RuntimeError, match="closed"):
        env.step(still(env))
