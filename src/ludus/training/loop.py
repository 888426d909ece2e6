"""The training loop: collect, update, metrics, callbacks, checkpoint, until the budget.

Started by `torchrun`, its processes share the games of one run: all go through the same steps and decide together,
and only the first writes. What they wait for each other with is in `ranks`; a single process waits for nobody.
"""

import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from torch import Tensor

from ludus.core.errors import NotFiniteError, StoreError, UnsupportedError
from ludus.envs.behaviour import behaviour_of
from ludus.store import step_name
from ludus.training.callbacks import Audience, Callback, Counters, Episodes, Iteration
from ludus.training.checkpointing import Checkpoints, Saved, is_due
from ludus.training.config import TrainConfig
from ludus.training.course import Course, News, begun_games, referred_snapshots
from ludus.training.devices import choose_device
from ludus.training.evaluating import Evaluator
from ludus.training.exchange import collect_parts, hand_out
from ludus.training.guard import Fault, Guard
from ludus.training.joining import join_episodes, join_faults, join_metrics
from ludus.training.ranks import Ranks, find_place
from ludus.training.records import OPPONENTS, STRATEGY, Cell, Records, parse_table
from ludus.training.resources import ResourceWatch
from ludus.training.snapshots import SnapshotStore
from ludus.training.strategy_log import StrategyLog
from ludus.training.workbench import START, RunState, Workbench

logger = logging.getLogger(__name__)


def train(config: TrainConfig, folder: Path, callbacks: Sequence[Callback] = ()) -> Counters:
    """Trains until the budget is used up; goes on where an earlier call on the same folder was cut off.

    Under `torchrun` every process calls this with the same settings and does its part of the run.

    Args:
        config: The settings; those of an earlier call must have been the same.
        folder: The run folder; it gets `checkpoints/` and the tables of `records`. Only the first process uses it.
        callbacks: Who is told, by the first process alone.

    Returns:
        How far the run got.

    Raises:
        ConfigError: The games cannot be divided evenly among the processes.
        ConfigMismatchError: The run in this folder began with other settings.
        RankError: Another process failed, so this one ends too.
        NotFiniteError: NaN or infinity came back each time.
        StoreError: The final checkpoint could not be saved.
    """
    with Trainer(config, folder, callbacks) as trainer:
        return trainer.run()


class _BrokenOffError(BaseException):
    """Leaves an iteration that is not to be finished; no `except Exception` on the way may keep it."""


