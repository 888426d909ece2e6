"""Tests of Rocket's renderer: pictures show what a view says, where it says it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from ludus.core.errors import UnknownNameError
from ludus.envs import make_env
from ludus.envs.colors import Color
from ludus.envs.pygame_tools import new_surface, pygame
from ludus.worlds.rocket.env import RocketEnv
from ludus.worlds.rocket.layout import BIG_PADS, PADS
from ludus.worlds.rocket.render import Renderer
from ludus.worlds.rocket.rendering.camera import Camera
from ludus.worlds.rocket.rendering.director import VIEWS, Director, History
from ludus.worlds.rocket.rendering.palette import TEAMS
from ludus.worlds.rocket.view import BallView, CarView, MatchView, PadView, Vector

pytestmark = pytest.mark.train

Image = NDArray[np.uint8]
SIZE = (1280, 720)
ALONG_Y = (0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5))
BLUE = CarView((0.0, -1500.0, 17.0), (0.0, 0.0, 0.0), ALONG_Y, 0, 60.0, False, False, True, 0.0, False, 0.0)
ORANGE = replace(BLUE, position=(900.0, 1200.0, 17.0), rotation=(0.0, 0.0, -math.sqrt(0.5), math.sqrt(0.5)), team=1)
STILL = (0.0, 0.0, 0.0)
FULL = tuple(PadView(x, y, number in BIG_PADS, 0.0) for number, (x, y) in enumerate(PADS))


def match(
    blue: CarView = BLUE,
    orange: CarView = ORANGE,
    ball: Vector = (0.0, 0.0, 93.15),
    *,
    time_s: float = 20.0,
    clock_s: float | None = 200.0,
    goals: tuple[int, int] = (0, 0),
    pads: tuple[PadView, ...] = FULL,
    since_kickoff_s: float | None = None,
) -> MatchView:
    since = time_s if since_kickoff_s is None else since_kickoff_s
    return MatchView(0, time_s, clock_s, False, since, goals, BallView(ball, STILL, STILL), (blue, orange), pads)


@pytest.fixture(scope="module")
def painters() -> dict[str, Renderer]:
    return {view: Renderer(view=view) for view in VIEWS}


@pytest.fixture
def top(painters: dict[str, Renderer]) -> Renderer:
    """The renderer from above, as if new: its memory is that of a match long ago."""
    painters["top"].frame(match(time_s=900.0))
    return painters["top"]


@pytest.fixture
def chase(painters: dict[str, Renderer]) -> Renderer:
    painters["chase"].frame(match(time_s=900.0))
    return painters["chase"]


def camera(kind: str, view: MatchView) -> Camera:
    history = History()
    history.note(view)
    return Director(kind, 0, SIZE).camera(view, history)


def box(image: Image, seen: Camera, place: Vector, reach: float) -> Image:
    """The part of a picture around a place in the arena, so many uu to all sides."""
    spot = seen.pixel(place)
    assert spot is not None
    x, y, scale = spot
    return image[
        max(round(y - reach * scale), 0) : round(y + reach * scale),
        max(round(x - reach * scale), 0) : round(x + reach * scale),
    ]


def amount(image: Image, color: Color, slack: int = 12) -> int:
    """Pixels that have nearly a colour."""
    return int((np.abs(image.astype(int) - np.array(color)).max(axis=2) <= slack).sum())


def changed(a: Image, b: Image) -> tuple[int, int, int, int]:
    """Left, top, right and bottom pixel of where two pictures differ."""
    rows, columns = np.nonzero((a != b).any(axis=2))
    assert rows.size > 0
    return int(columns.min()), int(rows.min()), int(columns.max()), int(rows.max())


@pytest.mark.parametrize("view", VIEWS)
def test_a_picture_is_new_memory_of_the_right_kind_and_equal_views_give_equal_pictures(view: str) -> None:
    renderer = Renderer(view=view)
    first = renderer.frame(match())
    assert first.shape == (720, 1280, 3)
    assert first.dtype == np.uint8
    kept = first.copy()
    renderer.frame(match(replace(BLUE, position=(800.0, -900.0, 17.0))))
    assert np.array_equal(first, kept)
    assert np.array_equal(Renderer(view=view).frame(match()), first)
    assert not pygame.display.get_init()


def test_views_differ(painters: dict[str, Renderer]) -> None:
    pictures = [renderer.frame(match()) for renderer in painters.values()]
    assert all(not np.array_equal(a, b) for index, a in enumerate(pictures) for b in pictures[:index])


@pytest.mark.parametrize("view", ["top", "side", "chase", "ball"])
def test_cars_and_ball_have_their_colours_where_they_are(painters: dict[str, Renderer], view: str) -> None:
    shown = match(ball=(-600.0, 600.0, 93.15))
    painters[view].frame(match(time_s=900.0))  # another match: its camera has nothing to do with this one's
    image, seen = painters[view].frame(shown), camera(view, shown)
    for car, other in ((BLUE, 1), (ORANGE, 0)):
        around = box(image, seen, car.position, 130.0)
        color, rival = TEAMS[car.team].base, TEAMS[other].base
        share = np.array(color) / max(color)  # shaded faces keep the hue
        strong = around.max(axis=2, keepdims=True).astype(float)
        hue = np.abs(around / np.maximum(strong, 1.0) - share).max(axis=2) < 0.12
        rival_hue = np.abs(around / np.maximum(strong, 1.0) - np.array(rival) / max(rival)).max(axis=2) < 0.12
        assert hue.mean() > 0.04
        assert rival_hue.mean() < 0.02
    light = box(image, seen, (-600.0, 600.0, 93.15), 70.0).astype(int)
    grey = (light.max(axis=2) - light.min(axis=2) < 40) & (light.min(axis=2) > 110)
    assert grey.mean() > 0.25


def test_a_moved_car_changes_the_picture_only_around_it(top: Renderer) -> None:
    there = replace(BLUE, position=(300.0, -1500.0, 17.0))
    left, upper, right, lower = changed(top.frame(match()), top.frame(match(there)))
    seen = camera("top", match())
    (x0, y0, scale), (x1, y1, _) = (seen.pixel(car.position) or (0, 0, 0) for car in (BLUE, there))
    reach = 2.4 * 95.0 * scale + 40.0  # cars are enlarged, names are above
    assert min(x0, x1) - reach < left < right < max(x0, x1) + reach
    assert min(y0, y1) - reach < upper < lower < max(y0, y1) + reach


def test_turned_cars_look_different(chase: Renderer) -> None:
    seen = camera("chase", match())
    straight = box(chase.frame(match()), seen, ORANGE.position, 120.0)
    turned = box(
        chase.frame(match(orange=replace(ORANGE, rotation=(0.0, 0.0, 0.0, 1.0)))), seen, ORANGE.position, 120.0
    )
    upset = box(chase.frame(match(orange=replace(ORANGE, rotation=(1.0, 0.0, 0.0, 0.0)))), seen, ORANGE.position, 120.0)
    assert (straight != turned).any(axis=2).mean() > 0.1
    assert (turned != upset).any(axis=2).mean() > 0.1


def test_the_stadium_shows_the_goals_in_their_colours_and_green_grass(top: Renderer) -> None:
    image, seen = top.frame(match(pads=tuple(replace(pad, away_s=9.0) for pad in FULL))), camera("top", match())
    blue, orange = (box(image, seen, (0.0, y, 0.0), 250.0).reshape(-1, 3).mean(0) for y in (-5600.0, 5600.0))
    assert blue[2] > blue[0] + 60  # more blue than red
    assert orange[0] > orange[2] + 60
    grass = box(image, seen, (1900.0, 300.0, 0.0), 150.0).reshape(-1, 3).mean(0)
    assert grass[1] > grass[0] + 20
    assert grass[1] > grass[2] + 10
    line = box(image, seen, (2500.0, 0.0, 0.0), 60.0)
    assert line.min(axis=2).max() > 170  # white


def test_a_ball_in_the_air_has_a_line_down_to_its_ring(chase: Renderer) -> None:
    low, high = (0.0, 700.0, 93.15), (0.0, 700.0, 800.0)
    seen = camera("chase", match())
    image, plain = chase.frame(match(ball=high)), chase.frame(match(ball=low))
    middle = box(image, seen, (0.0, 700.0, 400.0), 12.0).astype(int)
    empty = box(plain, seen, (0.0, 700.0, 400.0), 12.0).astype(int)
    assert middle.max() > empty.max() + 40
    ring = box(image, seen, (0.0, 700.0, 0.0), 130.0)
    assert ring.min(axis=2).max() > 200


def test_boost_burns_behind_the_car_and_leaves_a_trail(chase: Renderer) -> None:
    driving = replace(BLUE, velocity=(0.0, 1400.0, 0.0))
    boosting = replace(driving, boosting=True)
    seen = camera("chase", match())
    plain, burning = chase.frame(match(driving)), chase.frame(match(boosting))
    tail = (0.0, -1560.0, 30.0)
    assert amount(box(burning, seen, tail, 40.0), (255, 122, 36)) > 30
    assert amount(box(plain, seen, tail, 40.0), (255, 122, 36)) == 0
    side = Renderer(view="top")
    frames = [
        match(replace(boosting, position=(0.0, -1500.0 + 1400.0 * step / 30, 17.0)), time_s=20.0 + step / 30)
        for step in range(10)
    ]
    for frame in frames:
        trailed = side.frame(frame)
    fresh = Renderer(view="top").frame(frames[-1])  # has seen nothing before
    left, _, right, _ = changed(trailed, fresh)
    spot = camera("top", match()).pixel(frames[-1].cars[0].position)
    assert spot is not None
    assert left < spot[0] - 15.0
    assert right <= spot[0] + 25.0


def test_a_demolished_car_explodes_is_gone_and_counted_down(chase: Renderer) -> None:
    seen = camera("chase", match())
    wreck = replace(ORANGE, demolished_s=2.9)
    alive, burst = chase.frame(match()), chase.frame(match(orange=wreck))
    around = [box(image, seen, ORANGE.position, 130.0) for image in (alive, burst)]
    assert around[1].mean() > around[0].mean() + 40.0
    gone = chase.frame(match(orange=replace(wreck, demolished_s=1.5)))
    empty = chase.frame(match(orange=replace(ORANGE, position=(0.0, -4000.0, 17.0))))
    assert np.array_equal(box(gone, seen, ORANGE.position, 130.0), box(empty, seen, ORANGE.position, 130.0))
    later = chase.frame(match(orange=replace(wreck, demolished_s=0.5)))
    left, _, right, lower = changed(gone, later)
    assert 1030 < left < right < 1280  # its row on the right
    assert lower < 45


def test_pads_glow_while_they_have_boost(top: Renderer) -> None:
    seen = camera("top", match())
    taken = tuple(replace(pad, away_s=3.0) if number in (7, 15) else pad for number, pad in enumerate(FULL))
    there, away = top.frame(match()), top.frame(match(pads=taken))
    for number, reach in ((7, 40.0), (15, 60.0)):
        x, y = PADS[number]
        bright, dim = (box(image, seen, (x, y, 0.0), reach).reshape(-1, 3).mean(0) for image in (there, away))
        assert bright[0] > dim[0] + 80
    left, _, right, _ = changed(there, away)
    assert left > 200
    assert right < 660


def test_score_clock_and_boost_change_only_their_own_place(top: Renderer) -> None:
    plain = top.frame(match())
    left, _, right, lower = changed(plain, top.frame(match(clock_s=150.0)))
    assert 560 < left < right < 720
    assert lower < 64
    left, _, right, lower = changed(plain, top.frame(match(replace(BLUE, boost=10.0))))
    assert 150 < left < right < 250
    assert lower < 40
    overtime = top.frame(match(clock_s=-5.0))
    assert amount(overtime[60:95, 560:720], (255, 72, 72)) > 30
    no_clock = top.frame(match(clock_s=None))
    assert not np.array_equal(plain[:64, 560:720], no_clock[:64, 560:720])


def test_a_goal_is_announced_and_forgotten() -> None:
    renderer = Renderer(view="top")
    renderer.frame(match(ball=(0.0, 5200.0, 93.0), time_s=20.0))
    kickoff = match(time_s=20.06, goals=(1, 0), since_kickoff_s=0.0)
    after = renderer.frame(kickoff)
    silent = Renderer(view="top").frame(kickoff)
    _, _, right, _ = changed(after, silent)
    assert amount(after[140:280, 500:780], TEAMS[0].light) > 100
    assert right > 900  # light in the orange goal, on the right
    for step in range(1, 60):
        last = renderer.frame(match(time_s=20.06 + step / 20, goals=(1, 0), since_kickoff_s=step / 20))
    assert np.array_equal(last, Renderer(view="top").frame(match(time_s=23.01, goals=(1, 0), since_kickoff_s=2.95)))


def test_the_ball_turns_with_its_spin(chase: Renderer) -> None:
    renderer = Renderer(view="chase")
    spinning = replace(match(), ball=BallView((0.0, 0.0, 93.15), STILL, (0.0, 5.0, 0.0)))
    first = renderer.frame(spinning)
    later = renderer.frame(replace(spinning, time_s=20.1, since_kickoff_s=20.1))
    seen = camera("chase", match())
    a, b = (box(image, seen, (0.0, 0.0, 93.15), 85.0) for image in (first, later))
    assert (a != b).any(axis=2).mean() > 0.1
    assert np.array_equal(chase.frame(match()), chase.frame(match(time_s=20.1)))  # without spin nothing moves


def test_who_sits_in_a_car_sees_its_boost_and_a_map(chase: Renderer) -> None:
    plain = chase.frame(match())
    left, _, right, _ = changed(plain[300:], chase.frame(match(replace(BLUE, boost=20.0)))[300:])
    assert left > 1100
    assert right < 1280
    far = chase.frame(
        match(orange=replace(ORANGE, position=(900.0, -4500.0, 17.0)))
    )  # behind the eye: on the map alone
    assert (plain[520:710, 10:170] != far[520:710, 10:170]).any()


def test_names_are_written() -> None:
    named, others = (
        Renderer(names=names, view="chase").frame(match()) for names in (("anna", "ben"), ("anna", "cleo"))
    )
    seen = camera("chase", match())
    spot = seen.pixel((900.0, 1200.0, 112.0))
    assert spot is not None
    differs = (named != others).any(axis=2)
    assert differs[round(spot[1]) - 25 : round(spot[1]), round(spot[0]) - 40 : round(spot[0]) + 40].any()
    assert differs[10:40, 1040:1150].any()
    assert not differs[:, :480].any()


def test_the_view_is_changed_by_name_or_in_turn() -> None:
    renderer = Renderer(view="chase-2")
    behind_orange = renderer.frame(match())
    assert np.array_equal(behind_orange, Renderer(view="chase-2").frame(match()))
    assert not np.array_equal(behind_orange, Renderer(view="chase").frame(match()))
    renderer.turn()
    assert np.array_equal(renderer.frame(match()), Renderer(view="ball-2").frame(match()))
    renderer.turn()
    assert np.array_equal(renderer.frame(match()), Renderer(view="top").frame(match()))
    renderer.look("side", 2)
    assert np.array_equal(renderer.frame(match()), Renderer(view="side").frame(match()))
    with pytest.raises(UnknownNameError, match="chase-3"):
        renderer.look("chase-3", 2)


def test_other_sizes_show_the_same(top: Renderer) -> None:
    small = Renderer(size=(640, 360)).frame(match())
    assert small.shape == (360, 640, 3)
    large = top.frame(match()).reshape(360, 2, 640, 2, 3).mean(axis=(1, 3))
    assert np.abs(small - large).mean() < 12.0
    half = new_surface((640, 360))
    top.draw(match(), half)
    assert np.abs(pygame.surfarray.array3d(half).swapaxes(0, 1) - large).mean() < 4.0


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_that_can_happen_breaks_a_picture(painters: dict[str, Renderer], view: str) -> None:
    random = np.random.default_rng(3)
    renderer = painters[view]
    for step in range(40):
        cars = []
        for team in (0, 1):
            turn = random.normal(size=4)
            cars.append(
                CarView(
                    tuple(random.uniform((-4090, -5990, 0), (4090, 5990, 2040)).tolist()),
                    tuple(random.normal(size=3) * 1000.0),
                    tuple((turn / np.linalg.norm(turn)).tolist()),
                    team, random.uniform(0, 100), bool(random.random() < 0.5), bool(random.random() < 0.3),
                    bool(random.random() < 0.5), random.uniform(-1, 1), False,
                    float(random.choice((0.0, 0.0, 2.95, 2.3, 0.1))),
                )
            )  # fmt: skip
        near = (
            cars[0].position
            if step % 4 == 0
            else tuple(random.uniform((-4000, -5900, 93), (4000, 5900, 1950)).tolist())
        )
        spin = tuple(random.normal(size=3).tolist())
        shown = match(cars[0], cars[1], time_s=step / 15, goals=(step // 10, 0), clock_s=20.0 - step)
        picture = renderer.frame(replace(shown, ball=BallView(near, STILL, spin)))
        assert picture.shape == (720, 1280, 3)
        assert picture.std() > 10.0


def test_an_environment_draws_any_of_its_games() -> None:
    with make_env("rocket", 2, seed=1, config={"threads": 1}) as env:
        assert isinstance(env, RocketEnv)
        env.fields()["position"][1, 0, 0] = 1234.0
        assert np.array_equal(env.render(1), Renderer().frame(env.view(1)))
        assert not np.array_equal(env.render(0), env.render(1))
