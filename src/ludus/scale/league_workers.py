"""The processes of a league: learners, each of which trains a run, and evaluators, which play matches between members.

Weights travel as the bytes of files of `ludus export`: safetensors with a SHA-256, which are checked as those of a
stranger are. Both classes are plain Python; the head makes Ray actors of them.
"""

import json
import logging
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ludus.core.errors import FormatError, StateError, brief
from ludus.core.files import (
    EXPORT_SUFFIX,
    MAX_DOCUMENT_BYTES,
    make_folder,
    read_if_possible,
    read_json_object,
    temporary_folder,
    write_atomic,
    write_text_atomic,
)
from ludus.core.state import check_tensors
from ludus.core.tables import read_table
from ludus.envs.registry import make_env
from ludus.evaluation.matches import MatchSchedule
from ludus.evaluation.players import Player, load_agent
from ludus.league.opponents import START_NAME
from ludus.league.payoffs import Record
from ludus.policies.agent import Agent, agent_checkpoint
from ludus.policies.cost import LoadLimits
from ludus.policies.policy import Policy
from ludus.rewards.plugins import load_plugin
from ludus.scale.cluster import worker_errors
from ludus.scale.league_folder import parse_record
from ludus.scale.runs import when_unlocked
from ludus.store import DEFAULT_LIMITS, write_single_file
from ludus.training.callbacks import BaseCallback, Counters, Iteration
from ludus.training.checkpointing import on_host
from ludus.training.config import TrainConfig
from ludus.training.loggers.csv_logger import OPPONENTS
from ludus.training.loggers.run_log import held_warnings
from ludus.training.preflight import verify
from ludus.training.resolve import learner_rows, resolve
from ludus.training.session import Received, read_progress, run_training

logger = logging.getLogger(__name__)

REPORTS_FOLDER = "reports"
_NUMBER = re.compile(r"[0-9]{6,9}")
_MOST_BYTES = DEFAULT_LIMITS.total_bytes
_MOST_CACHED = 64  # policies that an evaluator keeps


class LearnerJob(NamedTuple):
    """What a learner shall train.

    Attributes:
        config: Settings of the run, `TrainConfig.to_json`.
        folder: Run folder.
        title: Name of the learner, for the run's own log.
        every_env_steps: Env steps between reports.
        begins: Whether the learner reports itself before it has learned anything: a main agent.
    """

    config: dict[str, Any]
    folder: str
    title: str
    every_env_steps: int
    begins: bool


class Order(NamedTuple):
    """What the head tells a learner.

    Attributes:
        reported: Number of the last report that was counted; -1 if none was.
        chances: Chance of each member to be its opponent; None leaves them as they are.
        members: By name: env steps, and a reference to the content of the file in Ray's object store.
    """

    reported: int = -1
    chances: Mapping[str, float] | None = None
    members: Mapping[str, tuple[int, Any]] = {}


class Report(NamedTuple):
    """What a learner tells the head, once every some env steps.

    Attributes:
        number: From 0 on in every run folder.
        env_steps: Of its run.
        matches: Wins, draws and losses against each opponent since the report before.
        agent: Content of the agent's file.
    """

    number: int
    env_steps: int
    matches: Mapping[str, tuple[int, int, int]]
    agent: bytes


class Told(NamedTuple):
    """Answer of a learner to an order.

    Attributes:
        env_steps: How far its run is.
        reports: Those that were not counted yet.
    """

    env_steps: int
    reports: Sequence[Report]


class ReportFolder:
    """Reports of a run, on the disk: a run that resumes does not repeat what came before its checkpoint.

    Those that the head has counted stay without their agents, and say where each period of the run ended.
    """

    def __init__(self, run: Path) -> None:
        """Open the reports of a run folder."""
        self._folder = run / REPORTS_FOLDER

    def numbers(self) -> list[int]:
        """Return the numbers of all reports."""
        return sorted(int(path.stem) for path in self._folder.glob("*.json") if _NUMBER.fullmatch(path.stem))

    def write(self, number: int, env_steps: int, matches: Mapping[str, Record], policy: Policy, settings: Any) -> None:  # noqa: ANN401
        """Write a report, unless there is one of this number: its matches may have been counted."""
        if number in self.numbers():
            return
        make_folder(self._folder)
        checkpoint = agent_checkpoint(policy.spec, policy.config, policy.state(), settings)
        write_single_file(self._agent(number), on_host(checkpoint))
        document = {"env_steps": env_steps, "matches": {name: list(record) for name, record in matches.items()}}
        write_text_atomic(self._document(number), json.dumps(document))

    def period_start(self, env_steps: int) -> int:
        """Return the env steps of the last report that a run at `env_steps` has written; 0 if there is none."""
        ends = [end for _, end, _ in self._read(self.numbers())]
        return max((end for end in ends if end <= env_steps), default=0)

    def read(self, after: int) -> list[Report]:
        """Return the reports after a number, and delete the agents of those up to it, which were counted."""
        left = []
        for number in self.numbers():
            if number <= after or not self._agent(number).exists():
                self._agent(number).unlink(missing_ok=True)
            else:
                left.append(number)
        both = [(each, read_if_possible(self._agent(each[0]), limit=_MOST_BYTES)) for each in self._read(left)]
        return [Report(*each, agent) for each, agent in both if agent is not None]

    def _read(self, numbers: Sequence[int]) -> Iterator[tuple[int, int, dict[str, Record]]]:
        """Yield numbers, env steps and matches of reports; those that are damaged are warned of."""
        for number in numbers:
            try:
                document = read_json_object(self._document(number), limit=MAX_DOCUMENT_BYTES)
                matches = {name: parse_record(counts) for name, counts in document["matches"].items()}
                yield number, int(document["env_steps"]), matches
            except (FormatError, StateError, LookupError, TypeError, ValueError, AttributeError) as error:
                logger.warning("[WARN] %s is left out: %s", self._document(number), brief(str(error)))

    def _document(self, number: int) -> Path:
        return self._folder / f"{number:06}.json"

    def _agent(self, number: int) -> Path:
        return self._folder / f"{number:06}{EXPORT_SUFFIX}"


