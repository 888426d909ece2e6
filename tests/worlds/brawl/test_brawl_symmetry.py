"""Symmetry: exchanged seats give the same match with seats exchanged, exchanged starts its mirror image, as bits."""

from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

from ludus.envs.base import StepResult
from ludus.worlds.brawl.bots import BOT_NAMES

if TYPE_CHECKING:
    from tests.worlds.brawl.conftest import MakeStage, Stage

ROSTER = (
    *BOT_NAMES,
    "habits",
    "habits:family=6",
    "aggressive:delay=0,noise=0.3",
    "defensive:delay=9,noise=0.05",
)


def assert_swapped(one: "Stage", other: "Stage", frame: int) -> None:
    """Compares the whole state of two batches, as bits: fighters and dropped weapons change places."""
    assert torch.equal(one.env.players, other.env.players.flip(1)), frame
    assert torch.equal(one.env.matches, other.env.matches), frame
    assert torch.equal(one.env.items, other.env.items[:, [0, 1, 3, 2]]), frame


def assert_results_swapped(one: StepResult, other: StepResult) -> None:
    assert torch.equal(one.observations["vector"], other.observations["vector"].flip(1))
    assert torch.equal(one.terminated, other.terminated)
    ended = one.terminated
    assert torch.equal(one.final_observations["vector"][ended], other.final_observations["vector"][ended].flip(1))
    for name, values in (*one.events.items(), *one.state_metrics.items()):
        twin = other.events[name] if name in other.events else other.state_metrics[name]
        assert torch.equal(values, twin.flip(1)), name


@pytest.fixture
def twins(make_stage: "MakeStage") -> tuple["Stage", "Stage"]:
    """Two batches of the same matches, once with the sides as drawn and once with sides exchanged and mirrored."""
    settings = {"weapon_spawns": True, "move_table": None, "step_limit": 500}
    first, second = make_stage(96, **settings), make_stage(96, swap_sides=True, mirrored=True, **settings)
    for stage in (first, second):
        stage.env.reset(seed=11)  # sides as they are drawn
    return first, second


def assert_views_mirrored(one: "Stage", other: "Stage") -> None:
    """Spectators see the second match in a mirror."""
    for game in (0, 1, 2):
        seen, mirrored = one.env.view(game), other.env.view(game)
        assert seen.platform == (-mirrored.platform[0], mirrored.platform[1])
        for seat in (0, 1):
            a, b = seen.players[seat], mirrored.players[1 - seat]
            assert (a.x, a.y, a.vx, a.vy, a.facing) == (-b.x, b.y, -b.vx, b.vy, -b.facing)
            assert (a.state, a.slot, a.damage, a.stocks, a.weapon) == (b.state, b.slot, b.damage, b.stocks, b.weapon)
            ends = [(hit.start, hit.end) for hit in a.hits]
            assert ends == [((-h.start[0], h.start[1]), (-h.end[0], h.end[1])) for h in b.hits]
        items = {(item.x, item.y, item.weapon, item.life) for item in seen.items}
        assert items == {(-item.x, item.y, item.weapon, item.life) for item in mirrored.items}


def test_random_keys_with_seats_exchanged(twins: tuple["Stage", "Stage"]) -> None:
    one, other = twins
    assert torch.equal(one.env.players, other.env.players.flip(1))
    draw = torch.Generator().manual_seed(7)
    keys = torch.zeros((96, 2, 10), dtype=torch.int8)
    for frame in range(2200):
        # Keys are held for some frames, as players do; sides and seats have no part in it.
        fresh = torch.rand((96, 2, 10), generator=draw) < 0.2
        keys = torch.where(fresh, torch.randint(0, 2, keys.shape, generator=draw, dtype=torch.int8), keys)
        result, twin = one.env.step(keys), other.env.step(keys.flip(1))
        assert_results_swapped(result, twin)
        assert_swapped(one, other, frame)
        if frame % 100 == 0:
            assert_views_mirrored(one, other)
    assert int(one.matches["episode"].min()) >= 4


