"""Reaction time: the opponent as it was some frames ago, everything else as it is."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

from ludus.core.errors import SnapshotError
from ludus.envs.base import StepResult
from ludus.envs.check import check_env
from ludus.envs.registry import make_env
from ludus.envs.warp_tools import struct_views
from ludus.worlds.brawl.bots import BOT_NAMES
from ludus.worlds.brawl.env import BrawlEnv
from ludus.worlds.brawl.kernels.reaction import Past
from ludus.worlds.brawl.kernels.structs import Match
from ludus.worlds.brawl.observation import BLOCKS, FIELDS

if TYPE_CHECKING:
    from tests.worlds.brawl.conftest import MakeStage

GAMES, STEPS = 24, 260
COLUMN = {field.name: index for index, field in enumerate(FIELDS)}
OPPONENT = slice(*BLOCKS["opponent"])
OFFSET = (COLUMN["world.opponent_dx"], COLUMN["world.opponent_dy"])
LATE = torch.zeros(len(FIELDS), dtype=torch.bool)
LATE[OPPONENT] = True
LATE[list(OFFSET)] = True


class Twins:
    """The same matches without a reaction time and with one; restarts of matches included.

    `rows` and `places` are what was seen and where fighters were without it, one entry per frame.
    """

    def __init__(self, reaction: int, **config: int) -> None:
        settings = {"threads": 1, "step_limit": 70} | config
        self.reaction = reaction
        prompt = make_env("brawl", GAMES, seed=5, config=settings)
        late = make_env("brawl", GAMES, seed=5, config=settings | {"reaction_frames": reaction})
        assert isinstance(prompt, BrawlEnv)
        assert isinstance(late, BrawlEnv)
        self.prompt, self.late = prompt, late
        self.fields, self.frame = self.prompt.fields(), struct_views(self.prompt.matches, Match)["frame"]
        self.rows: list[Tensor] = []
        self.places: list[Tensor] = []
        self._draw = torch.Generator().manual_seed(1)
        self._keys = torch.zeros((GAMES, 2, 10), dtype=torch.int8)
        self.reset()

    def note(self) -> None:
        self.rows.append(self.prompt._observations["vector"].clone())
        self.places.append(torch.stack([self.fields["x"], self.fields["y"]]).clone())

    def reset(self, games: Tensor | None = None) -> None:
        seen, late = self.prompt.reset(games)["vector"], self.late.reset(games)["vector"]
        self.rows, self.places = self.rows[:-1], self.places[:-1]  # a reset is no frame: its view replaces the last one
        self.note()
        assert torch.equal(late[..., ~LATE], seen[..., ~LATE])

    def step(self) -> tuple[StepResult, StepResult]:
        fresh = torch.rand(self._keys.shape, generator=self._draw) < 0.3
        drawn = torch.randint(0, 2, self._keys.shape, generator=self._draw, dtype=torch.int8)
        self._keys = torch.where(fresh, drawn, self._keys)
        results = self.prompt.step(self._keys), self.late.step(self._keys)
        self.note()
        return results

    def expected(self, row: Tensor, frame: Tensor, places: Tensor, homes: Tensor) -> Tensor:
        """Returns what is seen late in the present frame, from what is seen in time `(games, 2, 156)`."""
        row = row.clone()
        for game in range(GAMES):
            ago = min(int(frame[game]), self.reaction)
            if ago:
                row[game, :, OPPONENT] = self.rows[-1 - ago][game, :, OPPONENT]
                offset = self.places[-1 - ago][:, game].flip(1) - places[:, game]  # x and y of the other, minus the own
                row[game, :, OFFSET[0]] = offset[0] * -homes[game] * torch.tensor(1 / 14)
                row[game, :, OFFSET[1]] = offset[1] * torch.tensor(1 / 8)
        return row

    def check(self) -> None:
        expected = self.expected(self.rows[-1], self.frame, self.places[-1], self.fields["home"])
        assert torch.equal(self.late._observations["vector"], expected)

    def close(self) -> None:
        self.prompt.close()
        self.late.close()


@pytest.fixture(params=[1, 8, 30])
def twins(request: pytest.FixtureRequest) -> Iterator[Twins]:
    pair = Twins(request.param)
    yield pair
    pair.close()


def test_the_opponent_is_that_of_some_frames_ago(twins: Twins) -> None:
    """Both seats, random keys, across the ends of matches; nothing else differs."""
    twins.check()
    ends = 0
    for step in range(STEPS):
        frames, homes = twins.frame + 1, twins.fields["home"].clone()
        prompt, late = twins.step()
        twins.check()
        assert torch.equal(prompt.terminated, late.terminated), step
        for mine, others in ((prompt.events, late.events), (prompt.state_metrics, late.state_metrics)):
            assert all(torch.equal(mine[name], others[name]) for name in mine), step
        ended = prompt.terminated
        ends += int(ended.sum())
        final = prompt.final_observations["vector"]
        # Nobody wrote down where fighters were in a last frame: own x and y, back from the observation.
        own = torch.stack([final[..., 0] * -homes * 14, final[..., 1] * 8])
        expected, seen = twins.expected(final, frames, own, homes)[ended], late.final_observations["vector"][ended]
        exact = torch.ones(len(FIELDS), dtype=torch.bool)
        exact[list(OFFSET)] = False
        assert torch.equal(seen[..., exact], expected[..., exact]), step
        assert torch.allclose(seen, expected, atol=1e-6), step
    assert ends >= 3 * GAMES
    assert twins.prompt.view(3) == twins.late.view(3)  # spectators see the present


def test_some_games_restart_and_others_go_on(twins: Twins) -> None:
    for step in range(120):
        twins.step()
        if step % 7 == 3:
            twins.reset(torch.arange(GAMES) % 5 == step % 5)
        twins.check()
    twins.reset()
    twins.check()


def test_a_snapshot_goes_on_with_the_same_bits(twins: Twins) -> None:
    for _ in range(65):  # past the first frames, shortly before the clock runs out
        twins.step()
    snapshot, seen = twins.late.snapshot(), twins.late._observations["vector"].clone()
    assert set(snapshot) - set(twins.prompt.snapshot()) == {"history", "history_slot"}
    keys = torch.randint(0, 2, (40, GAMES, 2, 10), generator=torch.Generator().manual_seed(3), dtype=torch.int8)
    expected = [twins.late.step(each).observations["vector"].clone() for each in keys]
    settings = {"threads": 1, "step_limit": 70, "reaction_frames": twins.reaction}
    with make_env("brawl", GAMES, seed=99, config=settings) as other:
        for env in (twins.late, other):
            assert torch.equal(env.restore(snapshot)["vector"], seen)
            assert torch.equal(env.restore(env.snapshot())["vector"], seen)  # observing twice changes nothing
            for each, rows in zip(keys, expected, strict=True):
                assert torch.equal(env.step(each).observations["vector"], rows)


def test_no_reaction_time_keeps_nothing() -> None:
    names = {"players", "matches", "items", "bot_memory", "bot_delayed", "seed"}
    for settings in ({}, {"reaction_frames": 0}):
        with make_env("brawl", 2, config=settings) as env:
            assert set(env.snapshot()) == names


def test_first_frames_by_hand(make_stage: "MakeStage") -> None:
    """Seat 1 walks left at 6.75 units/s from 5 while seat 0 walks right from -5; a reaction time of 3 frames."""
    stage = make_stage(reaction_frames=3)
    stage.env.restore(stage.env.snapshot())  # the places that were set by hand are those of the first frame
    seen = []
    for _ in range(6):
        row = stage.step("right", "left").observations["vector"][0, 0]
        seen.append([float(row[COLUMN[name]]) * 14 for name in ("self.x", "opponent.x", "world.opponent_dx")])
    pace = 6.75 / 30
    for frame, (own, opponent, offset) in enumerate(seen, 1):
        then = max(frame - 3, 0)
        assert own == pytest.approx(-5 + frame * pace, abs=1e-5)
        assert opponent == pytest.approx(5 - then * pace, abs=1e-5)
        assert offset == pytest.approx(10 - (frame + then) * pace, abs=1e-5)


def test_a_hit_is_felt_at_once_and_seen_late(make_stage: "MakeStage") -> None:
    stage = make_stage(reaction_frames=5)
    stage.stand(0, -5.0, facing=1)
    stage.stand(1, -4.0, facing=-1)
    felt, struck, seen = (COLUMN[name] for name in ("self.state_stun", "self.connected", "opponent.state_stun"))
    first: dict[str, int] = {}
    for frame in range(30):
        attacker, victim = stage.step("light").observations["vector"][0]
        for name, value in (("felt", victim[felt]), ("struck", attacker[struck]), ("seen", attacker[seen])):
            if value:
                first.setdefault(name, frame)
    assert first["felt"] == first["struck"]
    assert first["seen"] == first["felt"] + 5


def test_scripted_bots_play_the_same_matches() -> None:
    """Bots of the world read its state, not what a seat sees."""
    seats = torch.arange(2 * GAMES, dtype=torch.int32).view(GAMES, 2)
    states = []
    for reaction in (0, 12):
        with make_env("brawl", GAMES, seed=2, config={"threads": 1, "reaction_frames": reaction}) as env:
            bots, actions = env.bots(BOT_NAMES), torch.zeros((GAMES, 2, 10), dtype=torch.int8)
            for _ in range(200):
                bots.act((seats * 5) % len(BOT_NAMES), actions)
                env.step(actions)
            states.append(env.snapshot())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_the_conformance_kit_and_threads() -> None:
    settings = {"threads": 1, "reaction_frames": 4}
    check_env(lambda games, seed, first: make_env("brawl", games, seed=seed, first_game=first, config=settings))
    rows = []
    for threads in (1, 2):
        with make_env("brawl", 1200, seed=8, config={"threads": threads, "reaction_frames": 4}) as env:
            keys = torch.randint(0, 2, (30, 1200, 2, 10), generator=torch.Generator().manual_seed(6), dtype=torch.int8)
            rows.append(torch.stack([env.step(each).observations["vector"][::50].clone() for each in keys]))
    assert torch.equal(*rows)


def test_snapshots_that_do_not_fit_are_refused(make_stage: "MakeStage") -> None:
    env = make_stage(3, reaction_frames=4).env
    for other in (make_stage(3), make_stage(3, reaction_frames=5)):
        with pytest.raises(SnapshotError, match="history"):
            env.restore(other.env.snapshot())
    with pytest.raises(SnapshotError, match="history"):
        make_stage(3).env.restore(env.snapshot())
    for name, value in (("history_slot", 5), ("history_slot", -1)):
        snapshot = env.snapshot()
        snapshot[name][1] = value
        with pytest.raises(SnapshotError, match=name):
            env.restore(snapshot)
    snapshot = env.snapshot()
    struct_views(snapshot["history"], Past)["values"][2, 1, 0, 3] = torch.nan
    with pytest.raises(SnapshotError, match="past fighter"):
        env.restore(snapshot)


def test_no_word_of_a_snapshot_writes_beyond_a_block(make_stage: "MakeStage") -> None:
    """Kernels use it as places in a block: any word leads to one of the 28 one-hot entries."""
    env = make_stage(3, reaction_frames=4).env
    for _ in range(6):
        env.step(torch.zeros((3, 2, 10), dtype=torch.int8))
    snapshot = env.snapshot()
    good = env.restore(snapshot)["vector"].clone()
    for word in (2**30, -(2**30), -1, 0x3FF, 0):
        struct_views(snapshot["history"], Past)["hot"][:] = word
        seen = env.restore(snapshot)["vector"]
        unchanged = torch.ones(len(FIELDS), dtype=torch.bool)
        unchanged[COLUMN["opponent.state_standing"] : OPPONENT.stop] = False
        assert torch.equal(seen[..., unchanged], good[..., unchanged])
