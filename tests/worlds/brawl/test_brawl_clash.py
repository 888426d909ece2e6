"""The rules `clash`: a blow holds both fighters until each has chosen a strike, a guard or a throw."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from ludus.core.errors import ConfigError, SnapshotError
from ludus.envs.registry import make_env
from ludus.worlds.brawl.env import BrawlEnv
from ludus.worlds.brawl.kernels.bot_styles import GUESSES
from ludus.worlds.brawl.moves import load_move_table
from ludus.worlds.brawl.observation import BLOCKS, FIELDS, SHOWN_STATES, SIZE
from ludus.worlds.brawl.rules import Choice, Ground, Key, Slot, State

if TYPE_CHECKING:
    from tests.worlds.brawl.conftest import MakeStage, Stage

CLASH_MOVES = Path(__file__).with_name("clash_moves.yaml")
FRAMES, RECOIL = 5, 4
KEYS = {Choice.STRIKE: "light", Choice.GUARD: "", Choice.THROW: "heavy"}
BEATS = {Choice.STRIKE: Choice.THROW, Choice.THROW: Choice.GUARD, Choice.GUARD: Choice.STRIKE}
COLUMN = {field.name: index for index, field in enumerate(FIELDS)}
HELD = slice(COLUMN["world.held_up"], COLUMN["world.held_taunt"] + 1)
# The loser's launch at 20 damage: 10 + 7 * (20/70 + 400/12000) = 12.2333 units/s; 6 + int(12.2333 / 4) frames of stun.
SPEED, STUN = 10.0 + 7.0 * (20.0 / 70.0 + 400.0 / 12_000.0), 9


@pytest.fixture
def stage(make_stage: "MakeStage") -> "Stage":
    return close(make_stage(1, move_table=CLASH_MOVES))


def close(stage: "Stage") -> "Stage":
    """Places both on the low ground within reach of a jab."""
    stage.stand(0, -4.5, facing=1)
    stage.stand(1, -3.5, facing=-1)
    return stage


def strike(stage: "Stage", seat: int = 0) -> None:
    """Puts a fighter into the frame before its jab becomes active."""
    stage.set(seat, state=State.ATTACK, move=Slot.GROUND_LIGHT_NEUTRAL, move_frame=2, hit_mask=0)


def open_clash(stage: "Stage", *seats: int) -> None:
    for seat in seats or (0,):
        strike(stage, seat)
    result = stage.step()
    assert stage.state(0) == stage.state(1) == State.CLASH
    assert all(float(result.events[name].sum()) == 0.0 for name in ("hits", "damage_dealt", "stun_hits"))


def test_a_blow_opens_a_clash_instead_of_hitting(stage: "Stage") -> None:
    stage.set(0, vx=3.0, charge=2)
    stage.set(1, vx=-2.0)
    open_clash(stage)
    for seat, facing in ((0, 1), (1, -1)):
        values = {
            "vx": 0,
            "vy": 0,
            "timer": FRAMES,
            "facing": facing,
            "move": -1,
            "charge": 0,
            "hit_mask": 0,
            "damage": 0,
        }
        assert {name: stage.get(seat, name) for name in values} == values
    places = stage.place(0), stage.place(1)
    stage.step("right light jump dodge pickup taunt", "up heavy", frames=FRAMES - 1)
    assert (stage.place(0), stage.place(1)) == places
    assert stage.get(0, "timer") == stage.get(1, "timer") == 1


@pytest.mark.parametrize("own", list(Choice))
@pytest.mark.parametrize("other", list(Choice))
def test_every_pair_of_choices(stage: "Stage", own: Choice, other: Choice) -> None:
    """What is held in the frames before the last does not count."""
    open_clash(stage)
    stage.step("heavy", "light", frames=FRAMES - 1)
    result = stage.step(KEYS[own], KEYS[other])
    if own == other:
        assert float(result.events["hits"].sum()) == 0.0
        assert stage.state(0) == stage.state(1) == State.STUN
        assert [(stage.get(seat, "vx"), stage.get(seat, "timer")) for seat in (0, 1)] == [(-6.0, RECOIL), (6.0, RECOIL)]
        assert stage.get(0, "damage") == stage.get(1, "damage") == 0.0
        return
    winner = 0 if BEATS[own] == other else 1
    loser, side = 1 - winner, 1.0 if winner == 0 else -1.0
    assert result.events["damage_dealt"][0, winner] == result.events["damage_taken"][0, loser] == 20.0
    assert result.events["hits"][0].tolist() == [1.0 - winner, float(winner)]
    assert float(result.events["stun_hits"].sum()) == 0.0
    assert (stage.state(winner), stage.get(winner, "hit_mask"), stage.get(winner, "timer")) == (State.STANDING, 0, 0)
    assert (stage.state(loser), stage.get(loser, "timer"), stage.get(loser, "threatened")) == (State.STUN, STUN, 1)
    launch = (side * SPEED * math.cos(math.radians(30)), -SPEED * 0.5)
    assert (stage.get(loser, "vx"), stage.get(loser, "vy")) == pytest.approx(launch, rel=1e-5)


def test_heavy_comes_before_light(stage: "Stage") -> None:
    open_clash(stage)
    stage.step("light heavy", "", frames=FRAMES)
    assert (stage.state(0), stage.state(1)) == (State.STANDING, State.STUN)  # the throw beats the guard


def test_simultaneous_blows_open_one_clash(stage: "Stage") -> None:
    open_clash(stage, 0, 1)
    result = stage.step("", "light", frames=FRAMES)
    assert result.events["damage_dealt"][0].tolist() == [20.0, 0.0]


def test_whoever_is_stunned_is_hit(stage: "Stage") -> None:
    """The winner may follow up; the first hit of the jab does 4 damage."""
    stage.set(1, state=State.STUN, timer=10)
    strike(stage)
    result = stage.step()
    assert result.events["damage_dealt"][0].tolist() == [4.0, 0.0]
    assert result.events["stun_hits"][0].tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    "values", [{"state": State.DODGE, "timer": 5}, {"invincible": 20}, {"state": State.KO, "timer": 9}]
)
def test_whoever_cannot_be_hit_opens_no_clash(stage: "Stage", values: dict[str, int]) -> None:
    stage.set(1, **values)
    strike(stage)
    stage.step()
    assert State.CLASH not in (stage.state(0), stage.state(1))


def test_invincibility_ends_with_an_own_blow(stage: "Stage") -> None:
    stage.set(0, invincible=50)
    open_clash(stage)
    assert stage.get(0, "invincible") == 0


def test_in_the_air_both_hover_and_can_get_back(stage: "Stage") -> None:
    stage.hang(0, -0.5, 1.0, vx=2.0, vy=-3.0, facing=1, jumps=0, recovery_used=1)
    stage.hang(1, 0.5, 1.0, vy=4.0, facing=-1, jumps=2)
    stage.set(0, state=State.ATTACK, move=Slot.AIR_LIGHT_NEUTRAL, move_frame=5, hit_mask=0)
    stage.step()
    assert stage.state(0) == stage.state(1) == State.CLASH
    places = stage.place(0), stage.place(1)
    stage.step(frames=FRAMES - 1)
    assert (stage.place(0), stage.place(1)) == places
    assert [(stage.get(seat, "jumps"), stage.get(seat, "recovery_used")) for seat in (0, 1)] == [(1, 0), (2, 0)]
    stage.step("heavy", "")
    assert (stage.state(0), stage.state(1)) == (State.IN_AIR, State.STUN)


def test_the_platform_carries_a_clash(stage: "Stage") -> None:
    stage.hang(0, 0.5, 0.07 - 0.5, ground=Ground.PLATFORM, state=State.STANDING, facing=1)
    stage.hang(1, 1.4, 0.07 - 0.5, ground=Ground.PLATFORM, state=State.STANDING, facing=-1)
    stage.matches["frame"][:] = 60
    for seat in (0, 1):
        x, y = stage.env.view(0).platform
        stage.set(seat, x=x - 0.45 + 0.9 * seat, y=y - 0.5)
    strike(stage)
    stage.step()
    distance = stage.get(1, "x") - stage.get(0, "x")
    stage.step(frames=FRAMES - 1)
    assert stage.state(0) == stage.state(1) == State.CLASH
    platform = stage.env.view(0).platform
    for seat in (0, 1):
        assert stage.get(seat, "ground") == Ground.PLATFORM
        assert stage.get(seat, "y") == pytest.approx(platform[1] - 0.5, abs=1e-5)
    assert stage.get(1, "x") - stage.get(0, "x") == pytest.approx(distance, abs=1e-5)


def test_in_one_place_each_faces_away_from_its_start(stage: "Stage") -> None:
    stage.stand(0, -4.0, facing=1)
    stage.stand(1, -4.0, facing=1)
    stage.set(0, state=State.ATTACK, move=Slot.GROUND_LIGHT_DOWN, move_frame=3)  # a move that stays in its place
    stage.step()
    assert stage.state(0) == stage.state(1) == State.CLASH
    assert (stage.get(0, "facing"), stage.get(1, "facing")) == (1, -1)


def test_who_is_left_alone_is_free(stage: "Stage") -> None:
    open_clash(stage)
    stage.hang(1, 13.99, -3.0, state=State.CLASH, vx=30.0)
    stage.step()
    assert (stage.state(0), stage.state(1)) == (State.CLASH, State.KO)
    stage.step()
    assert (stage.state(0), stage.get(0, "timer")) == (State.STANDING, 0)


def test_weapons_stay_where_they_are(make_stage: "MakeStage") -> None:
    stage = close(make_stage(1, move_table=CLASH_MOVES))
    stage.set(0, weapon=1)
    stage.set(0, state=State.ATTACK, move=11 + Slot.GROUND_LIGHT_NEUTRAL, move_frame=20, hit_mask=0)
    strike(stage, 1)
    stage.step()
    assert stage.state(0) == State.CLASH
    stage.drop_item(1, -3.5, 2.85, weapon=2)
    result = stage.step("pickup", "pickup", frames=FRAMES - 1)
    assert float((result.events["pickups"] + result.events["drops"]).sum()) == 0.0
    assert (stage.get(0, "weapon"), stage.get(1, "weapon")) == (1, 0)


def test_the_clock_may_end_the_match_in_a_clash(make_stage: "MakeStage") -> None:
    stage = close(make_stage(1, move_table=CLASH_MOVES, step_limit=100))
    stage.set(1, damage=7.0)
    open_clash(stage)
    stage.matches["frame"][:] = 98
    assert not bool(stage.step().terminated.any())
    result = stage.step()
    assert result.events["wins"][0].tolist() == [1.0, 0.0]
    assert stage.state(0) == stage.state(1) == State.IN_AIR  # the next match


def test_nothing_shows_a_choice_before_the_clash_is_over(make_stage: "MakeStage") -> None:
    """The games differ in the second seat's keys alone; the first seat sees the same until the last frame."""
    stage = make_stage(3, move_table=CLASH_MOVES)
    stage.step()  # sides were drawn: what was seen of the first frame differs
    open_clash(close(stage))
    actions = torch.zeros((3, 2, 10), dtype=torch.int8)
    actions[1, 1, Key.LIGHT] = actions[2, 1, Key.HEAVY] = 1
    for frame in range(FRAMES + 1):
        rows = stage.env.step(actions).observations["vector"]
        same = bool((rows[:, 0] == rows[0, 0]).all())
        assert same == (frame < FRAMES - 1), frame
        # Its own choice it knows, also when it learns how the clash ended.
        assert bool((rows[:, 1, HELD] == actions[:, 1].float()).all())


