"""Ten million random steps: no NaN, nothing outside its bounds, no state that cannot be."""

from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

from ludus.worlds.brawl.observation import HIGH, LOW
from ludus.worlds.brawl.rules import Ground, State

if TYPE_CHECKING:
    from tests.worlds.brawl.conftest import MakeStage, Stage

pytestmark = pytest.mark.fault

GAMES, STEPS = 4096, 2450  # 10,035,200 steps
EVERY = 23  # frames between two looks at all fields; prime to all cycles of the game
GROUNDED = (State.STANDING, State.WALKING, State.SPRINTING, State.TURNAROUND, State.TAUNT)
TIMED = (State.DASH, State.BACKDASH, State.DODGE, State.STUN, State.TAUNT, State.KO, State.CLASH)


def among(values: Tensor, states: tuple[State, ...]) -> Tensor:
    return torch.isin(values, torch.tensor(states, dtype=values.dtype))


def impossible(stage: "Stage", stocks: int = 3) -> list[str]:
    """Returns the names of the rules that the state of any game breaks."""
    f = stage.fields
    state, move, timer, ground = f["state"], f["move"], f["timer"], f["ground"]
    attack, ko = state == State.ATTACK, state == State.KO
    totals = torch.tensor([stage.env.table.move(index).total for index in range(11 * len(stage.env.table.names))])
    length = totals[move.clamp(min=0).long()]
    feet = f["y"] + 0.5
    top = torch.where(f["x"] > 0, 0.85, 2.85)
    inside = (f["x"].abs() > 2 - 0.434) & (f["x"].abs() < 7 + 0.434)
    items, frame = stage.items, stage.matches["frame"]
    lying = items["life"] > 0
    rules = {
        "finite": torch.isfinite(torch.stack([f[name] for name in ("x", "y", "vx", "vy", "damage")])),
        "x": f["x"].abs() <= 14,
        "y": f["y"].abs() <= 8,
        "speed": (f["vx"].abs() <= 45) & (f["vy"].abs() <= 45),
        "damage": (f["damage"] >= 0) & (f["damage"] <= 700),
        "home": (f["home"].abs() == 1) & (f["home"].sum(1, keepdim=True) == 0),
        "facing": f["facing"].abs() == 1,
        "state": (state >= 0) & (state <= (State.CLASH if stage.env.table.clash else State.KO)),
        "fighters in a clash rest": (state != State.CLASH) | (f["vx"] == 0) & (f["vy"] == 0),
        "ground": (ground >= 0) & (ground <= 2),
        "jumps": (f["jumps"] >= 0) & (f["jumps"] <= 2),
        "jump_cooldown": (f["jump_cooldown"] >= 0) & (f["jump_cooldown"] <= 6),
        "dodge_cooldown": (f["dodge_cooldown"] >= 0) & (f["dodge_cooldown"] <= 92),
        "recovery_used": (f["recovery_used"] == 0) | (f["recovery_used"] == 1),
        "threatened": (f["threatened"] == 0) | (f["threatened"] == 1),
        "invincible": (f["invincible"] >= 0) & (f["invincible"] <= 90),
        "drop_timer": (f["drop_timer"] >= 0) & (f["drop_timer"] <= 8),
        "weapon": (f["weapon"] >= 0) & (f["weapon"] < len(stage.env.table.names)),
        "stocks": (f["stocks"] >= 1) & (f["stocks"] <= stocks),
        "keys": (f["keys"] >= 0) & (f["keys"] < 1024),
        "timer": (timer >= 0) & (timer <= 90),
        "timed states have a timer": ~among(state, TIMED) | (timer > 0),
        "others have none": among(state, (*TIMED, State.TURNAROUND)) | (timer == 0),
        "a move while attacking only": (move >= 0) == attack,
        "the move of the weapon": ~attack | (move // 11 == f["weapon"]),
        "move_frame": torch.where(attack, (f["move_frame"] >= 0) & (f["move_frame"] < length), f["move_frame"] == 0),
        "charge": torch.where(attack, (f["charge"] >= 0) & (f["charge"] <= 90), f["charge"] == 0),
        "hit_mask": torch.where(attack, (f["hit_mask"] >= 0) & (f["hit_mask"] < 16), f["hit_mask"] == 0),
        "standing states stand": ~among(state, GROUNDED) | (ground != Ground.NONE),
        "air states fly": ~among(state, (State.IN_AIR, State.AIR_TURNAROUND, State.KO)) | (ground == Ground.NONE),
        "on solid ground": (ground != Ground.SOLID) | inside & ((feet - top).abs() < 1e-3),
        "not inside the ground": ~inside | (feet <= top + 2e-3),
        "at rest on a ground": (ground == Ground.NONE) | (f["vy"] == 0),
        "out at the start": ~ko | (f["x"].abs() == 5) & (f["y"] == 0) & (f["damage"] == 0) & (f["weapon"] == 0),
        "a clock within the match": (frame >= 0) & (frame < stage.env.config.step_limit),
        "item life": (items["life"] >= 0) & (items["life"] <= 350),
        "item lock": ~lying | (items["lock"] >= 0) & (items["lock"] <= 36),
        "item weapon": ~lying | (items["weapon"] >= 1) & (items["weapon"] < len(stage.env.table.names)),
        "item place": ~lying | (items["x"].abs() <= 14) & (items["y"].abs() <= 8),
    }
    return [name for name, holds in rules.items() if not bool(holds.all())]


def test_ten_million_random_steps(make_stage: "MakeStage") -> None:
    stage = make_stage(GAMES, weapon_spawns=True, move_table=None, threads=None)
    env = stage.env
    env.reset(seed=99)
    low, high = torch.tensor(LOW) - 1e-6, torch.tensor(HIGH) + 1e-6
    draw = torch.Generator().manual_seed(4)
    keys = torch.randint(0, 2, (64, GAMES, 2, 10), generator=draw, dtype=torch.int8)
    # A quarter of the games hold each set of keys for sixteen frames: sprints, charges and deep falls need held keys.
    for block in range(0, 64, 16):
        keys[block : block + 16, : GAMES // 4] = keys[block, : GAMES // 4]
    states: set[int] = set()
    for step in range(STEPS):
        # Shifted by one game in each round of 64, so that no game gets the same keys twice.
        before = torch.stack([stage.fields["x"].abs() / 14, stage.fields["y"].abs() / 8]).amax(0)
        result = env.step(keys[step % 64].roll(step // 64, 0))
        # Nobody is lost but near the border: 45 u/s are 1.5 a frame. A NaN would look like leaving the kill box.
        lost = result.events["falls"] + result.events["knocked_out"] > 0
        assert bool((before[lost] > 1 - 1.5 / 8).all()), step
        if step % EVERY == 0:
            assert impossible(stage) == [], step
            rows = result.observations["vector"]
            assert bool(torch.isfinite(rows).all())
            assert bool(((rows >= low) & (rows <= high)).all()), step
            states |= set(stage.fields["state"].flatten().tolist())
    assert states == set(range(13))
    assert float(stage.matches["episode"].float().mean()) > 0.9  # most matches have ended and begun anew


def test_bots_reach_no_impossible_state_either(make_stage: "MakeStage") -> None:
    games = 256
    stage = make_stage(games, weapon_spawns=True, move_table=None)
    bots = stage.env.bots([f"{name}:noise=0.1" if name != "constant" else name for name in stage.env.spec.bots])
    assignment = torch.randint(0, len(bots.names), (games, 2), generator=torch.Generator().manual_seed(5)).int()
    actions = torch.zeros((games, 2, 10), dtype=torch.int8)
    for step in range(1400):
        bots.act(assignment, actions)
        stage.env.step(actions)
        if step % EVERY == 0:
            assert impossible(stage) == [], step


def test_no_impossible_state_with_clashes(make_stage: "MakeStage") -> None:
    games = 512
    stage = make_stage(games, weapon_spawns=True, move_table=None, rules="clash", step_limit=600)
    stage.env.reset(seed=3)
    bots = stage.env.bots(["aggressive:delay=0,noise=0.3", "habits", "aerial", "edge-guarder"])
    assignment = torch.randint(-1, 4, (games, 2), generator=torch.Generator().manual_seed(5)).int()  # -1: random keys
    draw = torch.Generator().manual_seed(6)
    low, high = torch.tensor(LOW) - 1e-6, torch.tensor(HIGH) + 1e-6
    states: set[int] = set()
    for step in range(1400):
        actions = torch.randint(0, 2, (games, 2, 10), generator=draw, dtype=torch.int8)
        bots.act(assignment, actions)
        rows = stage.env.step(actions).observations["vector"]
        if step % 7 == 0:
            assert impossible(stage) == [], step
            assert bool(((rows >= low) & (rows <= high)).all()), step
            states |= set(stage.fields["state"].flatten().tolist())
    assert states == set(State)


def test_the_check_itself_notices(stage: "Stage") -> None:
    assert impossible(stage) == []
    stage.set(0, jumps=3)
    assert impossible(stage) == ["jumps"]
    stage.set(0, jumps=2, x=torch.nan)
    assert {"finite", "x"} <= set(impossible(stage))
    stage.stand(0, -5.0, state=State.ATTACK)
    assert "a move while attacking only" in impossible(stage)
