"""Snapshots with extreme values: each is refused, or its games go on without a fault.

Kernels use numbers of the state as indices and loop bounds and check none of them, so what a stranger's file holds is
checked when it is restored. Every field of every world is set to the least and greatest numbers of its type.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from ludus.core.errors import SnapshotError
from ludus.envs.base import BatchedEnv, action_dtypes
from ludus.envs.registry import make_env
from ludus.envs.warp_tools import struct_fields, struct_views
from ludus.worlds.brawl.kernels import structs as brawl
from ludus.worlds.city.game.kernels import structs as city
from ludus.worlds.rocket.kernels import structs as rocket
from ludus.worlds.roshambo.kernels import structs as roshambo

pytestmark = pytest.mark.fault

GAMES = 2
# A world, its settings, the bots that play, and how many steps they play first.
WORLDS: dict[str, tuple[str, dict[str, Any], tuple[str, ...], int]] = {
    "brawl": ("brawl", {}, ("switcher", "aggressive:delay=8"), 90),
    "rocket": ("rocket", {"mode": "1v2"}, ("chaser", "goalkeeper"), 20),
    "city": (
        "city",
        {"metrics": "truth", "observe": ("readings",), "actions": ("build", "explore")},
        ("greedy", "balanced"),
        30,
    ),
    "mimic": ("mimic", {"pushes": {"impulse_ns": 20.0}}, (), 10),
    "roshambo": ("roshambo", {"throws": 40}, ("meta", "matcher"), 20),
    "tug": ("tug", {}, ("random", "strong"), 3),
    **{name: (name, {}, (), 2) for name in ("dig", "duel", "endless", "identity", "point", "recall", "rps")},
}
STRUCTS: dict[str, Any] = {
    "players": brawl.Player,
    "items": brawl.Item,
    "bot_memory": brawl.Memo,
    "cars": rocket.Car,
    "balls": rocket.Ball,
    "city-v1/table/cities": city.City,
}
MATCHES = {"brawl": brawl.Match, "rocket": rocket.Match, "roshambo": roshambo.Match}
MEMOS = {"roshambo": roshambo.Memo}
FLOATS = (float("nan"), float("inf"), -float("inf"), 3e38, -3e38, 1e-40, 1e7, -1.0)


def extremes(dtype: torch.dtype) -> tuple[float, ...]:
    if dtype.is_floating_point:
        return FLOATS
    if dtype == torch.bool:
        return (0, 1)
    limits = torch.iinfo(dtype)
    return (limits.min, limits.max, limits.max - 20, -1, min(1000, limits.max))


def fields(world: str, snapshot: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Yields a view of every number of a snapshot, by name."""
    for name, tensor in snapshot.items():
        struct = MATCHES.get(world) if name == "matches" else STRUCTS.get(name)
        if name == "bot_memory":
            struct = MEMOS.get(world, struct)
        if struct is None:
            yield name, tensor
        else:
            yield from ((f"{name}.{field}", view) for field, view in struct_views(tensor, struct).items())


class Players:
    """Plays a world with its bots, all seats."""

    def __init__(self, env: BatchedEnv, bots: tuple[str, ...]) -> None:
        self._env, self._bots = env, env.bots(bots) if bots else None
        space, shape = env.spec.action_space, (env.num_envs, env.spec.seats)
        self._actions = torch.zeros((*shape, *(space.shape or ())), dtype=action_dtypes(space)[0])
        self._assignment = torch.arange(shape[0] * shape[1], dtype=torch.int32).reshape(shape) % max(len(bots), 1)

    def step(self) -> None:
        if self._bots is not None:
            self._bots.act(self._assignment, self._actions)
        self._env.step(self._actions)


def is_refused(env: BatchedEnv, snapshot: dict[str, Tensor]) -> bool:
    try:
        env.restore(snapshot)
    except SnapshotError:
        return True
    return False


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("world", WORLDS)
def test_extreme_values_are_refused_or_played(world: str) -> None:
    name, settings, bots, steps = WORLDS[world]
    with make_env(name, GAMES, config=settings) as env:
        players = Players(env, bots)
        for _ in range(steps):
            players.step()
        kept = env.snapshot()
        refused = set()
        for field, view in fields(world, {name: tensor.clone() for name, tensor in kept.items()}):
            for value in extremes(view.dtype):
                snapshot = {name: tensor.clone() for name, tensor in kept.items()}
                dict(fields(world, snapshot))[field].fill_(value)
                if is_refused(env, snapshot):
                    refused.add(field)
                    continue
                players.step()
                players.step()
        assert len(refused) > 10 or world not in ("brawl", "rocket", "city", "mimic")
        env.restore(kept)  # what a world itself gave is never refused


@pytest.mark.parametrize("value", [-(2**63), -2, 1000, 2**63 - 1])
def test_the_middle_of_a_town_lies_on_its_map(value: int) -> None:
    with make_env("city", GAMES, config=WORLDS["city"][1]) as env:
        for axis in range(2):
            snapshot = env.snapshot()
            snapshot["city-v1/town_middles"][1, axis] = value
            with pytest.raises(SnapshotError, match="town_middles"):
                env.restore(snapshot)


@pytest.mark.parametrize(
    ("struct", "ranges"),
    [
        (brawl.Player, brawl.player_ranges(3, 3)),
        (brawl.Match, brawl.match_ranges(100)),
        (brawl.Item, brawl.item_ranges(3)),
        (brawl.Memo, brawl.MEMO_RANGES),
        (rocket.Car, rocket.car_ranges(2)),
        (rocket.Ball, rocket.BALL_RANGES),
        (rocket.Match, rocket.match_ranges(2)),
        (city.City, city.city_ranges(100)),
    ],
)
def test_every_field_has_a_range(struct: Any, ranges: dict[str, tuple[float, float]]) -> None:
    assert set(ranges) == set(struct_fields(struct))
