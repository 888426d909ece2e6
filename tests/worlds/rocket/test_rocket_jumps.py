"""Jump, double jump and dodge: golden values, when they are allowed, and what they do to the car's motion."""

import importlib
from pathlib import Path

import pytest
import torch
from benchmarks.rocket_lab import Lab, Piece, drive, lone_car

from ludus.worlds.rocket.rules import Control

ROOT = Path(__file__).parents[3]
TAP: Piece = (1, {Control.JUMP: 1.0})


def flags(lab: Lab) -> dict[str, int]:
    """The car's state of jumping."""
    return {name: int(lab.cars[name][0, 0]) for name in ("jumped", "double_jumped", "dodged", "jumping", "dodging")}


@pytest.mark.parametrize("part", ["jump_rows", "dodge_rows"])
def test_jumps_and_dodges_meet_the_golden_values(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    rows = getattr(importlib.import_module("benchmarks.rocket_parity_car"), part)()
    assert {row.name: row.ours for row in rows} == {
        row.name: pytest.approx(row.golden, abs=row.tolerance) for row in rows
    }


@pytest.mark.parametrize(("held", "pushes"), [(1, 3), (2, 3), (3, 3), (4, 4), (10, 10), (24, 24), (30, 24)])
def test_holding_the_key_accelerates_for_3_to_24_ticks(held: int, pushes: int) -> None:
    track = drive(lone_car(), (held, {Control.JUMP: 1.0}), (40 - held, {}))
    # The first push is with the jump's own speed; later ones show as less loss than by gravity alone.
    gain = track.velocity[1:, 2] - track.velocity[:-1, 2]
    assert int((gain > -5.0).sum()) == pushes


def test_a_held_key_does_not_jump_again() -> None:
    lab = lone_car()
    drive(lab, (150, {Control.JUMP: 1.0}))
    assert flags(lab) == {"jumped": 1, "double_jumped": 0, "dodged": 0, "jumping": 0, "dodging": 0}
    drive(lab, (150, {Control.JUMP: 1.0}))  # it has landed
    assert flags(lab)["jumped"] == 0


def test_there_is_one_second_jump() -> None:
    lab = lone_car()
    track = drive(lab, TAP, (9, {}), TAP, (9, {}), TAP)
    rise = track.velocity[1:, 2] - track.velocity[:-1, 2]
    assert [tick for tick, gain in enumerate(rise.tolist(), 1) if gain > 200.0] == [1, 11]
    assert flags(lab)["double_jumped"] == 1


@pytest.mark.parametrize(("waited", "works"), [(145, True), (155, False)])
def test_the_second_jump_must_come_within_a_second_and_a_quarter(waited: int, works: bool) -> None:
    lab = lone_car(z=1000.0)
    lab.cars["jumped"][:] = 1
    drive(lab, (waited, {}), TAP)
    assert bool(flags(lab)["double_jumped"]) == works


def test_a_car_that_fell_has_its_second_jump_at_any_time() -> None:
    lab = lone_car(z=1900.0)
    drive(lab, (200, {}), TAP)
    assert flags(lab)["double_jumped"] == 1


@pytest.mark.parametrize(("stick", "dodges"), [(0.49, False), (0.51, True)])
def test_half_a_stick_makes_a_second_jump_a_dodge(stick: float, dodges: bool) -> None:
    lab = lone_car(z=1000.0)
    drive(lab, (1, {Control.JUMP: 1.0, Control.PITCH: -stick}))
    assert bool(flags(lab)["dodged"]) == dodges
    assert bool(flags(lab)["double_jumped"]) != dodges


def test_opposite_yaw_and_roll_stall() -> None:
    lab = lone_car(z=1000.0)
    track = drive(lab, (1, {Control.JUMP: 1.0, Control.YAW: 1.0, Control.ROLL: -1.0}))
    assert track.velocity[1, :2].norm().item() == 0.0
    assert flags(lab)["dodged"] == 1


@pytest.mark.parametrize(
    ("controls", "way", "spin"),
    [
        ({Control.PITCH: -1.0}, (0.0, 500.0), (-5.5, 0.0)),  # nose down: heading toward +y, that is about -x
        ({Control.PITCH: 1.0}, (0.0, -533.33), (5.5, 0.0)),
        ({Control.YAW: 1.0}, (500.0, 0.0), (0.0, 5.5)),  # to the right, over the right side
        ({Control.ROLL: -1.0}, (-500.0, 0.0), (0.0, -5.5)),
    ],
)
def test_a_dodge_pushes_and_turns_along_the_stick(
    controls: dict[Control, float], way: tuple[float, float], spin: tuple[float, float]
) -> None:
    track = drive(lone_car(z=1000.0), (1, {Control.JUMP: 1.0, **controls}), (6, controls))
    assert track.velocity[1, :2].tolist() == pytest.approx(way, abs=0.01)
    assert track.spin[5, :2].tolist() == pytest.approx(spin, abs=0.05)


def test_a_dodge_turns_for_0_65_s_and_holds_its_height() -> None:
    lab = lone_car(z=1000.0)
    track = drive(lab, (1, {Control.JUMP: 1.0, Control.PITCH: -1.0}), (100, {}))
    turning = track.spin.norm(dim=1)
    assert turning[79].item() == pytest.approx(5.5, abs=1.0e-4)  # the tick of the press and 78 more
    assert turning[80].item() < 5.4  # then the air slows it down
    # From 0.15 s on 65 % of the vertical speed stay in a tick: it does not grow beyond 1 / 0.35 of a tick's fall.
    sinking = track.velocity[35:78, 2]
    assert sinking.min().item() == pytest.approx(-(650.0 / 120.0) / 0.35, rel=0.01)
    assert track.velocity[95, 2].item() < -80.0


def test_pulling_back_cancels_a_front_dodge_but_not_its_push() -> None:
    start: Piece = (1, {Control.JUMP: 1.0, Control.PITCH: -1.0})
    free = drive(lone_car(z=1000.0), start, (40, {}))
    cancelled = drive(lone_car(z=1000.0), start, (40, {Control.PITCH: 1.0}))
    assert free.spin[40].norm().item() == pytest.approx(5.5, abs=1.0e-4)
    assert cancelled.spin[40].norm().item() < 2.5
    assert cancelled.spin[5].norm().item() == pytest.approx(5.5, abs=0.02)  # not before 0.041 s
    assert torch.equal(cancelled.velocity[1], free.velocity[1])


def test_pitch_is_locked_until_0_95_s_after_a_dodge() -> None:
    lab = lone_car(z=1500.0)
    start: Piece = (1, {Control.JUMP: 1.0, Control.YAW: 1.0})
    locked = drive(lab, start, (100, {}), (10, {Control.PITCH: 1.0}))
    free = drive(lab, (4, {}), (10, {Control.PITCH: 1.0}))

    def nose_rate(spin: torch.Tensor, forward: torch.Tensor) -> float:
        return float((spin - (spin * forward).sum() * forward).norm())  # all but the roll

    assert nose_rate(locked.spin[-1], locked.forward[-1]) < 0.01
    assert nose_rate(free.spin[-1], free.forward[-1]) > 0.9


def test_landing_gives_the_jumps_back_and_ends_a_dodge() -> None:
    lab = lone_car(speed=500.0)
    drive(lab, (20, {Control.JUMP: 1.0}), (2, {}), (1, {Control.JUMP: 1.0, Control.YAW: 1.0}), (60, {}))
    assert flags(lab)["dodged"] == 1
    drive(lab, (400, {Control.THROTTLE: 1.0}))
    assert flags(lab) == dict.fromkeys(("jumped", "double_jumped", "dodged", "jumping", "dodging"), 0)
    assert lab.cars["wheels"][0, 0].item() == 4


def test_a_jump_pushes_away_from_the_wall_it_drives_on() -> None:
    half = 0.5
    lab = lone_car(speed=800.0)
    lab.cars["position"][0, 0] = torch.tensor([4096.0 - 17.03, -2000.0, 1000.0])
    lab.cars["rotation"][0, 0] = torch.tensor([-half, -half, half, half])
    track = drive(lab, (20, {Control.JUMP: 1.0, Control.THROTTLE: 1.0}))
    assert track.velocity[1, 0].item() == pytest.approx(-299.2, abs=2.0)
    assert track.wheels[-1].item() == 0