class _Link(BaseCallback):
    """Connects a run to the league: counts its matches, writes reports, takes opponents."""

    def __init__(self, job: LearnerJob) -> None:
        self._job, self._reports = job, ReportFolder(Path(job.folder))
        self._reported = 0  # number of the last report that was due
        self._matches: dict[str, Record] = {}
        self._lock = threading.Lock()
        self._order: tuple[dict[str, tuple[int, Mapping[str, Any]]], Mapping[str, float]] | None = None
        self._stop_reason = ""
        self.env_steps = 0

    def ask_to_stop(self, reason: str) -> None:
        """Let the run save and stop after its present iteration; for other threads."""
        self._stop_reason = reason

    def take(self, members: Mapping[str, tuple[int, Mapping[str, Any]]], chances: Mapping[str, float]) -> None:
        """Take the opponents that are assigned after the present iteration; for other threads."""
        with self._lock:
            before = {} if self._order is None else self._order[0]
            self._order = {**before, **members}, chances

    def on_training_start(self, counters: Counters) -> None:
        """Count what was played since the last report."""
        self.env_steps = counters.env_steps
        self._reported = counters.env_steps // self._job.every_env_steps
        if counters.env_steps > 0:
            self._read_matches()
        elif self._job.begins:
            self._report(0)
        self._assign()

    def _read_matches(self) -> None:
        """Count the matches of the run's table since the last report."""
        table = read_table(Path(self._job.folder) / OPPONENTS)
        if not len(table):
            return
        new = table.rows(table.numbers("env_steps") > self._reports.period_start(self.env_steps))
        for row in zip(*(new.texts(name).tolist() for name in ("opponent", "wins", "draws", "losses")), strict=True):
            self._count(row[0], Record(*(int(float(cell)) for cell in row[1:])))

    def _count(self, opponent: str, record: Record) -> None:
        if opponent != START_NAME:  # its own first weights, which every run has under this name
            self._matches[opponent] = self._matches.get(opponent, Record()).plus(record)

    def on_iteration(self, iteration: Iteration) -> None:
        """Count matches, report when it is due, and take new opponents."""
        for name, _, outcomes in iteration.episodes.grouped():
            self._count(name, Record(*(int((outcomes == outcome).sum()) for outcome in (1, 0, -1))))
        self.env_steps = iteration.counters.env_steps
        number = self.env_steps // self._job.every_env_steps
        is_last = self.env_steps >= self.trainer.config.total_env_steps
        if number > self._reported or is_last:
            self._report(max(number, self._reported + 1) if is_last else number)
        self._assign()
        if self._stop_reason:
            self.trainer.stop(self._stop_reason)

    def _report(self, number: int) -> None:
        components = self.trainer.components
        self._reports.write(number, self.env_steps, self._matches, components.policy, components.settings)
        self._reported, self._matches = number, {}

    def _assign(self) -> None:
        with self._lock:
            order, self._order = self._order, None
        if order is None:
            return
        own = self.trainer.components.policy.state()
        fitting = {name: each for name, each in order[0].items() if _fits(name, each[1], own)}
        chances = {name: chance for name, chance in order[1].items() if name in fitting}
        if chances and not self.trainer.assign_opponents(fitting, chances):
            self.take(fitting, chances)  # when games against members that leave have ended


