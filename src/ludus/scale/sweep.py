"""Run a sweep on Ray Tune: searchers and schedulers are Tune's, runs, forks and results are ours.

Tune keeps its own state as pickles in a folder that is deleted before and after; it is never read. A sweep resumes from
`results.json` and the run folders: finished trials are told to the searcher and the scheduler, the others continue.
"""

import logging
import math
import os
import random
import re
import shutil
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ludus.core.errors import ConfigError
from ludus.core.files import remove_folder, write_text_atomic
from ludus.core.text import plain_text
from ludus.scale.cluster import first_signal, import_ray, ray_session, require_ray
from ludus.scale.config import SWEEP_FILE, SweepPlan
from ludus.scale.results import RESULTS_FILE, WINNER_FILE, SweepResults, TrialRecord, read_results
from ludus.scale.runs import ERROR_FILE, FORKS_FOLDER, STOP_FILE, TRIALS_FOLDER, check_target, read_error
from ludus.scale.search import make_scheduler, make_searcher, uses_tpe
from ludus.scale.stored import check_kind, check_run_files, lock_folder, write_stored

logger = logging.getLogger(__name__)

TUNE_FOLDER = ".tune"
_SECONDS_PER_HOUR = 3600.0
_FILES = (SWEEP_FILE, RESULTS_FILE, WINNER_FILE, STOP_FILE)
_FOLDERS = (TRIALS_FOLDER, FORKS_FOLDER, TUNE_FOLDER)
_TRIAL = re.compile(r"trial-[0-9]{4,9}")
_MOST_NAMED = 5
_MOST_LOSSES = 3  # of one trial's process, after which it has failed
_FIRST_FAILURES = 3  # so many failed trials before any other one are a fault of the sweep
_SAVE_EVERY_S = 1.0
_LONGEST_REASON = 2_000

Listener = Callable[[SweepResults, TrialRecord], None]
"""Called when a trial changes its state or has a new evaluation."""


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
        return _run(SweepResults(plan, folder), plugins, listener)


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
        if _left(results) <= 0 or _left_s(results) <= 0.0:  # no need for Ray
            results.finish("" if _left(results) <= 0 else "sweep.max_hours is used up")
            return results
        _check_waiting(results)
        require_ray()
        with ray_session(address):
            _remove_orphans(results)
            write_stored(folder / SWEEP_FILE, plan)
            return _run(results, plugins, listener)


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


def _remove_orphans(results: SweepResults) -> None:
    """Remove trials that began after one that had not begun: they are in no order. Other things are left alone."""
    trials = results.folder / TRIALS_FOLDER
    for name in os.listdir(trials) if trials.is_dir() else ():  # noqa: PTH208 - names alone
        number = int(name.removeprefix("trial-")) if _TRIAL.fullmatch(name) else 0
        if number > len(results.trials) and name == TrialRecord(number=number, values={}).name:
            check_kind(trials / name, stat.S_IFDIR)
            remove_folder(trials / name)


def _left(results: SweepResults) -> int:
    """Return how many trials have yet to end."""
    return results.plan.config.trials - len(results.in_state("finished", "stopped", "failed"))


def _left_s(results: SweepResults) -> float:
    """Return the wall time that was left when this session began."""
    limit_h = results.plan.config.max_hours
    return math.inf if limit_h is None else limit_h * _SECONDS_PER_HOUR - results.earlier_s


def _run(results: SweepResults, plugins: Sequence[str], listener: Listener) -> SweepResults:
    ends_at_s, replaced = results.started_s + _left_s(results), -1
    while replaced < (now := sum(record.replaced for record in results.trials.values())):
        replaced = now  # once more for trials whose processes were lost, unless the sweep was stopped
        if _left(results) > 0 and not results.reason:
            _run_once(results, plugins, listener, ends_at_s)
    return results


