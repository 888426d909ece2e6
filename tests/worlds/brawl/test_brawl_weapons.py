"""Weapons on the stage: when and where they appear, how long they lie, who may take them, and letting them go."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from ludus.core.intervals import wilson_interval
from ludus.worlds.brawl.moves import DEFAULT_TABLE
from ludus.worlds.brawl.rules import Slot, State

if TYPE_CHECKING:
    from tests.worlds.brawl.conftest import MakeStage, Stage

SPEAR, HAMMER = 1, 2


def test_where_and_when_weapons_appear(make_stage: "MakeStage") -> None:
    games = 128
    stage = make_stage(games, weapon_spawns=True)
    last = torch.zeros(games, 2, dtype=torch.int64)
    first_seen, gaps, kinds, places = [], [], [], []
    idle = stage.keys()
    for frame in range(1, 2700):
        stage.env.step(idle)
        new = stage.items["life"][:, :2] == 350
        if not bool(new.any()):
            continue
        first_seen += [frame] * int((new & (last == 0)).sum())
        gaps += (frame - last[new & (last > 0)]).tolist()
        last[new] = frame
        kinds += stage.items["weapon"][:, :2][new].tolist()
        places += stage.items["x"][:, :2][new].tolist()
        for slot, side, top in ((0, 1, 0.85), (1, -1, 2.85)):
            xs, ys = stage.items["x"][new[:, slot], slot] * side, stage.items["y"][new[:, slot], slot]
            assert bool(((xs >= 2.6) & (xs <= 6.5)).all())
            assert ys.tolist() == pytest.approx([top] * len(ys))
    assert len(first_seen) == 2 * games  # each place, within 350 frames
    assert 1 <= min(first_seen) < 20
    assert 330 < max(first_seen) <= 350
    assert 250 <= min(gaps) < 270
    assert 1030 < max(gaps) <= 1050
    # The mean of 250 ... 1050 is 650; gaps that end after the match are missed, which favours short ones.
    assert 550 < sum(gaps) / len(gaps) < 650
    low, high = wilson_interval(kinds.count(SPEAR), len(kinds), 0.999)[1:]
    assert set(kinds) == {SPEAR, HAMMER}
    assert low < 0.5 < high
    distances = sorted(abs(x) for x in places)
    assert distances[0] < 2.7
    assert distances[-1] > 6.4
    assert distances[len(distances) // 2] == pytest.approx(4.55, abs=0.2)


def test_none_appear_when_switched_off(make_stage: "MakeStage") -> None:
    stage = make_stage(64)
    idle = stage.keys()
    for _ in range(500):
        stage.env.step(idle)
        assert int(stage.items["life"].max()) == 0


def test_a_weapon_lies_for_350_frames_and_is_locked_for_36(make_stage: "MakeStage") -> None:
    stage = make_stage(weapon_spawns=True)
    stage.matches["spawn_low"][:] = 1
    stage.matches["spawn_high"][:] = stage.matches["spawn_low"] + 5000
    stage.step()
    seen = [(int(stage.items["life"][0, 1]), int(stage.items["lock"][0, 1]))]
    stage.matches["spawn_low"][:] = 5000
    for _ in range(400):
        stage.step()
        if stage.items["life"][0, 1] == 0:
            break
        seen.append((int(stage.items["life"][0, 1]), int(stage.items["lock"][0, 1])))
    assert len(seen) == 350
    assert [lock for _, lock in seen[:38]] == [*range(36, 0, -1), 0, 0]


def test_it_can_be_taken_once_the_lock_is_gone(stage: "Stage") -> None:
    stage.drop_item(1, -5.5, 2.85, SPEAR, lock=36)
    for _ in range(35):
        stage.step("pickup")
        assert stage.get(0, "weapon") == 0
    result = stage.step("pickup")
    assert stage.get(0, "weapon") == SPEAR
    assert result.events["pickups"][0].tolist() == [1, 0]
    assert stage.items["life"][0, 1] == 0
    for _ in range(40):  # the key is still held: it neither takes nor drops again
        result = stage.step("pickup")
        assert result.events["pickups"].sum() == result.events["drops"].sum() == 0
    assert stage.get(0, "weapon") == SPEAR


@pytest.mark.parametrize(
    ("dx", "dy", "taken"),
    [
        (0.74, 0.5, True),
        (-0.74, 0.5, True),
        (0.76, 0.5, False),
        (0.0, 0.89, True),
        (0.0, -0.89, True),
        (0.0, 0.91, False),
    ],
)
def test_reach(stage: "Stage", dx: float, dy: float, taken: bool) -> None:
    # Over the outer edge of the stage nothing lies still: keep both in the air, and undo the fall of one frame.
    stage.hang(0, 10.0, 0.0, state=State.DODGE, timer=2)
    stage.step("pickup")
    stage.hang(0, 10.0, 0.0)
    stage.drop_item(0, 10.0 + dx, dy - 0.2 + 17.808 / 900, HAMMER)  # it falls 0.2 a frame, the fighter 0.0198
    stage.step("pickup")
    assert (stage.get(0, "weapon") == HAMMER) == taken


@pytest.mark.parametrize(
    ("state", "values"),
    [
        (State.ATTACK, {"move": Slot.GROUND_LIGHT_NEUTRAL, "move_frame": 10}),
        (State.STUN, {"timer": 9}),
        (State.DODGE, {"timer": 9}),
        (State.TAUNT, {"timer": 9}),
        (State.KO, {"timer": 50}),
    ],
)
def test_busy_hands_take_and_drop_nothing(stage: "Stage", state: State, values: dict[str, float]) -> None:
    stage.stand(0, -5.0, state=state, **values)
    stage.drop_item(1, -5.0, 2.85, SPEAR)
    stage.step("pickup")
    assert stage.get(0, "weapon") == 0
    stage.stand(0, -5.0, state=state, weapon=HAMMER, keys=0, **values)
    result = stage.step("pickup")
    assert stage.get(0, "weapon") == HAMMER
    assert result.events["drops"].sum() == 0


@pytest.mark.parametrize("state", [State.WALKING, State.DASH, State.BACKDASH, State.TURNAROUND])
def test_moving_hands_take(stage: "Stage", state: State) -> None:
    stage.stand(0, -5.0, state=state, timer=5)
    stage.drop_item(1, -5.0, 2.85, SPEAR)
    stage.step("pickup")
    assert stage.get(0, "weapon") == SPEAR


def test_full_hands_take_nothing(stage: "Stage") -> None:
    stage.set(0, weapon=HAMMER, keys=32)  # the key was held before, so this is no press
    stage.drop_item(1, -5.0, 2.85, SPEAR)
    stage.step("pickup", frames=5)
    assert stage.get(0, "weapon") == HAMMER
    assert stage.items["life"][0, 1] == 295


def test_a_dropped_weapon_falls_and_lies_for_250_frames(stage: "Stage") -> None:
    stage.hang(0, -5.0, 0.0, weapon=HAMMER)
    result = stage.step("pickup")
    assert result.events["drops"][0].tolist() == [1, 0]
    assert stage.get(0, "weapon") == 0
    item = {name: float(values[0, 2]) for name, values in stage.items.items()}
    y = 17.808 / 900
    assert item == {"x": -5.0, "y": pytest.approx(y), "weapon": HAMMER, "life": 250, "lock": 36}
    stage.hang(0, 12.0, -7.0)
    stage.step(frames=10)
    assert float(stage.items["y"][0, 2]) == pytest.approx(y + 10 * 0.2, abs=1e-5)  # 6 u/s
    stage.step(frames=10)
    assert float(stage.items["y"][0, 2]) == pytest.approx(2.85)
    stage.stand(0, -6.9)
    stage.step(frames=229)
    assert stage.items["life"][0, 2] == 1
    stage.step()
    assert stage.items["life"][0, 2] == 0


def test_what_is_dropped_over_the_gap_is_gone(stage: "Stage") -> None:
    stage.hang(0, 0.0, 7.5, weapon=SPEAR)
    stage.step("pickup")
    assert stage.items["life"][0, 2] == 250
    stage.step(frames=3)
    assert stage.items["life"][0, 2] == 0


def test_weapons_can_be_swapped_in_one_press(stage: "Stage") -> None:
    stage.set(0, weapon=HAMMER)
    stage.drop_item(1, -5.0, 2.85, SPEAR)
    result = stage.step("pickup")
    assert stage.get(0, "weapon") == SPEAR
    assert result.events["drops"][0].tolist() == result.events["pickups"][0].tolist() == [1, 0]
    assert stage.items["weapon"][0, 2] == HAMMER


@pytest.mark.parametrize(("weapon", "value"), [(SPEAR, 1.0), (HAMMER, 2.0)])
def test_the_worth_of_a_pick_up(stage: "Stage", weapon: int, value: float) -> None:
    stage.drop_item(0, 5.0, 0.85, weapon)
    result = stage.step("", "pickup")
    assert result.events["pickup_value"][0].tolist() == [0.0, value]
    assert stage.step("", "pickup").events["pickup_value"].sum() == 0


def test_empty_hands_are_no_pick_up_whatever_they_are_worth(make_stage: "MakeStage", tmp_path: Path) -> None:
    text = DEFAULT_TABLE.read_text().replace(
        "    color: [236, 214, 170]\n", "    color: [236, 214, 170]\n    value: 3\n"
    )
    (tmp_path / "moves.yaml").write_text(text)
    stage = make_stage(move_table=tmp_path / "moves.yaml")
    assert stage.env.table.weapons["fists"].value == 3
    assert stage.step().events["pickup_value"][0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("near", [0, 1])
def test_the_nearer_of_two_takes_it(stage: "Stage", near: int) -> None:
    stage.stand(near, -5.25)
    stage.stand(1 - near, -4.5)
    stage.drop_item(1, -5.0, 2.85, SPEAR)
    result = stage.step("pickup", "pickup")
    assert (stage.get(near, "weapon"), stage.get(1 - near, "weapon")) == (SPEAR, 0)
    assert result.events["pickups"].sum() == 1


def test_a_tie_is_drawn_and_the_seat_has_no_part_in_it(make_stage: "MakeStage") -> None:
    games = 2000
    stage = make_stage(games)
    taken = []
    for home in (-1, 1):  # seat 0 from the low ground, then from the high ground
        for seat, side in ((0, home), (1, -home)):
            stage.set(seat, home=side, weapon=0)
            stage.stand(seat, -4.75 if side > 0 else -5.25)
        stage.matches["frame"][:] = 100
        stage.drop_item(1, -5.0, 2.85, SPEAR)
        result = stage.step("pickup", "pickup")
        assert bool((result.events["pickups"].sum(1) == 1).all())
        taken.append(stage.fields["weapon"][:, 0] == SPEAR)
    high_side_first, high_side_second = ~taken[0], taken[1]
    assert torch.equal(high_side_first, high_side_second)
    share = wilson_interval(int(taken[0].sum()), games, 0.999)
    assert share.low < 0.5 < share.high


@pytest.mark.parametrize("seat", [0, 1])
def test_fixed_weapons_stay_for_the_whole_match(make_stage: "MakeStage", seat: int) -> None:
    weapons = ("hammer", "spear")
    stage = make_stage(fixed_weapons=weapons, weapon_spawns=True)
    index = (HAMMER, SPEAR)[seat]
    keys = ("pickup", "") if seat == 0 else ("", "pickup")
    result = stage.step(*keys)
    assert result.events["drops"].sum() == 0
    assert stage.get(seat, "weapon") == index
    stage.hang(seat, 14.5, 0.0)
    for _ in range(200):
        stage.step()
        assert stage.get(seat, "weapon") == index, stage.state(seat)
        assert stage.env.view().players[seat].weapon == weapons[seat]
    assert stage.get(seat, "stocks") == 2
    stage.stand(seat, 5.0 * stage.get(seat, "home"))
    stage.step(*(("light", "") if seat == 0 else ("", "light")))
    assert stage.get(seat, "move") == 11 * index
    stage.step(frames=600)
    assert int(stage.items["life"].max()) == 0  # none appear


def test_fixed_weapons_come_back_in_the_next_match(make_stage: "MakeStage") -> None:
    stage = make_stage(fixed_weapons=("hammer", "spear"), step_limit=30)
    stage.step(frames=31)
    assert stage.fields["weapon"][0].tolist() == [HAMMER, SPEAR]


@pytest.mark.parametrize(
    ("x", "y", "vx", "vy"), [(13.9, -5.0, 30.0, 0.0), (-10.0, -7.9, 0.0, -30.0), (0.0, 7.9, 0.0, 16.0)]
)
def test_nothing_is_dropped_outside_the_stage(stage: "Stage", x: float, y: float, vx: float, vy: float) -> None:
    stage.hang(0, x, y, vx=vx, vy=vy, weapon=SPEAR)
    result = stage.step("pickup")
    assert stage.state() == State.KO
    assert result.events["drops"].sum() == 0
    assert int(stage.items["life"].max()) == 0
