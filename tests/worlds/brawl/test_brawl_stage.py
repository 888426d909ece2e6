"""The stage: walls, edges, the one-way platform on its path, and bodies that bounce off all of them."""

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from ludus.worlds.brawl.observation import FIELDS
from ludus.worlds.brawl.rules import Ground, State
from ludus.worlds.brawl.view import platform_position

if TYPE_CHECKING:
    from tests.worlds.brawl.conftest import MakeStage, Stage

COLUMN = {field.name: index for index, field in enumerate(FIELDS)}
HALF = 0.435  # half a body's width
PULL = 17.808 / 30


@pytest.mark.parametrize(
    ("x", "y", "word", "wall"),
    [
        (1.0, 3.0, "right", 2 - HALF),
        (9.0, 3.0, "left", 7 + HALF),
        (-1.0, 4.0, "left", -2 + HALF),
        (-9.0, 4.0, "right", -7 - HALF),
    ],
)
def test_the_flanks_of_the_grounds_are_walls(stage: "Stage", x: float, y: float, word: str, wall: float) -> None:
    stage.hang(0, x, y)
    while stage.state() != State.KO:
        before = stage.get(0, "x")
        stage.set(0, jumps=0)
        stage.step(word)
        assert stage.state() == State.KO or (stage.get(0, "x") - wall) * (x - wall) >= -1e-6
    assert before == pytest.approx(wall)


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("speed", [12.0, 30.0, 45.0])
@pytest.mark.parametrize("inside", [True, False])
def test_no_speed_goes_through_a_wall_and_a_stunned_body_bounces(
    stage: "Stage", side: int, speed: float, inside: bool
) -> None:
    away = 1 if inside else -1  # +1: flies outward from the gap, -1: flies inward from outside
    stage.hang(0, side * (1.2 if inside else 7.8), 4.0, vx=side * away * speed, state=State.STUN, timer=30)
    stage.step()
    wall = 2 - HALF if inside else 7 + HALF
    assert stage.get(0, "x") == pytest.approx(side * wall)
    assert stage.get(0, "vx") == pytest.approx(-0.7 * side * away * (speed - 0.239), rel=1e-5)


def test_a_ground_carries_a_body_up_to_its_edge_and_no_further(stage: "Stage") -> None:
    for x, stands in ((-2 + HALF - 0.01, True), (-2 + HALF, False), (-7 - HALF + 0.01, True), (-7 - HALF, False)):
        stage.stand(0, x)
        stage.step()
        assert (stage.get(0, "ground") == Ground.SOLID) == stands, x
        assert (stage.state() == State.STANDING) == stands, x


def test_walking_off_the_edge_keeps_both_air_jumps(stage: "Stage") -> None:
    stage.stand(0, -2.0, facing=1)
    stage.step("right", frames=3)
    assert stage.state() == State.IN_AIR
    assert stage.get(0, "jumps") == 2


@pytest.mark.parametrize("frame", [0, 37, 72, 145, 200, 289])
def test_the_platforms_path(stage: "Stage", frame: int) -> None:
    # Smoothstep between (0.93, 0.07) and (-0.93, 1.93), 145 frames each way.
    t = min(frame, 290 - frame) / 145
    s = 1 - 2 * (3 * t**2 - 2 * t**3)
    for lap in (0, 290, 2320):
        stage.matches["frame"][:] = frame + lap
        row = stage.env.restore(stage.env.snapshot())["vector"][0, 0]
        assert row[COLUMN["world.platform_x"]].item() * 14 == pytest.approx(0.93 * s, abs=1e-5)
        assert row[COLUMN["world.platform_y"]].item() * 8 == pytest.approx(1 - 0.93 * s, abs=1e-5)
        assert stage.env.view().platform == pytest.approx((0.93 * s, 1 - 0.93 * s))


def test_the_platforms_ends_and_middle() -> None:
    assert platform_position(0) == pytest.approx((0.93, 0.07))
    assert platform_position(145) == pytest.approx((-0.93, 1.93))
    assert platform_position(290) == platform_position(0)
    xs = [platform_position(frame)[0] for frame in range(291)]
    assert all(before > after for before, after in pairwise(xs[:146]))
    assert xs[72] > 0 > xs[73]


