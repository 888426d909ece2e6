"""Tests of pictures of walkers: the figure, the ghost, the numbers and what happens to GL."""

import sys
from collections.abc import Iterator

import mujoco
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, VideoError
from ludus.envs.registry import make_env
from ludus.worlds.mimic import display
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.env import MimicEnv
from ludus.worlds.mimic.model import make_walker
from ludus.worlds.mimic.rendering import painter as painting
from ludus.worlds.mimic.rendering.figure import FIGURE_GROUPS, SIZE, WalkerView, figure_of, reference_positions
from ludus.worlds.mimic.rendering.painter import WalkerPainter

SMALL = (320, 180)


@pytest.fixture(scope="module")
def env() -> Iterator[MimicEnv]:
    with make_env("mimic", 2, config={"threads": 1, "speed": 1.25, "starts": "fixed", "start_noise": 0.0}) as made:
        assert isinstance(made, MimicEnv)
        yield made


@pytest.fixture(scope="module")
def painter(env: MimicEnv, opengl: None) -> Iterator[WalkerPainter]:  # noqa: ARG001
    with WalkerPainter(env.walker, SMALL) as made:
        yield made


def view_at(env: MimicEnv, phase: float, *, ghost: bool = False, push: tuple[float, float] = (0.0, 0.0)) -> WalkerView:
    frame = env.reference.at(torch.tensor([1.25]), torch.tensor([phase]))
    positions = reference_positions(frame, 0)
    return WalkerView(positions, positions.copy() if ghost else None, 0.0, 1.25, push)


