"""`ludus sweep`: hyperparameter search."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ludus.cli.console import print_json, print_ok, print_warning, show_table
from ludus.cli.options import AsJson, Names, Plugin, load_plugins, plugin_paths
from ludus.core.errors import ConfigError
from ludus.core.files import RUNS_FOLDER

if TYPE_CHECKING:
    from ludus.core.intervals import Interval
    from ludus.scale.config import SweepPlan
    from ludus.scale.results import SweepResults, TrialRecord

SWEEPS_FOLDER = "sweeps"  # beside runs, so that `runs/latest` stays a run
_MOST_ROWS = 20  # of the table; all trials are on the page and in results.json
_MOST_LETTERS = 200  # of a value, which may come from a file
_EXIT_STOPPED = 3  # as of a run that ends before its budget


def sweep(
    config: Annotated[
        str | None, Argument(help="Configuration of a run with search spaces in it; it names its world.")
    ] = None,
    overrides: Annotated[Names, Argument(help="Settings as key=value, such as sweep.trials=32.")] = None,
    out: Annotated[Path | None, Option(help="Sweep folder; a new one under runs/sweeps/ by default.")] = None,
    resume: Annotated[Path | None, Option(metavar="FOLDER", help="Continue the sweep in this folder.")] = None,
    retry_failed: Annotated[bool, Option("--retry-failed", help="With --resume: train failed trials on.")] = False,
    address: Annotated[
        str | None,
        Option(help="Address of a Ray cluster whose machines share the sweep folder; this machine alone by default."),
    ] = None,
    plugin: Plugin = None,
    json: AsJson = False,
) -> None:
    """Search for the best settings: trials of several seeds, with early stopping or population-based training."""
    from ludus.scale.cluster import require_ray

    require_ray()  # before torch is imported
    options = load_plugins(plugin)
    plugins = plugin_paths(plugin)
    words = [word for word in (config, *(overrides or ())) if word is not None]
    if resume is not None:
        if out is not None:
            raise ConfigError(f"--out {out}: a resumed sweep stays in its folder; leave --out out")
        done = _resume(resume, words, json, address=address, plugins=plugins, retry_failed=retry_failed)
    else:
        if retry_failed:
            raise ConfigError("--retry-failed is for a sweep that is continued: add --resume FOLDER")
        done = _start(words, out, json, address=address, plugins=plugins)
    from ludus.reports.sweep_page import write_sweep_page
    from ludus.scale.results import RESULTS_FILE

    page = write_sweep_page(done.folder / RESULTS_FILE)
    if json:
        print_json(done.describe())
    else:
        _print_results(done, page, options)
    if done.signal_number:
        sys.exit(128 + done.signal_number)
    if done.reason or done.best is None:
        sys.exit(_EXIT_STOPPED)


def _start(words: list[str], out: Path | None, json: bool, **options: Any) -> "SweepResults":  # noqa: ANN401
    """Begin the sweep of a configuration, the first word."""
    if not words or ("=" in words[0] and not Path(words[0]).exists()):
        raise ConfigError("name a configuration, such as: ludus sweep my_sweep.yaml; or a folder with --resume")
    from ludus.config import read_user_defaults
    from ludus.scale.config import load_sweep
    from ludus.scale.sweep import start_sweep
    from ludus.training.presets import run_title
    from ludus.training.run_folder import new_run_folder

    file = Path(words[0])
    plan = load_sweep(file, words[1:])
    runs = read_user_defaults().runs_folder or RUNS_FOLDER
    folder = out or new_run_folder(runs / SWEEPS_FOLDER, run_title(plan.base.world.name, file=file))
    if not json:
        _print_plan(plan, folder)
    return start_sweep(plan, folder, listener=_listener(json), **options)


def _resume(folder: Path, words: list[str], json: bool, **options: Any) -> "SweepResults":  # noqa: ANN401
    """Continue the sweep in a folder, with changes."""
    from ludus.scale.config import read_sweep
    from ludus.scale.sweep import resume_sweep

    plan = read_sweep(folder).changed(words)
    if not json:
        _print_plan(plan, folder)
    return resume_sweep(plan, folder, listener=_listener(json), **options)


def _listener(json: bool) -> Any:  # noqa: ANN401 - of a module that is not imported yet
    """Return a listener that prints trials that have ended and rewrites the page."""
    from ludus.reports.sweep_page import write_sweep_page
    from ludus.scale.results import RESULTS_FILE

    def listen(results: "SweepResults", trial: "TrialRecord") -> None:
        if trial.state == "running":
            return
        write_sweep_page(results.folder / RESULTS_FILE)
        if not json:
            _print_trial(results, trial)

    return listen


def _print_plan(plan: "SweepPlan", folder: Path) -> None:
    config = plan.config
    how = config.scheduler if config.is_population else f"{config.search} search, scheduler {config.scheduler}"
    print_ok(f"sweep of {plan.base.world.name} in {folder}: {config.trials} trials of {config.seeds} seeds, {how}")
    print_ok(f"{config.direction} {config.objective} over {', '.join(each.name for each in plan.dimensions)}")


def _print_trial(results: "SweepResults", trial: "TrialRecord") -> None:
    ended = len(results.in_state("finished", "stopped", "failed"))
    count = f"[{ended}/{results.plan.config.trials}] trial {trial.number} {trial.state}"
    values = ", ".join(f"{name}={_shown(value)}" for name, value in trial.values.items())
    last = f": {results.plan.config.objective} {_interval(trial.value)}" if trial.value is not None else ""
    reason = f" ({trial.reason})" if trial.reason else ""
    (print_warning if trial.state == "failed" else print_ok)(f"{count}{last}{reason}; {values}")


def _print_results(results: "SweepResults", page: Path, options: str) -> None:
    """Print the table, the importance of the keys, and what to do next."""
    config, names = results.plan.config, [dimension.name for dimension in results.plan.dimensions]
    ranking = results.ranking()
    rows = [
        (str(trial.number), trial.state, _interval(trial.value), str(trial.evaluations), f"{trial.env_steps:,}",
         f"{trial.wall_s:.0f}", str(len(trial.forks)), *(_shown(trial.values[name]) for name in names))
        for trial in ranking[:_MOST_ROWS]
    ]  # fmt: skip
    header = ("trial", "state", config.objective, "evaluations", "env steps", "seconds", "forks", *names)
    show_table(header, rows, f"{config.objective} with 95 % intervals over {config.seeds} seeds, the best first")
    if len(ranking) > _MOST_ROWS:
        print_ok(f"and {len(ranking) - _MOST_ROWS} trials more; results.json has all of them")
    found = results.importance
    if isinstance(found, dict) and isinstance(found["keys"], dict):
        shares = ", ".join(f"{name} {share:.0%}" for name, share in found["keys"].items() if isinstance(share, float))
        print_ok(f"importance ({found['evaluator']}): {shares}")
    failed = results.in_state("failed")
    if failed:
        print_warning(
            f"{len(failed)} trials failed; train them on with: ludus sweep --resume {results.folder} --retry-failed"
        )
    print_ok(f"page: {page}")
    if results.reason:
        print_warning(f"ended before all trials had: {results.reason}")
        print_ok(f"resume it with: ludus sweep --resume {results.folder}{options}")
    best = results.best
    if best is not None:
        file = results.folder / "best.yaml"
        print_ok(f"best: trial {best.number}, {config.objective} {_interval(best.value)}")
        print_ok(f"train with its settings: ludus train {results.plan.base.world.name} --config {file}{options}")


def _interval(value: "Interval | None") -> str:
    if value is None:
        return "-"
    is_known = value.high - value.low < float("inf")
    return f"{value.estimate:.4g}" + (f" ({value.low:.4g} to {value.high:.4g})" if is_known else "")


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)[:_MOST_LETTERS]