def test_a_clash_is_shown_by_zeros_in_place_of_a_state(make_stage: "MakeStage") -> None:
    assert SIZE == 156
    assert len(SHOWN_STATES) == 13
    stage = close(make_stage(1, move_table=CLASH_MOVES))
    open_clash(stage)
    rows = stage.step(frames=3).observations["vector"][0]
    for block in ("self", "opponent"):
        first, last = (COLUMN[f"{block}.state_{name}"] for name in ("standing", "ko"))
        assert rows[:, first : last + 1].sum() == 0.0
        assert rows[:, COLUMN[f"{block}.move_ground_light_neutral"] : BLOCKS[block][1] - 4].sum() == 0.0
    assert rows[:, COLUMN["self.timer"]].tolist() == pytest.approx([2 / 30, 2 / 30])
    assert stage.env.view(0).players[0].state is State.CLASH


def test_a_snapshot_in_the_middle_of_a_clash_goes_on_with_the_same_bits(make_stage: "MakeStage") -> None:
    one, other = (close(make_stage(1, move_table=CLASH_MOVES)) for _ in range(2))
    open_clash(one)
    one.step(frames=2)
    other.env.restore(one.env.snapshot())
    for keys in (("light", "heavy"),) * 20:
        first, second = one.step(*keys), other.step(*keys)
        assert torch.equal(first.observations["vector"], second.observations["vector"])
    assert torch.equal(one.env.players, other.env.players)
    plain = make_stage(1)
    plain.set(0, state=State.CLASH, timer=3)
    with pytest.raises(SnapshotError, match="state"):  # a game without clashes would never end it
        plain.env.restore(plain.env.snapshot())


