"""Tests of Brawl's renderer: pictures change where they should, and only there."""

import subprocess
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from ludus.envs import make_env
from ludus.envs.pygame_tools import new_surface, pygame
from ludus.worlds.brawl.env import BrawlEnv
from ludus.worlds.brawl.moves import HitModel, MoveModel, MoveTable, load_move_table
from ludus.worlds.brawl.render import Renderer
from ludus.worlds.brawl.rendering.figure import two_bones
from ludus.worlds.brawl.rendering.poses import attack_phase, pose_of
from ludus.worlds.brawl.rendering.sketch import DEBUG_HIT, SAND, TEAMS, WHITE, damage_color
from ludus.worlds.brawl.rules import HIGH_TOP, LOW_TOP, Ground, Slot, State
from ludus.worlds.brawl.view import HitView, ItemView, MatchView, PlayerView, platform_position

Image = NDArray[np.uint8]
SCALE = 720 / 16  # pixels a unit
HIGH, LOW = HIGH_TOP - 0.5, LOW_TOP - 0.5  # a standing fighter's centre


@cache
def table() -> MoveTable:
    return load_move_table()


@pytest.fixture(scope="module")
def painted() -> Renderer:
    return Renderer(table())


@pytest.fixture
def renderer(painted: Renderer) -> Renderer:
    """One renderer for all tests, because its scenery takes 0.1 s; each finds it as if new."""
    painted.names = ("Azure", "Scarlet")
    painted.frame(match(frame=2000))
    return painted


RESTING = PlayerView(
    x=4.0,
    y=HIGH,
    vx=0.0,
    vy=0.0,
    facing=-1,
    damage=0.0,
    stocks=3,
    state=State.STANDING,
    timer=0,
    ground=Ground.SOLID,
    invincible=0,
    air_jumps=2,
    dodge_cooldown=0,
    weapon="fists",
    slot=None,
    move_frame=0,
    charge=0,
    hits=(),
)
OTHER = replace(RESTING, x=-4.0, y=LOW, facing=1)


def match(
    first: PlayerView = RESTING,
    second: PlayerView = OTHER,
    *,
    frame: int = 100,
    items: tuple[ItemView, ...] = (),
    mirrored: bool = False,
) -> MatchView:
    return MatchView(frame, 2700, mirrored, platform_position(frame), (first, second), items)


def attacking(weapon: str, slot: Slot, frame: int) -> PlayerView:
    """The resting fighter in a move, with the capsules that the table says are active."""
    move = table().weapons[weapon].moves[slot.name.lower()]
    x, y, facing = RESTING.x, RESTING.y, RESTING.facing
    hits = tuple(
        HitView((x + facing * h.start[0], y + h.start[1]), (x + facing * h.end[0], y + h.end[1]), h.radius)
        for h in move.hits
        if h.frames[0] <= frame <= h.frames[1]
    )
    return replace(RESTING, state=State.ATTACK, weapon=weapon, slot=slot, move_frame=frame, hits=hits)


def pixel(x: float, y: float) -> tuple[int, int]:
    """Row and column of a place on the stage."""
    return round(360 + y * SCALE), round(640 + x * SCALE)


def box(image: Image, x: float, y: float, reach: float) -> Image:
    """The part of a picture around a place on the stage."""
    (top, left), (bottom, right) = pixel(x - reach, y - reach), pixel(x + reach, y + reach)
    return image[top:bottom, left:right]


def amount(image: Image, color: tuple[int, int, int]) -> int:
    """Pixels that have a colour, but for the rounding of smooth scaling."""
    return int((np.abs(image.astype(int) - np.array(color)).max(axis=2) <= 4).sum())


def changed(a: Image, b: Image) -> tuple[float, float, float, float]:
    """Left, top, right and bottom, in units, of where two pictures differ."""
    rows, columns = np.nonzero((a != b).any(axis=2))
    assert rows.size > 0
    return (
        (columns.min() - 640) / SCALE,
        (rows.min() - 360) / SCALE,
        (columns.max() - 640) / SCALE,
        (rows.max() - 360) / SCALE,
    )


def test_a_picture_is_new_memory_of_the_right_kind_and_equal_views_give_equal_pictures(renderer: Renderer) -> None:
    first = renderer.frame(match())
    assert first.shape == (720, 1280, 3)
    assert first.dtype == np.uint8
    kept = first.copy()
    renderer.frame(match(replace(RESTING, x=5.0)))
    assert np.array_equal(first, kept)
    assert np.array_equal(Renderer(table()).frame(match()), first)


