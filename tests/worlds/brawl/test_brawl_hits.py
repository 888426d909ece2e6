"""Hits: what one does, worked out by hand, and every hit of random situations against a second way to find it."""

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ludus.worlds.brawl.moves import MoveTable, load_move_table
from ludus.worlds.brawl.rules import Ground, Slot, State

if TYPE_CHECKING:
    from tests.worlds.brawl.conftest import MakeStage, Stage

Floats = NDArray[np.float64]


def _jab(stage: "Stage", seat: int = 0) -> None:
    """Brings a fighter's jab to the frame before its first active one."""
    stage.set(seat, state=State.ATTACK, move=Slot.GROUND_LIGHT_NEUTRAL, move_frame=2, hit_mask=0)


@pytest.mark.parametrize("facing", [1, -1])
@pytest.mark.parametrize("damage", [0.0, 60.0, 150.0])
def test_damage_launch_and_stun_by_hand(stage: "Stage", facing: int, damage: float) -> None:
    stage.stand(0, -4.5, facing=facing)
    stage.stand(1, -4.5 + facing, facing=facing, damage=damage)
    _jab(stage)
    result = stage.step()
    # The jab: 6 damage, stun 9, 30 degrees, launch [4, 2]: speed = 4 + 2 (X / 70 + X^2 / 12000) with X after the hit.
    hurt = damage + 6.0
    speed = 4.0 + 2.0 * (hurt / 70 + hurt**2 / 12000)
    assert result.events["damage_dealt"][0].tolist() == [6.0, 0.0]
    assert result.events["damage_taken"][0].tolist() == [0.0, 6.0]
    assert result.events["hits"][0].tolist() == [1.0, 0.0]
    assert result.events["stun_hits"].sum() == 0
    assert stage.get(1, "damage") == hurt
    assert stage.get(1, "vx") == pytest.approx(facing * speed * math.cos(math.radians(30)), rel=1e-5)
    assert stage.get(1, "vy") == pytest.approx(-speed * 0.5, rel=1e-5)
    assert stage.state(1) == State.STUN
    assert stage.get(1, "timer") == 9 + int(speed / 4)
    assert stage.get(1, "facing") == -facing
    assert stage.get(1, "ground") == Ground.NONE


def test_stun_ends_after_its_frames(stage: "Stage") -> None:
    stage.stand(1, -4.0)
    _jab(stage)
    stage.step()
    # Speed 4 + 2 * 6 / 70 + ... = 4.18, so 9 + 1 frames.
    for _ in range(9):
        stage.step("", "left jump dodge light")
        assert stage.state(1) == State.STUN
    stage.step("", "jump")
    assert stage.state(1) != State.STUN


def test_the_damage_cap_and_the_speed_cap(stage: "Stage") -> None:
    stage.stand(1, -4.0, damage=698.0)
    stage.set(0, state=State.ATTACK, move=Slot.GROUND_HEAVY_SIDE, move_frame=10)
    result = stage.step()
    assert stage.get(1, "damage") == 700.0
    assert float(result.events["damage_dealt"][0, 0]) == 2.0
    # 9 + 7 (10 + 40.8) would be 364.
    assert stage.get(1, "vx") == pytest.approx(45.0)
    assert stage.get(1, "timer") == 12 + 11


def test_a_spike_on_the_ground_bounces(stage: "Stage") -> None:
    stage.stand(1, -5.0)
    stage.hang(0, -5.0, 1.6, state=State.ATTACK, move=Slot.AIR_LIGHT_DOWN, move_frame=5)
    stage.step()
    hurt = 11.0
    speed = 5.0 + 3.0 * (hurt / 70 + hurt**2 / 12000)
    assert stage.get(1, "vy") == pytest.approx(speed, rel=1e-5)
    stage.step()
    assert stage.get(1, "vy") == pytest.approx(-0.7 * (speed + 17.808 / 30), rel=1e-5)


def test_each_hit_of_a_move_connects_once(stage: "Stage") -> None:
    stage.step("down light")
    seen = []
    for frame in range(1, 24):
        stage.stand(1, -4.2)  # whatever the last hit did, it stands there again
        result = stage.step("down")
        if result.events["hits"][0, 0]:
            seen.append((frame, float(result.events["damage_dealt"][0, 0]), float(result.events["stun_hits"][0, 0])))
    # Frames 2-3, 5-8, 6-9 and 12; one a frame, the first in the table's order.
    assert seen == [(2, 3.0, 0.0), (5, 4.0, 0.0), (6, 5.0, 0.0), (12, 7.0, 0.0)]


def test_hits_during_stun_are_counted(stage: "Stage") -> None:
    stage.step("down light")
    stage.stand(1, -4.2)
    stun_hits = sum(float(stage.step("down").events["stun_hits"][0, 0]) for _ in range(20))
    assert stun_hits == 3  # the first of four finds its victim free


