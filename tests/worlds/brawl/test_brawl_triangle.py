"""The rules `triangle`: a guard stops a strike, a throw passes through a guard, a strike is faster than a throw."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ludus.core.errors import ConfigError
from ludus.worlds.brawl.moves import load_move_table
from ludus.worlds.brawl.rules import Slot, State

if TYPE_CHECKING:
    from tests.worlds.brawl.conftest import MakeStage, Stage

GUARD, THROW = Slot.GROUND_HEAVY_NEUTRAL, Slot.GROUND_HEAVY_SIDE


@pytest.fixture
def triangle(make_stage: "MakeStage") -> "Stage":
    stage = make_stage(1, move_table=None, rules="triangle")
    stage.stand(0, -4.5, facing=1)
    stage.stand(1, -3.5, facing=-1)
    return stage


def _attack(stage: "Stage", seat: int, slot: Slot, frame: int) -> None:
    stage.set(seat, state=State.ATTACK, move=slot, move_frame=frame, hit_mask=0)


def test_a_guard_stops_a_strike_and_stuns_whoever_struck(triangle: "Stage") -> None:
    _attack(triangle, 0, Slot.GROUND_LIGHT_NEUTRAL, 2)
    _attack(triangle, 1, GUARD, 4)
    result = triangle.step()
    assert result.events["hits"].sum() == result.events["damage_dealt"].sum() == 0
    assert (triangle.state(0), triangle.get(0, "timer"), triangle.get(0, "move")) == (State.STUN, 26, -1)
    assert (triangle.state(1), triangle.get(1, "damage")) == (State.STANDING, 0.0)
    # 26 frames are enough for a lunge, whose first hit is in frame 3.
    for _ in range(4):
        result = triangle.step("", "left light")
    assert result.events["damage_dealt"][0].tolist() == [0.0, 8.0]


@pytest.mark.parametrize(("frame", "stops"), [(-1, False), (0, True), (14, True), (15, False)])
def test_a_guard_holds_in_its_frames_alone(triangle: "Stage", frame: int, stops: bool) -> None:
    """The step advances the move by a frame; it guards from 1 to 15."""
    _attack(triangle, 0, Slot.GROUND_LIGHT_NEUTRAL, 2)
    _attack(triangle, 1, GUARD, frame)
    hits = triangle.step().events["hits"][0].tolist()
    assert hits == ([0.0, 0.0] if stops else [1.0, 0.0])


def test_a_strike_from_behind_meets_no_guard(triangle: "Stage") -> None:
    triangle.stand(1, -3.5, facing=1)
    _attack(triangle, 0, Slot.GROUND_LIGHT_NEUTRAL, 2)
    _attack(triangle, 1, GUARD, 4)
    assert triangle.step().events["hits"][0].tolist() == [1.0, 0.0]


def test_a_throw_passes_through_a_guard(triangle: "Stage") -> None:
    _attack(triangle, 0, THROW, 6)
    _attack(triangle, 1, GUARD, 4)
    assert triangle.step().events["damage_dealt"][0].tolist() == [20.0, 0.0]
    assert triangle.state(1) == State.STUN


def test_a_throw_takes_hold_of_nobody_in_the_air(triangle: "Stage") -> None:
    triangle.hang(1, -3.5, triangle.get(1, "y") - 0.1)
    _attack(triangle, 0, THROW, 6)
    assert triangle.step().events["hits"].sum() == 0
    _attack(triangle, 0, Slot.GROUND_LIGHT_SIDE, 6)
    assert triangle.step().events["hits"][0].tolist() == [1.0, 0.0]


def test_of_a_strike_and_a_throw_that_begin_together_the_strike_wins(triangle: "Stage") -> None:
    dealt = [triangle.step("light", "left heavy").events["damage_dealt"][0].tolist() for _ in range(5)]
    assert max(own for own, _ in dealt) > 0
    assert triangle.state(1) == State.STUN
    assert all(thrown == 0 for _, thrown in dealt)


def test_the_standard_table_has_neither_guards_nor_grabs() -> None:
    moves = [move for weapon in load_move_table().weapons.values() for move in weapon.moves.values()]
    assert not any(move.guard for move in moves)
    assert not any(hit.grab for move in moves for hit in move.hits)


def test_a_table_extends_the_standard_one_by_whole_moves(tmp_path: Path) -> None:
    standard, triangle = load_move_table(), load_move_table(rules="triangle")
    for name, weapon in triangle.weapons.items():
        changed = [slot for slot, move in weapon.moves.items() if move != standard.weapons[name].moves[slot]]
        assert changed == ["ground_heavy_neutral", "ground_heavy_down", "ground_heavy_side"]
        assert weapon.moves["ground_heavy_neutral"].charge is None
    table = tmp_path / "table.yaml"
    table.write_text("extends: other\nweapons: {}\n")
    with pytest.raises(ConfigError, match="extends 'other'; valid: 'standard'"):
        load_move_table(table)


@pytest.mark.parametrize(
    ("move", "message"),
    [
        ("{name: nothing, total: 20}", "at least 1 is needed, unless the move is a guard"),
        ("{name: guard, total: 20, guard: {frames: [9, 3], stun: 5}}", "first guarding frame 9 is after the last 3"),
        ("{name: guard, total: 20, guard: {frames: [1, 20], stun: 5}}", "not before the end of the move, total 20"),
    ],
)
def test_guards_that_cannot_be_are_refused(tmp_path: Path, move: str, message: str) -> None:
    table = tmp_path / "table.yaml"
    table.write_text(f"extends: standard\nweapons: {{fists: {{moves: {{recovery: {move}}}}}}}\n")
    with pytest.raises(ConfigError, match=message):
        load_move_table(table)