def test_no_window_and_no_screen_are_needed(renderer: Renderer) -> None:
    renderer.frame(match())
    assert not pygame.display.get_init()


def test_moving_a_fighter_changes_the_picture_only_around_it(renderer: Renderer) -> None:
    left, top, right, bottom = changed(renderer.frame(match()), renderer.frame(match(replace(RESTING, x=4.5))))
    assert 3.0 < left < 4.0
    assert 4.5 < right < 5.5
    assert HIGH - 0.8 < top < HIGH
    assert HIGH < bottom < HIGH_TOP + 0.2


def test_every_state_looks_different(renderer: Renderer) -> None:
    seen: dict[bytes, State] = {}
    for state in State:
        flying = state in (State.IN_AIR, State.AIR_TURNAROUND, State.STUN)
        player = replace(
            RESTING,
            state=state,
            timer=5,
            ground=Ground.NONE if flying else Ground.SOLID,
            slot=Slot.GROUND_LIGHT_SIDE if state is State.ATTACK else None,
            move_frame=3,
        )
        picture = box(renderer.frame(match(player)), RESTING.x, RESTING.y, 1.2).tobytes()
        same = seen.setdefault(picture, state)
        # Turning looks the same on the ground and in the air, where the place tells them apart.
        assert same is state or {same, state} == {State.TURNAROUND, State.AIR_TURNAROUND}
    assert len(seen) == len(State) - 1


def test_a_clash_sparks_between_the_two(renderer: Renderer) -> None:
    """The spark is halfway between them, and the picture does not depend on anything but the time that is left."""
    first, second = replace(RESTING, x=4.0, facing=1), replace(RESTING, x=5.2, facing=-1)
    apart = renderer.frame(match(replace(first, state=State.CLASH, timer=9), second))
    locked = [
        renderer.frame(match(*(replace(player, state=State.CLASH, timer=timer) for player in (first, second))))
        for timer in (9, 2)
    ]
    assert amount(box(locked[0], 4.6, HIGH - 0.15, 0.3), (255, 236, 150)) > 50
    assert amount(box(apart, 4.6, HIGH - 0.15, 0.3), (255, 236, 150)) == 0
    assert changed(*locked)


def test_invincibility_and_charge_are_seen(renderer: Renderer) -> None:
    plain = renderer.frame(match())
    assert changed(plain, renderer.frame(match(replace(RESTING, invincible=40))))
    heavy = attacking("hammer", Slot.GROUND_HEAVY_SIDE, 12)
    light = box(renderer.frame(match(replace(heavy, charge=1))), RESTING.x, RESTING.y, 1.2)
    full = box(renderer.frame(match(replace(heavy, charge=30))), RESTING.x, RESTING.y, 1.2)
    assert full.mean() > light.mean() + 2.0


def test_a_knocked_out_fighter_is_gone_and_counted_down(renderer: Renderer) -> None:
    alive = renderer.frame(match(replace(RESTING, x=6.5)))
    gone = renderer.frame(match(replace(RESTING, x=5.0, y=0.0, state=State.KO, timer=60, stocks=2)))
    assert amount(box(alive, 6.5, HIGH, 0.4), TEAMS[0].base) > 100
    assert amount(box(gone, 6.5, HIGH, 0.4), TEAMS[0].base) == 0
    later = renderer.frame(match(replace(RESTING, x=5.0, y=0.0, state=State.KO, timer=29, stocks=2)))
    assert not np.array_equal(box(gone, 5.0, 0.0, 0.7), box(later, 5.0, 0.0, 0.7))
    last = renderer.frame(match(replace(RESTING, x=5.0, y=0.0, state=State.KO, timer=60, stocks=0)))
    empty = Renderer(table()).frame(match(replace(RESTING, x=-6.5, y=LOW)))
    assert np.array_equal(box(last, 5.0, 0.0, 0.7), box(empty, 5.0, 0.0, 0.7))


