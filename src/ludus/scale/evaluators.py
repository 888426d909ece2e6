"""The evaluators of a league as its head sees them: Ray actors that play the pairs of members that have not met yet."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ludus.core.errors import LudusError, StateError, brief
from ludus.core.random import stream_hash
from ludus.core.text import plain_text
from ludus.envs.registry import world_id
from ludus.league.payoffs import Record
from ludus.policies.agent import Agent
from ludus.scale.cluster import describe_loss, kill
from ludus.scale.league_folder import EVALUATION, LeagueFolder
from ludus.scale.league_workers import EvaluatorWorker, MatchJob, load_from_bytes
from ludus.scale.matchmaking import missing_pairs
from ludus.scale.population import LeaguePlan

_STREAM_MATCHES = 0x3A7C
_PAIRS_PER_JOB = 8  # that an evaluator plays in one batch
_LONGEST_REASON = 500
_FORGET_S = 60.0  # after which an unused member leaves Ray's object store
MOST_LOSSES = 8  # of processes of one kind, in a row without any result


class MemberStore:
    """The files of members in Ray's object store, read from the disk when someone needs them.

    A member that cannot be used, such as a damaged or missing file, leaves the league; the listener is notified.
    """

    def __init__(self, plan: LeaguePlan, folder: LeagueFolder, listener: Callable[[str, str], None]) -> None:
        """Begin empty."""
        self._plan, self._folder, self._listener = plan, folder, listener
        self._checked: set[str] = set()
        self._references: dict[str, tuple[Any, float]] = {}  # and when each was asked for last

    def reference(self, name: str) -> Any | None:  # noqa: ANN401 - Ray's
        """Return the reference to the content of a member's file; None if it is no member any more."""
        import ray

        now_s = time.monotonic()
        if name not in self._references:
            content = self.read(name)
            if content is None:
                return None
            kept = {key: each for key, each in self._references.items() if now_s - each[1] < _FORGET_S}
            self._references = kept | {name: (ray.put(content), now_s)}
        self._references[name] = self._references[name][0], now_s
        return self._references[name][0]

    def read(self, name: str) -> bytes | None:
        """Return the content of a member's file, which is checked the first time; None if it is no member any more."""
        if not self._folder.has_member(name):
            return None
        try:
            content = self._folder.read_snapshot(name)
            if name not in self._checked:
                self._check(load_from_bytes(content))
                self._checked.add(name)
        except LudusError as error:
            self._folder.drop_member(name)
            reason = plain_text(str(error))[:_LONGEST_REASON]
            self._listener("warning", f"{name} leaves the league, since its snapshot cannot be used: {reason}")
            return None
        return content

    def _check(self, agent: Agent) -> None:
        """Raise a LudusError unless an agent can play in this league and every number in it is finite."""
        agent.check_world_id(world_id(self._plan.base.world.name))
        if agent.policy.config != self._plan.base.playing_policy():
            raise StateError("it is an agent of another architecture than the league's")
        broken = [name for name, each in agent.policy.state().items() if not bool(torch.isfinite(each).all())]
        if broken:
            raise StateError(f"{brief(broken[0])} has NaN or Inf")


@dataclass(slots=True)
class _Evaluator:
    """A process, the matches that it plays, and the reference to their results."""

    actor: Any
    job: MatchJob | None = None
    playing: Any = None


