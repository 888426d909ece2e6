"""The settings of a league: when snapshots are taken, how many stay, and which of them play."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from ludus.core.schedules import MAX_ENV_STEPS

_MOST_SNAPSHOTS = 100_000
_GAMES_A_SNAPSHOT = 16  # fewer games for each of the live snapshots would make their groups of rows too small


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class LeagueConfig(_Frozen):
    """How snapshots become opponents.

    Attributes:
        snapshot_every_env_steps: Env steps between snapshots.
        keep: Number of snapshots to keep; the oldest are removed first, never the newest or one that is playing.
        sampler: Which snapshots play: mostly the newest few (`recent`), those that beat the learner (`pfsp`,
            prioritized fictitious self-play), or whatever a callback assigns (`assigned`; see
            `Trainer.assign_opponents`).
        recent_share: For `recent`, the share of the newest `recent_window` snapshots; older ones share the rest.
        recent_window: For `recent`, how many snapshots count as the newest.
        pfsp_power: For `pfsp`, the exponent of the weight (1 - p) ** pfsp_power of a snapshot that the learner beats
            with win rate p.
        live: Most snapshots that new episodes are drawn from at a time; at most one per 16 games.
    """

    removed_keys: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("add", "exploiter", "pfsp_weighting", "rating_width"), "league-scaling.md#opponents-in-one-run"
        ),
        "best_of": "strategy.md#copies-that-guess-predictably-in-clashes",
        "reveal_opponent": "strategy.md#the-ceiling-what-is-it-worth-to-know-the-opponent",
    }

    snapshot_every_env_steps: int = Field(default=50_000, ge=1, le=MAX_ENV_STEPS)
    keep: int = Field(default=200, ge=2, le=_MOST_SNAPSHOTS)
    sampler: Literal["recent", "pfsp", "assigned"] = "recent"
    recent_share: float = Field(default=0.99, ge=0.0, le=1.0)
    recent_window: int = Field(default=10, ge=1, le=_MOST_SNAPSHOTS)
    pfsp_power: float = Field(default=2.0, gt=0.0, le=100.0)
    live: int = Field(default=32, ge=1, le=_MOST_SNAPSHOTS)

    def live_for(self, games: int) -> int:
        """Return how many snapshots may be live in a batch of games: `live`, but at most one in 16 games."""
        return max(1, min(self.live, games // _GAMES_A_SNAPSHOT))