def test_a_knockout_bursts_where_the_fighter_was_last_seen(renderer: Renderer) -> None:
    leaving = replace(RESTING, x=13.5, y=-3.0, state=State.STUN, timer=5, ground=Ground.NONE)
    renderer.frame(match(leaving, frame=100))
    gone = replace(RESTING, x=5.0, y=0.0, state=State.KO, timer=88, stocks=2)
    burst = renderer.frame(match(gone, frame=101))
    unseen = Renderer(table()).frame(match(gone, frame=101))
    left, top, right, bottom = changed(burst, unseen)
    assert 8.0 < left < right <= 14.3
    assert -5.5 < top < bottom < 0.0


@pytest.mark.parametrize("weapon", ["fists", "spear", "hammer"])
@pytest.mark.parametrize("slot", list(Slot))
def test_an_active_capsule_is_drawn_where_it_hits(renderer: Renderer, weapon: str, slot: Slot) -> None:
    hit = table().weapons[weapon].moves[slot.name.lower()].hits[0]
    active = attacking(weapon, slot, hit.frames[0])
    assert len(active.hits) == 1
    with_capsule, without = renderer.frame(match(active)), renderer.frame(match(replace(active, hits=())))
    left, top, right, bottom = changed(with_capsule, without)
    (x0, y0), (x1, y1), radius = active.hits[0].start, active.hits[0].end, active.hits[0].radius
    # One pixel is 0.022 units; the fighter itself may hide the near side, and the picture's edge cuts nothing here.
    assert left >= min(x0, x1) - radius - 0.05
    assert right <= max(x0, x1) + radius + 0.05
    assert top >= min(y0, y1) - radius - 0.05
    assert bottom <= max(y0, y1) + radius + 0.05


def hit_at(first: int, last: int) -> HitModel:
    return HitModel(
        frames=(first, last), start=(0.4, 0.0), end=(1.1, 0.0), radius=0.3, damage=5, stun=5, angle=30, launch=(5, 2)
    )


def test_startup_active_and_recovery_are_different_phases() -> None:
    move = MoveModel(name="lunge", total=21, hits=(hit_at(5, 8),))
    phases = [attack_phase(move, frame) for frame in (0, 4, 5, 8, 9, 20)]
    assert [phase.name for phase in phases] == ["startup", "startup", "active", "active", "recovery", "recovery"]
    assert [phase.share for phase in phases] == pytest.approx([0.0, 0.8, 0.25, 1.0, 1 / 13, 12 / 13])


def test_between_two_hits_the_second_starts_up() -> None:
    phase = attack_phase(MoveModel(name="flurry", total=17, hits=(hit_at(3, 4), hit_at(7, 9))), 6)
    assert (phase.name, phase.hit.frames) == ("startup", (7, 9))
    assert phase.share == pytest.approx(2 / 3)


