"""The head of a league: it keeps learners and evaluators at work, counts their matches and says who plays whom.

The league folder on the head's disk is all that counts (see `ludus.scale.league_folder`). Learners and evaluators are
Ray actors that may be lost at any time: the head makes new ones, which take up the same run or the same matches. Actors
for which the cluster has no room wait until a machine joins.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ludus.core.errors import ConfigError, WorkerError
from ludus.core.random import stream_hash, uniform
from ludus.league.payoffs import Record
from ludus.scale.cluster import describe_loss, first_signal, gpus_of, kill
from ludus.scale.evaluators import MOST_LOSSES, EvaluatorPool, MemberStore
from ludus.scale.league_folder import TRAINING, LeagueFolder, LearnerRecord
from ludus.scale.league_workers import LearnerJob, Order, Report, Told
from ludus.scale.matchmaking import Learner, Member, assign, has_won, snapshot_name
from ludus.scale.population import LEAGUE_FILE, ExploiterRoleConfig, LeaguePlan, Role, read_league

_TICK_S = 0.1
_ASK_EVERY_S = 0.5  # between two questions to a learner
_ASSIGN_EVERY_S = 2.0  # between two mixes of opponents of a learner: with many learners one joins at every moment
_SAVE_EVERY_S = 1.0
_LOOK_EVERY_S = 1.0  # at league.yaml, which `ludus league scale` changes
_STOP_S = 120.0  # that learners have to save and stop
_MOST_ERRORS = 2  # of a learner in a row: what it says twice, it would say for ever
_SECONDS_PER_HOUR = 3600.0
_MOST_NAMES = 16  # newest snapshots of a learner whose matches say how good it is
_STREAM_LIVE = 0x11FF

Listener = Callable[[str, str], None]
"""Called with a level, `info` or `warning`, and a message for people."""


@dataclass(frozen=True, slots=True)
class LeagueResult:
    """How a league ended.

    Attributes:
        folder: Its folder.
        reason: Why it ended before its main agents had used up their budgets; empty if it did not.
        signal_number: The signal that stopped it; 0 if none did.
    """

    folder: Path
    reason: str
    signal_number: int


@dataclass(slots=True)
class _LearnerActor:
    """A learner's process.

    Attributes:
        record: What is known of the learner.
        actor: Ray's handle.
        training: Reference to the end of its run; None if none is trained.
        answer: Reference to its answer to the last order; None if it was read.
        asked_s: When it was asked last.
        chances: What was assigned last.
        is_assigned: Whether nothing has changed since.
        assigned_s: When that was.
        is_up: Whether it has ever answered.
        ends: `again` if the exploiter joins the league and begins again, `left` or `finished` if it shall leave.
        failures: Failures in a row without a report.
    """

    record: LearnerRecord
    actor: Any
    training: Any = None
    answer: Any = None
    asked_s: float = 0.0
    chances: Mapping[str, float] = field(default_factory=dict)
    is_assigned: bool = True
    assigned_s: float = 0.0
    is_up: bool = False
    ends: Literal["", "again", "left", "finished"] = ""
    failures: int = 0


class LeagueHead:
    """Runs a league."""

    def __init__(self, plan: LeaguePlan, folder: Path, plugins: Sequence[str], listener: Listener) -> None:
        import ray

        from ludus.scale.league_workers import LearnerWorker

        self._ray, self._plan, self._plugins, self._listener = ray, plan, list(plugins), listener
        self._folder = LeagueFolder(folder)
        self._folder.session += 1
        self._learners: dict[str, _LearnerActor] = {}
        self._members = MemberStore(plan, self._folder, listener)
        self._evaluators = EvaluatorPool(plan, self._folder, self._members, plugins, listener)
        self._started_s = time.monotonic()
        self._saved_s = self._looked_s = 0.0
        self._seen: tuple[int, int] | None = None  # time and size of league.yaml when it was read last
        self._changed = True
        self.reason, self.signal_number = "", 0
        config = plan.config
        gpus = gpus_of(config.gpus_per_learner, plan.base.world.device)
        # A lost process is replaced by the head, which knows what it shall do; Ray would only make it again.
        self._learner_class = ray.remote(
            num_cpus=config.cpus_per_learner, num_gpus=gpus, max_concurrency=2, max_restarts=0
        )(LearnerWorker)

    def run(self) -> LeagueResult:
        """Run the league until its main agents are done or it is stopped."""
        try:
            with first_signal(self._take_signal):
                self._fit_population()
                while not self._is_over():
                    self._turn()
                self._stop_all()
        finally:
            self._evaluators.kill()
            for learner in self._learners.values():
                kill(learner.actor)
            for record in self._folder.learners.values():
                if record.state == "running":
                    record.state = "waiting"
            self._save("stopped" if self.reason else "finished")
            self._folder.close()
        return LeagueResult(self._folder.path, self.reason, self.signal_number)

    def _turn(self) -> None:
        """Read what has come in, and give out work."""
        self._look_at_plan()
        for learner in self._learners.values():
            if learner.record.state == "waiting" and (learner.record.role == "main" or self._newest_mains()):
                self._train(learner)  # exploiters need a main agent to exploit
            self._ask(learner)
        self._evaluators.give()
        waiting = self._waiting()
        if waiting:
            self._ray.wait(waiting, num_returns=1, timeout=_TICK_S)
            ready = {*self._ray.wait(waiting, num_returns=len(waiting), timeout=0)[0]}
            self._read(ready)
        else:
            time.sleep(_TICK_S)
        now_s = time.monotonic()
        if self._changed and now_s - self._saved_s >= _SAVE_EVERY_S:
            self._save("running")

    def _waiting(self) -> list[Any]:
        found = [each for learner in self._learners.values() for each in (learner.answer, learner.training)]
        return [*(each for each in found if each is not None), *self._evaluators.waiting()]

    def _read(self, ready: set[Any]) -> None:
        """Read the results that are there; one may replace the process of another one, whose result is then void."""
        for learner in list(self._learners.values()):
            if learner.answer in ready:
                self._take_answer(learner)
            if learner.training in ready:
                self._end_training(learner)
        matches = self._folder.table.matches
        self.reason = self.reason or self._evaluators.read(ready)
        self._changed = self._changed or self._folder.table.matches != matches

    def _save(self, state: str) -> None:
        self._saved_s, self._changed = time.monotonic(), False
        self._folder.save(
            self._plan, state=state, reason=self.reason, wall_s=self._saved_s - self._started_s,
            evaluators=len(self._evaluators),
        )  # fmt: skip

    def _is_over(self) -> bool:
        limit_h = self._plan.config.max_hours
        spent_s = self._folder.earlier_s + time.monotonic() - self._started_s
        if not self.reason and limit_h is not None and spent_s >= limit_h * _SECONDS_PER_HOUR:
            self.reason = f"population.max_hours of {limit_h:g} is used up"
        if self.reason:
            return True
        mains = [
            record for record in self._folder.learners.values() if record.role == "main" and record.state != "left"
        ]
        if any(record.state != "finished" for record in mains):
            return False
        # Exploiters end with the main agents; the members that there are then are still evaluated.
        for learner in list(self._learners.values()):
            self._leave(learner, "finished")
        is_learning = any(learner.training is not None for learner in self._learners.values())
        return not is_learning and self._evaluators.is_done

    def _fit_population(self) -> None:
        """Have as many learners and evaluators as the plan asks for."""
        wanted = dict(self._plan.config.learner_names())
        for name, role in wanted.items():
            record = self._folder.learner(name, role)
            if name not in self._learners and record.state != "finished":
                record.state, record.reason = "waiting", ""
                self._learners[name] = _LearnerActor(record, self._new_learner())
        for name, learner in list(self._learners.items()):
            if name not in wanted:
                self._leave(learner, "left")
        self._evaluators.fit()
        self._changed = True

    def _new_learner(self) -> Any:  # noqa: ANN401 - Ray's handle
        return self._learner_class.remote(self._plugins)

    def _train(self, learner: _LearnerActor) -> None:
        """Let a learner begin or continue its present generation."""
        record = learner.record
        config = self._plan.learner_config(record.name, record.role, record.generation)
        job = LearnerJob(
            config=config.to_json(),
            folder=str(self._folder.run_folder(record)),
            title=record.name,
            every_env_steps=self._plan.config.snapshot_every_env_steps,
            begins=record.role == "main",
        )
        learner.ends, learner.answer = "", None
        learner.chances = self._match(learner)
        learner.training = learner.actor.train.remote(job, self._order(learner, learner.chances or None))
        learner.asked_s = time.monotonic()
        record.state = "running"
        self._changed = True

    def _match(self, learner: _LearnerActor) -> dict[str, float]:
        """Return the opponents of a learner by the payoff table."""
        record = learner.record
        present = snapshot_name(record.name, record.generation, record.reported + 1)
        numbers = range(record.reported, max(record.reported - _MOST_NAMES, -1), -1)
        played_as = [snapshot_name(record.name, record.generation, number) for number in numbers]
        seen_by = Learner(record.name, record.role, [present, *played_as])
        seed = stream_hash(self._plan.base.seed, *record.name.encode(), record.generation, record.reported + 1)
        offset = uniform(stream_hash(seed, len(self._folder.members), _STREAM_LIVE))
        return assign(seen_by, self._folder.members, self._folder.table, self._plan.config, offset)

    def _order(self, learner: _LearnerActor, chances: Mapping[str, float] | None) -> Order:
        references = {name: self._members.reference(name) for name in chances or ()}
        while None in references.values():  # one that has just left the league
            chances = learner.chances = self._match(learner)
            references = {name: self._members.reference(name) for name in chances}
        steps = {member.name: member.env_steps for member in self._folder.members}
        members = {name: (steps[name], reference) for name, reference in references.items()}
        return Order(learner.record.reported, chances or None, members)

    def _ask(self, learner: _LearnerActor) -> None:
        """Ask a learner for its reports, and tell it of new opponents."""
        now_s = time.monotonic()
        if learner.training is None or learner.answer is not None or now_s - learner.asked_s < _ASK_EVERY_S:
            return
        chances: Mapping[str, float] | None = None
        if not learner.is_assigned and now_s - learner.assigned_s >= _ASSIGN_EVERY_S:
            chances, learner.is_assigned, learner.assigned_s = self._match(learner), True, now_s
            chances = chances if chances and chances != learner.chances else None
            learner.chances = chances or learner.chances
        learner.asked_s = now_s
        learner.answer = learner.actor.tell.remote(self._order(learner, chances))

    def _take_answer(self, learner: _LearnerActor) -> None:
        try:
            told: Told = self._ray.get(learner.answer)
        except Exception as error:  # of Ray or of the process; both are handled alike
            learner.answer = None
            self._replace(learner, error)
            return
        learner.answer, learner.is_up = None, True
        self._take_told(learner, told)

    def _take_told(self, learner: _LearnerActor, told: Told) -> None:
        record = learner.record
        if told.env_steps > record.env_steps:
            record.env_steps = told.env_steps
            self._changed = True
        for report in told.reports:
            if report.number > record.reported:
                self._take_report(learner, report)

    def _take_report(self, learner: _LearnerActor, report: Report) -> None:
        """Count a report, let the snapshot join, and assign new opponents."""
        record = learner.record
        name = snapshot_name(record.name, record.generation, report.number)
        matches = {(name, opponent): Record(*counts) for opponent, counts in report.matches.items()}
        self._folder.report(name, TRAINING, matches)
        learner.failures = 0
        record.env_steps = max(record.env_steps, report.env_steps)
        has_won = not learner.ends and self._has_won(learner, report)
        if record.role == "main" or has_won or self._is_late(record, report):
            self._join(record, report)
        if has_won:
            learner.ends = "again"
            learner.actor.stop.remote("it won often enough to join the league, and begins again")
        record.reported = report.number
        self._save("running")  # so that the learner can forget the report
        for each in self._learners.values():
            each.is_assigned = False

    def _has_won(self, learner: _LearnerActor, report: Report) -> bool:
        asked = learner.chances if learner.record.role == "league_exploiter" else self._newest_mains()
        matches = {name: Record(*counts) for name, counts in report.matches.items()}
        return learner.record.role != "main" and has_won(matches, asked)

    def _is_late(self, record: LearnerRecord, report: Report) -> bool:
        """Return whether an exploiter has used up its time."""
        part = self._plan.config.role(record.role)
        return isinstance(part, ExploiterRoleConfig) and report.env_steps >= part.env_steps

    def _newest_mains(self) -> list[str]:
        return list({member.learner: member.name for member in self._folder.members if member.role == "main"}.values())

    def _join(self, record: LearnerRecord, report: Report) -> None:
        name = snapshot_name(record.name, record.generation, report.number)
        if self._folder.add_member(Member(name, record.name, record.role, report.env_steps), report.agent):
            self._listener("info", f"{name} joins the league at {report.env_steps:,} env steps")
            self._changed = True

    def _end_training(self, learner: _LearnerActor) -> None:
        """Handle the end of a run: the budget, a request to stop, or a failure."""
        try:
            reason: str = self._ray.get(learner.training)
            order = self._order(learner, None)
            self._take_told(learner, self._ray.get(learner.actor.tell.remote(order), timeout=_STOP_S))
        except Exception as error:
            learner.training = None
            self._replace(learner, error)
            return
        learner.training, record = None, learner.record
        if learner.ends == "left" or learner.ends == "finished":
            record.state = learner.ends
            self._remove(learner)
        elif self.reason:
            record.state = "waiting"
        elif record.role != "main" and (learner.ends == "again" or not reason):
            self._begin_again(learner)
        elif reason:  # a guard of the run
            record.state, record.reason = "failed", reason
            self.reason = f"{record.name} stopped: {reason}"
        else:
            record.state = "finished"
            self._listener("info", f"{record.name} has used up its budget")
            self._remove(learner)
        self._changed = True

    def _begin_again(self, learner: _LearnerActor) -> None:
        """Let an exploiter, whose last snapshot has joined the league, begin again from the first weights."""
        record = learner.record
        record.earlier_env_steps += record.env_steps
        record.generation, record.env_steps, record.reported = record.generation + 1, 0, -1
        learner.ends, record.state = "", "waiting"
        self._save("running")

    def _leave(self, learner: _LearnerActor, state: Literal["left", "finished"]) -> None:
        """Let a learner save, stop and leave; one for which there was no room yet has nothing to save."""
        if not learner.is_up:
            learner.record.state, self._changed = state, True
            self._remove(learner)
        elif learner.ends not in ("left", "finished"):
            learner.ends = state
            learner.actor.stop.remote("it leaves the league" if state == "left" else "the main agents are done")

    def _remove(self, learner: _LearnerActor) -> None:
        self._learners = {name: each for name, each in self._learners.items() if each is not learner}
        kill(learner.actor)

    def _replace(self, learner: _LearnerActor, error: Exception) -> None:
        """Put a new process in the place of a learner's that was lost or failed."""
        record, text = learner.record, describe_loss(error)
        learner.training = learner.answer = None  # both end with the process
        learner.failures += 1
        is_lost = not isinstance(getattr(error, "cause", None), WorkerError)
        if learner.failures >= (MOST_LOSSES if is_lost else _MOST_ERRORS):
            record.state, record.reason = "failed", text
            self.reason = f"{record.name} failed {learner.failures} times in a row, the last time by: {text}"
            return
        kill(learner.actor)
        if learner.ends == "left" or learner.ends == "finished":
            record.state = learner.ends
            self._remove(learner)
            return
        record.replaced, self._changed = record.replaced + 1, True
        self._listener("warning", f"{record.name} is replaced and resumes its run: {text}")
        learner.actor, learner.is_up = self._new_learner(), False
        if learner.ends == "again":
            self._begin_again(learner)
        record.state = "waiting"

    def _look_at_plan(self) -> None:
        """Take other numbers of learners and evaluators from `league.yaml`."""
        if time.monotonic() - self._looked_s < _LOOK_EVERY_S:
            return
        self._looked_s = time.monotonic()
        status = (self._folder.path / LEAGUE_FILE).stat()
        seen, self._seen = self._seen, (status.st_mtime_ns, status.st_size)
        if seen == self._seen:
            return
        try:
            config = read_league(self._folder.path).config
        except ConfigError as error:
            self._listener("warning", f"{LEAGUE_FILE} cannot be read, so nothing changes: {error}")
            return
        if config != self._plan.config:
            self._plan = self._evaluators.plan = LeaguePlan(config, self._plan.base)
            counts = ", ".join(f"{config.role(role).learners} {role}" for role in ("main", *_EXPLOITERS))
            self._listener("info", f"the league has {counts} and {config.evaluators} evaluators from now on")
            self._fit_population()

    def _stop_all(self) -> None:
        """Let all learners save and stop, and take their last reports."""
        for learner in self._learners.values():
            with suppress(Exception):
                learner.actor.stop.remote(self.reason or "the league is over")
        limit_s = time.monotonic() + _STOP_S
        for learner in list(self._learners.values()):
            if learner.training is None:
                continue
            with suppress(Exception):  # one that is lost now resumes with the league
                left_s = max(limit_s - time.monotonic(), 0.0)
                self._ray.get(learner.training, timeout=left_s)
                told = self._ray.get(learner.actor.tell.remote(self._order(learner, None)), timeout=left_s)
                self._take_told(learner, told)
            learner.training = None

    def _take_signal(self, number: int, reason: str) -> None:
        self.signal_number, self.reason = number, self.reason or reason


_EXPLOITERS: tuple[Role, ...] = ("main_exploiter", "league_exploiter")
