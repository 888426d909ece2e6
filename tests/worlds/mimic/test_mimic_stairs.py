"""Stairs: the reference's feet come down on their steps, and walkers see, climb and are judged by them."""

from collections.abc import Iterator
from typing import Any

import mujoco
import pytest
import torch

from ludus.core.errors import UnsupportedError
from ludus.envs.base import EnvRequest
from ludus.worlds.mimic.browser import describe
from ludus.worlds.mimic.env import MimicEnv
from ludus.worlds.mimic.observation import AHEAD_M
from ludus.worlds.mimic.reference import Stairs
from ludus.worlds.mimic.steering import SteeredEnv

SETTINGS: dict[str, Any] = {"motion": "stairs-up", "start_noise": 0.0, "threads": 1}
DEPTH, HEIGHT = 0.288, 0.17  # of the motion's steps, in m


def make(games: int, seed: int = 0, first_game: int = 0, **config: Any) -> MimicEnv:
    return MimicEnv(EnvRequest(games, "cpu", seed, first_game, SETTINGS | config))


@pytest.fixture(scope="module")
def env() -> Iterator[MimicEnv]:
    with make(64) as walkers:
        walkers.reset(seed=1)
        yield walkers


def stairs_of(env: MimicEnv) -> Stairs:
    assert env.reference.stairs is not None
    return env.reference.stairs


def test_the_ground_by_hand() -> None:
    stairs = Stairs(0.5, 0.2, first_m=1.0, start_m=2.0, line_m=0.4, way_m=tuple(number / 128 for number in range(128)))
    places = torch.tensor([0.9, 1.1, 1.49, 1.51, 2.1])
    assert stairs.ground(places).tolist() == pytest.approx([0.0, 0.2, 0.2, 0.4, 0.6])
    assert stairs.ground(torch.tensor(1e3)).item() == pytest.approx(60 * 0.2)  # it has 60 steps
    assert stairs.line(torch.tensor([2.0, 3.0])).tolist() == pytest.approx([0.4, 0.8])
    assert stairs.place(torch.tensor([0.0, 0.25])).tolist() == pytest.approx([2.0, 2.25])
    # 0.1 m ahead of the reference, two strides of 1 m later too; 0.4 m behind it is not 0.6 m ahead.
    off = stairs.lag(torch.tensor([2.35, 4.35, 1.85]), torch.full((3,), 0.25))
    assert off.tolist() == pytest.approx([0.1, 0.1, -0.4], abs=1e-6)


def test_feet_of_the_reference_stand_on_steps_and_touch_none_beside_them(env: MimicEnv) -> None:
    model, stairs = env.walker.model, stairs_of(env)
    data, found = mujoco.MjData(model), set()
    phases = env._state["phase"]
    for game in range(env.num_envs):
        data.qpos[:] = env.positions(game)
        data.qpos[2] -= 0.003  # feet float and sink by less
        mujoco.mj_forward(model, data)
        depths = [contact.dist for contact in data.contact]
        assert depths, f"no foot is on the ground at phase {phases[game]:.2f}"
        assert min(depths) > -0.006
        names = {model.geom(int(geom)).name for contact in data.contact for geom in (contact.geom1, contact.geom2)}
        found |= {name for name in names if name.startswith("step_")}
        assert "ground" not in names
    assert found == {"step_3", "step_4", "step_5", "step_6"}
    assert (stairs.depth_m, stairs.height_m) == pytest.approx((DEPTH, HEIGHT))
    # The way of a stride is that of two steps: the last of 128 phases is one 128th of it before the end.
    assert stairs.way_m[-1] == pytest.approx(2 * DEPTH * 127 / 128, abs=0.005)


def test_walkers_start_on_the_reference_and_are_compared_with_it_over_the_line(env: MimicEnv) -> None:
    env.reset(seed=1)
    result = env.step(torch.zeros(64, 1, 8))
    assert float(result.state_metrics["root_error"].max()) < 0.2
    heights = result.state_metrics["height"]  # over the line, not over the ground
    assert float(heights.min()) > 0.8
    assert float(heights.max()) < 1.0
    assert not bool(result.ended.any())


def test_one_who_is_off_his_place_is_told_so_by_the_root_error() -> None:
    with make(2) as env:
        env.reset(seed=2)
        before = env.snapshot()
        errors = []
        for ahead in (0.0, 0.1):
            env.restore(before)
            # Along the line, so that nothing but the place changes.
            env._host.positions[:, 0] += ahead
            env._host.positions[:, 2] += ahead * HEIGHT / DEPTH + 0.02  # above the steps
            env._host.velocities[:] = 0.0
            errors.append(env.step(torch.zeros(2, 1, 8)).state_metrics["root_error"][:, 0])
        difference = (errors[1] - errors[0]).tolist()
        assert difference == pytest.approx([(3.0 * 0.1) ** 2] * 2, abs=0.03)


def test_heights_ahead_are_seen_over_the_line(env: MimicEnv) -> None:
    stairs = stairs_of(env)
    seen = env.reset(seed=4)["vector"][:, 0]
    first, last = env.spec.blocks["vector"]["terrain"]
    assert last - first == len(AHEAD_M) == 12
    for game in (0, 17):
        x = env.positions(game)[0]
        line = stairs.line_m + HEIGHT / DEPTH * (x - stairs.start_m)
        expected = [10.0 * (HEIGHT * (int((x + ahead - stairs.first_m) // DEPTH) + 1) - line) for ahead in AHEAD_M]
        assert seen[game, first:last].tolist() == pytest.approx(expected, abs=1e-3)
    # Steps are alike: a stride further on everything looks the same.
    before = env.snapshot()
    env._host.positions[:, 0] += 2 * DEPTH
    env._host.positions[:, 2] += 2 * HEIGHT
    torch.testing.assert_close(env._observe()["vector"][:, 0], seen, rtol=0.0, atol=1e-4)
    env.restore(before)


def test_a_walker_depends_on_neither_batch_nor_history() -> None:
    actions = 0.2 * torch.rand((30, 6, 1, 8), generator=torch.Generator().manual_seed(3)) - 0.1
    with make(6, seed=5, start_noise=0.01) as large, make(2, seed=5, start_noise=0.01) as small:
        large.reset()
        small.reset()
        for each in actions[:15]:
            large.step(each)
            seen = small.step(each[:2]).observations["vector"]
        kept = small.snapshot()
        for each in actions[15:]:
            whole, seen = large.step(each), small.step(each[:2]).observations["vector"]
        assert torch.equal(whole.observations["vector"][:2], seen)
        small.restore(kept)
        for each in actions[15:]:
            again = small.step(each[:2]).observations["vector"]
        assert torch.equal(again, seen)


def test_a_view_tells_how_high_the_stairs_are(env: MimicEnv) -> None:
    env.reset(seed=1)
    view = env.view(0)
    assert view.stairs_m is not None
    # Step 4 is the fifth; at phase 0 the line is at the height of the foot below it.
    expected = 4 * HEIGHT + HEIGHT / DEPTH * view.positions[0]
    assert view.stairs_m == pytest.approx(expected, abs=1e-5)
    assert view.ghost is not None
    assert view.ghost[2] == pytest.approx(view.positions[2], abs=1e-5)


def test_what_knows_level_ground_alone_says_so() -> None:
    with pytest.raises(UnsupportedError, match="level ground"):
        SteeredEnv(EnvRequest(1, "cpu", 0, 0, SETTINGS))
    with make(1) as env, pytest.raises(UnsupportedError, match="level ground"):
        describe(env)
