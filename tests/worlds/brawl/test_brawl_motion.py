"""How a fighter moves: falling, jumping, walking, dashing, dodging and turning, with numbers worked out by hand.

A frame is 1/30 s. Velocity changes first and moves the body afterwards: after n frames of free fall from rest the
speed is 17.808 / 30 * n = 0.5936 n, and the way is 0.5936 / 30 * n (n + 1) / 2.
"""

from typing import TYPE_CHECKING

import pytest

from ludus.worlds.brawl.rules import Ground, State

if TYPE_CHECKING:
    from tests.worlds.brawl.conftest import Stage

PULL = 17.808 / 30  # 0.5936 units/s a frame
STANDING_HIGH, STANDING_LOW = 0.35, 2.35  # tops 0.85 and 2.85, less half a body


def test_free_fall_reaches_the_highest_speed_and_stays_there(stage: "Stage") -> None:
    stage.hang(0, 10.0, -7.0)
    stage.step(frames=20)
    assert stage.get(0, "vy") == pytest.approx(20 * PULL, abs=1e-4)  # 11.872
    assert stage.get(0, "y") == pytest.approx(-7.0 + PULL / 30 * 210, abs=1e-4)
    stage.step()  # 12.4656 would be over the limit
    assert stage.get(0, "vy") == 12.0
    stage.step(frames=9)
    assert stage.get(0, "y") == pytest.approx(-7.0 + PULL / 30 * 210 + 10 * 0.4, abs=1e-4)
    assert stage.get(0, "x") == 10.0


def test_holding_down_doubles_the_pull_and_raises_the_limit(stage: "Stage") -> None:
    stage.hang(0, 10.0, -7.5)
    stage.step("down", frames=13)
    assert stage.get(0, "vy") == pytest.approx(13 * 2 * PULL, abs=1e-4)  # 15.4336
    assert stage.get(0, "y") == pytest.approx(-7.5 + 2 * PULL / 30 * 91, abs=1e-4)
    stage.step("down", frames=5)
    assert stage.get(0, "vy") == 16.0
    stage.step(frames=2)  # let go: back towards 12 at the rate of gravity
    assert stage.get(0, "vy") == pytest.approx(16.0 - 2 * PULL, abs=1e-4)
    stage.step(frames=6)
    assert stage.get(0, "vy") == 12.0


def test_a_jump_rises_for_fourteen_frames_and_lands_after_twenty_nine(stage: "Stage") -> None:
    stage.step("jump")
    assert stage.state() == State.IN_AIR
    heights = [stage.get(0, "y")]
    while stage.get(0, "ground") == Ground.NONE:
        stage.step()
        heights.append(stage.get(0, "y"))
    # After n frames the height is (8.9 n - 0.5936 n (n + 1) / 2) / 30: highest at n = 14, as 0.5936 * 15 > 8.9.
    assert min(heights) == heights[13] == pytest.approx(STANDING_LOW - (8.9 * 14 - PULL * 105) / 30, abs=1e-4)
    assert STANDING_LOW - min(heights) == pytest.approx(2.07573, abs=1e-4)
    # It is 0 again when 8.9 = 0.2968 (n + 1), between frame 28 and 29.
    assert len(heights) == 29
    assert heights[-1] == pytest.approx(STANDING_LOW)
    assert stage.state() == State.STANDING


def test_a_held_jump_key_jumps_once(stage: "Stage") -> None:
    stage.step("jump", frames=40)
    assert stage.get(0, "ground") == Ground.SOLID
    assert stage.get(0, "jumps") == 2


def test_two_air_jumps_six_frames_apart_and_no_third(stage: "Stage") -> None:
    stage.step("jump")
    stage.step(frames=4)
    before = stage.get(0, "vy")
    stage.step("jump")  # the fifth frame after the jump: too early
    assert stage.get(0, "jumps") == 2
    assert stage.get(0, "vy") == pytest.approx(before + PULL, abs=1e-4)
    for left in (1, 0):
        stage.step(frames=5)
        stage.step("jump")
        assert stage.get(0, "jumps") == left
        assert stage.get(0, "vy") == pytest.approx(-8.9 + PULL, abs=1e-4)
    stage.step(frames=10)
    before = stage.get(0, "vy")
    stage.step("jump")
    assert stage.get(0, "vy") == pytest.approx(before + PULL, abs=1e-4)
    while stage.get(0, "ground") == Ground.NONE:
        stage.step()
    assert stage.get(0, "jumps") == 2