class EvaluatorPool:
    """Keeps evaluators at work."""

    def __init__(
        self,
        plan: LeaguePlan,
        folder: LeagueFolder,
        members: MemberStore,
        plugins: Sequence[str],
        listener: Callable[[str, str], None],
    ) -> None:
        """Begin without evaluators; `fit` comes next.

        Args:
            plan: The league.
            folder: Its folder.
            members: Files of the members.
            plugins: Files and modules of the user's own that every process loads.
            listener: Called with a level and a message for people.
        """
        import ray

        self.plan = plan
        self._ray, self._folder, self._members = ray, folder, members
        self._plugins, self._listener = list(plugins), listener
        self._evaluators: list[_Evaluator] = []
        self._jobs = self._failures = 0
        self._pending: set[tuple[str, str]] = set()
        config = plan.config
        self._device = "cuda" if config.gpus_per_evaluator else "cpu"
        self._actor_class = ray.remote(
            num_cpus=config.cpus_per_evaluator, num_gpus=config.gpus_per_evaluator, max_restarts=0
        )(EvaluatorWorker)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._evaluators)

    @property
    def is_done(self) -> bool:
        """Whether all members have met, as far as they are asked to."""
        return not self.plan.config.evaluators or (not self._pending and next(self._missing(), None) is None)

    def fit(self) -> None:
        """Have as many evaluators as the plan asks for."""
        while len(self._evaluators) < self.plan.config.evaluators:
            self._evaluators.append(_Evaluator(self._actor_class.remote(self._plugins, self._device)))
        for evaluator in self._evaluators[self.plan.config.evaluators :]:
            self._lose(evaluator)

    def give(self) -> None:
        """Give pairs that are yet to be evaluated to evaluators that have nothing to do."""
        idle = [evaluator for evaluator in self._evaluators if evaluator.playing is None]
        missing = self._missing() if idle else iter(())
        for evaluator in idle:
            pairs = [pair for _, pair in zip(range(_PAIRS_PER_JOB), missing, strict=False)]
            if not pairs:
                return
            self._pending |= {*pairs}
            self._play(evaluator, pairs)

    def waiting(self) -> list[Any]:
        """Return the references to all results that are yet to come."""
        return [evaluator.playing for evaluator in self._evaluators if evaluator.playing is not None]

    def read(self, ready: set[Any]) -> str:
        """Count the results that are there, and return why the league cannot go on; empty if it can."""
        for evaluator in list(self._evaluators):
            if evaluator.playing in ready:
                try:
                    self._take(evaluator)
                except Exception as error:  # of Ray or of the process
                    self._failures, said = self._failures + 1, describe_loss(error)
                    if self._failures >= MOST_LOSSES:
                        return f"evaluators failed {MOST_LOSSES} times in a row, the last time by: {said}"
                    self._listener("warning", f"an evaluator is replaced, and its matches are played again: {said}")
                    self._lose(evaluator)
                    self.fit()
        return ""

    def kill(self) -> None:
        """End all processes."""
        for evaluator in list(self._evaluators):
            self._lose(evaluator)

    def _missing(self) -> Iterator[tuple[str, str]]:
        done = self._folder.evaluated | self._pending
        return missing_pairs(self._folder.members, done, self.plan.config)

    def _play(self, evaluator: _Evaluator, pairs: Sequence[tuple[str, str]]) -> None:
        players = tuple(dict.fromkeys(name for pair in pairs for name in pair))
        files = {name: self._members.reference(name) for name in players}
        if None in files.values():  # one that has just left the league; the others are given out again
            self._pending -= {*pairs}
            return
        base, self._jobs = self.plan.base, self._jobs + 1
        evaluator.job = MatchJob(
            id=f"matches-{self._folder.session}-{self._jobs:06}",
            world=base.world.name,
            settings=base.judged_settings(0),
            players=players,
            pairs=tuple((players.index(one), players.index(two)) for one, two in pairs),
            matches=self.plan.config.matches_per_pair,
            seed=stream_hash(base.seed, self._folder.session, self._jobs, _STREAM_MATCHES),
        )
        evaluator.playing = evaluator.actor.play.remote(evaluator.job, files)

    def _take(self, evaluator: _Evaluator) -> None:
        job = evaluator.job
        assert job is not None  # noqa: S101 - it plays
        counts = self._ray.get(evaluator.playing)
        pairs = [(job.players[one], job.players[two]) for one, two in job.pairs]
        records = {pair: Record(*each) for pair, each in zip(pairs, counts, strict=True)}
        self._folder.report(job.id, EVALUATION, records)
        self._failures = 0
        self._pending -= {*pairs}
        evaluator.job = evaluator.playing = None

    def _lose(self, evaluator: _Evaluator) -> None:
        """Give up an evaluator; its matches are played by another one."""
        self._evaluators = [each for each in self._evaluators if each is not evaluator]
        if evaluator.job is not None:
            players = evaluator.job.players
            self._pending -= {(players[one], players[two]) for one, two in evaluator.job.pairs}
        kill(evaluator.actor)
