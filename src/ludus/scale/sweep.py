"""Run a sweep: Optuna proposes and stops trials, Ray's processes train them, runs, forks and results are ours.

The study of Optuna is in memory. A sweep resumes from `results.json` and the run folders: what they say is told to a
new study, trials that have ended are not run again, and the others continue.

Population-based training (Jaderberg et al., "Population Based Training of Neural Networks", arXiv:1711.09846, 2017) is
synchronous: all trials are trained to the same evaluation, then the worst of them are forked from the best.
"""

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ludus.core.errors import ConfigError, WorkerError
from ludus.core.files import write_text_atomic
from ludus.rewards.plugins import load_plugin
from ludus.scale.cluster import describe_loss, first_signal, gpus_of, kill, ray_session, require_ray, worker_errors
from ludus.scale.config import ASHA, SWEEP_FILE, SweepPlan, read_sweep
from ludus.scale.results import RESULTS_FILE, WINNER_FILE, SweepResults, TrialRecord, read_results
from ludus.scale.runs import STOP_FILE, TRIALS_FOLDER, Progress, TrialRuns, check_target
from ludus.scale.stored import check_run_files, lock_folder, write_stored

logger = logging.getLogger(__name__)

_SECONDS_PER_HOUR = 3600.0
_FILES = (SWEEP_FILE, RESULTS_FILE, WINNER_FILE, STOP_FILE)
_FOLDERS = (TRIALS_FOLDER,)
_MOST_NAMED = 5
_MOST_LOSSES = 3  # of one trial's process, after which it has failed
_FIRST_FAILURES = 3  # so many failed trials before any other one are a fault of the sweep
_TICK_S = 0.5

Listener = Callable[[SweepResults, TrialRecord], None]
"""Called when a trial changes its state or has new evaluations."""


def start_sweep(
    plan: SweepPlan,
    folder: Path,
    *,
    address: str | None = None,
    plugins: Sequence[str] = (),
    listener: Listener = lambda _results, _trial: None,
) -> SweepResults:
    """Begin a sweep in a folder and run it to its end.

    Args:
        plan: The sweep.
        folder: Where it is written to; on a cluster a folder that all machines share.
        address: Address of a Ray cluster; None starts one on this machine, bound to loopback.
        plugins: Files and modules of the user's own that every trial loads.
        listener: Notified of trials.

    Raises:
        ConfigError: The folder holds a sweep already, or the cluster cannot be reached.
        MissingDependencyError: Ray or Optuna is not installed.
        RunLockedError: Another process runs a sweep in the folder.
        StoreError: The folder cannot be written.
        UnsupportedError: Ray cannot start.
    """
    require_ray()
    names = (SWEEP_FILE, RESULTS_FILE, TRIALS_FOLDER)
    check_target(folder, names)
    with ray_session(address), lock_folder(folder, _FILES, _FOLDERS):
        check_target(folder, names)  # another process may have begun, and ended, in the meantime
        write_stored(folder / SWEEP_FILE, plan)
        return SweepDriver(SweepResults(plan, folder), plugins, listener).run()


def resume_sweep(
    plan: SweepPlan,
    folder: Path,
    *,
    address: str | None = None,
    plugins: Sequence[str] = (),
    retry_failed: bool = False,
    listener: Listener = lambda _results, _trial: None,
) -> SweepResults:
    """Continue a sweep that was stopped or killed, see `start_sweep`; trials that have ended are not run again.

    Args:
        plan: The sweep of the folder, maybe with more trials or time; see `SweepPlan.changed`.
        folder: Its folder.
        address: Address of a Ray cluster.
        plugins: Files and modules of the user's own that every trial loads.
        retry_failed: Whether failed trials are continued from their last checkpoints.
        listener: Notified of trials.

    Raises:
        FormatError: `results.json` is damaged, or the folder is not as a sweep leaves it.
        RunLockedError: Another process runs this sweep.
    """
    with lock_folder(folder, _FILES, _FOLDERS):
        results = read_results(plan, folder)
        for record in results.in_state("running", *(("failed",) if retry_failed else ())):
            record.state, record.reason = "waiting", ""
        left = plan.config.trials - len(results.in_state("finished", "stopped", "failed"))
        if left <= 0 or _left_s(results) <= 0.0:  # no need for Ray
            results.finish("" if left <= 0 else "sweep.max_hours is used up")
            return results
        _check_waiting(results)
        require_ray()
        with ray_session(address):
            write_stored(folder / SWEEP_FILE, plan)
            return SweepDriver(results, plugins, listener).run()