def test_the_sixth_frame_after_a_jump_allows_the_next(stage: "Stage") -> None:
    stage.step("jump")
    stage.step(frames=5)
    stage.step("jump")
    assert stage.get(0, "jumps") == 1


def test_an_air_jump_with_a_direction_has_at_least_the_drift(stage: "Stage") -> None:
    stage.hang(0, 10.0, -5.0, vx=3.0)
    stage.step("jump left")
    assert stage.get(0, "vx") == -4.5
    stage.hang(0, 10.0, -5.0, vx=-6.0, jumps=2, jump_cooldown=0)
    stage.step()
    stage.step("jump left")
    assert stage.get(0, "vx") == -6.0


def test_drifting_in_the_air_eases_towards_walking_speed(stage: "Stage") -> None:
    stage.hang(0, 10.0, -7.0, facing=1)
    stage.step("right", frames=10)
    assert stage.get(0, "vx") == pytest.approx(3.58, abs=1e-4)  # 0.358 a frame
    assert stage.get(0, "x") == pytest.approx(10.0 + 0.358 * 55 / 30, abs=1e-4)  # 1 + 2 + ... + 10 = 55
    stage.step("right", frames=10)
    assert stage.get(0, "vx") == 6.75


@pytest.mark.parametrize("direction", [1, -1])
def test_walking(stage: "Stage", direction: int) -> None:
    stage.stand(0, -4.5, facing=direction)
    stage.step("right" if direction > 0 else "left", frames=8)
    assert stage.state() == State.WALKING
    assert stage.get(0, "x") == pytest.approx(-4.5 + direction * 8 * 6.75 / 30, abs=1e-5)
    stage.step()
    assert stage.state() == State.STANDING
    assert stage.get(0, "vx") == pytest.approx(direction * (6.75 - 1.5))  # slides to a stop, 1.5 a frame
    stage.step(frames=4)
    assert stage.get(0, "vx") == 0.0


def test_left_and_right_together_are_nothing(stage: "Stage") -> None:
    stage.step("left right", frames=5)
    assert stage.get(0, "x") == -5.0
    assert stage.state() == State.STANDING


def test_turning_takes_one_frame(stage: "Stage") -> None:
    stage.stand(0, -4.5, facing=1)
    stage.step("left")
    assert stage.state() == State.TURNAROUND
    assert stage.get(0, "facing") == -1
    assert stage.get(0, "x") == -4.5
    stage.step("left")
    assert stage.state() == State.WALKING
    assert stage.get(0, "x") == pytest.approx(-4.5 - 6.75 / 30)


def test_turning_in_the_air_costs_nothing(stage: "Stage") -> None:
    stage.hang(0, 10.0, -5.0, facing=1)
    stage.step("left")
    assert stage.state() == State.AIR_TURNAROUND
    assert stage.get(0, "facing") == -1
    assert stage.get(0, "vx") == pytest.approx(-0.358)
    stage.step("left")
    assert stage.state() == State.IN_AIR


@pytest.mark.parametrize("direction", [1, -1])
def test_a_dash_is_nine_frames_at_ten_then_a_sprint(stage: "Stage", direction: int) -> None:
    word = "right" if direction > 0 else "left"
    stage.stand(0, -4.5 - 2.0 * direction, facing=direction)
    start = stage.get(0, "x")
    for frame in range(1, 10):
        stage.step(f"{word} dodge")
        assert stage.state() == State.DASH
        assert stage.get(0, "x") == pytest.approx(start + direction * frame / 3, abs=1e-5)
    stage.step(word)
    assert stage.state() == State.SPRINTING
    assert stage.get(0, "x") == pytest.approx(start + direction * (3 + 8 / 30), abs=1e-5)
    stage.step(word)
    assert stage.get(0, "vx") == 8.0 * direction
    stage.step()
    assert stage.state() == State.STANDING


