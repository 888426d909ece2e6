"""Promise 13: the same seed gives the same match, whatever the batch, the threads, or a snapshot in between.

All comparisons are of bits: whole states are int32 tensors, and floats are compared as they are.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from ludus.envs.registry import make_env
from ludus.worlds.brawl.env import BrawlEnv

pytestmark = pytest.mark.fault

# Every style once, and delays and noise that leave traces in a bot's memory.
ROSTER = (
    "random",
    "clockwork",
    "based",
    "based-safe",
    "aggressive:delay=31",
    "defensive:noise=0.2",
    "hit-and-run",
    "aerial:delay=0",
    "heavy-spammer",
    "weapon-seeker",
    "edge-guarder:delay=12,noise=0.1",
    "switcher",
)
SETTINGS = {"step_limit": 240, "threads": 1}
LONGEST = 600  # steps for which there are random keys


def brawl(games: int, seed: int = 0, first_game: int = 0, **config: Any) -> BrawlEnv:
    env = make_env("brawl", games, seed=seed, first_game=first_game, config=SETTINGS | config)
    assert isinstance(env, BrawlEnv)
    return env


class Players:
    """Plays both seats of some games of a batch of any size: by bots, or by keys that depend on game and step alone."""

    def __init__(self, env: BrawlEnv, *, bots: bool) -> None:
        self.env = env
        games = torch.arange(env.first_game, env.first_game + env.num_envs, dtype=torch.int32)
        self._assignment = torch.stack([games * 5, games * 5 + games // 3 + 1], 1) % len(ROSTER)
        self._bots = env.bots(ROSTER) if bots else None
        self._random = torch.stack([_random_keys(int(game)) for game in games], 1)
        self.step = 0

    def keys(self) -> Tensor:
        """Returns the actions `(games, 2, 10)` of the next step."""
        self.step += 1
        if self._bots is None:
            return self._random[self.step - 1]
        actions = torch.zeros((self.env.num_envs, 2, 10), dtype=torch.int8)
        self._bots.act(self._assignment, actions)
        return actions


def _random_keys(game: int) -> Tensor:
    draw = torch.Generator().manual_seed(game)
    return torch.randint(0, 2, (LONGEST, 2, 10), generator=draw, dtype=torch.int8)


def play(players: Players, steps: int) -> Iterator[dict[str, Tensor]]:
    """Steps and yields everything that can be seen or that is kept; rows are games."""
    env = players.env
    for _ in range(steps):
        keys = players.keys()
        result = env.step(keys)
        reported = torch.stack([*result.events.values(), *result.state_metrics.values()], -1)
        final = torch.where(result.ended[:, None, None], result.final_observations["vector"], 0.0)
        yield {name: tensor for name, tensor in env.snapshot().items() if tensor.ndim} | {
            "keys": keys,
            "observations": result.observations["vector"].clone(),
            "terminated": result.terminated.clone(),
            "final": final,
            "reported": reported,
        }


def trace(env: BrawlEnv, steps: int, *, bots: bool) -> list[dict[str, Tensor]]:
    return list(play(Players(env, bots=bots), steps))


def assert_same(one: list[dict[str, Tensor]], other: list[dict[str, Tensor]], game: int | None = None) -> None:
    """Compares two traces; with `game`, that row of the first with the only row of the second."""
    assert len(one) == len(other)
    for step, (frame, twin) in enumerate(zip(one, other, strict=True)):
        assert frame.keys() == twin.keys()
        for name, values in frame.items():
            row = values if game is None else values[game : game + 1]
            assert torch.equal(row, twin[name]), f"step {step}: {name}"


@pytest.mark.parametrize("bots", [False, True])
def test_the_same_seed_gives_the_same_trace(bots: bool) -> None:
    one, other = (trace(brawl(8, seed=5), 500, bots=bots) for _ in range(2))
    assert_same(one, other)
    assert sum(int(frame["terminated"].sum()) for frame in one) >= 16  # across restarts


def test_resetting_to_a_seed_begins_as_a_new_environment_of_it() -> None:
    env = brawl(6, seed=1)
    trace(env, 300, bots=True)
    env.reset(seed=77)
    assert_same(trace(env, 300, bots=True), trace(brawl(6, seed=77), 300, bots=True))


@pytest.mark.parametrize("bots", [False, True])
def test_a_batch_equals_its_games_alone(bots: bool) -> None:
    games = 7
    together = trace(brawl(games, seed=9), 500, bots=bots)
    for game in range(games):
        assert_same(together, trace(brawl(1, seed=9, first_game=game), 500, bots=bots), game)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_nothing(threads: int) -> None:
    games = 256 * threads + 100  # enough for every thread to get a part
    envs = [brawl(games, seed=3, threads=count) for count in (1, threads)]
    everyone = [Players(env, bots=True) for env in envs]
    for _ in range(300):
        results = [players.env.step(players.keys()) for players in everyone]
        assert torch.equal(envs[0].players, envs[1].players)
        assert torch.equal(envs[0].items, envs[1].items)
        assert torch.equal(results[0].observations["vector"], results[1].observations["vector"])
    assert torch.equal(envs[0].bot_memory, envs[1].bot_memory)
    for env in envs:
        env.close()


@pytest.mark.parametrize("bots", [False, True])
@pytest.mark.parametrize("at", [3, 130, 239, 240, 241])
def test_a_snapshot_has_the_same_future(bots: bool, at: int) -> None:
    """Taken early, in the middle, and around the end of a match; restored into the same and into another batch."""
    env = brawl(12, seed=21)
    players = Players(env, bots=bots)
    for _ in play(players, at):
        pass
    snapshot, kept = env.snapshot(), {name: tensor.clone() for name, tensor in env.snapshot().items()}
    seen = env.restore(snapshot)["vector"].clone()
    future = list(play(players, 150))
    for other in (env, brawl(12, seed=999)):
        assert torch.equal(other.restore(snapshot)["vector"], seen)
        again = Players(other, bots=bots)
        again.step = at
        assert_same(future, list(play(again, 150)))
        assert other.seed == 21
    assert all(torch.equal(snapshot[name], kept[name]) for name in kept)


def test_a_snapshot_holds_the_bots_memory_and_their_delayed_keys() -> None:
    """A bot that acts 31 frames late still has to press what it decided before the snapshot."""
    env = brawl(4, seed=2)
    bots = env.bots(["aggressive:delay=31"])
    everywhere = torch.zeros((4, 2), dtype=torch.int32)
    actions = torch.zeros((4, 2, 10), dtype=torch.int8)

    def run(steps: int) -> list[Tensor]:
        pressed = []
        for _ in range(steps):
            bots.act(everywhere, actions)
            pressed.append(actions.clone())
            env.step(actions)
        return pressed

    run(25)
    snapshot = env.snapshot()
    future = torch.stack(run(60))
    assert int(future[:31].sum()) > 0
    env.reset(seed=1)
    run(90)
    env.restore(snapshot)
    assert torch.equal(torch.stack(run(60)), future)


def test_different_seeds_and_games_differ() -> None:
    traces = [
        torch.stack([frame["players"] for frame in trace(brawl(4, seed=seed), 200, bots=True)]) for seed in (0, 1)
    ]
    assert not torch.equal(*traces)
    games = traces[0]
    assert not torch.equal(games[:, 0, :, :2], games[:, 1, :, :2])


@pytest.mark.parametrize("seed", [2**32, 2**32 + 1, 2**63 - 1, 2**63, 2**64 - 1])
def test_large_seeds_are_whole_seeds(seed: int) -> None:
    """The low half alone does not decide: seeds that share it give different matches; restoring keeps all bits."""
    env = brawl(32, seed=seed)
    assert env.seed == seed
    homes = torch.stack([_homes(env) for _ in range(4)])
    low = brawl(32, seed=seed % 2**32)
    assert not torch.equal(homes, torch.stack([_homes(low) for _ in range(4)]))
    snapshot = env.snapshot()
    low.restore(snapshot)
    assert low.seed == seed
    assert torch.equal(_homes(low), _homes(env))


def _homes(env: BrawlEnv) -> Tensor:
    """Starts new matches and returns the sides that were drawn."""
    env.reset()
    return env.fields()["home"][:, 0].clone()


def test_a_reset_of_some_games_leaves_the_others_alone() -> None:
    games = 6
    env, other = brawl(games, seed=4), brawl(games, seed=4)
    mask = torch.tensor([True, False] * 3)
    one, two = Players(env, bots=True), Players(other, bots=True)
    for _ in range(100):
        env.step(one.keys())
        other.step(two.keys())
    env.reset(mask)
    for _ in range(120):
        env.step(one.keys())
        other.step(two.keys())
        assert torch.equal(env.players[~mask], other.players[~mask])
    assert not torch.equal(env.players[mask], other.players[mask])
