"""Scripted players: names, delay, noise, scripts, switching, memory, and play that can be told apart."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

from ludus.core.intervals import wilson_interval
from ludus.envs.warp_tools import struct_views
from ludus.worlds.brawl.bots import BOT_NAMES, DEFAULT_SCRIPT, load_script, parse_bot
from ludus.worlds.brawl.kernels.bots import SWITCHED
from ludus.worlds.brawl.kernels.structs import Memo
from ludus.worlds.brawl.rules import Key

if TYPE_CHECKING:
    from tests.worlds.brawl.conftest import MakeStage, Stage

STYLED = tuple(name for name in BOT_NAMES if name not in ("constant", "random", "clockwork"))


def everyone(games: int, bot: int = 0) -> Tensor:
    return torch.full((games, 2), bot, dtype=torch.int32)


def watched_keys(stage: "Stage", name: str, frames: int, keys: str = "") -> Tensor:
    """Returns the keys `(frames, games, 2, 10)` that a bot would press while something else moves the fighters."""
    stage.env.reset(seed=6)
    bots = stage.env.bots([name])
    actions = torch.zeros((stage.env.num_envs, 2, 10), dtype=torch.int8)
    played, pressed = stage.keys(keys, keys), []
    for _ in range(frames):
        bots.act(everyone(stage.env.num_envs), actions)
        pressed.append(actions.clone())
        stage.env.step(played)
    return torch.stack(pressed)


def played_keys(stage: "Stage", name: str, frames: int) -> Tensor:
    """Returns the keys `(frames, games, 2, 10)` of a bot that plays against itself."""
    stage.env.reset(seed=6)
    bots = stage.env.bots([name])
    actions = torch.zeros((stage.env.num_envs, 2, 10), dtype=torch.int8)
    pressed = []
    for _ in range(frames):
        bots.act(everyone(stage.env.num_envs), actions)
        pressed.append(actions.clone())
        stage.env.step(actions)
    return torch.stack(pressed)


@pytest.mark.parametrize("name", BOT_NAMES)
def test_every_name_plays(make_stage: "MakeStage", name: str) -> None:
    pressed = played_keys(make_stage(16, weapon_spawns=True, move_table=None), name, 300)
    assert bool(((pressed == 0) | (pressed == 1)).all())
    assert bool(pressed.any()) == (name != "constant")
    assert BOT_NAMES[parse_bot(name).style] == name


def test_names_are_those_of_the_spec(stage: "Stage") -> None:
    assert stage.env.spec.bots == BOT_NAMES
    assert len(BOT_NAMES) == 13
    bots = stage.env.bots(["based", "aggressive:delay=8,noise=0.1"])
    assert bots.names == ("based", "aggressive:delay=8,noise=0.1")


def test_random_presses_every_key_half_of_the_time(make_stage: "MakeStage") -> None:
    pressed = played_keys(make_stage(32), "random", 300).float()
    shares = pressed.mean((0, 1))  # (seats, keys) of 9,600 draws: three standard deviations are 0.015
    assert float((shares - 0.5).abs().max()) < 0.02
    assert float((pressed[1:] != pressed[:-1]).float().mean()) == pytest.approx(0.5, abs=0.02)
    assert not torch.equal(pressed[:, :, 0], pressed[:, :, 1])


@pytest.mark.parametrize("delay", [1, 7, 31])
@pytest.mark.parametrize("name", ["random", "clockwork", "based"])
def test_a_delay_shifts_the_keys_by_that_many_frames(make_stage: "MakeStage", name: str, delay: int) -> None:
    stage = make_stage(8)
    at_once = watched_keys(stage, f"{name}:delay=0", 200, "right")
    late = watched_keys(stage, f"{name}:delay={delay}", 200, "right")
    assert not bool(late[:delay].any())
    assert torch.equal(late[delay:], at_once[:-delay])
    assert bool(at_once[:-delay].any())


def test_delayed_keys_do_not_leak_into_the_next_match(make_stage: "MakeStage") -> None:
    stage = make_stage(8, step_limit=50)
    late = watched_keys(stage, "random:delay=31", 100)
    assert not bool(late[50:81].any())
    assert bool(late[81:].any())


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.5, 1.0])
def test_noise_replaces_the_given_share_of_keys(make_stage: "MakeStage", noise: float) -> None:
    pressed = watched_keys(make_stage(128), f"constant:noise={noise}", 400)
    blocks = pressed.view(100, 4, 128, 2, 10)
    assert torch.equal(blocks, blocks[:, :1].expand_as(blocks))  # held for four frames
    noisy = int(blocks[:, 0].any(-1).sum())
    # Of 25,600 blocks; one in 1,024 draws presses nothing.
    share = wilson_interval(noisy, 100 * 128 * 2, 0.999)
    assert share.low <= noise * 1023 / 1024 <= share.high


def test_a_bot_is_itself_and_noise_makes_it_another(make_stage: "MakeStage") -> None:
    stage = make_stage(4)
    without, usual = (played_keys(stage, name, 200) for name in ("aggressive:noise=0", "aggressive"))
    assert torch.equal(without, played_keys(stage, "aggressive:noise=0", 200))
    assert torch.equal(usual, played_keys(stage, "aggressive:noise=0.05", 200))  # the usual share of noise
    assert not torch.equal(without, usual)


def test_clockwork_plays_its_file(make_stage: "MakeStage") -> None:
    expanded = [keys for frames, keys in load_script(DEFAULT_SCRIPT) for _ in range(frames)]
    length = len(expanded)
    pressed = watched_keys(make_stage(2), "clockwork", 2 * length + 10)
    for frame, row in enumerate(pressed):
        held = [bool(expanded[frame % length] >> key & 1) for key in Key]
        assert row.bool().tolist() == [[held, held]] * 2, frame


def test_a_script_of_the_users_own(make_stage: "MakeStage", tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("- {frames: 3, keys: [right, jump]}\n- {frames: 2}\n- {frames: 1, keys: [heavy]}\n")
    assert load_script(file) == ((3, (1 << Key.RIGHT) | (1 << Key.JUMP)), (2, 0), (1, 1 << Key.HEAVY))
    pressed = watched_keys(make_stage(1), f"clockwork:script={file}", 12)[:, 0, 0]
    cycle = [{Key.RIGHT, Key.JUMP}] * 3 + [set()] * 2 + [{Key.HEAVY}]
    assert [{key for key in Key if row[key]} for row in pressed] == cycle * 2


def test_two_clockworks_in_one_roster_keep_their_own_scripts(make_stage: "MakeStage", tmp_path: Path) -> None:
    names = []
    for word in ("light", "heavy"):
        (tmp_path / f"{word}.yaml").write_text(f"- {{frames: 1, keys: [{word}]}}\n")
        names.append(f"clockwork:script={tmp_path / word}.yaml")
    stage = make_stage(1)
    actions = torch.zeros((1, 2, 10), dtype=torch.int8)
    stage.env.bots(names).act(torch.tensor([[1, 0]], dtype=torch.int32), actions)
    assert actions[0].nonzero().tolist() == [[0, Key.HEAVY], [1, Key.LIGHT]]


def test_the_switcher_changes_its_style_in_the_middle_of_a_match(make_stage: "MakeStage") -> None:
    games = 64
    stage = make_stage(games, move_table=None, stocks=99)  # no match ends before the clock
    bots = stage.env.bots(["switcher"])
    memory = struct_views(stage.env.bot_memory, Memo)
    actions = torch.zeros((games, 2, 10), dtype=torch.int8)
    styles: set[int] = set()
    until = torch.zeros((games, 2), dtype=torch.int32)
    lengths: list[int] = []
    for frame in range(1400):
        bots.act(everyone(games), actions)
        changed = memory["style_until"] != until
        if frame:
            assert bool((until[changed] <= frame).all())  # never before its time
        lengths += (memory["style_until"][changed] - frame).tolist()
        until = memory["style_until"].clone()
        styles |= set(memory["style"].flatten().tolist())
        stage.env.step(actions)
    assert styles == set(SWITCHED)
    assert [BOT_NAMES[place] for place in SWITCHED] == [*BOT_NAMES[5:12]]
    assert 180 <= min(lengths) < 200
    assert 430 < max(lengths) < 450
    assert len(lengths) > 4 * 2 * games  # some five styles a match


@pytest.mark.parametrize("name", BOT_NAMES)
def test_asked_twice_a_bot_says_the_same(make_stage: "MakeStage", name: str) -> None:
    stage = make_stage(16, weapon_spawns=True, move_table=None)
    stage.env.reset(seed=3)
    bots = stage.env.bots([f"{name}:noise=0.1"])
    once, twice = (torch.zeros((16, 2, 10), dtype=torch.int8) for _ in range(2))
    for frame in range(250):
        bots.act(everyone(16), once)
        bots.act(everyone(16), twice)
        assert torch.equal(once, twice), frame
        stage.env.step(once)


@pytest.mark.parametrize("name", STYLED)
def test_asking_twice_does_not_change_the_match(make_stage: "MakeStage", name: str) -> None:
    traces = []
    for times in (1, 3):
        stage = make_stage(8, weapon_spawns=True, move_table=None)
        stage.env.reset(seed=4)
        bots = stage.env.bots([name])
        actions = torch.zeros((8, 2, 10), dtype=torch.int8)
        for _ in range(300):
            for _ in range(times):
                bots.act(everyone(8), actions)
            stage.env.step(actions)
        traces.append(stage.env.players.clone())
    assert torch.equal(*traces)


def test_a_bot_that_takes_over_in_a_later_match_starts_with_a_clear_memory(make_stage: "MakeStage") -> None:
    """Whatever was remembered of a match that is over must not hold up a bot that plays on in the next one."""
    stage, fresh = make_stage(8, move_table=None), make_stage(8, move_table=None)
    bots = stage.env.bots(["aerial"])
    actions = torch.zeros((8, 2, 10), dtype=torch.int8)
    for _ in range(600):
        bots.act(everyone(8), actions)
        stage.env.step(actions)
    for env in (stage.env, fresh.env):
        env.reset(torch.ones(8, dtype=torch.bool))
    fresh.env.matches.copy_(stage.env.matches)
    fresh.env.players.copy_(stage.env.players)
    idle = torch.zeros_like(actions)
    for env in (stage.env, fresh.env):
        for _ in range(5):  # nobody asks the bots in the first frames of the new match
            env.step(idle)
    twins = fresh.env.bots(["aerial:delay=0"]), stage.env.bots(["aerial:delay=0"])
    pressed = torch.zeros_like(actions), torch.zeros_like(actions)
    for _ in range(60):
        for bot, keys, env in zip(twins, pressed, (fresh.env, stage.env), strict=True):
            bot.act(everyone(8), keys)
            env.step(keys)
        assert torch.equal(*pressed)


def test_bots_leave_other_seats_alone(make_stage: "MakeStage") -> None:
    stage = make_stage(4)
    assignment = torch.tensor([[0, -1], [-1, 0], [-1, -1], [0, 0]], dtype=torch.int32)
    actions = torch.full((4, 2, 10), 1, dtype=torch.int8)
    stage.env.bots(["constant"]).act(assignment, actions)
    assert actions.sum(-1).tolist() == [[0, 10], [10, 0], [10, 10], [0, 0]]


def test_all_bots_in_one_batch_play_as_they_do_alone(make_stage: "MakeStage") -> None:
    games = len(BOT_NAMES)
    together = make_stage(games, weapon_spawns=True, move_table=None)
    together.env.reset(seed=8)
    roster = together.env.bots(BOT_NAMES)
    assignment = torch.arange(games, dtype=torch.int32)[:, None].expand(games, 2).contiguous()
    actions = torch.zeros((games, 2, 10), dtype=torch.int8)
    seen = []
    for _ in range(200):
        roster.act(assignment, actions)
        seen.append(actions.clone())
        together.env.step(actions)
    for index, name in enumerate(BOT_NAMES):
        alone = make_stage(games, weapon_spawns=True, move_table=None)
        alone.env.reset(seed=8)
        bots = alone.env.bots([name])
        for frame in range(200):
            bots.act(everyone(games), actions)
            assert torch.equal(actions[index], seen[frame][index]), (name, frame)
            alone.env.step(actions)