def _check_waiting(results: SweepResults) -> None:
    """Check the folders of trials that are trained on, and warn of those that are gone."""
    gone = []
    for record in results.in_state("waiting"):
        path = results.folder / TRIALS_FOLDER / record.name
        check_run_files(path)
        if record.evaluations and not path.is_dir():
            gone.append(record.name)
    if gone:
        named = ", ".join(gone[:_MOST_NAMED]) + (" ..." if len(gone) > _MOST_NAMED else "")
        logger.warning("[WARN] %d trials begin again, since their folders are gone: %s", len(gone), named)


def _left_s(results: SweepResults) -> float:
    """Return the wall time that was left when this session began."""
    limit_h = results.plan.config.max_hours
    return math.inf if limit_h is None else limit_h * _SECONDS_PER_HOUR - results.earlier_s


class TrialStudy:
    """Optuna's study of a sweep: it proposes values, and stops trials that fall behind the others."""

    def __init__(self, results: SweepResults) -> None:
        """Begin a study and tell it of all trials that there are."""
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        config, self._states = results.plan.config, optuna.trial.TrialState
        self._plan, self._trials = results.plan, dict[int, Any]()
        self._distributions = {each.name: each.distribution() for each in results.plan.dimensions}
        seed = config.seed + len(results.trials)
        is_random = config.search == "random" or config.is_population
        pruner = optuna.pruners.SuccessiveHalvingPruner(config.asha.grace_evaluations, config.asha.reduction_factor)
        self._study = optuna.create_study(
            sampler=optuna.samplers.RandomSampler(seed)
            if is_random
            else optuna.samplers.TPESampler(seed=seed, constant_liar=True),
            pruner=pruner if config.scheduler == ASHA else optuna.pruners.NopPruner(),
            direction=config.direction,
        )
        for record in results.trials.values():
            self.add(record)
            self.is_behind(record, 0)
            if record.state in ("finished", "stopped", "failed"):
                self.end(record)

    def draw(self) -> dict[str, Any]:
        """Return values that no trial has yet."""
        trial = self._study.ask(self._distributions)
        self._study.tell(trial, state=self._states.FAIL)  # whoever is trained with them is added
        return self._plan.decode(trial.params)

    def add(self, record: TrialRecord) -> None:
        """Add a trial that has not ended."""
        self._study.enqueue_trial(self._plan.encode(record.values) or {})
        self._trials[record.number] = self._study.ask(self._distributions)

    def is_behind(self, record: TrialRecord, known: int) -> bool:
        """Tell the study of the evaluations of a trial beyond the first `known`; return whether it shall be stopped."""
        trial, is_behind = self._trials[record.number], False
        for evaluation in range(known + 1, record.evaluations + 1):
            trial.report(record.value_at(evaluation).estimate, evaluation)
            is_behind = trial.should_prune()
        return is_behind

    def end(self, record: TrialRecord) -> None:
        """Tell the study that a trial has ended."""
        trial, value = self._trials[record.number], record.value
        if value is None or record.state == "failed":
            self._study.tell(trial, state=self._states.FAIL)
        elif record.state == "stopped":
            self._study.tell(trial, state=self._states.PRUNED)
        else:
            self._study.tell(trial, value.estimate)


class TrialWorker:
    """A process that trains trials, one after the other: importing torch again would take seconds."""

    def __init__(self, sweep: str, plugins: Sequence[str], ends_at_s: float) -> None:
        """Remember what to train; everything is loaded with the first trial, whose failure it may be."""
        self._sweep, self._plugins, self._ends_at_s = Path(sweep), plugins, ends_at_s
        self._plan: SweepPlan | None = None

    def advance(self, name: str, values: Mapping[str, Any], evaluations: int | None) -> Progress:
        """Train a trial to its next decision; see `TrialRuns.advance`.

        Raises:
            WorkerError: Whatever ended it.
        """
        with worker_errors():
            if self._plan is None:
                for plugin in self._plugins:
                    load_plugin(plugin)
                self._plan = read_sweep(self._sweep)
            return TrialRuns(self._plan, self._sweep, name, values).advance(evaluations, self._ends_at_s)


