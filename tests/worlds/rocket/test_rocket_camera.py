"""Tests of the perspective camera: pixels computed by hand, polygons cut off, and where each view looks from."""

import math
from dataclasses import replace

import numpy as np
import pytest

from ludus.core.errors import UnknownNameError
from ludus.worlds.rocket.rendering.ball import patches
from ludus.worlds.rocket.rendering.camera import NEAR, Camera, rotation_matrix
from ludus.worlds.rocket.rendering.cars import car_faces
from ludus.worlds.rocket.rendering.director import VIEWS, Director, History, split_view, turned, views_of
from ludus.worlds.rocket.rendering.mesh import built, normals_of
from ludus.worlds.rocket.rendering.stadium import crowd, goals, grass, stands, walls
from ludus.worlds.rocket.view import BallView, CarView, MatchView

SIZE = (1280, 720)
AHEAD = Camera((0.0, 0.0, 100.0), (0.0, 1000.0, 100.0), SIZE, 90.0)  # looks along y: 640 pixels a uu at 1 uu
CAR = CarView(
    (0.0, 0.0, 17.0), (0.0, 0.0, 0.0), (0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5)), 0, 30.0, False, False, True, 0.0,
    False, 0.0,
)  # fmt: skip


def view_of(car: CarView, ball: tuple[float, float, float] = (0.0, 2000.0, 93.0), time_s: float = 1.0) -> MatchView:
    still = (0.0, 0.0, 0.0)
    return MatchView(
        0, time_s, 200.0, False, time_s, (0, 0), BallView(ball, still, still), (car, replace(car, team=1)), ()
    )


def test_pixels_by_hand() -> None:
    assert AHEAD.pixel((0.0, 1000.0, 100.0)) == pytest.approx((640.0, 360.0, 0.64))
    assert AHEAD.pixel((500.0, 1000.0, 100.0)) == pytest.approx((960.0, 360.0, 0.64))  # right is right
    assert AHEAD.pixel((-500.0, 2000.0, 600.0)) == pytest.approx((480.0, 200.0, 0.32))  # up is up
    assert AHEAD.pixel((0.0, -1000.0, 100.0)) is None
    seen = AHEAD.see([(500.0, 1000.0, 100.0), (-500.0, 2000.0, 600.0)])
    assert AHEAD.picture(seen).tolist() == [pytest.approx([960.0, 360.0]), pytest.approx([480.0, 200.0])]


def test_from_above_the_orange_goal_is_on_the_right() -> None:
    above = Camera((0.0, 0.0, 10_000.0), (0.0, 0.0, 0.0), SIZE, 90.0)
    assert above.looks_down
    assert above.pixel((0.0, 5000.0, 0.0)) == pytest.approx((960.0, 360.0, 0.064))
    assert above.pixel((2500.0, 0.0, 0.0)) == pytest.approx((640.0, 520.0, 0.064))
    half = above.resized((640, 360))
    assert half.pixel((2500.0, 5000.0, 0.0)) == pytest.approx((480.0, 260.0, 0.032))


def test_polygons_are_cut_off_at_the_eye_and_at_the_edges() -> None:
    # A floor that begins behind the eye and goes far beyond all sides: its part in the picture is below the horizon.
    floor = np.array([(-1e5, -1e5, 0.0), (1e5, -1e5, 0.0), (1e5, 1e5, 0.0), (-1e5, 1e5, 0.0)])
    polygon = AHEAD.polygon(AHEAD.see(floor))
    columns, rows = zip(*polygon, strict=True)
    assert min(columns) == pytest.approx(640 - 1.6 * 640)
    assert max(columns) == pytest.approx(640 + 1.6 * 640)
    assert min(rows) == pytest.approx(360.0 + 640.0 * 100.0 / 1e5)
    assert max(rows) == pytest.approx(360 + 1.6 * 360)
    behind = floor - (0.0, 2e5, 0.0)
    assert AHEAD.polygon(AHEAD.see(behind)) == []
    beside = np.array([(3000.0, 1000.0, 0.0), (4000.0, 1000.0, 0.0), (4000.0, 1000.0, 500.0), (3000.0, 1000.0, 500.0)])
    inside = np.array([(0.0, 1000.0, 100.0), (100.0, 1000.0, 100.0), (100.0, 1000.0, 200.0), (0.0, 1000.0, 200.0)])
    whole = AHEAD.polygons(AHEAD.see(np.stack((floor, behind, beside, inside))))
    assert whole[0] == polygon
    assert whole[1] == whole[2] == []
    assert np.array(whole[3]) == pytest.approx(np.array([(640, 360), (704, 360), (704, 296), (640, 296)]))


def test_no_polygon_of_the_stadium_leaves_the_guarded_picture() -> None:
    meshes = [built(faces()) for faces in (walls, goals, stands, grass)]
    random = np.random.default_rng(1)
    for _ in range(60):
        eye = random.uniform((-3900, -5900, 40), (3900, 5900, 1900))
        camera = Camera(eye, eye + random.normal(size=3) * (1.0, 1.0, 0.4), SIZE, 92.0)
        for mesh in meshes:
            for polygon in camera.polygons(camera.see(mesh.corners)):
                for x, y in polygon:
                    assert -385.0 < x < 1665.0
                    assert -217.0 < y < 937.0