@pytest.mark.parametrize("with_bots", [False, True])
def test_exchanged_seats_and_sides_give_the_mirrored_match(make_stage: "MakeStage", with_bots: bool) -> None:
    settings = {"weapon_spawns": True, "move_table": None, "rules": "clash", "step_limit": 500}
    one, other = make_stage(48, **settings), make_stage(48, swap_sides=True, mirrored=True, **settings)
    names = ["aggressive", "defensive", "hit-and-run", "habits"]
    rosters = []
    for stage in (one, other):
        stage.env.reset(seed=11)
        rosters.append(stage.env.bots(names))
    seats = (torch.arange(48, dtype=torch.int32)[:, None] + torch.tensor([0, 1])).int() % len(names)
    draw = torch.Generator().manual_seed(7)
    keys, mirrored = (torch.zeros((48, 2, 10), dtype=torch.int8) for _ in range(2))
    clashes = 0
    for frame in range(700):
        if with_bots:
            rosters[0].act(seats, keys)
            rosters[1].act(seats.flip(1).contiguous(), mirrored)
        else:
            fresh = torch.rand((48, 2, 10), generator=draw) < 0.2
            keys = torch.where(fresh, torch.randint(0, 2, keys.shape, generator=draw, dtype=torch.int8), keys)
            mirrored = keys.flip(1)
        one.env.step(keys)
        other.env.step(mirrored)
        assert torch.equal(one.env.players, other.env.players.flip(1)), frame
        clashes += int((one.fields["timer"][one.fields["state"] == State.CLASH] == 10).sum())
    assert clashes > 20