class Trainer:
    """A run: everything that `train` does, for callers that want to stop it or look inside.

    Attributes:
        config: The settings.
        bench: What learns.
        course: Rewards, stages and opponents over time.
        counters: How far the run is.
        rollbacks: Faults from which it has gone back so far.
        stop_reason: Why it ended before its budget, in words; empty if it did not.
        training_s: Time that its iterations took in this process, without logging, evaluations and checkpoints.
    """

    def __init__(self, config: TrainConfig, folder: Path, callbacks: Sequence[Callback] = ()) -> None:
        """Makes everything, and takes the state of the newest valid checkpoint if the folder has one."""
        self.config = config
        config = choose_device(config)
        self._stopping = False
        self._may_break_off = False
        self.stop_reason = ""
        self.training_s = 0.0
        self._news = News()
        self._strategy_rows: list[dict[str, Cell]] = []
        self._faults_in_a_row = 0
        self._records: Records | None = None
        self._open = ExitStack()
        place = find_place()
        device = place.share(config).world.device  # refuses what cannot be divided before anyone waits for anyone
        self._ranks = Ranks.join(place, device)
        self._config_here = config
        self._audience = Audience(callbacks if self._ranks.is_writer else ())
        self._open.callback(self._ranks.leave)
        try:
            with self._ranks.naming_losses():
                self._begin(folder)
        except BaseException:
            self.close()
            raise

    def _begin(self, folder: Path) -> None:
        ranks = self._ranks
        self._checkpoints = Checkpoints(folder, self.config)
        # Refuses other settings before anything is made.
        read = ranks.together(lambda: self._checkpoints.newest(ranks.place.count) if ranks.is_writer else None)
        saved = hand_out(ranks, read)
        self._is_new = saved is None
        self.counters, self.rollbacks = (Counters(), 0) if saved is None else (saved.counters, saved.rollbacks)
        begun = START if saved is None else begun_games(saved.state.course)
        self.bench = Workbench(self._config_here, ranks.place, begun)
        self._open.callback(self.bench.close)
        self.course = Course(self.config, self.bench)
        self.evaluator = Evaluator(self.config)
        self._strategy = StrategyLog(self.bench, self.config.monitoring.strategy_every_iterations)
        self._resources = ResourceWatch(self.config.guard, folder)
        self._snapshots = SnapshotStore(folder, self.bench)
        if saved is not None:
            self._snapshots.give_back(self.bench.opponents, saved.state.course.get("league"))
            self._load(saved.state)
            logger.info("goes on from env step %d", saved.counters.env_steps)
        if ranks.is_writer:
            spec = self.bench.env.spec
            self._records = Records(folder, behaviour_of(spec.id), has_winners="wins" in spec.events)
            self._open.callback(self._records.close)
            self._records.cut_back({} if saved is None else saved.offsets)
        if saved is None:
            self._snapshots.take_first(self.bench.opponents)
        told = ranks.gather_texts(self._records.matches() if self._records is not None else "")
        self.course.load_matches(parse_table(told[0]))
        self._guard = Guard(self.bench)
        self._finite = self._state()  # what a fault goes back to, and what checkpoints hold

    def run(self) -> Counters:
        """Trains until the budget is used up or `stop` is called; see `train`."""
        with self._ranks.naming_losses():
            self._ranks.together(lambda: self._audience.tell(lambda callback: callback.on_start(self.counters)))
            try:
                self._train()
            except Exception as error:
                self._save_what_is_left(error)
                raise
            finally:
                self._audience.tell(lambda callback: callback.on_end(self.counters))
        return self.counters

    @property
    def is_finished(self) -> bool:
        """Whether the budget is used up, and evaluated where that is due."""
        return self.counters.env_steps >= self.config.total_env_steps and not self.evaluator.is_due

    def stop(self, reason: str = "it was asked to") -> None:
        """Asks the run to end after the present iteration with the checkpoint `interrupted`; signals may call it."""
        self.stop_reason = self.stop_reason or reason
        self._stopping = True

    def interrupt(self, reason: str) -> None:
        """Asks the run to end at once with the checkpoint `interrupted`; for signal handlers, on the loop's own thread.

        An iteration or an evaluation that is under way is broken off, since the state before it is what is saved. Of
        several processes each finishes it, or the others would wait for ever.
        """
        self.stop(reason)
        if self._may_break_off:
            raise _BrokenOffError

    @contextmanager
    def _breakable(self) -> Iterator[None]:
        """Lets `interrupt` break off what is done inside."""
        self._may_break_off = self._ranks.place.count == 1
        try:
            if self._may_break_off and self._stopping:  # asked for since anyone looked last
                raise _BrokenOffError
            yield
        finally:
            self._may_break_off = False

    def save(self, name: str, *, must: bool = False) -> Path | None:
        """Saves the last finite state and returns its folder.

        A disk that does not let it is only warned of, and None returned: training goes on, the checkpoints before it
        are intact, and the next one that is due is the next try. With `must` the error is raised. Of several processes
        all call this, and those that do not write get None.

        Raises:
            StoreError: It could not be written, and must be.
            UnsupportedError: A callback called it in a run of several processes, of which only one has callbacks.
        """
        if self._audience.is_listening and self._ranks.place.count > 1:
            raise UnsupportedError(
                f"a callback asked to save {name!r}, for which the other processes would have to be asked too; "
                "use checkpoints.every_iterations, or stop(), which saves 'interrupted'"
            )
        parts = collect_parts(self._ranks, self._finite)
        return self._ranks.together(partial(self._save, name, parts, must))

    def _save(self, name: str, parts: tuple[Mapping[str, Tensor], ...], must: bool) -> Path | None:
        if self._records is None:
            return None
        try:
            self._snapshots.flush()  # before the checkpoint that refers to them
            saved = Saved(self._finite, self.counters, self.rollbacks, self._records.sync(), parts)
            settings = self.config.judged_settings(begun_games(self._finite.course).stage)
            folder = self._checkpoints.save(name, saved, self.bench.policy, settings)
            self._snapshots.prune(set().union(*map(referred_snapshots, self._checkpoints.courses())))
        except StoreError as error:
            if must:
                raise
            logger.warning("[WARN] %s; training goes on and tries again when the next one is due", error.strerror)
            return None
        self._audience.tell(lambda callback: callback.on_checkpoint(folder, self.counters))
        return folder

    def close(self) -> None:
        """Closes the games and the log, and leaves the other processes; may be called twice."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _train(self) -> None:
        if self._is_new:
            self.save("init")
        first = self.counters
        with suppress(_BrokenOffError):
            self._evaluate_if_due()  # one that was broken off
            while self.counters.env_steps < self.config.total_env_steps and not self._ranks.any(self._stopping):
                self._go_on()
        if not self.is_finished:
            self.save("interrupted", must=True)
        elif self.counters != first or self._lacks_final():
            self.save("final", must=True)

    def _go_on(self) -> None:
        """Runs one iteration and all that is due after it."""
        before = self.counters
        iteration = self._iterate()
        if iteration is None:  # a number was not finite: the run is where it was before
            return
        self._ranks.together(partial(self._report, iteration))
        is_last = self.counters.env_steps >= self.config.total_env_steps
        if self.evaluator.pass_steps(before, self.counters, is_last=is_last):
            self._finite = replace(self._finite, course=self._course_state())
        self._ranks.together(self._look_at_resources)
        is_wanted = not is_last and is_due(self.config.checkpoints, before, self.counters)
        if is_wanted and not self._ranks.any(self._stopping):  # a run that stops saves `interrupted`
            self.save(step_name(self.counters.env_steps))
        self._evaluate_if_due()

    def _evaluate_if_due(self) -> None:
        """Evaluates the agent, keeps it if it is the best, and looks for a plateau; the first process alone plays.

        One that is broken off, or that a stop comes before, stays due: the run that goes on from here begins with it.
        """
        if not self.evaluator.is_due or self._ranks.any(self._stopping):
            return
        found = self._ranks.together(self._play if self._ranks.is_writer else lambda: False)
        self.evaluator.is_due = False
        self.evaluator.every_env_steps = int(self._ranks.gather_numbers([self.evaluator.every_env_steps])[0][0])
        self._finite = replace(self._finite, course=self._course_state())
        if self._ranks.any(found):
            self.save("best")
        plateau = self.evaluator.plateau()
        if plateau is not None:
            text = f"no better score than {self.evaluator.best:.3f} in {self.evaluator.since_best} evaluations"
            self._audience.say("warning", f"plateau: {text}", self.counters)
            if plateau.action == "stop":
                self.stop(text)

    def _play(self) -> bool:
        with self._breakable():
            evaluated = self.evaluator.evaluate(self.bench.policy, self.counters, self.bench.settings)
        if self._records is not None:
            self._records.evaluation(evaluated)
        self._audience.tell(lambda callback: callback.on_evaluation(evaluated))
        for text in evaluated.messages:
            self._audience.say("info", text, self.counters)
        return evaluated.is_best

    def _look_at_resources(self) -> None:
        """Makes room on the disk if it is short, and asks for a stop if that is not enough or memory is short."""
        shortage = self._resources.look() if self._records is not None else None
        if shortage is None:
            return
        if shortage.is_disk:
            deleted = self._checkpoints.prune(1)
            self._audience.say("warning", f"{shortage.text}; deleted {len(deleted)} old checkpoints", self.counters)
            shortage = self._resources.disk()
        if shortage is not None:
            self._audience.say("alarm", f"{shortage.text}; the run saves and stops", self.counters)
            self.stop(shortage.text)

    def _save_what_is_left(self, error: Exception) -> None:
        """Saves the last finite state as `interrupted` before an error ends the run, if that is possible."""
        if self._ranks.place.count > 1 or not self.counters.iterations:
            return
        self._audience.say("alarm", f"the run ends: {type(error).__name__}: {error}", self.counters)
        with suppress(StoreError):
            self._save("interrupted", (), must=True)

    def _lacks_final(self) -> bool:
        return self._ranks.any(self._ranks.is_writer and not self._checkpoints.has("final"))

    def _report(self, iteration: Iteration) -> None:
        if self._records is not None:
            self._records.iteration(iteration)
            tables = {OPPONENTS: self._news.matches, STRATEGY: self._strategy_rows} | self._news.tables
            for name, rows in tables.items():
                self._records.table(name, rows)
            for taken in self._news.taken:
                self._snapshots.take(taken.name, taken.env_steps, taken.state)
        self._audience.tell(lambda callback: callback.on_iteration(iteration))
        for text in self._news.messages:
            self._audience.say("info", text, self.counters)

    def _iterate(self) -> Iteration | None:
        """Runs one iteration; None if a number was not finite, and then the run is where it was before."""
        started_s = time.perf_counter()
        learner = self.bench.learner
        self._guard.begin()
        self.course.before(self.counters.env_steps)
        progress = min(self.counters.env_steps / self.config.total_env_steps, 1.0)
        with self._breakable():
            learner.collect(progress)
            self.course.look(self._ranks)
            learner.update(progress)
            self._guard.look()
            metrics = learner.metrics()  # the one time that the host waits for the device
        fault = join_faults(self._ranks, self._guard.verdict(metrics))
        if fault is not None:
            self._go_back(fault)
            return None
        self._faults_in_a_row = 0
        episodes, rewards = join_episodes(self._ranks, self.bench.trace.read(), self.bench.trace.totals())
        times_s = learner.times_s()
        metrics = join_metrics(self._ranks, metrics, learner)
        before = self.counters
        updates = before.updates + int(metrics.pop("updates"))
        after = Counters(self.bench.env_steps, learner.iterations, updates)
        stage = self.course.stage
        self._strategy_rows = self._strategy.look(after) if self._ranks.is_writer else []
        self._news = self._take_course(episodes, before, after)
        self._finite, self.counters = self._state(), after  # both or, if something raises, neither
        shown = {name: value if math.isfinite(value) else None for name, value in metrics.items()}
        shown |= self._news.metrics | {"rollbacks": self.rollbacks}
        elapsed_s = time.perf_counter() - started_s
        self.training_s += elapsed_s
        return Iteration(after, shown, elapsed_s, episodes, rewards, times_s, stage)

    def _take_course(self, episodes: Episodes, before: Counters, after: Counters) -> News:
        """Lets the course take the episodes; it is the same on all processes."""
        bench, playing = self.bench, set[str]()
        if self._ranks.place.count > 1 and bench.opponents is not None and bench.opponents.pool is not None:
            playing.update(*(text.split() for text in self._ranks.gather_texts(" ".join(bench.opponents.playing()))))
        had_first, begun = self._snapshots.has_first(bench.opponents), bench.begun
        news = self.course.after(episodes, before, after, playing)
        if not had_first:
            self._snapshots.take_first(bench.opponents)
        if bench.begun != begun:
            self.evaluator.begin_games()
        return news

    def _go_back(self, fault: Fault) -> None:
        """Restores the last finite state, with other randomness; stops a run that makes no headway."""
        self.rollbacks += 1
        self._faults_in_a_row += 1
        failed, limit = self.counters.iterations + 1, self.config.guard.max_faults_in_a_row
        message = f"not finite in iteration {failed}: it began in the {fault}"
        if self._faults_in_a_row >= limit:
            raise NotFiniteError(
                f"{message}; {limit} times in a row, so the run stops; the checkpoints hold its last finite states: "
                "lower the learning rate or the rewards, or mend the world"
            )
        logger.warning("[WARN] %s; back to iteration %d, fault %d in a row", message, failed - 1, self._faults_in_a_row)
        seed = self._ranks.place.seed(self.config.seed)
        self._load(self._finite.with_other_randomness(seed, failed, self._faults_in_a_row))

    def _state(self) -> RunState:
        return replace(self.bench.state(), course=self._course_state())

    def _course_state(self) -> dict[str, Any]:
        return self.course.state() | {"evaluation": self.evaluator.state(), "strategy": self._strategy.state()}

    def _load(self, state: RunState) -> None:
        self.bench.load_state(state)
        self.course.load_state(state.course, self.counters.env_steps)
        self.evaluator.load_state(state.course["evaluation"])
        self._strategy.load_state(state.course["strategy"])