def test_faces_are_seen_from_inside_the_arena() -> None:
    middle = np.array((0.0, 0.0, 300.0))
    for faces in (walls(), grass()):
        mesh = built(faces)
        sides = ((middle - mesh.middles) * mesh.normals).sum(1)
        caps = np.abs(mesh.corners[:, :, 0]).max(1) == 896.0  # beside the goals they face each other
        assert (sides[~caps] > 0.0).all()
    inside = built(goals())
    toward = np.where(inside.middles[:, 1:2] > 0.0, 5600.0, -5600.0) * (0.0, 1.0, 0.0) + (0.0, 0.0, 300.0)
    assert (((toward - inside.middles) * inside.normals).sum(1) > 0.0).all()
    places, colors = crowd(200)
    assert (np.maximum(np.abs(places[:, 0]) - 4096.0, np.abs(places[:, 1]) - 5120.0) > 0.0).any(0)
    assert colors.shape == (200, 3)


def test_the_faces_of_a_car_look_outward_and_fill_its_hull() -> None:
    corners, kinds, wheels = car_faces()
    assert len(corners) == len(kinds) == len(wheels)
    body = np.array(wheels) < 0
    low, high = corners[body].reshape(-1, 3).min(0), corners[body].reshape(-1, 3).max(0)
    assert (np.abs(low - (-46.4, -43.3, 1.4)) < 8.0).all()
    assert (np.abs(high - (74.1, 43.3, 40.1)) < 8.0).all()
    normals = normals_of(corners)
    for wheel in range(4):
        mine = np.array(wheels) == wheel
        center = corners[mine].reshape(-1, 3).mean(0)
        assert (((corners[mine].mean(1) - center) * normals[mine]).sum(1) > 0.0).all()


def test_rotations() -> None:
    quarter = rotation_matrix((0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5)))  # to the left
    assert quarter @ (1.0, 0.0, 0.0) == pytest.approx((0.0, 1.0, 0.0))
    assert quarter @ (0.0, 1.0, 0.0) == pytest.approx((-1.0, 0.0, 0.0))
    after = turned(np.eye(3), (0.0, 0.0, math.pi), 0.5)
    assert after @ (1.0, 0.0, 0.0) == pytest.approx((0.0, 1.0, 0.0))
    assert turned(after, (0.0, 0.0, 0.0), 1.0) is after


def test_the_balls_patches_are_twelve_pentagons_of_equal_size() -> None:
    middles, corners = patches()
    assert np.linalg.norm(middles, axis=1) == pytest.approx(np.ones(12))
    assert middles.sum(0) == pytest.approx(np.zeros(3))
    sides = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2)
    assert sides == pytest.approx(np.full((12, 5), 2.0 * math.sin(0.34) * math.sin(math.pi / 5)))


def test_names_of_views() -> None:
    assert VIEWS == ("top", "side", "chase", "ball")
    assert views_of(2) == ("top", "side", "chase", "ball", "chase-2", "ball-2")
    assert split_view("side", 2) == ("side", 0)
    assert split_view("ball-2", 2) == ("ball", 1)
    for wrong in ("chase-3", "chase-0", "top-1", "chas", "chase-x"):
        with pytest.raises(UnknownNameError, match="valid: top, side, chase, ball, chase-2, ball-2"):
            split_view(wrong, 2)


def camera_after(kind: str, views: list[MatchView]) -> Camera:
    director, history = Director(kind, 0, SIZE), History()
    for view in views:
        history.note(view)
        camera = director.camera(view, history)
    return camera


def test_behind_a_car_its_right_is_on_the_right() -> None:
    camera = camera_after("chase", [view_of(CAR)])  # it looks along y, so its right is at larger x
    assert camera.eye[1] < -200.0
    car, right = camera.pixel((0.0, 0.0, 17.0)), camera.pixel((300.0, 0.0, 17.0))
    assert car is not None
    assert right is not None
    assert car[0] == pytest.approx(640.0)
    assert 400.0 < car[1] < 720.0
    assert right[0] > 900.0


def test_the_ball_stays_in_sight_of_who_looks_at_it() -> None:
    for ball in ((-3000.0, -4000.0, 93.0), (2500.0, 300.0, 1500.0), (0.0, 5000.0, 93.0)):
        camera = camera_after("ball", [view_of(CAR, ball)])
        spot = camera.pixel(ball)
        assert spot is not None
        assert abs(spot[0] - 640.0) < 100.0
        assert 0.0 < spot[1] < 720.0


def test_from_the_side_blue_is_on_the_left() -> None:
    camera = camera_after("side", [view_of(CAR, (0.0, 0.0, 93.0))])
    blue, orange = camera.pixel((0.0, -2000.0, 0.0)), camera.pixel((0.0, 2000.0, 0.0))
    assert blue is not None
    assert orange is not None
    assert blue[0] < 640.0 < orange[0]


def test_the_camera_swings_round_and_jumps_only_where_the_game_does() -> None:
    behind = replace(CAR, rotation=(0.0, 0.0, 0.0, 1.0))  # it looks along x now
    swung = camera_after("chase", [view_of(CAR), view_of(behind, time_s=1.0 + 1 / 60)])
    jumped = camera_after("chase", [view_of(CAR), view_of(behind, time_s=9.0)])
    assert swung.eye[1] < -250.0
    assert jumped.eye == pytest.approx((-290.0, 0.0, 135.0))
    later = [view_of(behind, time_s=1.0 + step / 60) for step in range(60)]
    assert camera_after("chase", [view_of(CAR), *later]).eye == pytest.approx((-290.0, 0.0, 135.0), abs=1.0)


def test_the_eye_stays_within_the_walls_and_may_enter_a_goal() -> None:
    at_wall = camera_after("chase", [view_of(replace(CAR, position=(4050.0, -5000.0, 17.0)))])
    assert at_wall.eye[1] == pytest.approx(-5030.0)
    in_goal = camera_after("chase", [view_of(replace(CAR, position=(0.0, -5200.0, 17.0)))])
    assert in_goal.eye[1] == pytest.approx(-5490.0)
    assert NEAR < 45.0 <= in_goal.eye[2]