def test_bots_with_seats_exchanged(twins: tuple["Stage", "Stage"]) -> None:
    one, other = twins
    seats = torch.arange(96 * 2, dtype=torch.int32).view(96, 2)
    assignment = (seats * 7 + seats // 15) % len(ROSTER)
    first, second = one.env.bots(ROSTER), other.env.bots(ROSTER)
    actions, twin_actions = (torch.zeros((96, 2, 10), dtype=torch.int8) for _ in range(2))
    for frame in range(2200):
        first.act(assignment, actions)
        second.act(assignment.flip(1), twin_actions)
        assert torch.equal(actions, twin_actions.flip(1)), frame
        assert_results_swapped(one.env.step(actions), other.env.step(twin_actions))
        assert_swapped(one, other, frame)
    assert int(one.matches["episode"].min()) >= 4
    assert set(assignment.flatten().tolist()) == set(range(len(ROSTER)))


def test_fixed_weapons_with_seats_exchanged(make_stage: "MakeStage") -> None:
    one = make_stage(16, move_table=None, fixed_weapons=("spear", "hammer"))
    other = make_stage(16, move_table=None, fixed_weapons=("hammer", "spear"), swap_sides=True)
    one.env.reset(seed=3)
    other.env.reset(seed=3)
    draw = torch.Generator().manual_seed(8)
    for frame in range(600):
        keys = torch.randint(0, 2, (16, 2, 10), generator=draw, dtype=torch.int8)
        assert_results_swapped(one.env.step(keys), other.env.step(keys.flip(1)))
        assert_swapped(one, other, frame)


def test_a_mirrored_stage_changes_nothing_but_the_picture(make_stage: "MakeStage") -> None:
    plain, mirrored = make_stage(8, weapon_spawns=True), make_stage(8, weapon_spawns=True, mirrored=True)
    draw = torch.Generator().manual_seed(9)
    for _ in range(300):
        keys = torch.randint(0, 2, (8, 2, 10), generator=draw, dtype=torch.int8)
        seen, twin = plain.env.step(keys), mirrored.env.step(keys)
        assert torch.equal(seen.observations["vector"], twin.observations["vector"])
        assert torch.equal(plain.env.players, mirrored.env.players)
    assert plain.env.view(0).players[0].x == -mirrored.env.view(0).players[0].x


def test_exchanged_starts_show_the_mirror_image(make_stage: "MakeStage") -> None:
    settings = {"weapon_spawns": True, "move_table": None}
    one, other = make_stage(128, **settings), make_stage(128, **settings)
    mirror = one.env.spec.mirror
    assert mirror is not None
    draw = torch.Generator().manual_seed(5)
    held = torch.zeros((128, 2, 10), dtype=torch.int8)

    def next_keys() -> Tensor:
        fresh = torch.rand((128, 2, 10), generator=draw) < 0.2
        return torch.where(fresh, torch.randint(0, 2, held.shape, generator=draw, dtype=torch.int8), held)

    for _ in range(90):  # into the middle of the match: fighters in the air, hit, armed; weapons on both grounds
        held = next_keys()
        one.env.step(held)
    other.env.restore(one.env.snapshot())
    other.fields["home"].neg_()
    same, compared = torch.ones(128, dtype=torch.bool), 0
    for frame in range(240):
        held = next_keys()
        seen = one.env.step(held).observations["vector"]
        image = other.env.step(mirror.actions.apply(held)).observations["vector"]
        same &= (one.fields["stocks"] == 3).all(1)  # who comes back comes back at its own start
        assert torch.equal(mirror.observations["vector"].apply(seen)[same], image[same]), frame
        compared += int(same.sum())
    assert compared > 5_000
    assert int(same.sum()) < 128


def test_sides_are_drawn_evenly_and_anew_for_every_match(make_stage: "MakeStage") -> None:
    stage = make_stage(512, step_limit=30)
    stage.env.reset(seed=21)
    homes: list[Tensor] = []
    for _ in range(8):
        homes.append(stage.fields["home"].clone())
        stage.step(frames=30)
    drawn = torch.stack(homes)
    assert torch.equal(drawn[..., 0], -drawn[..., 1])
    share = (drawn[..., 0] > 0).double().mean().item()
    assert abs(share - 0.5) < 0.03  # 4,096 coins: three standard deviations are 0.023
    changes = (drawn[1:, :, 0] != drawn[:-1, :, 0]).double().mean().item()
    assert abs(changes - 0.5) < 0.03
