"""The mix of opponents: the share of each bot and of past selves, the chance of each of these, and the draw."""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.core.random import stream_hash, uniform
from ludus.league.config import LeagueConfig
from ludus.league.payoffs import MIRROR_KIND, SELF_KIND, Payoffs
from ludus.league.pool import SnapshotPool
from ludus.league.ratings import bradley_terry
from ludus.league.samplers import sample, thin_out

_STREAM_LIVE = 0x11FE


class Mix:
    """Cuts the numbers from 0 to 1 into a part for every opponent: the bots first, and then the slots of snapshots.

    Until there is a snapshot the bots share what is due to past selves.
    """

    def __init__(
        self, bots: Sequence[str], pool: SnapshotPool | None, config: LeagueConfig, *, live: int, seed: int
    ) -> None:
        """Begins with nothing; `set` comes next.

        Args:
            bots: Their names.
            pool: The snapshots, or None where there never are any.
            config: Says which snapshots play.
            live: Most snapshots that have a chance at a time.
            seed: Of the choice of those.
        """
        self._bots, self._pool, self._config = tuple(bots), pool, config
        self._live, self._seed = live, seed
        self.slots = pool.stacked.slots if pool else 0
        self._shares = torch.zeros(len(self._bots) + 1, dtype=torch.float64)
        self._chances = torch.zeros(self.slots, dtype=torch.float64)

    def set(self, weights: Mapping[str, float]) -> None:
        """Takes the share of each opponent; those not named get none.

        Raises:
            ConfigError: The weights are no shares.
            UnknownNameError: There is no such opponent.
        """
        known = (*self._bots, *((SELF_KIND,) if self._pool is not None else ()))
        for name in weights:
            if name not in known:
                raise UnknownNameError("opponent", name, (*known, MIRROR_KIND))
        _check_weights(weights)
        shares = torch.tensor([weights.get(name, 0.0) for name in (*self._bots, SELF_KIND)], dtype=torch.float64)
        if not shares.sum() > 0.0:
            raise ConfigError(f"no opponent has a weight above 0: {dict(weights)}; give at least one")
        self._shares.copy_(shares / shares.sum())

    def refresh(self, payoffs: Payoffs, generation: int) -> None:
        """Gives every snapshot its chance by the config's sampler, and lets some of many be live.

        Args:
            payoffs: How the learner fared.
            generation: While it stays the same, about the same snapshots are live.
        """
        if self._pool is None or self._pool.is_empty:
            return
        snapshots = self._pool.snapshots
        ratings = bradley_terry(*payoffs.matrix()) if self._config.sampler == "rating" else {}
        chances = sample(
            self._config,
            [payoffs.recent(opponent=snapshot.name).score for snapshot in snapshots],
            [ratings[snapshot.name].estimate if snapshot.name in ratings else None for snapshot in snapshots],
            ratings[payoffs.eras[-1]].estimate if ratings else 0.0,
        )
        offset = uniform(stream_hash(self._seed, generation, _STREAM_LIVE))
        self._chances.zero_()
        for snapshot, chance in zip(snapshots, thin_out(chances, self._live, offset), strict=True):
            self._chances[snapshot.slot] = float(chance)

    def clear(self, slot: int) -> None:
        """Takes the chance from a slot whose snapshot left or came."""
        self._chances[slot] = 0.0

    @property
    def has_nobody(self) -> bool:
        """Whether there is no opponent that could play: all is due to past selves, and there is none."""
        return not self._parts().sum() > 0.0

    def thresholds(self) -> Tensor:
        """Returns where the parts end, `(opponents,)` float32; see `cut`."""
        return cut(self._parts())

    def _parts(self) -> Tensor:
        bots, selves = self._shares[:-1], self._shares[-1:]
        chances = torch.zeros_like(self._chances)
        if self._pool is not None and not self._pool.is_empty:
            chances.copy_(self._chances)
            chances[[not name for name in self._pool.names()]] = 0.0
            if not chances.sum() > 0.0:  # before the first refresh: the newest
                chances[self._pool.snapshots[-1].slot] = 1.0
            chances /= chances.sum()
        return torch.cat((bots, selves * chances))

    def state(self) -> dict[str, Tensor]:
        """Returns copies of what later draws depend on beside the snapshots."""
        return {"shares": self._shares.clone(), "chances": self._chances.clone()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Takes what `state` gave, whose names and shapes were checked."""
        self._shares.copy_(state["shares"])
        self._chances.copy_(state["chances"])


def mirrored_games(weights: Mapping[str, float], games: int) -> int:
    """Returns in how many of a batch's games the learner plays all seats: the share of `mirror`, rounded.

    Where others have a share too, at least one game is left to them, and at least one to the mirror.

    Raises:
        ConfigError: The weights are no shares, or there is but one game for both.
    """
    _check_weights(weights)
    mirror = weights.get(MIRROR_KIND, 0.0)
    others = sum(weight for name, weight in weights.items() if name != MIRROR_KIND)
    if mirror == 0.0 or others == 0.0:
        return games if mirror else 0
    if games < 2:
        raise ConfigError(f"{MIRROR_KIND!r} and other opponents need a game each, got {games}; use more games")
    return min(max(round(games * mirror / (mirror + others)), 1), games - 1)


def _check_weights(weights: Mapping[str, float]) -> None:
    for name, weight in weights.items():
        if not 0.0 <= weight < math.inf:
            raise ConfigError(f"opponent {name!r} has weight {weight}; use a number from 0 on")


def cut(parts: Tensor) -> Tensor:
    """Returns the numbers that cut [0, 1) into parts of the given sizes, `(parts,)` float32.

    Part i holds the numbers x with `cuts[i - 1] <= x < cuts[i]`. From the last part that is not empty on they are 2,
    so that rounding gives nobody a share that has none.

    Args:
        parts: `(parts,)` float64, none negative, one positive at least.
    """
    cuts = (parts.cumsum(0) / parts.sum()).to(torch.float32)
    cuts[int(parts.nonzero().max()) :] = 2.0
    return cuts
