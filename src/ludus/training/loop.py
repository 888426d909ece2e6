"""The training loop: collect, update, metrics, callbacks, checkpoint, until the budget.

Started by `torchrun`, its processes share the games of one run: all go through the same steps and decide together,
and only the first writes. They synchronise through `processes`; a single process waits for no other.
"""

import logging
import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from torch import Tensor

from ludus.algorithms.learner import Fault
from ludus.core.errors import ConfigError, NotFiniteError, StoreError, UnsupportedError
from ludus.core.faults import RefusedExits, Unwinding
from ludus.core.text import blame
from ludus.envs.base import StepResult
from ludus.envs.world_parts import metrics_of
from ludus.rollout.episodes import Episodes
from ludus.store import step_name
from ludus.training.adaptive_curriculum import IterationEvents
from ludus.training.agent_opponents import keep_agent_opponents
from ludus.training.callbacks import BaseCallback, CallbackList, Counters, Iteration
from ludus.training.checkpointing import (
    FINAL,
    Checkpoints,
    Saved,
    SnapshotStore,
    collect_parts,
    hand_out,
    is_due,
    on_host,
)
from ludus.training.components import START, Components, RunState
from ludus.training.config import TrainConfig
from ludus.training.curriculum_callback import CurriculumCallback, saved_phase_start
from ludus.training.distributed import ProcessGroup, join_episodes, join_faults, join_metrics
from ludus.training.evaluation_callback import EvaluationCallback
from ludus.training.loggers.csv_logger import OPPONENTS, STRATEGY, Cell, CsvLogger, naming_table, parse_table
from ludus.training.nan_guard import NanGuard
from ludus.training.resolve import ResolvedRun, resolve
from ludus.training.resources import ResourceWatch
from ludus.training.strategy_log import StrategyLog

logger = logging.getLogger(__name__)


