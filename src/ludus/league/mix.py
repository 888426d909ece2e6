"""The mix of opponents: the share of each bot, each agent and of snapshots, the chance of each of these, and the draw.

The samplers are pure functions of whole columns: entry i of everything belongs to snapshot i, oldest first. They give
the chance of each snapshot from its age, or from the learner's win rate against it.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.core.random import stream_hash, uniform
from ludus.core.state import check_range, check_tensors
from ludus.league.config import LeagueConfig
from ludus.league.payoffs import MIRROR_KIND, SELF_KIND, Payoffs
from ludus.league.snapshots import SnapshotPool

Chances = NDArray[np.float64]
_UNKNOWN = 0.5  # win rate against an opponent that was not met yet

_STREAM_LIVE = 0x11FE
_ROUNDING = 1e-9


def mostly_recent(count: int, share: float, window: int) -> Chances:
    """Give `share` to the newest `window` snapshots and the rest to the older ones; all where there are no older."""
    recent = min(window, count)
    weights = np.full(count, share / recent)
    if count > recent:
        weights[:-recent] = (1.0 - share) / (count - recent)
    return normalised(weights)


def by_win_rate(win_rates: Sequence[float | None], power: float) -> Chances:
    """Prioritised fictitious self-play: weighs snapshots by `(1 - p) ** power`, p the learner's win rate against them.

    Draws are half a win; None counts as 0.5.
    """
    rates = np.array([_UNKNOWN if rate is None else rate for rate in win_rates])
    return normalised((1.0 - rates) ** power)


def thin_out(chances: Chances, live: int, offset: float) -> Chances:
    """Leave a chance to at most `live` snapshots; on average over offsets everyone keeps its own.

    Systematic resampling: `live` points, evenly spaced from `offset / live` on, fall on the snapshots laid end to end;
    the chance of each is its share of the points. So a snapshot above `1 / live` is never left out.

    Args:
        chances: Of each snapshot.
        live: Most that may have one.
        offset: From 0 to 1, drawn evenly.
    """
    if np.count_nonzero(chances) <= live:
        return chances
    ends = np.cumsum(chances)
    ends[np.flatnonzero(chances)[-1] :] = np.inf  # rounding must not let the last point fall off the end
    points = (np.arange(live) + offset) / live
    hits = np.bincount(np.searchsorted(ends, points, side="right"), minlength=len(chances))
    return hits / live


def normalised(weights: Chances) -> Chances:
    """Make weights add up to 1; where all are 0, because every snapshot is beaten always, all are alike."""
    if weights.size == 0:
        raise ConfigError("there is no snapshot to draw from; add one first")
    total = weights.sum()
    if not total > 0.0:
        return np.full(weights.size, 1.0 / weights.size)
    normalised: Chances = weights / total
    return normalised


class OpponentMix:
    """Cuts the numbers from 0 to 1 into a part for every opponent: bots and agents first, then the slots of snapshots.

    Until there is a snapshot, bots and agents share what is due to snapshots.
    """

    def __init__(
        self, fixed: Sequence[str], pool: SnapshotPool | None, config: LeagueConfig, *, live: int, seed: int
    ) -> None:
        """Begin with nothing; `set` comes next.

        Args:
            fixed: Names of the opponents that do not change: bots and agents.
            pool: The snapshots, or None where there never are any.
            config: Says which snapshots play.
            live: Most snapshots that have a chance at a time.
            seed: Of the choice of those.
        """
        self._fixed, self._pool, self._config = tuple(fixed), pool, config
        self._live, self._seed = live, seed
        self.slots = pool.stacked.slots if pool else 0
        self._shares = torch.zeros(len(self._fixed) + 1, dtype=torch.float64)
        self._chances = torch.zeros(self.slots, dtype=torch.float64)

    def set(self, weights: Mapping[str, float]) -> None:
        """Take the share of each opponent; those not named get none.

        Raises:
            ConfigError: The weights are no shares.
            UnknownNameError: There is no such opponent.
        """
        known = (*self._fixed, *((SELF_KIND,) if self._pool is not None else ()))
        for name in weights:
            if name not in known:
                raise UnknownNameError("opponent", name, (*known, MIRROR_KIND))
        check_weights(weights)
        shares = torch.tensor([weights.get(name, 0.0) for name in (*self._fixed, SELF_KIND)], dtype=torch.float64)
        if not shares.sum() > 0.0:
            raise ConfigError(f"no opponent has a weight above 0: {dict(weights)}; give at least one")
        self._shares.copy_(shares / shares.sum())

    def refresh(self, payoffs: Payoffs, generation: int) -> None:
        """Give every snapshot its chance by the config's sampler, and let some of many be live.

        Chances that were assigned stay as they are.

        Args:
            payoffs: How the learner fared.
            generation: While it stays the same, about the same snapshots are live.
        """
        if self._pool is None or self._pool.is_empty or self._config.sampler == "assigned":
            return
        snapshots = self._pool.snapshots
        if self._config.sampler == "recent":
            chances = mostly_recent(len(snapshots), self._config.recent_share, self._config.recent_window)
        else:
            scores = [payoffs.recent(opponent=snapshot.name).score for snapshot in snapshots]
            chances = by_win_rate(scores, self._config.pfsp_power)
        offset = uniform(stream_hash(self._seed, generation, _STREAM_LIVE))
        self._chances.zero_()
        for snapshot, chance in zip(snapshots, thin_out(chances, self._live, offset), strict=True):
            self._chances[snapshot.slot] = float(chance)

    def assign(self, chances: Mapping[str, float]) -> None:
        """Take the chance of each snapshot by name; those not named get none."""
        self._chances.zero_()
        for snapshot in self._pool.snapshots if self._pool is not None else ():
            self._chances[snapshot.slot] = chances.get(snapshot.name, 0.0)
        total = self._chances.sum()
        if total > 0.0:
            self._chances /= total

    def clear(self, slot: int) -> None:
        """Take the chance from a slot whose snapshot left or came."""
        self._chances[slot] = 0.0

    @property
    def has_nobody(self) -> bool:
        """Whether no opponent can play: the whole mix is snapshots, and there is none."""
        return not self._parts().sum() > 0.0

    def thresholds(self) -> Tensor:
        """Return where the parts end, `(opponents,)` float32; see `cut`."""
        return cut(self._parts())

    def _parts(self) -> Tensor:
        fixed, selves = self._shares[:-1], self._shares[-1:]
        chances = torch.zeros_like(self._chances)
        if self._pool is not None and not self._pool.is_empty:
            chances.copy_(self._chances)
            chances[[not name for name in self._pool.names()]] = 0.0
            if not chances.sum() > 0.0:  # before the first refresh: the newest
                chances[self._pool.snapshots[-1].slot] = 1.0
            chances /= chances.sum()
        return torch.cat((fixed, selves * chances))

    def state(self) -> dict[str, Tensor]:
        """Return copies of what later draws depend on beside the snapshots."""
        return {"shares": self._shares.clone(), "chances": self._chances.clone()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the state returned by `state()`.

        Raises:
            StateError: Its names, shapes or types differ, or it has numbers that are no shares.
        """
        check_tensors(state, self.state(), "the mix", ranges={"shares": (0, 1), "chances": (0, 1)})
        shares = state["shares"]
        if bool(self._shares.any()):  # someone is met, so that someone must have a share
            check_range(shares.sum().reshape(1), 1.0 - _ROUNDING, 1.0 + _ROUNDING, "the sum of the mix's 'shares'")
        check_range(shares[-1:], 0, int(self._pool is not None), f"the mix's share of {SELF_KIND!r}")
        self._shares.copy_(shares)
        self._chances.copy_(state["chances"])