def _fits(name: str, state: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
    """Return whether a member is of this run's architecture; one that is not is warned of, and never plays."""
    try:
        check_tensors(state, own, name)
    except StateError as error:
        logger.warning("[WARN] %s does not play: %s", name, error)
        return False
    return True


class LearnerWorker:
    """Trains the runs of a learner, one after the other; `train` takes a thread, the other methods another one."""

    def __init__(self, plugins: Sequence[str]) -> None:
        """Load the user's own files and modules."""
        for plugin in plugins:
            load_plugin(plugin)
        self._link: _Link | None = None
        self._reports: ReportFolder | None = None
        self._stop_reason = ""
        self._lock = threading.Lock()
        self._states: dict[str, tuple[int, Mapping[str, Any]]] = {}

    def train(self, job: LearnerJob, order: Order) -> str:
        """Train or resume a run to its end, and return why it ended before its budget; empty if it did not.

        Raises:
            WorkerError: Whatever ended it.
        """
        try:
            with worker_errors():
                self._reports = ReportFolder(Path(job.folder))
                link = self._link = _Link(job)
                if self._stop_reason:  # a request that came before there was anything to stop
                    link.ask_to_stop(self._stop_reason)
                self.tell(order)
                return when_unlocked(partial(self._train, job, link))
        finally:
            self._stop_reason = ""

    def _train(self, job: LearnerJob, link: _Link) -> str:
        config, folder = _fitting(TrainConfig.from_json(job.config)), Path(job.folder)
        progress = read_progress(config, folder)
        if progress.is_finished:
            link.env_steps = progress.env_steps
            return ""
        resolved = resolve(config)
        with held_warnings() as warnings:
            if not progress.env_steps:
                for _ in verify(resolved, 0, folder):
                    pass
        outcome = run_training(resolved, folder, Received(), title=job.title, callbacks=[link], warnings=warnings)
        return outcome.stop_reason

    def tell(self, order: Order) -> Told:
        """Take an order, and return how far the run is and the reports that were not counted yet."""
        link, reports = self._link, self._reports
        if link is None or reports is None:
            return Told(0, ())
        if order.chances is not None:
            import ray

            with self._lock:  # the first order of a run is taken by another thread than those that follow
                for name, (env_steps, reference) in order.members.items():
                    if name not in self._states:
                        self._states[name] = env_steps, load_from_bytes(ray.get(reference)).policy.state()
                self._states = {name: self._states[name] for name in order.chances}
                link.take(self._states, order.chances)
        return Told(link.env_steps, reports.read(order.reported))

    def stop(self, reason: str) -> None:
        """Let the run save and stop."""
        self._stop_reason = reason
        if self._link is not None:
            self._link.ask_to_stop(reason)


class MatchJob(NamedTuple):
    """Matches between members.

    Attributes:
        id: Unique in the league.
        world: The world.
        settings: Its settings.
        players: Names.
        pairs: Two indices into `players` each.
        matches: Matches per pair.
        seed: Of everything.
    """

    id: str
    world: str
    settings: dict[str, Any]
    players: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]
    matches: int
    seed: int


class EvaluatorWorker:
    """Plays matches between members."""

    def __init__(self, plugins: Sequence[str], device: str) -> None:
        """Load the user's own files and modules; all matches are played on one device."""
        for plugin in plugins:
            load_plugin(plugin)
        self._device = device
        self._policies: dict[str, Policy] = {}

    def play(self, job: MatchJob, files: Mapping[str, Any]) -> list[tuple[int, int, int]]:
        """Play matches and return the record of each pair from the side of its first player.

        Args:
            job: What is played.
            files: Reference to the content of each player's file in Ray's object store.

        Raises:
            WorkerError: A player cannot play.
        """
        with worker_errors(", ".join(job.players)):
            return self._play(job, files)

    def _play(self, job: MatchJob, files: Mapping[str, Any]) -> list[tuple[int, int, int]]:
        import ray

        players = []
        with make_env(job.world, 1, self._device, config=job.settings or None) as env:
            for name in job.players:
                policy = self._policies.pop(name, None)
                if policy is None:
                    agent = load_from_bytes(ray.get(files[name]), self._device)
                    agent.check_world(env.spec)
                    policy = agent.policy
                self._policies[name] = policy  # the last used one last
                players.append(Player(name, policy))
        while len(self._policies) > _MOST_CACHED:
            del self._policies[next(iter(self._policies))]
        schedule = MatchSchedule(job.world, players, self._device, job.settings or None, job.seed)
        return [(record.wins, record.draws, record.losses) for record in schedule.play(job.pairs, job.matches)]


def _fitting(config: TrainConfig) -> TrainConfig:
    """Return settings whose minibatches divide the rollout: roles differ in the games in which they play all seats."""
    with make_env(config.world.name, 1, config=config.world.settings or None) as env:
        rows = learner_rows(config, env.spec)
    return config.with_hyperparameters(config.method.fit(config.hyperparameters, config.policy, rows))


def load_from_bytes(content: bytes, device: str = "cpu", *, limits: LoadLimits | None = None) -> Agent:
    """Load an agent from the content of its file, every byte of which is checked; `limits` for one of somebody else."""
    with temporary_folder("ludus-agent-") as folder:
        file = folder / f"agent{EXPORT_SUFFIX}"
        write_atomic(file, content)
        return load_agent(file, device, limits=limits)
