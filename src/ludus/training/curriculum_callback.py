"""Curriculum and league callback: what the episodes of an iteration change in rewards, phases and opponents."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field
from torch import Tensor

from ludus.core.state import Count, StateModel, check_index
from ludus.curriculum.progress import Curriculum, CurriculumState
from ludus.league.ratings import RatingsTable
from ludus.league.snapshots import LeagueState
from ludus.rewards.manager import RewardState
from ludus.rollout.episodes import Episodes
from ludus.training.adaptive_curriculum import IterationEvents, SnapshotEvent, make_adaptive_curriculum
from ludus.training.callbacks import Counters
from ludus.training.components import START, Components, PhaseStart
from ludus.training.config import TrainConfig
from ludus.training.distributed import ProcessGroup
from ludus.training.evaluation_callback import EvaluationState
from ludus.training.strategy_log import StrategyState

logger = logging.getLogger(__name__)

SNAPSHOT_PREFIX = "self"  # snapshots are called self-0001 and so on


class CurriculumCallbackState(StateModel):
    """What the loop saves as JSON beside the learner: the document `course` of a checkpoint.

    Curriculum and league are None where there are no opponents; the adaptive curriculum reads its own part itself.
    """

    rewards: RewardState
    snapshots: Count  # taken so far
    games: PhaseStart = START
    curriculum: CurriculumState | None = None
    league: LeagueState | None = None
    adaptive_curriculum: dict[str, Any] | None = Field(default=None, alias="steering")
    evaluation: EvaluationState
    strategy: StrategyState


class CurriculumCallback:
    """Decides between iterations; all decisions follow from the episodes, so equal runs stay equal."""

    def __init__(self, config: TrainConfig, components: Components) -> None:
        self._components, self._config = components, config
        phases = config.phases()
        self.curriculum = Curriculum(phases) if phases else None  # without phases, the learner plays every seat
        self.adaptive_curriculum = make_adaptive_curriculum(config, components)
        self._has_phases = bool(config.curriculum)
        self.ratings_table = RatingsTable()  # payoffs and live ratings, one of each per mode
        # With several modes, names of numbers carry the mode; a run of one keeps the plain ones.
        self._names_modes = config.names_modes
        self._snapshots = 0  # how many were taken so far

    @property
    def phase(self) -> str:
        """Name of the present phase; empty without a curriculum."""
        return self.curriculum.phase.name if self.curriculum is not None and self._has_phases else ""

    @property
    def mode(self) -> str:
        """Mode of the present games, such as `1v1`."""
        return self._components.env.spec.mode

    @property
    def snapshot_id(self) -> str:
        """Name of the snapshot that the learner becomes next."""
        return f"{SNAPSHOT_PREFIX}-{self._snapshots + 1:04d}"

    def on_rollout_start(self, env_steps: int) -> None:
        """Prepare the next rollout."""
        if self.adaptive_curriculum is not None:
            self._components.rewards.set_factors(self.adaptive_curriculum.factors())
        self._components.rewards.set_time(env_steps)
        if self.curriculum is not None:
            self._components.learner.exploration = self._config.at_phase(self.curriculum.index).policy.exploration
        if self.adaptive_curriculum is not None:
            self.adaptive_curriculum.on_rollout_start()

    def on_rollout_end(self, processes: ProcessGroup) -> None:
        """Look at a rollout before anything is learned from it; all processes call it."""
        if self.adaptive_curriculum is not None:
            self.adaptive_curriculum.on_rollout_end(processes)

    def on_iteration_end(
        self, episodes: Episodes, before: Counters, after: Counters, playing: Iterable[str] = ()
    ) -> IterationEvents:
        """Process the episodes of an iteration, of all processes, and return what has changed.

        `playing` are the snapshots that the games of other processes play against.
        """
        adaptive = self.adaptive_curriculum
        events = IterationEvents() if adaptive is None else adaptive.on_iteration_end(after)
        if self.curriculum is None or self._components.opponents is None:
            return events
        self._count(episodes, after, events)
        self._move_on(episodes, after, events)
        self._take_snapshot(before, after, playing, events)
        return events

    def _count(self, episodes: Episodes, counters: Counters, events: IterationEvents) -> None:
        opponents = self._components.opponents
        assert opponents is not None  # noqa: S101 - for the type checker
        kinds = dict(zip(opponents.names, opponents.kinds, strict=True))
        mode = self.mode
        for name, side, outcomes in episodes.grouped():
            counts = [int((outcomes == outcome).sum()) for outcome in (1, 0, -1)]
            self.ratings_table.record(mode, self.snapshot_id, name, *counts, kind=kinds[name])
            head = {"iteration": counters.iterations, "env_steps": counters.env_steps, "learner": self.snapshot_id}
            results = dict(zip(("matches", "wins", "draws", "losses"), (sum(counts), *counts), strict=True))
            who, where = {"opponent": name, "kind": kinds[name]}, {"mode": mode, "side": side}
            events.matches.append(head | who | results | where)
        ratings, suffix = self.ratings_table.ratings(mode), f"/{mode}" if self._names_modes else ""
        if ratings.learner:
            events.metrics[f"rating_elo{suffix}"] = ratings.elo[ratings.learner]
            events.metrics[f"rating_openskill{suffix}"] = ratings.ordinal(ratings.learner)

    def _move_on(self, episodes: Episodes, counters: Counters, events: IterationEvents) -> None:
        curriculum, opponents = self.curriculum, self._components.opponents
        assert curriculum is not None  # noqa: S101 - for the type checker
        assert opponents is not None  # noqa: S101
        kinds = opponents.kinds
        results = episodes.matches()
        matches = zip(results.opponents.tolist(), (results.outcomes > 0).tolist(), strict=True)
        beaten = ((kinds[index], won) for index, won in matches)
        reason = curriculum.record(beaten, counters.env_steps, self.ratings_table.elo(self.mode))
        if reason is not None:
            self._components.rewards.set_phase(curriculum.index, counters.env_steps)
            if self._components.has_games_of(curriculum.index):
                opponents.set_mix(curriculum.phase.opponents)
            else:
                self._components.begin_phase(curriculum.index, counters.env_steps)
                reason += f"; {self._components.env.num_envs:,} new games of {self._components.env.spec.mode}"
            events.messages.append(reason)

    def _take_snapshot(
        self, before: Counters, after: Counters, playing: Iterable[str], events: IterationEvents
    ) -> None:
        opponents, every = self._components.opponents, self._config.league.snapshot_every_env_steps
        payoffs = self.ratings_table.payoffs(self.mode)
        if opponents is None or opponents.pool is None:
            return
        if before.env_steps // every < after.env_steps // every and opponents.takes_snapshots:
            self.join(self.snapshot_id, after.env_steps, self._components.policy.state(), playing, events)
            self._snapshots += 1
        opponents.refresh(payoffs)

    def join(
        self, name: str, env_steps: int, state: Mapping[str, Tensor], playing: Iterable[str], events: IterationEvents
    ) -> None:
        """Add a snapshot to the league; if every other one is playing, log that it was not added."""
        opponents = self._components.opponents
        assert opponents is not None  # noqa: S101 - for the type checker
        left = opponents.add_snapshot(name, env_steps, state, also_playing=tuple(playing))
        if left == name:
            events.messages.append(f"snapshot {name} does not join: all {self._config.league.keep} others are playing")
        else:
            events.snapshots.append(SnapshotEvent(name, env_steps, state))

    def state(self) -> dict[str, Any]:
        """Return the state as JSON; payoffs and ratings are rebuilt from `opponents.csv`."""
        state: dict[str, Any] = {"rewards": self._components.rewards.state(), "snapshots": self._snapshots}
        state["games"] = self._components.phase_start.model_dump(by_alias=True)
        if self.curriculum is not None:
            state["curriculum"] = self.curriculum.state()
        if self._components.opponents is not None:
            state["league"] = self._components.opponents.document()
        if self.adaptive_curriculum is not None:
            state["steering"] = self.adaptive_curriculum.state()
        return state

    def load_state(self, state: Mapping[str, Any], env_steps: int) -> None:
        """Restore the state returned by `state()`.

        Raises:
            StateError: A part is missing or does not fit.
        """
        saved = CurriculumCallbackState.read(state, "course")
        self._components.rewards.load_state(saved.rewards, env_steps)
        self._snapshots = saved.snapshots
        if self.curriculum is not None:
            self.curriculum.load_state(saved.curriculum)
            if self._components.opponents is not None:  # a branch may change the shares
                self._components.opponents.set_mix(self.curriculum.phase.opponents)
        if self.adaptive_curriculum is not None:
            self.adaptive_curriculum.load_state(saved.adaptive_curriculum)

    def load_matches(self, rows: list[dict[str, str]]) -> None:
        """Rebuild payoffs and ratings from the rows of `opponents.csv`."""
        self.ratings_table = RatingsTable.from_rows(rows)


def saved_phase_start(course: Mapping[str, Any], config: TrainConfig) -> PhaseStart:
    """Return when the games of a checkpoint were made; the start of the run if it does not say.

    Raises:
        StateError: The config has no such phase.
    """
    phase_start = PhaseStart.read(course.get("games", {}), "course.games")
    check_index(phase_start.phase, max(len(config.phases()), 1), "course.games.stage")
    return phase_start