def test_two_blows_in_one_frame_trade(stage: "Stage") -> None:
    stage.stand(0, -5.0, facing=1)
    stage.stand(1, -4.0, facing=-1)
    _jab(stage, 0)
    _jab(stage, 1)
    result = stage.step()
    for name in ("damage_dealt", "damage_taken"):
        assert result.events[name][0].tolist() == [6.0, 6.0]
    assert result.events["hits"][0].tolist() == [1.0, 1.0]
    assert result.events["stun_hits"][0].tolist() == [0.0, 0.0]
    assert stage.state(0) == stage.state(1) == State.STUN
    assert stage.get(0, "vx") == -stage.get(1, "vx") < 0
    assert stage.get(0, "vy") == stage.get(1, "vy")
    assert stage.fields["move"][0].tolist() == [-1, -1]


def test_a_dodge_avoids_a_blow_of_the_same_frame(stage: "Stage") -> None:
    stage.stand(1, -4.0)
    _jab(stage)
    result = stage.step("", "dodge")
    assert result.events["hits"].sum() == 0
    assert stage.state(1) == State.DODGE


def test_a_dodge_protects_for_ten_frames(stage: "Stage") -> None:
    protected = 0
    keys = "dodge"
    while True:
        stage.set(1, x=-4.0, y=2.35)
        _jab(stage)
        result = stage.step("", keys)
        keys = ""
        if result.events["hits"][0, 0]:
            break
        protected += 1
    assert protected == 10


@pytest.mark.parametrize("behind", [True, False])
def test_a_hit_behind_launches_the_way_the_attacker_faces(stage: "Stage", behind: bool) -> None:
    stage.stand(1, -5.9 if behind else -4.1)
    stage.set(0, state=State.ATTACK, move=Slot.GROUND_HEAVY_DOWN, move_frame=9)
    result = stage.step()
    assert result.events["hits"][0, 0] == 1
    assert stage.get(1, "vx") > 0


def _point_segment(px: Floats, py: Floats, ax: Floats, ay: Floats, bx: Floats, by: Floats) -> Floats:
    dx, dy = bx - ax, by - ay
    length = dx * dx + dy * dy
    t = np.clip(((px - ax) * dx + (py - ay) * dy) / np.where(length > 0, length, 1.0), 0.0, 1.0)
    return np.asarray(np.hypot(px - ax - t * dx, py - ay - t * dy))


def _oracle_distance(start: Floats, end: Floats, victim: Floats) -> Floats:
    """Distance from capsule axes `(n, 2)` to the upright axes of victims `(n, 2)`, by dense sampling of the latter.

    The true distance is at most half a sample's spacing, 0.00005 units, smaller.
    """
    offsets = np.linspace(-0.045, 0.045, 901)[None, :]
    px, py = victim[:, :1] + 0 * offsets, victim[:, 1:] + offsets
    arms = [start[:, :1], start[:, 1:], end[:, :1], end[:, 1:]]
    return np.asarray(_point_segment(px, py, *arms).min(axis=1))


def _expected(stage: "Stage", table: MoveTable, masks: list[int]) -> tuple[list[int], list[bool]]:
    """Finds the hit that must have connected in each game (-1 none), and where it is too close to call."""
    fields = {name: values[:, 0].tolist() for name, values in stage.fields.items()}
    xs, ys = stage.fields["x"][:, 1].tolist(), stage.fields["y"][:, 1].tolist()
    rows, starts, ends, victims, reaches = [], [], [], [], []
    for game, mask in enumerate(masks):
        if fields["state"][game] != State.ATTACK:
            continue
        x, y, facing = fields["x"][game], fields["y"][game], fields["facing"][game]
        for index, hit in enumerate(table.move(fields["move"][game]).hits):
            if hit.frames[0] <= fields["move_frame"][game] <= hit.frames[1] and not mask >> index & 1:
                rows.append((game, index))
                starts.append((x + facing * hit.start[0], y + hit.start[1]))
                ends.append((x + facing * hit.end[0], y + hit.end[1]))
                victims.append((xs[game], ys[game]))
                reaches.append(hit.radius + 0.465)
    margin = np.array(reaches) - _oracle_distance(np.array(starts), np.array(ends), np.array(victims))
    found, unclear = [-1] * len(masks), [False] * len(masks)
    for (game, index), slack in zip(rows, margin.tolist(), strict=True):
        unclear[game] |= abs(slack) < 2e-4
        if slack > 0 and found[game] < 0:
            found[game] = index
    return found, unclear


def _near_active(table: MoveTable, move: int, draw: np.random.Generator) -> int:
    """Draws a frame of a move from shortly before its first active frame to its last."""
    hits = table.move(move).hits
    return int(draw.integers(max(min(hit.frames[0] for hit in hits) - 3, 0), max(hit.frames[1] for hit in hits) + 1))