def _run_once(results: SweepResults, plugins: Sequence[str], listener: Listener, ends_at_s: float) -> None:
    """Let Tune work until every trial has ended or lost its process."""
    tune = import_ray("ray.tune")
    from ludus.scale.trainable import SweepTrial

    plan, config, folder = results.plan, results.plan.config, results.folder.resolve()
    _clean(folder)
    trainable = tune.with_resources(
        tune.with_parameters(SweepTrial, sweep=str(folder), plugins=list(plugins), ends_at_s=ends_at_s),
        _resources(plan),
    )
    random.seed(config.seed + len(results.trials))  # population-based training draws from here
    searcher, space = make_searcher(results)
    watcher = _Watcher(results, listener, ends_at_s)
    tuner = tune.Tuner(
        trainable,
        param_space=space,
        tune_config=tune.TuneConfig(
            search_alg=searcher,
            scheduler=make_scheduler(results),
            num_samples=_left(results),
            max_concurrent_trials=config.max_concurrent if uses_tpe(config) else None,
            reuse_actors=True,
            trial_name_creator=watcher.name_trial,
            trial_dirname_creator=watcher.name_trial,
        ),
        run_config=tune.RunConfig(
            name=TUNE_FOLDER,
            storage_path=str(folder),
            verbose=0,
            callbacks=[_make_callback(watcher)],
            stop=_make_stopper(watcher),
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
            failure_config=tune.FailureConfig(max_failures=0),
        ),
    )
    try:
        with first_signal(watcher.take_signal):
            tuner.fit()
    finally:
        watcher.close()
        _clean(folder)


def _resources(plan: SweepPlan) -> dict[str, float]:
    """Return what a trial occupies.

    Raises:
        ConfigError: No machine has that much: Ray would wait for one for ever.
    """
    import ray

    config, total = plan.config, ray.cluster_resources()
    gpus = config.gpus_per_trial
    if gpus is None:
        gpus = 1.0 if total.get("GPU", 0.0) >= 1.0 and plan.base.world.device != "cpu" else 0.0
    cpus = config.cpus_per_trial
    machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if config.is_population and config.max_concurrent is not None:  # all of a population are alive: Tune sets no limit
        share = total.get("CPU", 0.0) / config.max_concurrent
        cpus = max(cpus, min(share, max(machine.get("CPU", 0.0) for machine in machines)))
    for kind, asked in (("CPU", cpus), ("GPU", gpus)):
        most = max(machine.get(kind, 0.0) for machine in machines)
        if asked > most:
            raise ConfigError(
                f"sweep.{kind.lower()}s_per_trial is {asked:g}, but no machine has more than {most:g}; lower it"
            )
    return {"cpu": cpus, "gpu": gpus}


def _clean(folder: Path) -> None:
    """Remove what only a running sweep needs: a trial continues from its own runs, never from these."""
    (folder / STOP_FILE).unlink(missing_ok=True)
    for name in (TUNE_FOLDER, FORKS_FOLDER):
        shutil.rmtree(folder / name, ignore_errors=True)


_OPEN_WATCHERS: dict[int, "_Watcher"] = {}


def _find_watcher(key: int) -> "_Watcher":
    return _OPEN_WATCHERS[key]