def train(config: TrainConfig, folder: Path, callbacks: Sequence[BaseCallback] = ()) -> Counters:
    """Train until the budget is used up; resume where an earlier call on the same folder was cut off.

    Under `torchrun` every process calls this with the same settings and does its part of the run.

    Args:
        config: The settings; those of an earlier call must have been the same.
        folder: The run folder; it gets `checkpoints/` and the tables of `records`. Only the first process uses it.
        callbacks: Notified by the first process alone.

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


class _BrokenOffError(Unwinding):
    """Raised to leave an iteration early."""


class Trainer:
    """A run: everything that `train` does, for callers that want to stop it or look inside.

    Attributes:
        config: The settings.
        components: What learns.
        curriculum_callback: Changes rewards, phases and opponents over time.
        counters: How far the run is.
        rollbacks: Faults from which it has gone back so far.
        stop_reason: Why it ended before its budget, in words; empty if it did not.
        training_s: Time that its iterations took in this process, without logging, evaluations and checkpoints.
        wall_s: Time that `run` took, with all of that.
    """

    def __init__(self, run: TrainConfig | ResolvedRun, folder: Path, callbacks: Sequence[BaseCallback] = ()) -> None:
        """Make everything, and load the state of the newest valid checkpoint if the folder has one."""
        self._run = resolve(run)  # refuses what cannot be divided before anyone waits for anyone
        self.config = self._run.config
        self._stopping = self._may_break_off = False
        self.stop_reason = ""
        self.training_s = self.wall_s = 0.0
        self._events = IterationEvents()
        self._strategy_rows: list[dict[str, Cell]] = []
        self._faults_in_a_row = self._in_rollout = 0
        self._csv: CsvLogger | None = None
        self._open = ExitStack()
        self._writer = ThreadPoolExecutor(1, "ludus-checkpoints")  # one write at a time
        self._saving: tuple[Future[Path], Counters] | None = None  # the write begun last, and of which state it is
        self._processes = ProcessGroup.join(self._run.process, self._run.device)
        self._callbacks = CallbackList(callbacks if self._processes.is_writer else ())
        self._callbacks.attach(self)
        self._open.callback(self._processes.leave)
        try:
            with self._processes.naming_losses(), RefusedExits():
                self._begin(folder)
        except BaseException:
            self.close()
            raise

    def _begin(self, folder: Path) -> None:
        processes = self._processes
        self._checkpoints = Checkpoints(folder, self.config)
        # Refuses other settings before anything is made.
        read = processes.together(
            lambda: self._checkpoints.newest(processes.process.count) if processes.is_writer else None
        )
        saved = hand_out(processes, read)
        self._is_new = saved is None
        self.counters, self.rollbacks = (Counters(), 0) if saved is None else (saved.counters, saved.rollbacks)
        phase_start = START if saved is None else saved_phase_start(saved.state.course, self.config)
        self.components = Components(self._run, phase_start, folder)
        self._open.callback(self.components.close)
        self.curriculum_callback = CurriculumCallback(self.config, self.components)
        # Where equal seeds give equal runs, no clock decides anything; several processes would have to agree on one.
        has_clock = processes.process.count == 1 and self.components.policy.device.type != "cpu"
        self.evaluator = EvaluationCallback(self.config, is_limited=has_clock)
        self._strategy = StrategyLog(self.components, self.config.monitoring.strategy_every_iterations)
        self._resources = ResourceWatch(self.config.guard, folder)
        self._snapshots = SnapshotStore(folder, self.components)
        if saved is not None:
            self._snapshots.give_back(saved.state.course.get("league"))
            self._load(saved.state)
        matches = processes.together(partial(self._open_records, folder, saved) if processes.is_writer else lambda: "")
        self._open.callback(self._writer.shutdown)  # before the tables are closed, which it makes durable
        if saved is None:
            self._snapshots.take_first()
        if processes.is_writer:
            keep_agent_opponents(self.components.agents, folder)
        with naming_table(folder / OPPONENTS):
            self.curriculum_callback.load_matches(parse_table(processes.gather_texts(matches)[0]))
        self._guard = NanGuard(self.components)
        self._finite = self._state()  # what a fault goes back to, and what checkpoints hold

    def _open_records(self, folder: Path, saved: Saved | None) -> str:
        """Open the tables as the checkpoint knew them, and return the text of the matches."""
        spec = self.components.env.spec
        self._csv = CsvLogger(folder, metrics_of(spec.id), has_winners="wins" in spec.events)
        self._open.callback(self._csv.close)
        self._csv.cut_back({} if saved is None else saved.offsets)
        with naming_table(folder / OPPONENTS):
            return self._csv.matches()

    def run(self) -> Counters:
        """Train until the budget is used up or `stop` is called; see `train`."""
        for _ in self.turns():
            pass
        return self.counters

    def turns(self) -> Iterator[None]:
        """Do what `run` does in turns, so that other runs of this process can use the device meanwhile.

        A turn ends where the device has been given the work of an iteration, before the host waits for it.
        """
        started_s = time.perf_counter()
        with self._processes.naming_losses():
            self._processes.together(lambda: self._notify("on_training_start"))
            try:
                with RefusedExits():
                    yield from self._train()
            except Exception as error:
                self._save_what_is_left(error)
                raise
            finally:
                self.wall_s = time.perf_counter() - started_s
                self._notify("on_training_end")

    @property
    def is_finished(self) -> bool:
        """Whether the budget is used up, and the last evaluation done if one is due."""
        return self.counters.env_steps >= self.config.total_env_steps and not self.evaluator.is_due

    @property
    def num_timesteps(self) -> int:
        """Env steps so far, those of an unfinished rollout included while a callback wants every step."""
        return self.components.env_steps + self._in_rollout

    @property
    def warnings(self) -> list[str]:
        """What the games warn of, those of the learner and those of the last evaluation."""
        return list(dict.fromkeys((*self.components.env.warnings, *self.evaluator.warnings)))

    def stop(self, reason: str = "it was asked to") -> None:
        """Ask the run to end after the present iteration with the checkpoint `interrupted`; signals may call it."""
        self.stop_reason = self.stop_reason or reason
        self._stopping = True

    def assign_opponents(
        self, snapshots: Mapping[str, tuple[int, Mapping[str, Tensor]]], chances: Mapping[str, float]
    ) -> bool:
        """Let snapshots of other runs play, and say how often; for callbacks, between iterations.

        Needs `self` among the opponents and `league.sampler: assigned`. Checkpoints hold what was assigned.

        Args:
            snapshots: New ones by name: the env steps that each learned from, and its `Policy.state`.
            chances: Chance of each snapshot, new or known; others leave once nobody plays against them.

        Returns:
            Whether it was done; False if too many of the `league.keep` places are taken by snapshots that are playing
            and are not among these. Then nothing has changed, and it can be tried again after the next iteration.

        Raises:
            ConfigError: The settings do not allow it.
            StateError: A snapshot is one of another architecture.
            UnsupportedError: The run has several processes, of which only one has callbacks.
        """
        if self._processes.process.count > 1:
            raise UnsupportedError("opponents are assigned to a run of one process; train it without torchrun")
        opponents = self.components.opponents
        if opponents is None or opponents.pool is None:
            raise ConfigError("opponents cannot be assigned without snapshots: name 'self' among the opponents")
        known = {snapshot.name for snapshot in opponents.pool.snapshots}
        new = {name: snapshots[name] for name in snapshots if name not in known}
        if len(new) > opponents.retire(chances):
            return False
        for name, (env_steps, state) in new.items():
            opponents.add_snapshot(name, env_steps, state)
            self._snapshots.take(name, env_steps, state)
        opponents.assign(chances)
        self._finite = self._state()
        return True

    def interrupt(self, reason: str) -> None:
        """Ask the run to end at once with the checkpoint `interrupted`; for signal handlers, on the loop's own thread.

        An iteration or an evaluation that is under way is broken off, since the state before it is what is saved. Of
        several processes each finishes it, or the others would wait for ever.
        """
        self.stop(reason)
        if self._may_break_off:
            raise _BrokenOffError

    @contextmanager
    def _breakable(self) -> Iterator[None]:
        """Let `interrupt` break off what is done inside."""
        self._may_break_off = self._processes.process.count == 1
        try:
            if self._may_break_off and self._stopping:  # asked for since anyone looked last
                raise _BrokenOffError
            yield
        finally:
            self._may_break_off = False

    @contextmanager
    def _unbreakable(self) -> Iterator[None]:
        """Let `interrupt` wait until callbacks have returned, inside what it may break off otherwise."""
        may_break_off, self._may_break_off = self._may_break_off, False
        try:
            yield
        finally:
            self._may_break_off = may_break_off

    def save(self, name: str, *, must: bool = False) -> Path | None:
        """Save the last finite state and return its folder once it is written.

        A failed write is logged as a warning and None returned: training continues, earlier checkpoints are intact,
        and the next one that is due is the next try. With `must` the error is raised. All processes call this;
        those that do not write get None.

        Raises:
            StoreError: It could not be written, and must be.
            UnsupportedError: A callback called it in a run of several processes, of which only one has callbacks.
        """
        if self._callbacks.is_listening and self._processes.process.count > 1:
            raise UnsupportedError(
                f"a callback asked to save {name!r}, for which the other processes would have to be asked too; "
                "use checkpoints.every_iterations, or stop(), which saves 'interrupted'"
            )
        parts = collect_parts(self._processes, self._finite)
        return self._processes.together(partial(self._save, name, parts, must))

    def _save(self, name: str, parts: tuple[Mapping[str, Tensor], ...], must: bool) -> Path | None:
        self._begin_save(name, parts, is_copy=False)
        return self._end_save(must=must)

    def _save_in_background(self, name: str) -> None:
        """Save the last finite state while the run continues; what became of it is told by `_end_save`."""
        if self.components.learner.live_groups:  # too large for a copy
            self.save(name)
            return
        parts = collect_parts(self._processes, self._finite)
        self._processes.together(partial(self._begin_save, name, parts, is_copy=True))

    def _begin_save(self, name: str, parts: tuple[Mapping[str, Tensor], ...], *, is_copy: bool) -> None:
        """Begin to write the last finite state once the write before has ended; the run continues only with a copy."""
        if self._csv is None:
            return
        self._end_save()
        self._tell_activity(f"saving the checkpoint {name}")
        try:
            self._saving = self._writer.submit(self._prepare_save(name, parts, self._csv, is_copy)), self.counters
        except StoreError as error:
            self._saving = Future(), self.counters
            self._saving[0].set_exception(error)

    def _prepare_save(
        self, name: str, parts: tuple[Mapping[str, Tensor], ...], csv: CsvLogger, is_copy: bool
    ) -> Callable[[], Path]:
        """Return what writes the last finite state, and all that it refers to, on another thread."""
        snapshots, checkpoints = self._snapshots, self._checkpoints
        saved = Saved(self._finite, self.counters, self.rollbacks, csv.flush(), parts)
        settings = self.config.judged_settings(saved_phase_start(self._finite.course, self.config).phase)
        checkpoint = checkpoints.encode(saved, self.components.policy, settings)
        if is_copy:
            checkpoint = on_host(checkpoint, copy=True)
        waiting = snapshots.waiting()

        def write() -> Path:
            snapshots.save(waiting)  # before the checkpoint that refers to them, like the tables
            csv.fsync()
            folder = checkpoints.save(name, saved.counters.env_steps, checkpoint)
            snapshots.prune(checkpoints.snapshots())
            return folder

        return write

    def _end_save(self, *, must: bool = False) -> Path | None:
        """Wait for the write that was begun last, notify the callbacks, and return the folder; see `save`."""
        if self._saving is None:
            return None
        (written, counters), self._saving = self._saving, None
        try:
            folder = written.result()
        except StoreError as error:
            if must:
                raise
            logger.warning("[WARN] %s; training continues and tries again when the next one is due", error.strerror)
            return None
        self._callbacks.notify(lambda callback: callback.on_checkpoint(folder, counters))
        return folder

    def close(self) -> None:
        """End the writing of checkpoints, close the games and the log, and leave the other processes.

        May be called twice.
        """
        with RefusedExits():
            self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _train(self) -> Iterator[None]:
        if self._is_new:
            self.save("init", must=True)  # a disk that takes not even this would take nothing of the run
        else:
            logger.info("[OK] resumed at env step %s", f"{self.counters.env_steps:,}")
        first = self.counters
        with suppress(_BrokenOffError):
            self._evaluate_if_due()  # one that was broken off
            self._tell_activity("first iteration, which compiles whatever is not in a cache yet")
            while self.counters.env_steps < self.config.total_env_steps and not self._processes.any(self._stopping):
                yield from self._go_on()
        lacks_final = self._processes.is_writer and not self._checkpoints.has(FINAL)
        if not self.is_finished:
            self.save("interrupted", must=True)
        elif self.counters != first or self._processes.any(lacks_final):
            self.save(FINAL, must=True)

    def _go_on(self) -> Iterator[None]:
        """Run one iteration and all that is due after it."""
        before = self.counters
        iteration = yield from self._iterate()
        if iteration is None:  # NaN or Inf: the state before the iteration was restored
            return
        self._processes.together(partial(self._report, iteration))
        is_last = self.counters.env_steps >= self.config.total_env_steps
        if self.evaluator.pass_steps(before, self.counters, is_last=is_last, elapsed_s=iteration.elapsed_s):
            self._finite = replace(self._finite, course=self._course_state())
        self._processes.together(self._look_at_resources)
        is_wanted = not is_last and is_due(self.config.checkpoints, before, self.counters)
        if is_wanted and not self._processes.any(self._stopping):  # a run that stops saves `interrupted`
            self._save_in_background(step_name(self.counters.env_steps))
        self._evaluate_if_due()

    def _evaluate_if_due(self) -> None:
        """Evaluate the agent, keep it if it is the best, and look for a plateau; the first process alone plays.

        An evaluation that is interrupted, or preceded by a stop, stays due: the resumed run starts with it.
        """
        if not self.evaluator.is_due or self._processes.any(self._stopping):
            return
        found = self._processes.together(self._play if self._processes.is_writer else lambda: False)
        self.evaluator.is_due = False
        self.evaluator.every_env_steps = int(self._processes.gather_numbers([self.evaluator.every_env_steps])[0][0])
        self._finite = replace(self._finite, course=self._course_state())
        if self._processes.any(found):
            self._save_in_background("best")
        plateau = self.evaluator.plateau()
        if plateau is not None:
            text = f"no better score than {self.evaluator.best:.3f} in {self.evaluator.since_best} evaluations"
            self._callbacks.message("warning", f"plateau: {text}", self.counters)
            if plateau.action == "stop":
                self.stop(text)

    def _play(self) -> bool:
        text = self.evaluator.describe(self.components.env.spec)
        self._tell_activity(text, 0.0)
        progress, components = partial(self._tell_activity, text), self.components
        with self._breakable():
            evaluated = self.evaluator.evaluate(components.policy, self.counters, components.settings, progress)
        if self._csv is not None:
            self._csv.evaluation(evaluated)
        self._callbacks.notify(lambda callback: callback.on_evaluation(evaluated))
        for text in evaluated.messages:
            self._callbacks.message("info", text, self.counters)
        return evaluated.is_best

    def _tell_activity(self, text: str, share: float | None = None) -> None:
        """Tell the callbacks what is done and how far it is; `interrupt` waits until they have returned."""
        with self._unbreakable():
            self._callbacks.notify(lambda callback: callback.on_activity(text, share, self.counters))
        if self._may_break_off and self._stopping:
            raise _BrokenOffError

    def _notify(
        self, hook: Literal["on_training_start", "on_rollout_start", "on_rollout_end", "on_training_end"]
    ) -> None:
        """Notify the callbacks of where the loop is; `interrupt` waits until they have returned."""
        with self._unbreakable():
            self._callbacks.notify(lambda callback: getattr(callback, hook)(self.counters))

    def _on_step(self, step: StepResult) -> None:
        """Notify the callbacks of a step, and break the iteration off if one of them returns False."""
        self._in_rollout += self.components.learner.rows.count * self._processes.process.count
        with self._unbreakable():
            refusing = self._callbacks.notify(lambda callback: callback.on_step(step))
        if refusing:
            self.interrupt(f"callback {refusing[0]} returned False from on_step")

    def _look_at_resources(self) -> None:
        """Make room on the disk if it is short, and ask for a stop if that is not enough or memory is short."""
        shortage = self._resources.look() if self._csv is not None else None
        if shortage is None:
            return
        if shortage.is_disk:
            self._end_save()
            text = f"{shortage.text}; deleted {len(self._checkpoints.prune(1))} old checkpoints"
            self._callbacks.message("warning", text, self.counters)
            shortage = self._resources.disk()
        if shortage is not None:
            self._callbacks.message("alarm", f"{shortage.text}; the run saves and stops", self.counters)
            self.stop(shortage.text)

    def _save_what_is_left(self, error: Exception) -> None:
        """Save the last finite state as `interrupted` before an error ends the run, if that is possible."""
        if self._processes.process.count > 1 or not self.counters.iterations:
            return
        self._callbacks.message("alarm", f"the run ends: {blame(error)}", self.counters)
        with suppress(StoreError):
            self._save("interrupted", (), must=True)

    def _report(self, iteration: Iteration) -> None:
        self._end_save()  # written during the iteration, and told before it
        if self._csv is not None:
            self._csv.iteration(iteration)
            tables = {OPPONENTS: self._events.matches, STRATEGY: self._strategy_rows} | self._events.tables
            for name, rows in tables.items():
                self._csv.table(name, rows)
            for snapshot in self._events.snapshots:
                self._snapshots.take(snapshot.name, snapshot.env_steps, snapshot.state)
        self._callbacks.notify(lambda callback: callback.on_iteration(iteration))
        for text in self._events.messages:
            self._callbacks.message("info", text, self.counters)

    def _iterate(self) -> Generator[None, None, Iteration | None]:
        """Run one iteration; None if there was a NaN or Inf, and then the state before it is restored."""
        started_s = time.perf_counter()
        learner = self.components.learner
        self._guard.begin()
        self.curriculum_callback.on_rollout_start(self.counters.env_steps)
        progress = self.config.progress(self.counters.env_steps, self.config.total_env_steps)
        with self._breakable():
            self._collect(progress)
            self.curriculum_callback.on_rollout_end(self._processes)
            self._notify("on_rollout_end")
            learner.update(progress)
            self._guard.look()
        yield
        with self._breakable():
            metrics = learner.metrics()  # the one time that the host waits for the device
        fault = join_faults(self._processes, self._guard.verdict(metrics))
        if fault is not None:
            self._go_back(fault)
            return None
        self._faults_in_a_row = 0
        episodes, rewards = join_episodes(self._processes, self.components.trace.read(), self.components.trace.totals())
        times_s = learner.times_s()
        metrics = join_metrics(self._processes, metrics, learner)
        before = self.counters
        updates = before.updates + int(metrics.pop("updates"))
        after = Counters(self.components.env_steps, learner.iterations, updates)
        phase = self.curriculum_callback.phase
        self._strategy_rows = self._strategy.look(after) if self._processes.is_writer else []
        self._events = self._update_curriculum(episodes, before, after)
        self._finite, self.counters = self._state(), after  # both or, if something raises, neither
        shown = {name: value if math.isfinite(value) else None for name, value in metrics.items()}
        shown |= self._events.metrics | {"rollbacks": self.rollbacks}
        elapsed_s = time.perf_counter() - started_s
        self.training_s += elapsed_s
        return Iteration(after, shown, elapsed_s, episodes, rewards, times_s, phase)

    def _collect(self, progress: float) -> None:
        """Collect a rollout, and tell the callbacks of its start and, if one wants them, of its steps."""
        self._notify("on_rollout_start")
        self.components.trace.on_step = self._on_step if self._callbacks.wants_steps else None
        try:
            self.components.learner.collect(progress)
        finally:
            self._in_rollout = 0

    def _update_curriculum(self, episodes: Episodes, before: Counters, after: Counters) -> IterationEvents:
        """Update curriculum and league with the episodes; the result is the same on all processes."""
        components, opponents, playing = self.components, self.components.opponents, set[str]()
        if self._processes.process.count > 1 and opponents is not None and opponents.pool is not None:
            playing.update(*(text.split() for text in self._processes.gather_texts(" ".join(opponents.playing()))))
        had_first, phase_start = self._snapshots.has_first(), components.phase_start
        events = self.curriculum_callback.on_iteration_end(episodes, before, after, playing)
        if not had_first:
            self._snapshots.take_first()
        if components.phase_start != phase_start:
            self.evaluator.begin_games()
        return events

    def _go_back(self, fault: Fault) -> None:
        """Restore the last finite state with other randomness; stop a run that makes no progress."""
        self.rollbacks += 1
        self._faults_in_a_row += 1
        failed, limit = self.counters.iterations + 1, self.config.guard.max_faults_in_a_row
        message = f"NaN or Inf in iteration {failed}, first seen in the {fault}"
        if self._faults_in_a_row >= limit:
            raise NotFiniteError(
                f"{message}; {limit} times in a row, so the run stops; the checkpoints hold its last finite states: "
                "lower the learning rate or the rewards, or fix the environment"
            )
        logger.warning("[WARN] %s; back to iteration %d, fault %d in a row", message, failed - 1, self._faults_in_a_row)
        seed = self._processes.process.seed(self.config.seed)
        self._load(self._finite.with_other_randomness(seed, failed, self._faults_in_a_row))

    def _state(self) -> RunState:
        return replace(self.components.state(), course=self._course_state())

    def _course_state(self) -> dict[str, Any]:
        others = {"evaluation": self.evaluator.state(), "strategy": self._strategy.state()}
        return self.curriculum_callback.state() | others

    def _load(self, state: RunState) -> None:
        self.components.load_state(state)
        self.curriculum_callback.load_state(state.course, self.counters.env_steps)
        self.evaluator.load_state(state.course["evaluation"])
        self._strategy.load_state(state.course["strategy"])
