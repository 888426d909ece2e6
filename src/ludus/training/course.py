"""The course of a run: after every iteration, what its episodes change in rewards, stages and opponents."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from ludus.core.errors import StateError
from ludus.curriculum.progress import Curriculum
from ludus.league.standings import Standings
from ludus.training.callbacks import Counters, Episodes
from ludus.training.config import TrainConfig
from ludus.training.exploiter import EXPLOITER, is_exploiter_due, train_exploiter
from ludus.training.ranks import Ranks
from ludus.training.records import Cell
from ludus.training.steering import make_steering
from ludus.training.workbench import Begun, Workbench

ERA = "self"  # snapshots are called self-0001 and so on


@dataclass(frozen=True, slots=True)
class Taken:
    """A snapshot that joined the league.

    Attributes:
        name: Its name.
        env_steps: Steps that it had learned from.
        state: What `Policy.state` gave.
    """

    name: str
    env_steps: int
    state: Mapping[str, Tensor]


@dataclass(slots=True)
class News:
    """What an iteration changed.

    Attributes:
        messages: In words, for people.
        matches: Rows for `opponents.csv`.
        taken: Snapshots that joined the league.
        metrics: Numbers for `metrics.jsonl`.
        tables: Rows for other files.
    """

    messages: list[str] = field(default_factory=list)
    matches: list[dict[str, Any]] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    tables: dict[str, list[dict[str, Cell]]] = field(default_factory=dict)


class Course:
    """Decides between iterations; all its decisions follow from the episodes, so equal runs take equal courses.

    Attributes:
        curriculum: The stages, or None if the learner plays every seat.
        steering: What changes exploring and rewards by what the games show, or None.
        standings: Who won against whom, and the live ratings of the same, a mode each.
    """

    def __init__(self, config: TrainConfig, bench: Workbench) -> None:
        self._bench, self._config = bench, config
        stages = config.stages()
        self.curriculum = Curriculum(stages) if stages else None
        self.steering = make_steering(config, bench)
        self._has_stages = bool(config.curriculum)
        self.standings = Standings()
        # Numbers of several modes are told apart by their names; a run of one keeps the plain ones.
        self._names_modes = config.names_modes
        self._snapshots = 0  # how many were taken so far
        self._exploiters = 0

    @property
    def stage(self) -> str:
        """Name of the present stage; empty without a curriculum."""
        return self.curriculum.stage.name if self.curriculum is not None and self._has_stages else ""

    @property
    def mode(self) -> str:
        """Mode of the present games, such as `1v1`."""
        return self._bench.env.spec.mode

    @property
    def era(self) -> str:
        """Name of the snapshot that the learner becomes next."""
        return f"{ERA}-{self._snapshots + 1:04d}"

    def before(self, env_steps: int) -> None:
        """Prepares the next rollout."""
        if self.steering is not None:
            self._bench.rewards.steer(self.steering.factors())
        self._bench.rewards.set_time(env_steps)
        if self.curriculum is not None:
            self._bench.ppo.exploration = self._config.at_stage(self.curriculum.index).policy.exploration
        if self.steering is not None:
            self.steering.before()

    def look(self, ranks: Ranks) -> None:
        """Looks at a rollout before anything is learned from it; all processes call it."""
        if self.steering is not None:
            self.steering.look(ranks)

    def after(self, episodes: Episodes, before: Counters, after: Counters, playing: Iterable[str] = ()) -> News:
        """Takes the episodes of an iteration and says what has changed.

        Args:
            episodes: Of all processes.
            before: Counters before the iteration.
            after: And after it.
            playing: Snapshots that the games of other processes play against.
        """
        news = News()
        if self.steering is not None:
            steered = self.steering.after(after)
            news.messages, news.metrics, news.tables = steered.messages, steered.metrics, steered.tables
        if self.curriculum is None or self._bench.opponents is None:
            return news
        self._count(episodes, after, news)
        self._move_on(episodes, after, news)
        self._take_snapshot(before, after, playing, news)
        if is_exploiter_due(self._config, before, after) and self._bench.opponents.pool is not None:
            self._exploit(after, playing, news)
        return news

    def _exploit(self, counters: Counters, playing: Iterable[str], news: News) -> None:
        self._exploiters += 1
        config, spec = self._config.at_stage(self._bench.begun.stage), self._bench.env.spec
        state = train_exploiter(config, spec, self._bench.policy.state(), self._exploiters)
        if state is not None:
            self.join(f"{EXPLOITER}-{self._exploiters:04d}", counters.env_steps, state, playing, news)
            news.messages.append(f"exploiter {self._exploiters} joined the league")

    def _count(self, episodes: Episodes, counters: Counters, news: News) -> None:
        opponents = self._bench.opponents
        assert opponents is not None  # noqa: S101 - for the type checker
        kinds = dict(zip(opponents.names, opponents.kinds, strict=True))
        mode = self.mode
        for name, side, outcomes in episodes.grouped():
            counts = [int((outcomes == outcome).sum()) for outcome in (1, 0, -1)]
            self.standings.record(mode, self.era, name, *counts, kind=kinds[name])
            news.matches.append(
                {
                    "iteration": counters.iterations,
                    "env_steps": counters.env_steps,
                    "learner": self.era,
                    "opponent": name,
                    "kind": kinds[name],
                    "matches": sum(counts),
                    "wins": counts[0],
                    "draws": counts[1],
                    "losses": counts[2],
                    "mode": mode,
                    "side": side,
                }
            )
        ratings, suffix = self.standings.ratings(mode), f"/{mode}" if self._names_modes else ""
        if ratings.learner:
            news.metrics[f"rating_elo{suffix}"] = ratings.elo[ratings.learner]
            news.metrics[f"rating_openskill{suffix}"] = ratings.ordinal(ratings.learner)

    def _move_on(self, episodes: Episodes, counters: Counters, news: News) -> None:
        curriculum, opponents = self.curriculum, self._bench.opponents
        assert curriculum is not None  # noqa: S101 - for the type checker
        assert opponents is not None  # noqa: S101
        kinds = opponents.kinds
        results = episodes.matches()
        matches = zip(results.opponents.tolist(), (results.outcomes > 0).tolist(), strict=True)
        beaten = ((kinds[index], won) for index, won in matches)
        reason = curriculum.record(beaten, counters.env_steps, self.standings.elo(self.mode))
        if reason is not None:
            self._bench.rewards.set_stage(curriculum.index, counters.env_steps)
            if self._bench.has_games_of(curriculum.index):
                opponents.set_mix(curriculum.stage.opponents)
            else:
                self._bench.begin_stage(curriculum.index, counters.env_steps)
                reason += f"; {self._bench.env.num_games:,} new games of {self._bench.env.spec.mode}"
            news.messages.append(reason)

    def _take_snapshot(self, before: Counters, after: Counters, playing: Iterable[str], news: News) -> None:
        opponents, every = self._bench.opponents, self._config.league.snapshot_every_env_steps
        payoffs = self.standings.payoffs(self.mode)
        if opponents is None or opponents.pool is None:
            return
        if before.env_steps // every < after.env_steps // every and opponents.wants_snapshot(payoffs):
            self.join(self.era, after.env_steps, self._bench.policy.state(), playing, news)
            self._snapshots += 1
        opponents.refresh(payoffs)

    def join(self, name: str, env_steps: int, state: Mapping[str, Tensor], playing: Iterable[str], news: News) -> None:
        """Lets a snapshot join the league; where every other one is playing it does not, and says so."""
        opponents = self._bench.opponents
        assert opponents is not None  # noqa: S101 - for the type checker
        left = opponents.add_snapshot(name, env_steps, state, also_playing=tuple(playing))
        if left == name:
            news.messages.append(f"snapshot {name} does not join: all {self._config.league.keep} others are playing")
        else:
            news.taken.append(Taken(name, env_steps, state))

    def state(self) -> dict[str, Any]:
        """Returns where everything stands, for JSON; payoffs and ratings are rebuilt from `opponents.csv`."""
        state: dict[str, Any] = {"rewards": self._bench.rewards.state(), "snapshots": self._snapshots}
        state["exploiters"] = self._exploiters
        state["games"] = self._bench.begun._asdict()
        if self.curriculum is not None:
            state["curriculum"] = self.curriculum.state()
        if self._bench.opponents is not None:
            state["league"] = self._bench.opponents.document()
        if self.steering is not None:
            state["steering"] = self.steering.state()
        return state

    def load_state(self, state: Mapping[str, Any], env_steps: int) -> None:
        """Takes what `state` gave.

        Raises:
            StateError: A part is missing or does not fit.
        """
        try:
            self._bench.rewards.load_state(state["rewards"], env_steps)
            self._snapshots, self._exploiters = int(state["snapshots"]), int(state["exploiters"])
            if self.curriculum is not None:
                self.curriculum.load_state(state["curriculum"])
            if self.steering is not None:
                self.steering.load_state(state["steering"])
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the state of the run's course is incomplete ({error!r}); use the same config") from error

    def load_matches(self, rows: list[dict[str, str]]) -> None:
        """Rebuilds payoffs and ratings from the rows of `opponents.csv`."""
        self.standings = Standings.from_rows(rows)


def begun_games(course: Mapping[str, Any]) -> Begun:
    """Returns when the games of a saved course were made; those of runs that did not note it are their first."""
    return Begun(**course.get("games", {}))


def referred_snapshots(course: Mapping[str, Any]) -> set[str]:
    """Returns the names of the snapshots that a saved course refers to."""
    return {str(snapshot["name"]) for snapshot in course.get("league", {}).get("snapshots", ())}