def test_the_observed_speed_is_how_the_platform_moves(stage: "Stage") -> None:
    for frame in (0, 10, 72, 144, 145, 250):
        stage.matches["frame"][:] = frame
        row = stage.env.restore(stage.env.snapshot())["vector"][0, 0]
        (x, y), (next_x, next_y) = platform_position(frame), platform_position(frame + 1)
        assert row[COLUMN["world.platform_vx"]].item() == pytest.approx(30 * (next_x - x), abs=1e-4)
        assert row[COLUMN["world.platform_vy"]].item() == pytest.approx(30 * (next_y - y), abs=1e-4)


def test_landing_on_the_platform_from_above(stage: "Stage") -> None:
    stage.hang(0, 0.9, -1.5, jumps=0, recovery_used=1)
    stage.step(frames=25)
    assert stage.get(0, "ground") == Ground.PLATFORM
    assert stage.state() == State.STANDING
    assert stage.get(0, "y") + 0.5 == pytest.approx(platform_position(25)[1], abs=1e-5)
    assert (stage.get(0, "jumps"), stage.get(0, "recovery_used")) == (2, 0)


def test_passing_the_platform_from_below_and_landing_on_the_way_down(stage: "Stage") -> None:
    stage.hang(0, 0.9, 1.2, vy=-8.9)
    highest = 99.0
    while stage.get(0, "ground") == Ground.NONE:
        stage.step()
        highest = min(highest, stage.get(0, "y"))
    frame = int(stage.matches["frame"][0])
    assert stage.get(0, "ground") == Ground.PLATFORM
    # It rises 2.0757 as any jump does: nothing stopped it on its way up through the platform at 0.07.
    assert highest == pytest.approx(1.2 - 2.07573, abs=1e-4)
    assert stage.get(0, "y") + 0.5 == pytest.approx(platform_position(frame)[1], abs=1e-5)


def test_feet_that_do_not_clear_the_platform_do_not_land_on_it(stage: "Stage") -> None:
    # Highest point of the feet: 2.3 + 0.5 - 2.0757 = 0.72, below the platform, which starts at 0.07 and sinks to 0.11.
    stage.hang(0, 0.9, 2.3, vy=-8.9)
    for _ in range(40):
        stage.step()
        assert stage.get(0, "ground") == Ground.NONE


def test_down_drops_through_the_platform(stage: "Stage") -> None:
    top = platform_position(0)[1]
    stage.hang(0, 0.93, top - 0.5, ground=Ground.PLATFORM, state=State.STANDING)
    stage.step()
    assert stage.get(0, "ground") == Ground.PLATFORM
    stage.step("down")
    assert stage.state() == State.IN_AIR
    for _ in range(15):
        stage.step()
        assert stage.get(0, "ground") == Ground.NONE
    assert stage.get(0, "y") - 0.5 > top


def test_down_does_nothing_on_solid_ground(stage: "Stage") -> None:
    stage.step("down", frames=10)
    assert stage.get(0, "ground") == Ground.SOLID
    assert stage.get(0, "y") == pytest.approx(2.35)


def test_the_platform_carries_whoever_stands_on_it(stage: "Stage") -> None:
    stage.hang(0, 0.93 - 0.6, 0.07 - 0.5, ground=Ground.PLATFORM, state=State.STANDING)
    for frame in range(1, 291):
        stage.step()
        x, y = platform_position(frame)
        assert stage.get(0, "ground") == Ground.PLATFORM
        assert stage.get(0, "x") == pytest.approx(x - 0.6, abs=1e-4)
        assert stage.get(0, "y") == pytest.approx(y - 0.5, abs=1e-5)