def mirrored_games(weights: Mapping[str, float], games: int) -> int:
    """Return in how many of a batch's games the learner plays all seats: the share of `mirror`, rounded.

    Where others have a share too, at least one game is left to them, and at least one to the mirror.

    Raises:
        ConfigError: The weights are no shares, or there is but one game for both.
    """
    check_weights(weights)
    mirror = weights.get(MIRROR_KIND, 0.0)
    others = sum(weight for name, weight in weights.items() if name != MIRROR_KIND)
    if mirror == 0.0 or others == 0.0:
        return games if mirror else 0
    if games < 2:
        raise ConfigError(f"{MIRROR_KIND!r} and other opponents need a game each, got {games}; use more games")
    return min(max(round(games * mirror / (mirror + others)), 1), games - 1)


def check_weights(weights: Mapping[str, float]) -> None:
    """Raise ConfigError unless all weights are finite numbers from 0 on."""
    for name, weight in weights.items():
        if not 0.0 <= weight < math.inf:
            raise ConfigError(f"opponent {name!r} has weight {weight}; use a number from 0 on")


def cut(parts: Tensor) -> Tensor:
    """Return the numbers that cut [0, 1) into parts of the given sizes, `(parts,)` float32.

    Part i holds the numbers x with `cuts[i - 1] <= x < cuts[i]`. From the last part that is not empty on they are 2,
    so that rounding gives no share to an opponent without one.

    Args:
        parts: `(parts,)` float64, none negative, one positive at least.
    """
    cuts = (parts.cumsum(0) / parts.sum()).to(torch.float32)
    cuts[int(parts.nonzero().max()) :] = 2.0
    return cuts
