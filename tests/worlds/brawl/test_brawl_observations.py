"""Observations: bounds, no dead value, hand-checked numbers, both seats' views of one world, and the field table."""

import re
from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

from ludus.worlds.brawl.env import BrawlEnv
from ludus.worlds.brawl.observation import BLOCKS, FIELDS, HIGH, LOW, PLAYER_SIZE, SIZE
from ludus.worlds.brawl.rules import Ground, Key, Slot, State

if TYPE_CHECKING:
    from tests.worlds.brawl.conftest import MakeStage, Stage

COLUMN = {field.name: index for index, field in enumerate(FIELDS)}
MIXED_BOTS = ["random", "aggressive", "defensive", "aerial", "heavy-spammer", "weapon-seeker:noise=0.3", "switcher"]


def observe(stage: "Stage") -> Tensor:
    """Returns the observations `(2, 156)` of game 0 after fields were written by hand."""
    return stage.env.restore(stage.env.snapshot())["vector"][0].clone()


def values(row: Tensor) -> dict[str, float]:
    return {name: float(row[column]) for name, column in COLUMN.items()}


def distinct(tensor: Tensor) -> list[float]:
    return sorted(set(tensor.flatten().tolist()))


def test_bounds_hold_and_no_value_is_constant_over_varied_play(make_stage: "MakeStage") -> None:
    games = 384
    stage = make_stage(games, weapon_spawns=True, move_table=None, step_limit=600)
    env = stage.env
    bots = env.bots(MIXED_BOTS)
    pairs = torch.arange(games * 2, dtype=torch.int32).view(games, 2)
    assignment = (pairs // 3 + pairs) % len(MIXED_BOTS)
    low, high = torch.tensor(LOW), torch.tensor(HIGH)
    lowest, highest = torch.full((SIZE,), torch.inf), torch.full((SIZE,), -torch.inf)
    actions = torch.zeros((games, 2, 10), dtype=torch.int8)
    for frame in range(1300):
        bots.act(assignment, actions)
        if frame % 400 == 399:  # damage near its cap, which play alone hardly reaches
            stage.fields["damage"][: games // 4] = 690.0
        result = env.step(actions)
        seen = result.observations["vector"].view(-1, SIZE)
        lowest, highest = torch.minimum(lowest, seen.amin(0)), torch.maximum(highest, seen.amax(0))
        ended = result.terminated
        if bool(ended.any()):
            final = result.final_observations["vector"][ended].view(-1, SIZE)
            lowest, highest = torch.minimum(lowest, final.amin(0)), torch.maximum(highest, final.amax(0))
    beyond = [FIELDS[i].name for i in torch.nonzero((lowest < low - 1e-6) | (highest > high + 1e-6)).flatten()]
    assert beyond == []
    constant = {FIELDS[i].name for i in torch.nonzero(lowest == highest).flatten()}
    # The table has three weapons of at most four; everything else must have moved.
    assert constant == {name for name in COLUMN if name.endswith((".weapon_3", ".is_3"))}


def test_whole_numbers_of_the_play_are_seen(make_stage: "MakeStage") -> None:
    """Each flag and each one-hot group is 0 or 1, and exactly one state and weapon is on."""
    stage = make_stage(64, weapon_spawns=True)
    draw = torch.Generator().manual_seed(1)
    for _ in range(200):
        rows = stage.env.step(torch.randint(0, 2, (64, 2, 10), generator=draw, dtype=torch.int8)).observations["vector"]
        for start in (0, PLAYER_SIZE):
            states, moves = rows[..., start + 24 : start + 37], rows[..., start + 37 : start + 48]
            weapons, phases = rows[..., start + 48 : start + 52], rows[..., start + 17 : start + 21]
            assert bool((states.sum(-1) == 1).all())
            assert bool((weapons.sum(-1) == 1).all())
            attacking = states[..., State.ATTACK]
            assert torch.equal(moves.sum(-1), attacking)
            assert torch.equal(phases.sum(-1), attacking)
            assert distinct(torch.cat([states, moves, weapons, phases], -1)) == [0.0, 1.0]


def test_a_known_state_by_hand(stage: "Stage") -> None:
    stage.matches["frame"][:] = 1350
    stage.stand(0, -4.2, facing=1, damage=50.0, stocks=2, dodge_cooldown=23, weapon=2, keys=1 << Key.RIGHT)
    stage.hang(1, 7.0, -4.0, vx=-5.0, vy=10.0, facing=-1, jumps=1, jump_cooldown=3, invincible=45, recovery_used=1)
    stage.set(1, state=State.ATTACK, move=11 + Slot.GROUND_HEAVY_NEUTRAL, move_frame=5, charge=10, weapon=1)
    stage.set(1, hit_mask=1, drop_timer=4, keys=1 << Key.LEFT)
    stage.drop_item(0, 5.6, 0.85, 1, life=175, lock=3)
    stage.drop_item(2, -4.2, 1.0, 2, life=35)
    first, second = (values(row) for row in observe(stage))

    # Seat 0 starts on the left (low ground): its view is the stage as it is. 1350 of 2700 frames are left.
    assert first["world.clock"] == pytest.approx(0.5)
    assert first["world.high_side"] == 1
    assert first["self.x"] == pytest.approx(-4.2 / 14)
    assert first["self.y"] == pytest.approx(2.35 / 8)
    assert first["self.damage"] == pytest.approx(0.25)
    assert first["self.stocks"] == pytest.approx(2 / 3)
    assert first["self.dodge_cooldown"] == pytest.approx(23 / 92)
    assert (first["self.on_ground"], first["self.on_platform"], first["self.clearance"]) == (1, 0, 0)
    assert first["self.state_standing"] == first["self.weapon_2"] == first["self.recovery_ready"] == 1
    assert (first["world.held_right"], first["world.held_left"]) == (1, 0)
    assert first["opponent.x"] == pytest.approx(0.5)
    assert first["opponent.vx"] == pytest.approx(-0.25)
    assert first["opponent.vy"] == pytest.approx(0.5)
    assert first["opponent.facing"] == -1
    assert (first["opponent.air_jumps"], first["opponent.jump_cooldown"]) == (0.5, 0.5)
    assert (first["opponent.invincible"], first["opponent.recovery_ready"]) == (0.5, 0)
    assert first["opponent.move_ground_heavy_neutral"] == first["opponent.state_attack"] == 1
    assert first["opponent.move_progress"] == pytest.approx(5 / 30)
    assert (first["opponent.phase_charging"], first["opponent.charge"]) == (1, 0.5)
    assert (first["opponent.connected"], first["opponent.dropping"]) == (1, 0.5)
    # Feet at -3.5, the high ground's top at 0.85.
    assert first["opponent.clearance"] == pytest.approx(4.35 / 8)
    assert first["world.opponent_dx"] == pytest.approx((7.0 + 4.2) / 14)
    assert first["world.opponent_dy"] == pytest.approx((-4.0 - 2.35) / 8)
    assert first["far_spawn.present"] == 1
    assert first["far_spawn.dx"] == pytest.approx((5.6 + 4.2) / 14)
    assert first["far_spawn.dy"] == pytest.approx((0.85 - 2.35) / 8)
    assert (first["far_spawn.ready"], first["far_spawn.life"], first["far_spawn.is_1"]) == (0, 0.5, 1)
    assert (first["near_spawn.present"], first["opponent_drop.present"]) == (0, 0)
    assert (first["own_drop.present"], first["own_drop.ready"], first["own_drop.is_2"]) == (1, 1, 1)
    assert first["own_drop.life"] == pytest.approx(0.1)

    # Seat 1 starts on the right (high ground): it sees everything mirrored.
    assert second["world.high_side"] == -1
    assert second["self.x"] == pytest.approx(-0.5)
    assert second["self.vx"] == pytest.approx(0.25)
    assert second["self.facing"] == 1
    assert second["opponent.x"] == pytest.approx(4.2 / 14)
    assert (second["world.held_right"], second["world.held_left"]) == (1, 0)
    assert (second["near_spawn.present"], second["far_spawn.present"]) == (1, 0)
    assert second["near_spawn.dx"] == pytest.approx((7.0 - 5.6) / 14)
    assert (second["opponent_drop.present"], second["own_drop.present"]) == (1, 0)


@pytest.mark.parametrize(
    ("x", "y", "clearance"),
    [
        (-5.0, 0.0, (2.85 - 0.5) / 8),
        (5.0, -2.0, (0.85 + 1.5) / 8),
        (0.0, 5.0, (8.0 - 5.5) / 8),  # below the platform: down to the kill box
        (0.93, -1.0, (0.07 + 0.5) / 8),  # above the platform
        (10.0, 0.0, (8.0 - 0.5) / 8),
        (10.0, 7.9, 0.0),
    ],
)
def test_clearance(stage: "Stage", x: float, y: float, clearance: float) -> None:
    stage.hang(0, x, y)
    assert values(observe(stage)[0])["self.clearance"] == pytest.approx(clearance, abs=1e-6)


@pytest.mark.parametrize(
    ("frame", "phase"),
    [(0, "startup"), (5, "charging"), (8, "startup"), (9, "active"), (11, "active"), (12, "recovery")],
)
def test_phases_of_a_move(stage: "Stage", frame: int, phase: str) -> None:
    stage.stand(0, -5.0, state=State.ATTACK, move=Slot.GROUND_HEAVY_NEUTRAL, move_frame=frame)
    seen = values(observe(stage)[0])
    assert [name for name in ("startup", "charging", "active", "recovery") if seen[f"self.phase_{name}"]] == [phase]


def test_standing_on_the_platform_is_seen(stage: "Stage") -> None:
    stage.hang(0, 0.93, 0.07 - 0.5, ground=Ground.PLATFORM, state=State.STANDING)
    seen = values(observe(stage)[0])
    assert (seen["self.on_ground"], seen["self.on_platform"], seen["self.clearance"]) == (0, 1, 0)
    assert seen["world.platform_dx"] == pytest.approx(0.0, abs=1e-6)
    assert seen["world.platform_dy"] == pytest.approx(0.5 / 8)


def test_both_seats_see_the_same_world(make_stage: "MakeStage") -> None:
    """One seat's opponent block is the other's own block, with x, speed and facing the other way round."""
    games = 128
    stage = make_stage(games, weapon_spawns=True, move_table=None)
    mirrored = torch.zeros(SIZE, dtype=torch.bool)
    for name in ("x", "vx", "facing"):
        mirrored[COLUMN[f"self.{name}"]] = True
    sign = torch.where(mirrored[:PLAYER_SIZE], -1.0, 1.0)
    draw = torch.Generator().manual_seed(2)
    for _ in range(300):
        keys = torch.randint(0, 2, (games, 2, 10), generator=draw, dtype=torch.int8)
        rows = stage.env.step(keys).observations["vector"]
        own, other = (rows[..., slice(*BLOCKS[name])] for name in ("self", "opponent"))
        assert torch.equal(own[:, 0] * sign, other[:, 1])
        assert torch.equal(own[:, 1] * sign, other[:, 0])
        world = {name: rows[..., COLUMN[f"world.{name}"]] for name in ("clock", "platform_y", "platform_vy")}
        assert all(torch.equal(seen[:, 0], seen[:, 1]) for seen in world.values())
        for name in ("high_side", "platform_x", "platform_vx", "opponent_dy"):
            assert torch.equal(rows[:, 0, COLUMN[f"world.{name}"]], -rows[:, 1, COLUMN[f"world.{name}"]])
        # Minus once for the point of view and once for the mirror.
        assert torch.equal(rows[:, 0, COLUMN["world.opponent_dx"]], rows[:, 1, COLUMN["world.opponent_dx"]])
        for here, there in (("near_spawn", "far_spawn"), ("own_drop", "opponent_drop")):
            for name in ("present", "ready", "life", "is_1", "is_2"):
                assert torch.equal(rows[:, 0, COLUMN[f"{here}.{name}"]], rows[:, 1, COLUMN[f"{there}.{name}"]])


def test_held_keys_are_seen_in_the_own_frame(make_stage: "MakeStage") -> None:
    stage = make_stage(32)
    draw = torch.Generator().manual_seed(3)
    for _ in range(10):
        keys = torch.randint(0, 2, (32, 2, 10), generator=draw, dtype=torch.int8)
        rows = stage.env.step(keys).observations["vector"]
        start = COLUMN["world.held_up"]
        assert torch.equal(rows[..., start : start + 10], keys.float())


def test_the_own_start_is_on_the_left_for_every_seat(make_stage: "MakeStage") -> None:
    env = make_stage(64).env
    rows = env.reset(seed=5)["vector"]
    assert distinct(rows[..., COLUMN["self.x"]]) == pytest.approx([-5 / 14])
    assert distinct(rows[..., COLUMN["opponent.x"]]) == pytest.approx([5 / 14])
    assert distinct(rows[..., COLUMN["self.facing"]]) == [1.0]
    highs = rows[:, 0, COLUMN["world.high_side"]]
    assert torch.equal(highs, -rows[:, 1, COLUMN["world.high_side"]])
    assert 12 < int((highs > 0).sum()) < 52  # sides are drawn


def test_the_final_observation_is_the_last_of_the_match_and_the_next_one_is_the_first(
    make_stage: "MakeStage",
) -> None:
    stage = make_stage(3, step_limit=40)
    stage.step(frames=39)
    stage.stand(0, -4.2, damage=60.0, stocks=1, weapon=1)
    result = stage.step("right")
    assert bool(result.terminated.all())
    final = result.final_observations["vector"].clone()
    assert final[:, 0, COLUMN["world.clock"]].tolist() == [0.0] * 3
    assert final[0, 0, COLUMN["self.damage"]].item() == pytest.approx(0.3)
    assert final[0, 0, COLUMN["self.stocks"]].item() == pytest.approx(1 / 3)
    assert final[0, 0, COLUMN["self.x"]].item() == pytest.approx((-4.2 + 6.75 / 30) / 14)
    assert final[0, 0, COLUMN["self.weapon_1"]].item() == 1
    assert final[0, 1, COLUMN["opponent.damage"]].item() == pytest.approx(0.3)
    fresh = result.observations["vector"]
    assert distinct(fresh[:, :, COLUMN["world.clock"]]) == [1.0]
    assert distinct(fresh[:, :, COLUMN["self.damage"]]) == [0.0]
    assert torch.equal(fresh, stage.env.restore(stage.env.snapshot())["vector"])


def test_the_size_in_the_spec() -> None:
    assert SIZE == len(COLUMN) == 156
    assert BLOCKS == {"self": (0, 52), "opponent": (52, 104), "world": (104, 156)}
    own = [name.removeprefix("self.") for name in COLUMN if name.startswith("self.")]
    other = [name.removeprefix("opponent.") for name in COLUMN if name.startswith("opponent.")]
    assert own == other


def _documented_rows() -> list[tuple[str, str, str, str]]:
    """Rows of the tables in the class docstring: columns, name, range, meaning."""
    pattern = r"^\s*\| ([\d-]+) \| (\S+) \| (\S+ \.\.\. \S+) \| (.*) \|$"
    return re.findall(pattern, BrawlEnv.__doc__ or "", re.MULTILINE)


def test_the_docstring_lists_every_value_with_its_bounds() -> None:
    blocks: list[list[tuple[int, str, str]]] = []
    for columns, name, bounds, meaning in _documented_rows():
        first, _, last = columns.partition("-")
        if int(first) in (0, 104):
            blocks.append([])
        for column in range(int(first), int(last or first) + 1):
            blocks[-1].append((column, name, bounds))
            field = FIELDS[column + (124 if len(blocks) == 3 else 0)]
            low, high = (float(bound) for bound in bounds.split(" ... "))
            assert (field.low, field.high) == (low, high), field.name
            if name.endswith("*"):
                assert field.name.partition(".")[2].startswith(name.removesuffix("*")), field.name
            else:
                assert field.name.partition(".")[2] == name
                assert field.meaning == meaning, field.name
    player, world, place = blocks
    assert [column for column, _, _ in player] == list(range(52))
    assert [column for column, _, _ in world] == list(range(104, 124))
    assert [column for column, _, _ in place] == list(range(8))
    places = re.findall(r"(near_spawn|far_spawn|own_drop|opponent_drop) (\d+)", BrawlEnv.__doc__ or "")
    assert {name: int(column) for name, column in places} == {
        name: COLUMN[f"{name}.present"] for name in ("near_spawn", "far_spawn", "own_drop", "opponent_drop")
    }