def test_a_dash_that_is_not_held_on_ends_in_standing(stage: "Stage") -> None:
    stage.stand(0, -6.5, facing=1)
    stage.step("right dodge")
    stage.step(frames=8)
    assert stage.state() == State.DASH
    stage.step()
    assert stage.state() == State.STANDING


@pytest.mark.parametrize("facing", [1, -1])
def test_a_back_dash_is_seven_frames_at_four_and_keeps_its_front(stage: "Stage", facing: int) -> None:
    stage.stand(0, -4.5, facing=facing)
    word = "left" if facing > 0 else "right"
    for frame in range(1, 8):
        stage.step(f"{word} dodge")
        assert stage.state() == State.BACKDASH
        assert stage.get(0, "x") == pytest.approx(-4.5 - facing * frame * 4 / 30, abs=1e-5)
    assert stage.get(0, "facing") == facing
    stage.step()
    assert stage.state() == State.STANDING


def test_a_dash_can_be_broken_off_by_a_jump_and_keeps_its_speed(stage: "Stage") -> None:
    stage.stand(0, -6.5, facing=1)
    stage.step("right dodge", frames=3)
    stage.step("right jump")
    assert stage.state() == State.IN_AIR
    assert stage.get(0, "vx") == 10.0
    assert stage.get(0, "vy") == pytest.approx(-8.9 + PULL)


def test_dashing_over_the_edge_ends_the_dash_in_the_air(stage: "Stage") -> None:
    stage.stand(0, -2.2, facing=1)
    stage.step("right dodge", frames=4)
    assert stage.get(0, "ground") == Ground.NONE
    stage.step("right")
    assert stage.state() == State.IN_AIR
    assert stage.get(0, "timer") == 0


def test_a_dodge_in_the_air_stops_the_body_at_once(stage: "Stage") -> None:
    stage.hang(0, 10.0, -5.0, vx=6.0, vy=-4.0)
    stage.step("dodge right")  # a direction does nothing in the air
    assert stage.state() == State.DODGE
    for _ in range(9):
        assert stage.place(0) == (10.0, -5.0)
        assert stage.get(0, "vx") == stage.get(0, "vy") == 0.0
        stage.step()
    assert stage.state() == State.DODGE
    stage.step()
    assert stage.state() == State.IN_AIR
    assert stage.get(0, "vy") == pytest.approx(PULL)


@pytest.mark.parametrize(("airborne", "cooldown"), [(False, 30), (True, 82)])
@pytest.mark.parametrize("late", [False, True])
def test_a_dodge_takes_ten_frames_and_the_next_waits_for_the_cooldown(
    stage: "Stage", airborne: bool, cooldown: int, late: bool
) -> None:
    if airborne:
        stage.hang(0, 10.0, -7.5)
    stage.step("dodge")
    # Ten frames of dodge, then the cooldown: the press in frame 10 + cooldown is the first that works.
    for frame in range(1, 9 + cooldown + late):
        if airborne:
            stage.set(0, y=-7.5, vy=0.0)  # the fall would end it
        stage.step()
        assert (stage.state() == State.DODGE) == (frame < 10), frame
    stage.step("dodge")
    assert (stage.state() == State.DODGE) == late


def test_a_taunt_takes_thirty_frames_and_holds_still(stage: "Stage") -> None:
    stage.step("right", frames=3)
    x = stage.get(0, "x")
    stage.step("taunt right")
    for _ in range(29):
        assert stage.state() == State.TAUNT
        stage.step("right jump light dodge")
    assert stage.state() == State.TAUNT
    assert stage.get(0, "x") == pytest.approx(x)
    stage.step("right jump light dodge")
    assert stage.state() == State.ATTACK  # held keys act again; presses were not kept


def test_no_taunt_in_the_air(stage: "Stage") -> None:
    stage.hang(0, 10.0, -5.0)
    stage.step("taunt")
    assert stage.state() == State.IN_AIR


def test_both_seats_move_alike(stage: "Stage") -> None:
    stage.hang(0, 10.0, -5.0, facing=1)
    stage.hang(1, 10.0, -5.0, facing=1)
    for words in ("right", "right jump", "left", "down", "dodge", "", "light right", "right"):
        stage.step(words, words)
        assert stage.place(0) == stage.place(1)
        assert stage.get(0, "vx") == stage.get(1, "vx")