def test_the_platform_carries_a_dodge_and_a_ground_move_too(stage: "Stage") -> None:
    stage.matches["frame"][:] = 60
    x, y = platform_position(60)
    stage.hang(0, x, y - 0.5, ground=Ground.PLATFORM, state=State.STANDING)
    for frame in range(61, 100):
        stage.step("dodge" if frame == 61 else "light" if frame == 75 else "")
        assert stage.get(0, "ground") == Ground.PLATFORM
        assert stage.get(0, "y") == pytest.approx(platform_position(frame)[1] - 0.5, abs=1e-4)


@pytest.mark.parametrize(("beside", "stands"), [(1.42, True), (1.45, False), (-1.42, True), (-1.45, False)])
def test_the_platforms_edges(stage: "Stage", beside: float, stands: bool) -> None:
    stage.hang(0, 0.93 + beside, -1.0)
    stage.set(0, x=0.93 + beside)
    for frame in range(40):
        stage.set(0, x=platform_position(frame + 1)[0] + beside, vx=0.0)
        stage.step()
        if stage.get(0, "ground") != Ground.NONE:
            break
    assert (stage.get(0, "ground") == Ground.PLATFORM) == stands


@pytest.mark.parametrize(("speed", "after"), [(12.0, -0.7 * (12.0 + PULL)), (2.0, 0.0)])
def test_a_stunned_body_bounces_off_the_ground_if_it_is_fast(stage: "Stage", speed: float, after: float) -> None:
    stage.hang(0, -5.0, 2.3, vy=speed, state=State.STUN, timer=20)
    stage.step()
    assert stage.get(0, "vy") == pytest.approx(after, abs=1e-4)
    assert stage.get(0, "y") == pytest.approx(2.35)
    assert stage.get(0, "ground") == (Ground.SOLID if after == 0.0 else Ground.NONE)
    assert stage.state() == State.STUN


def test_a_body_that_is_not_stunned_does_not_bounce(stage: "Stage") -> None:
    stage.hang(0, -5.0, 2.3, vy=12.0)
    stage.step()
    assert (stage.get(0, "vy"), stage.get(0, "ground")) == (0.0, Ground.SOLID)


def test_stun_slows_sideways_motion_and_lets_gravity_work(stage: "Stage") -> None:
    stage.hang(0, -12.0, -6.0, vx=9.0, vy=-3.0, state=State.STUN, timer=21)
    stage.step("left jump light dodge heavy", frames=20)  # keys do nothing
    assert stage.state() == State.STUN
    assert stage.get(0, "vx") == pytest.approx(9.0 - 20 * 0.239, abs=1e-4)
    assert stage.get(0, "x") == pytest.approx(-12.0 + (20 * 9.0 - 0.239 * 210) / 30, abs=1e-4)
    assert stage.get(0, "vy") == pytest.approx(-3.0 + 20 * PULL, abs=1e-4)
    stage.step()
    assert stage.state() == State.IN_AIR


def test_stun_has_no_limit_of_falling(stage: "Stage") -> None:
    stage.hang(0, 10.0, -7.0, vy=30.0, state=State.STUN, timer=60)
    stage.step(frames=5)
    assert stage.get(0, "vy") == pytest.approx(30.0 + 5 * PULL, abs=1e-4)


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("outward", [True, False])
def test_ground_moves_stop_at_edges(make_stage: "MakeStage", side: int, outward: bool) -> None:
    stage = make_stage()
    facing = side if outward else -side
    stage.stand(0, side * (6.9 if outward else 2.1), facing=facing)
    stage.stand(1, -side * 5.0)
    word = "right" if facing > 0 else "left"
    stage.step(f"{word} light")  # the lunge carries its fighter 8.5 u/s for six frames: 1.7 units
    assert stage.state() == State.ATTACK
    for _ in range(15):
        stage.step(word)
        assert stage.get(0, "ground") == Ground.SOLID
    assert abs(stage.get(0, "x")) == pytest.approx(7.2 if outward else 1.8)


@pytest.mark.parametrize("x", [-1.6, -7.4])
def test_a_ground_move_on_the_very_edge_does_not_move_its_fighter(stage: "Stage", x: float) -> None:
    stage.stand(0, x)
    stage.step("light")
    assert stage.state() == State.ATTACK
    assert stage.get(0, "x") == pytest.approx(x)