def test_a_blow_is_drawn_back_then_strikes_then_returns() -> None:
    move = table().weapons["fists"].moves["ground_light_side"]
    first, last = move.hits[0].frames
    frames = (first - 1, first, (last + move.total) // 2)
    views = [attacking("fists", Slot.GROUND_LIGHT_SIDE, frame) for frame in frames]
    back, strike, returning = (pose_of(view, table(), 0).front_hand[0] for view in views)
    assert back < 0.1
    assert strike == pytest.approx(move.hits[0].end[0])
    assert back < returning < strike


def test_limbs_reach_their_target_or_stretch_towards_it() -> None:
    joint, end = two_bones((0.0, 0.0), (0.3, 0.0), 0.25, 1.0)
    assert end == pytest.approx((0.3, 0.0))
    assert joint == pytest.approx((0.15, 0.2))  # a 3-4-5 triangle
    _, far = two_bones((0.0, 0.0), (9.0, 0.0), 0.2, 1.0)
    assert far == pytest.approx((0.7, 0.0))  # 1.75 times its length


def test_weapons_are_drawn_in_their_colour_in_hand_and_on_the_ground(renderer: Renderer) -> None:
    color = table().weapons["hammer"].color

    def seen(view: MatchView, x: float) -> int:
        return amount(box(renderer.frame(view), x, HIGH, 1.5), color)

    assert seen(match(), 4.0) == 0
    assert seen(match(replace(RESTING, weapon="hammer")), 4.0) > 60
    free = ItemView(-4.0, HIGH_TOP, "hammer", 300, 0)
    assert seen(match(items=(free,)), -4.0) > 60
    assert seen(match(items=(replace(free, lock=20),)), -4.0) == 0  # greyed while it cannot be taken
    assert seen(match(items=(replace(free, life=12),)), -4.0) == 0  # blinks before it vanishes


def test_damage_stocks_names_and_clock_change_only_their_own_place(renderer: Renderer) -> None:
    plain = renderer.frame(match())
    left, top, right, bottom = changed(plain, renderer.frame(match(replace(RESTING, damage=137.0))))
    assert -7.0 < left < right < -2.0
    assert 5.5 < top < bottom < 8.0
    left, _, right, _ = changed(plain, renderer.frame(match(second=replace(OTHER, stocks=1))))
    assert 2.0 < left < right < 7.0
    renderer.names = ("Azure", "someone")
    left, top, right, bottom = changed(plain, renderer.frame(match()))
    assert 2.0 < left < right < 7.0
    assert 5.5 < top < bottom < 6.5


def test_many_stocks_are_written_as_a_number(renderer: Renderer) -> None:
    many, more = (renderer.frame(match(replace(RESTING, stocks=stocks))) for stocks in (98, 99))
    left, _, right, _ = changed(many, more)
    assert right - left < 0.6  # two digits, not 98 discs


def test_the_damage_number_runs_from_white_over_orange_to_dark_red() -> None:
    assert damage_color(0.0) == WHITE
    assert damage_color(100.0) == (255, 154, 60)
    assert damage_color(75.0) == (255, 190, 90)
    assert damage_color(700.0) == (190, 24, 60)


def test_grounds_have_their_heights_and_a_mirrored_stage_swaps_them(renderer: Renderer) -> None:
    standard, mirrored = renderer.frame(match()), renderer.frame(match(mirrored=True))
    for image, side in ((standard, 1.0), (mirrored, -1.0)):
        assert tuple(image[pixel(side * 6.5, HIGH_TOP + 0.06)]) == SAND
        assert tuple(image[pixel(-side * 6.5, LOW_TOP + 0.06)]) == SAND
        assert tuple(image[pixel(-side * 6.5, HIGH_TOP + 0.06)]) != SAND


def test_debug_draws_the_capsules_and_the_state_in_words() -> None:
    hit = table().weapons["spear"].moves["ground_heavy_side"].hits[0]
    view = match(attacking("spear", Slot.GROUND_HEAVY_SIDE, hit.frames[0]))
    plain, debug = Renderer(table()).frame(view), Renderer(table(), debug=True).frame(view)
    assert not np.array_equal(plain, debug)
    row, column = pixel(RESTING.x - hit.end[0] - hit.radius, RESTING.y + hit.end[1])  # the tip of its outline
    near = debug[row, column - 3 : column + 4].astype(int)
    assert np.abs(near - np.array(DEBUG_HIT)).sum(axis=1).min() < 60
    above = box(debug, RESTING.x, RESTING.y - 1.5, 0.4)
    assert (above == WHITE).all(axis=2).any()
    assert not (box(plain, RESTING.x, RESTING.y - 1.5, 0.4) == WHITE).all(axis=2).any()


def test_an_environment_draws_any_of_its_games() -> None:
    with make_env("brawl", 3, seed=1) as env:
        assert isinstance(env, BrawlEnv)
        picture = env.render(2)
        assert np.array_equal(picture, Renderer(env.table).frame(env.view(2)))


def test_draw_fills_a_surface_of_any_size(renderer: Renderer) -> None:
    frame = renderer.frame(match())
    same, half = new_surface((1280, 720)), new_surface((640, 360))
    renderer.draw(match(), same)
    renderer.draw(match(), half)
    assert tuple(same.get_at((640, 30)))[:3] == tuple(frame[30, 640])
    row, column = pixel(6.5, HIGH_TOP + 0.06)
    assert np.abs(np.array(half.get_at((column // 2, row // 2)))[:3] - np.array(SAND)).max() < 40


def test_other_picture_sizes_show_the_same_stage() -> None:
    small = Renderer(table(), size=(640, 360)).frame(match())
    assert small.shape == (360, 640, 3)
    row, column = pixel(6.0, HIGH_TOP + 0.06)
    assert np.abs(small[row // 2, column // 2].astype(int) - np.array(SAND)).max() < 40


def test_without_pygame_the_error_names_the_install_command() -> None:
    code = "import sys; sys.modules['pygame'] = None; import ludus.envs.pygame_tools"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MissingDependencyError: drawing a game needs pygame-ce" in done.stderr
    assert 'pip install -e ".[window]"' in done.stderr