def changed(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> NDArray[np.intp]:
    """Columns of the pixels in which two pictures differ."""
    return np.nonzero(np.abs(first.astype(int) - second).max(axis=2) > 12)[1]


@pytest.mark.parametrize("name", ["walker-8", "walker-13"])
@pytest.mark.parametrize("height_m", [1.5, 1.75, 1.9])
def test_the_figure_stands_on_the_ground_and_is_as_tall_as_its_body(name: str, height_m: float) -> None:
    walker = make_walker(MimicConfig.model_validate({"walker": name, "height_m": height_m, "mass_kg": 70.0}))
    figure = figure_of(walker)
    assert [figure.joint(j).name for j in range(figure.njnt)] == [
        walker.model.joint(j).name for j in range(walker.model.njnt)
    ]
    data = mujoco.MjData(figure)  # stands upright
    mujoco.mj_kinematics(figure, data)
    drawn = np.flatnonzero(figure.geom_group == FIGURE_GROUPS[1])
    lying = figure.geom_type[drawn] == mujoco.mjtGeom.mjGEOM_CAPSULE
    half = np.where(lying, figure.geom_size[drawn, 0], figure.geom_size[drawn, 2])
    assert (data.geom_xpos[drawn, 2] - half).min() == pytest.approx(0.0, abs=1e-3)
    assert (data.geom_xpos[drawn, 2] + half).max() == pytest.approx(height_m, abs=0.01)


def test_a_picture_shows_the_walker_and_changes_as_it_moves(env: MimicEnv, painter: WalkerPainter) -> None:
    first = painter.paint(view_at(env, 0.0))
    assert first.shape == (180, 320, 3)
    assert first.dtype == np.uint8
    assert first.std() > 20.0
    assert len(np.unique(first.reshape(-1, 3), axis=0)) > 100
    later = painter.paint(view_at(env, 0.25))
    assert len(changed(first, later)) > 300
    assert np.array_equal(first, painter.paint(view_at(env, 0.0)))


def test_the_ghost_is_seen_beside_the_walker(env: MimicEnv, painter: WalkerPainter) -> None:
    without, with_ghost = (painter.paint(view_at(env, 0.0, ghost=ghost)) for ghost in (False, True))
    columns = changed(without, with_ghost)
    assert len(columns) > 500
    assert columns.mean() > 160  # ahead of the walker, as the camera sees it
    moved = view_at(env, 0.25, ghost=True)
    other = WalkerView(view_at(env, 0.0).positions, moved.ghost, 0.0, 1.25)
    assert len(changed(with_ghost, painter.paint(other))) > 100  # it is driven by the reference


def test_a_push_is_an_arrow_on_the_side_it_comes_from(env: MimicEnv, painter: WalkerPainter) -> None:
    plain = painter.paint(view_at(env, 0.0))
    hips = 130  # column
    assert changed(plain, painter.paint(view_at(env, 0.0, push=(150.0, 0.0)))).mean() < hips
    assert changed(plain, painter.paint(view_at(env, 0.0, push=(-150.0, 0.0)))).mean() > hips


def test_the_speed_is_the_mean_of_the_last_second(env: MimicEnv, painter: WalkerPainter) -> None:
    def speed(time_s: float, x: float) -> float | None:
        positions = view_at(env, 0.0).positions
        positions[0] = x
        return painter._speed(WalkerView(positions, None, time_s, 1.0))

    assert speed(100.0, 5.0) is None
    assert speed(100.1, 5.2) is None  # too short
    assert speed(100.5, 5.6) == pytest.approx(1.2)
    assert speed(101.0, 6.0) == pytest.approx(1.0)
    assert speed(101.4, 6.0) == pytest.approx(0.4 / 0.9)  # since 100.5
    assert speed(0.0, 0.0) is None  # another episode


def test_numbers_stand_in_the_upper_left_corner(
    env: MimicEnv, painter: WalkerPainter, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = painter.paint(view_at(env, 0.0))
    monkeypatch.setattr(painter, "_caption", None)
    plain = painter.paint(view_at(env, 0.0))
    rows, columns = np.nonzero((written != plain).any(axis=2))
    assert rows.max() < 60
    assert columns.max() < 100
    assert len(rows) > 1000


def test_without_pygame_pictures_have_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ludus.worlds.mimic.rendering.caption", "ludus.envs.pygame_tools"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "pygame", None)
    assert painting._make_caption(SMALL) is None


def test_an_environment_draws_its_games_and_releases_gl(painter: WalkerPainter) -> None:
    assert painter is not None
    with make_env("mimic", 2, seed=3, config={"threads": 1, "pushes": {"impulse_ns": 10.0}}) as env:
        assert isinstance(env, MimicEnv)
        env.reset(seed=3)
        first, second = env.render(0), env.render(1)
        assert first.shape == (SIZE[1], SIZE[0], 3)
        assert len(changed(first, second)) > 300
        for _ in range(20):
            env.step(torch.zeros(2, 1, 8))
        assert len(changed(first, env.render(0))) > 300
        assert env.view(0).time_s == pytest.approx(0.2)
        drawn = env._painter
        assert drawn is not None
    env.close()
    with pytest.raises(VideoError, match="closed"):
        drawn.paint(env.view(0))


def test_painters_do_not_disturb_each_other(env: MimicEnv, painter: WalkerPainter) -> None:
    alone = painter.paint(view_at(env, 0.1))
    with WalkerPainter(env.walker, SMALL) as other:
        other.paint(view_at(env, 0.6))
        assert np.array_equal(painter.paint(view_at(env, 0.1)), alone)
        assert np.array_equal(other.paint(view_at(env, 0.1)), alone)
    other.close()
    assert np.array_equal(painter.paint(view_at(env, 0.1)), alone)


def test_pictures_have_a_largest_size(env: MimicEnv) -> None:
    with pytest.raises(ConfigError, match=r"960 x 540.*1920 x 1080"):
        WalkerPainter(env.walker, (1920, 1080))


def test_without_an_agent_the_reference_walks_at_its_speed(env: MimicEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    views: list[WalkerView] = []

    class Camera:
        def __init__(self, _: object) -> None: ...

        def __enter__(self) -> "Camera":
            return self

        def __exit__(self, *_: object) -> None: ...

        def paint(self, view: WalkerView) -> NDArray[np.uint8]:
            views.append(view)
            return np.zeros((2, 2, 3), np.uint8)

    monkeypatch.setattr(display, "WalkerPainter", Camera)
    pictures = list(display.pictures(env, 25.0))
    assert len(pictures) == 15 * 25
    times, places = (np.array(values) for values in zip(*((v.time_s, v.positions[0]) for v in views), strict=True))
    assert np.polyfit(times, places, 1)[0] == pytest.approx(1.25, rel=0.03)
    assert all(view.ghost is None for view in views)
    stride = round(1.10 * 25)  # one period later the pose is the same again
    assert views[0].positions[7:] == pytest.approx(views[stride].positions[7:], abs=0.15)
    assert np.abs(views[0].positions[7:] - views[stride // 2].positions[7:]).max() > 0.3