class _Watcher:
    """Keeps the results while Tune works, and knows when the sweep shall end."""

    def __init__(self, results: SweepResults, listener: Listener, ends_at_s: float) -> None:
        self.results, self._listener, self._ends_at_s = results, listener, ends_at_s
        self._numbers: dict[str, int] = {}  # by Tune's id of a trial
        self._open = {record.number for record in results.in_state("waiting")}
        self._training: set[str] = set()  # Tune's ids of trials that are in the middle of a run
        self._interrupted: set[str] = set()
        self._saved_s = 0.0
        self.reason = ""
        results.is_running = True
        _OPEN_WATCHERS[id(self)] = self

    def __reduce__(self) -> tuple[Callable[[int], "_Watcher"], tuple[int]]:
        """Stay the same object in the copies that Tune makes of everything it is given, by way of pickles too."""
        return _find_watcher, (id(self),)

    def name_trial(self, trial: Any) -> str:  # noqa: ANN401 - Tune's
        """Return the name of a trial: one that waits with these values, or else a new one."""
        if trial.trial_id not in self._numbers:
            values = self.results.plan.decode(trial.config)
            number = next((each for each in sorted(self._open) if self.results.trials[each].values == values), None)
            record = self.results.add(values) if number is None else self.results.trials[number]
            self._open.discard(record.number)
            self._numbers[trial.trial_id] = record.number
        return self._record(trial).name

    def _record(self, trial: Any) -> TrialRecord:  # noqa: ANN401
        return self.results.trials[self._numbers[trial.trial_id]]

    def begin(self, trial: Any) -> None:  # noqa: ANN401
        """Note that a trial is trained."""
        record = self._record(trial)
        record.state, record.reason = "running", ""
        (self.results.folder / TRIALS_FOLDER / record.name / ERROR_FILE).unlink(missing_ok=True)
        self._tell(record)

    def look(self, trials: Sequence[Any]) -> None:
        """Note which trials are trained at present; those of a population are paused in between."""
        self._training = {trial.trial_id for trial in trials if trial.status == trial.RUNNING} - self._interrupted

    def take(self, trial: Any, result: Mapping[str, Any]) -> None:  # noqa: ANN401
        """Note a report."""
        record = self._record(trial)
        record.values = {each.name: result["values"][each.name] for each in self.results.plan.dimensions}
        record.forks = list(result["forks"])
        record.take(result["points"], result["wall_s"])
        record.reason = result["reason"]
        if result["is_interrupted"]:
            self._interrupted.add(trial.trial_id)
            self.reason = self.reason or result["reason"]
        self._tell(record, force=False)

    def end(self, trial: Any) -> None:  # noqa: ANN401
        """Note that a trial is over: finished, stopped by the scheduler or a limit, or interrupted."""
        record, last = self._record(trial), trial.last_result or {}
        if last.get("is_interrupted"):
            record.state = "waiting"
        elif last.get("is_finished"):
            record.state, record.reason = "finished", ""
        elif last.get("reason"):  # a limit or a guard of the run
            record.state = "stopped"
        elif self.reason:  # the sweep ended before the trial could say anything
            record.state = "waiting"
        else:
            scheduler = self.results.plan.config.scheduler
            record.state, record.reason = "stopped", f"{scheduler} stopped it at evaluation {record.evaluations}"
        self._tell(record)

    def fail(self, trial: Any) -> None:  # noqa: ANN401
        """Note that a trial failed, with the error; one whose process was lost continues when the others have ended."""
        record = self._record(trial)
        reason = read_error(self.results.folder, record.name)
        is_lost, record.reason = not reason, plain_text(reason)[:_LONGEST_REASON] or "its process was lost"
        record.state = "waiting" if is_lost and record.replaced < _MOST_LOSSES else "failed"
        record.replaced += is_lost
        self._tell(record)
        if len(self.results.in_state("failed")) >= _FIRST_FAILURES and not self.results.in_state("finished", "stopped"):
            self.stop(f"the first {_FIRST_FAILURES} trials failed, the last one by: {record.reason}")

    def take_signal(self, number: int, reason: str) -> None:
        """End the sweep because of a signal."""
        self.results.signal_number = number
        self.stop(reason)

    def stop(self, reason: str) -> None:
        """Ask all runs to save and stop, and the sweep to end then."""
        self.reason = self.reason or reason
        write_text_atomic(self.results.folder / STOP_FILE, self.reason + "\n")

    def is_over(self) -> bool:
        """Return whether Tune shall end: it was asked to, or the time is up, and no run is in the middle."""
        if not self.reason and time.time() >= self._ends_at_s:
            self.reason = "sweep.max_hours is used up"
        return bool(self.reason) and not self._training

    def close(self) -> None:
        """Write the final results."""
        for record in self.results.in_state("running"):
            record.state = "waiting"
        _OPEN_WATCHERS.pop(id(self), None)
        self.results.finish(self.reason)

    def _tell(self, record: TrialRecord, *, force: bool = True) -> None:
        if force or time.monotonic() - self._saved_s >= _SAVE_EVERY_S:
            self.results.save()
            self._saved_s = time.monotonic()
        self._listener(self.results, record)


def _make_callback(watcher: _Watcher) -> Any:  # noqa: ANN401 - Ray is optional
    """Return the callback of Tune that tells the watcher; Tune passes everything by name."""
    from ray.tune import Callback

    class ResultsCallback(Callback):  # type: ignore[misc] # Ray is not followed
        def on_step_begin(self, **told: Any) -> None:  # noqa: ANN401
            watcher.look(told["trials"])

        def on_trial_start(self, **told: object) -> None:
            watcher.begin(told["trial"])

        def on_trial_result(self, **told: Any) -> None:  # noqa: ANN401
            watcher.take(told["trial"], told["result"])

        def on_trial_complete(self, **told: object) -> None:
            watcher.end(told["trial"])

        def on_trial_error(self, **told: object) -> None:
            watcher.fail(told["trial"])

    return ResultsCallback()


def _make_stopper(watcher: _Watcher) -> Any:  # noqa: ANN401 - Ray is optional
    from ray.tune import Stopper

    class SweepStopper(Stopper):  # type: ignore[misc] # Ray is not followed
        def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
            return bool(result["is_interrupted"])

        def stop_all(self) -> bool:
            return watcher.is_over()

    return SweepStopper()