def test_bots_choose_by_chance(make_stage: "MakeStage") -> None:
    games = 600
    stage = close(make_stage(games, rules="clash", move_table=None))
    open_clash(stage)
    bots = stage.env.bots(["aggressive:delay=0,noise=0"])
    actions = torch.zeros((games, 2, 10), dtype=torch.int8)
    bots.act(torch.zeros((games, 2), dtype=torch.int32), actions)
    light, heavy = (actions[..., key].bool() for key in (Key.LIGHT, Key.HEAVY))
    found = torch.stack((light, ~light & ~heavy, heavy)).float().mean((1, 2)).tolist()
    assert found == pytest.approx([1 / 3] * 3, abs=0.05)


def test_the_standard_rules_have_no_clashes() -> None:
    standard, clash = load_move_table(), load_move_table(rules="clash")
    assert standard.clash is None
    assert clash.clash is not None
    assert clash.weapons == standard.weapons
    with make_env("brawl", 1) as env:
        assert isinstance(env, BrawlEnv)
        assert env.rules.clash_frames == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [("frames: 0", "frames"), ("damage: -1", "damage"), ("launch: [40, 0]", "launch"), ("winner: 3", "winner")],
)
def test_clashes_that_cannot_be_are_refused(tmp_path: Path, change: str, message: str) -> None:
    valid = {"frames": 10, "damage": 20, "stun": 6, "angle": 30, "launch": [10, 7], "push": 6, "recoil": 4}
    key, value = change.split(": ", 1)
    lines = [f"  {name}: {value if name == key else number}\n" for name, number in {**valid, key: value}.items()]
    table = tmp_path / "table.yaml"
    table.write_text("extends: standard\nclash:\n" + "".join(lines))
    with pytest.raises(ConfigError, match=message):
        load_move_table(table)


def test_each_choice_beats_the_next_but_one() -> None:
    assert {choice: Choice((choice + 2) % GUESSES) for choice in Choice} == BEATS