class SweepDriver:
    """Keeps workers at work until every trial has ended."""

    def __init__(self, results: SweepResults, plugins: Sequence[str], listener: Listener) -> None:
        """Begin without processes; Ray must be open."""
        self._results, self._listener = results, listener
        self._plan, self._config = results.plan, results.plan.config
        self._folder = results.folder.resolve()
        self._ends_at_s = results.started_s + _left_s(results)
        self._arguments = (str(self._folder), list(plugins), self._ends_at_s)
        self.study = TrialStudy(results)
        self._queue = deque(results.in_state("waiting"))
        self._idle: list[Any] = []  # actors of Ray
        self._busy: dict[Any, tuple[Any, TrialRecord]] = {}  # actor and trial, by the reference to the result
        self._target: int | None = None  # evaluation to which a population is trained
        self.reason = ""

    def run(self) -> SweepResults:
        """Run the sweep to its end."""
        import ray

        self._ray, results = ray, self._results
        resources, self._most = _resources(self._plan)
        self._worker = ray.remote(max_restarts=0, **resources)(TrialWorker)
        (self._folder / STOP_FILE).unlink(missing_ok=True)
        results.is_running = True
        try:
            with first_signal(self._take_signal):
                if self._config.is_population:
                    self._train_population()
                else:
                    self._train_all()
        finally:
            for actor in [*self._idle, *(actor for actor, _ in self._busy.values())]:
                kill(actor)
            for record in results.in_state("running"):
                record.state = "waiting"
            (self._folder / STOP_FILE).unlink(missing_ok=True)
            results.finish(self.reason)
        return results

    def stop(self, reason: str) -> None:
        """Ask all runs to save and stop, and the sweep to end then."""
        self.reason = self.reason or reason
        write_text_atomic(self._folder / STOP_FILE, self.reason + "\n")

    def is_over(self) -> bool:
        """Return whether no trial shall begin: the sweep was asked to stop, or the time is up."""
        if not self.reason and time.time() >= self._ends_at_s:
            self.reason = "sweep.max_hours is used up"
        return bool(self.reason)

    def _take_signal(self, number: int, reason: str) -> None:
        self._results.signal_number = number
        self.stop(reason)

    def _train_population(self) -> None:
        """Train all trials to the next exchange, and so on, until none is left."""
        while len(self._results.trials) < self._config.trials:
            self._queue.append(self._propose())
        while self._queue:
            self._target = self._config.next_decision(min(record.evaluations for record in self._queue))
            self._train_all()
            paused = self._results.in_state("running")
            if self.reason or not paused:
                return
            self._exchange(paused)
            self._queue.extend(paused)

    def _train_all(self) -> None:
        """Train the trials in the queue, and then new ones, as many at a time as there is room for."""
        while True:
            while len(self._busy) < self._most and not self.is_over():
                if self._queue:
                    self._train(self._queue.popleft())
                elif len(self._results.trials) < self._config.trials:
                    self._train(self._propose())
                else:
                    break
            if not self._busy:
                return
            ready, _ = self._ray.wait([*self._busy], num_returns=1, timeout=_TICK_S)
            for reference in ready:
                self._take(reference)

    def _propose(self) -> TrialRecord:
        record = self._results.add(self.study.draw())
        self.study.add(record)
        return record

    def _train(self, record: TrialRecord) -> None:
        """Train a trial to its next decision."""
        decision = self._target if self._config.is_population else self._config.next_decision(record.evaluations)
        if record.state != "running":
            record.state, record.reason = "running", ""
            self._tell(record)  # `results.json` has every trial before its folder is there
        actor = self._idle.pop() if self._idle else self._worker.remote(*self._arguments)
        self._busy[actor.advance.remote(record.name, record.values, decision)] = actor, record

    def _take(self, reference: Any) -> None:  # noqa: ANN401 - Ray's
        """Take what a worker says of a trial, and decide how it goes on."""
        actor, record = self._busy.pop(reference)
        try:
            progress: Progress = self._ray.get(reference)
        except Exception as error:  # of Ray or of the trial
            kill(actor)
            self.fail(record, describe_loss(error), is_lost=not isinstance(getattr(error, "cause", None), WorkerError))
            return
        self._idle.append(actor)
        known = record.evaluations
        record.take(progress.points, progress.wall_s)
        record.reason = progress.reason
        is_behind = self.study.is_behind(record, known)
        if progress.is_interrupted:
            record.state, self.reason = "waiting", self.reason or progress.reason
        elif progress.is_finished:
            record.state = "finished"
        elif progress.reason:  # a limit or a guard of the run
            record.state = "stopped"
        elif is_behind:
            record.state, record.reason = "stopped", f"{ASHA} stopped it at evaluation {record.evaluations}"
        elif not self._config.is_population:
            self._queue.appendleft(record)
        if record.state in ("finished", "stopped"):
            self.study.end(record)
        self._tell(record)

    def fail(self, record: TrialRecord, reason: str, *, is_lost: bool) -> None:
        """Note that a trial failed; one whose process was lost continues after the others in the queue."""
        record.reason = reason
        if is_lost and record.replaced < _MOST_LOSSES:
            record.state = "waiting"
            self._queue.append(record)
        else:
            record.state = "failed"
            self.study.end(record)
        record.replaced += is_lost
        self._tell(record)
        ended = self._results.in_state("finished", "stopped")
        if not ended and len(self._results.in_state("failed")) >= _FIRST_FAILURES:
            self.stop(f"the first {_FIRST_FAILURES} trials failed, the last one by: {reason}")

    def _tell(self, record: TrialRecord) -> None:
        self._results.save()
        self._listener(self._results, record)

    def _exchange(self, records: Sequence[TrialRecord]) -> None:
        """Fork the worst of a population from the best, with values near theirs."""
        settings, sign = self._config.pbt, self._config.sign
        ranked = sorted(records, key=lambda each: -math.inf if each.value is None else sign * each.value.estimate)
        count = min(math.ceil(settings.quantile * len(ranked)), len(ranked) // 2)
        random = np.random.default_rng([self._config.seed, self._target or 0])
        for record in ranked[:count]:
            source = ranked[len(ranked) - 1 - int(random.integers(count))]
            runs, theirs = (TrialRuns(self._plan, self._folder, each.name, each.values) for each in (record, source))
            runs.fork(theirs, self._explore(source.values, random))
            record.values, record.forks = runs.values, runs.forks
            self._tell(record)

    def _explore(self, values: Mapping[str, Any], random: np.random.Generator) -> dict[str, Any]:
        """Return values near others; some are drawn anew."""
        drawn, codes = self.study.draw(), self._plan.encode(values) or {}
        moved = {
            each.name: each.space.move(codes[each.name], up=bool(random.integers(2))) for each in self._plan.dimensions
        }
        found = self._plan.decode(moved)
        chance = self._config.pbt.resample_probability
        return {name: drawn[name] if random.random() < chance else value for name, value in found.items()}


def _resources(plan: SweepPlan) -> tuple[dict[str, float], int]:
    """Return what a trial occupies, and for how many at a time there is room.

    Raises:
        ConfigError: No machine has that much: Ray would wait for one for ever.
    """
    import ray

    config = plan.config
    asked = {"CPU": config.cpus_per_trial, "GPU": gpus_of(config.gpus_per_trial, plan.base.world.device)}
    machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    room = sum(min(int(each.get(kind, 0.0) / amount) for kind, amount in asked.items() if amount) for each in machines)
    if not room:
        most = ", ".join(f"{max(each.get(kind, 0.0) for each in machines):g} {kind}s" for kind in asked)
        raise ConfigError(
            f"sweep.cpus_per_trial is {asked['CPU']:g} and sweep.gpus_per_trial {asked['GPU']:g}, but no machine has "
            f"room for that; the most that one has: {most}"
        )
    return {"num_cpus": asked["CPU"], "num_gpus": asked["GPU"]}, min(room, config.max_concurrent or room)