@pytest.mark.parametrize("own_table", [True, False])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_hit_is_true_and_none_is_missed(make_stage: "MakeStage", own_table: bool, seed: int) -> None:
    """Random attackers in random frames of random moves against victims anywhere near: no phantom hits."""
    games = 3000
    stage = make_stage(games) if own_table else make_stage(games, move_table=None)
    table = stage.env.table
    draw = np.random.default_rng(seed)
    moves = draw.integers(0, 33, games)
    stage.hang(0, 0.0, -3.0, state=State.ATTACK)
    stage.hang(1, 0.0, -3.0)
    stage.fields["move"][:, 0] = torch.tensor(moves)
    stage.fields["weapon"][:, 0] = torch.tensor(moves // 11)
    frames = [_near_active(table, int(move), draw) for move in moves]
    stage.fields["move_frame"][:, 0] = torch.tensor(frames)
    masks = draw.integers(0, 16, games) * (draw.integers(0, 4, games) == 0)
    stage.fields["hit_mask"][:, 0] = torch.tensor(masks)
    stage.fields["facing"][:, 0] = torch.tensor(draw.choice([-1, 1], games))
    stage.fields["x"][:, 1] = torch.tensor(draw.uniform(-2.5, 2.5, games))
    stage.fields["y"][:, 1] = torch.tensor(draw.uniform(-5.5, -1.0, games))
    safe = draw.integers(0, 10, games) == 0
    stage.fields["invincible"][:, 1] = torch.tensor(2 * safe)

    result = stage.step()
    found, unclear = _expected(stage, table, masks.tolist())
    hit = (result.events["hits"][:, 0] > 0).tolist()
    assert result.events["hits"][:, 1].sum() == 0
    connected = stage.fields["hit_mask"][:, 0].tolist()
    judged = 0
    for game in range(games):
        if unclear[game]:
            continue
        expected = found[game] >= 0 and not safe[game]
        assert hit[game] == expected, (game, int(moves[game]), frames[game])
        if expected:
            judged += 1
            assert connected[game] == masks[game] | 1 << found[game]
            blow = table.move(int(moves[game])).hits[found[game]]
            assert float(result.events["damage_dealt"][game, 0]) == pytest.approx(blow.damage)
    assert sum(unclear) < 20
    assert judged > 200


@pytest.mark.parametrize("own_table", [True, False])
def test_hits_are_active_exactly_in_the_frames_of_the_table(make_stage: "MakeStage", own_table: bool) -> None:
    """Every move in every frame, with a victim in the middle of every capsule."""
    longest = 121
    stage = make_stage(longest) if own_table else make_stage(longest, move_table=None)
    checked = 0
    for move in range(33):
        entry = stage.env.table.move(move)
        for index, hit in enumerate(entry.hits):
            middle = [(a + b) / 2 for a, b in zip(hit.start, hit.end, strict=True)]
            stage.hang(0, 0.0, -3.0, state=State.ATTACK, move=move, hit_mask=15 ^ (1 << index), facing=1)
            stage.fields["move_frame"][:, 0] = torch.arange(-1, longest - 1)
            # Where the attacker will be after one more frame: carried by its move, or falling like the victim.
            carry = [0.0] * longest, [17.808 / 900] * longest
            if entry.motion:
                for frame in range(entry.motion.frames[0], entry.motion.frames[1] + 1):
                    carry[0][frame], carry[1][frame] = (speed / 30 for speed in entry.motion.velocity)
            stage.hang(1, 0.0, 0.0, damage=0.0, timer=0, move=-1)
            stage.fields["x"][:, 1] = torch.tensor(carry[0]) + middle[0]
            stage.fields["y"][:, 1] = torch.tensor(carry[1]) - 3.0 + middle[1] - 17.808 / 900
            active = stage.step().events["hits"][:, 0]
            frames = [frame for frame in range(entry.total) if active[frame] > 0]
            assert frames == list(range(hit.frames[0], hit.frames[1] + 1)), (move, index)
            checked += 1
            stage.env.reset(seed=0)
            stage.set(0, home=-1)
            stage.set(1, home=1)
    assert checked >= 33


def test_nothing_hits_beyond_the_reach_of_the_table(make_stage: "MakeStage") -> None:
    games = 512
    stage = make_stage(games, move_table=None)
    table = load_move_table()
    reach = max(
        math.hypot(*end) + hit.radius + 0.465 + 0.045
        for weapon in table.weapons.values()
        for move in weapon.moves.values()
        for hit in move.hits
        for end in (hit.start, hit.end)
    )
    draw = np.random.default_rng(0)
    for _ in range(150):
        fields = stage.fields
        near = torch.hypot(fields["x"][:, 0] - fields["x"][:, 1], fields["y"][:, 0] - fields["y"][:, 1]) < reach
        result = stage.env.step(torch.tensor(draw.integers(0, 2, (games, 2, 10)), dtype=torch.int8))
        far = result.state_metrics["distance"][:, 0] > reach
        out = (result.state_metrics["state"] == State.KO).any(1)  # whoever went out is shown at its start
        assert not bool((result.events["hits"].any(1) & far & ~near & ~out).any())
