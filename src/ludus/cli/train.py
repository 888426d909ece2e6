"""`ludus train`, `ludus resume` and `ludus verify`."""

import logging
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from ludus.cli.console import StatusLine, print_ok, print_table, print_warning
from ludus.cli.options import Callback, Loaded, Names, Plugin, RunFolder, latest_run, load_for_training, load_plugins
from ludus.cli.watch import start_page
from ludus.core.errors import ConfigError, LudusError
from ludus.core.files import RUNS_FOLDER

if TYPE_CHECKING:
    from ludus.training.config import TrainConfig

Overrides = Annotated[Names, Argument(help="Settings as key=value, such as ppo.n_epochs=4.")]

Watch = Annotated[bool, Option("--watch", help="Show the run in a web page while it trains; see `ludus watch`.")]
Verbose = Annotated[bool, Option("--verbose", "-v", help="Print every check, and all of the run's settings.")]

_FILE_ENDINGS = (".yaml", ".yml")


def train(
    world: Annotated[str, Argument(help="World to train in, such as brawl or gym:CartPole-v1.")],
    overrides: Overrides = None,
    preset: Annotated[str | None, Option(help="Preset of the world; see `ludus config list`.")] = None,
    config: Annotated[Path | None, Option(help="Your own configuration file; it may extend a preset.")] = None,
    run_dir: Annotated[Path | None, Option(help="Run folder; a new one under runs/ by default.")] = None,
    seed: Annotated[int | None, Option(min=0, help="Seed; short for seed=N.")] = None,
    seeds: Annotated[
        int, Option(min=1, help="Train so many runs with consecutive seeds in turns, each in a folder of its own.")
    ] = 1,
    device: Annotated[str | None, Option(help="Device; short for world.device=D.")] = None,
    game: Annotated[
        str | None,
        Option(help="Game of a world that has several, such as micropolis or your own profile's file in city."),
    ] = None,
    trial: Annotated[
        bool, Option("--trial", help="Train its beginning in minutes: do rewards rise, which terms never count?")
    ] = False,
    plugin: Plugin = None,
    callback: Callback = None,
    watch: Watch = False,
    verbose: Verbose = False,
) -> None:
    """Train an agent. An unfinished run with the same settings in the run folder is resumed."""
    loaded = load_for_training(plugin, callback, world)
    from ludus.config import read_user_defaults
    from ludus.training.presets import load_run_config, run_title
    from ludus.training.run_folder import new_run_folder

    words = list(overrides or [])
    words += [f"seed={seed}"] if seed is not None else []
    words += [f"world.device={device}"] if device is not None else []
    if game is not None:
        words.append(f"world.settings.game={game}")
        named = _preset_for(world, game)
        preset = named if preset is None and config is None else preset
    settings = load_run_config(world, preset, config, words)
    defaults = read_user_defaults()
    title = run_title(world, preset, config)
    title = f"{title}-trial" if trial else title
    make_folder = partial(new_run_folder, defaults.runs_folder or RUNS_FOLDER, title)
    user = defaults.name or ""
    if trial:
        settings = _trial_of(settings, seeds)
    if seeds > 1:
        if watch:
            raise ConfigError("--seeds and --watch exclude each other; train, and open `ludus watch` beside it")
        _run_seeds(settings, seeds, run_dir, make_folder, title=title, user=user, loaded=loaded, verbose=verbose)
        return
    _run(
        settings, run_dir, make_folder, title=title, user=user, loaded=loaded, verbose=verbose, watch=watch, trial=trial
    )


def _trial_of(config: "TrainConfig", seeds: int) -> "TrainConfig":
    """Return the settings of a trial, and say what it does less of than the run."""
    if seeds > 1:
        raise ConfigError("--trial and --seeds exclude each other: train one trial, and then the seeds without it")
    from ludus.training.trial import changes_of, trial_of

    line = StatusLine()
    line.show("measuring the speed of the run")
    try:
        shorter = trial_of(config)
    finally:
        line.close()
    print_ok(f"trial: {changes_of(config, shorter)}, with the same hyperparameters")
    return shorter


def _preset_for(world: str, game: str) -> str | None:
    """Return the preset of a world that is named after a game, if there is one.

    Raises:
        ConfigError: The world has no games to choose among.
    """
    from ludus.config import PresetDirectory
    from ludus.envs.registry import settings_model
    from ludus.envs.world import find_world

    settings = settings_model(world)
    if settings is None or "game" not in settings.model_fields:
        raise ConfigError(f"--game {game}: {world} has no games to choose among; leave --game out")
    return game if game in PresetDirectory(find_world(world).package).names() else None


def resume(
    run: RunFolder = None,
    overrides: Overrides = None,
    fork: Annotated[Path | None, Option(help="Branch off a new run in this folder instead.")] = None,
    plugin: Plugin = None,
    callback: Callback = None,
    watch: Watch = False,
    verbose: Verbose = False,
) -> None:
    """Resume a run that was cut off; extend it with total_env_steps=N; or branch off a new run with --fork."""
    loaded = load_for_training(plugin, callback)
    from ludus.config import read_user_defaults
    from ludus.training.destinations import withhold
    from ludus.training.distributed import find_process
    from ludus.training.run_folder import changed_config, fork_run, read_run_config
    from ludus.training.session import describe_extension, extend, read_progress

    words = list(overrides or [])
    if run is not None and "=" in run and not Path(run).exists():  # `ludus resume key=value`
        words.insert(0, run)
        run = None
    folder = Path(run or latest_run())
    began = read_run_config(folder)
    settings = changed_config(withhold(began), words)
    user = read_user_defaults().name or ""
    if fork is None:
        env_steps = read_progress(began, folder).env_steps
        settings = extend(began, settings, env_steps)
        changes = describe_extension(settings, env_steps) if settings.extended_from != began.extended_from else ()
        title = folder.resolve().name
        _run(settings, folder, title=title, user=user, loaded=loaded, verbose=verbose, watch=watch, notes=changes)
        return
    if find_process().rank == 0:
        parent = fork_run(folder, fork, settings, user=user)
        print_ok(f"{fork} branches off {folder} at env step {parent.env_steps:,}")
        for change in parent.changes:
            print_ok(f"changed {change}")
    _run(settings, fork, title=fork.resolve().name, user=user, loaded=loaded, verbose=verbose, watch=watch)


def _run(
    config: "TrainConfig",
    folder: Path | None,
    make_folder: Callable[[], Path] = Path,
    *,
    title: str,
    user: str,
    loaded: Loaded,
    verbose: bool,
    watch: bool = False,
    notes: Iterable[str] = (),
    trial: bool = False,
) -> None:
    """Verify the settings, and train if they are right: only then a folder is made, unless one is given.

    The commands that are suggested for this run get the options of what was loaded, such as ` --plugin mine.py`;
    `notes` are printed if the settings are right.
    """
    from ludus.config import read_user_defaults
    from ludus.training.destinations import remember
    from ludus.training.loggers.run_log import held_warnings
    from ludus.training.preflight import verify
    from ludus.training.resolve import resolve
    from ludus.training.session import ended_by_signals, read_progress, run_training
    from ludus.training.summary import summarise

    logging.getLogger("ludus").setLevel(logging.INFO)
    run = resolve(config)
    is_first = run.is_writer  # of several processes the first one writes and speaks for all
    progress = read_progress(config, folder)
    if progress.is_finished:
        if is_first:
            print_ok(
                f"nothing to do: the run is finished at {progress.env_steps:,} env steps; the agent is in {folder}; "
                f"train it further with: ludus resume {folder}{loaded.all} total_env_steps=N"
            )
        return
    with ended_by_signals() as received:
        with held_warnings() as warnings:
            _check(verify(run, progress.env_steps, folder), verbose=verbose)
        for note in notes if is_first else ():
            print_ok(note)
        if is_first:
            remember(config.monitoring)
        folder = (folder or make_folder()) if is_first else Path()
        for line in summarise(run, folder, user, brief=not verbose):
            print_ok(line)
        if watch and is_first:
            start_page(folder, read_user_defaults().runs_folder or RUNS_FOLDER)
        outcome = run_training(
            run, folder, received, title=title, user=user, callbacks=loaded.callbacks, warnings=warnings
        )
    if is_first and outcome.stop_reason:
        print_warning(f"ended at env step {outcome.counters.env_steps:,}: {outcome.stop_reason}")
        print_ok(f"resume it with: ludus resume {folder}{loaded.all}")
    elif is_first:
        steps = f"{outcome.counters.env_steps:,} env steps"
        print_ok(f"{steps}; the agent is in {folder}; try: ludus eval {folder}{loaded.plugins}")
    if is_first and trial and not outcome.exit_code:
        _show_trial(folder)
    sys.exit(outcome.exit_code)


def _show_trial(folder: Path) -> None:
    """Print how rewards and win rates moved, which terms never counted, and what the doctor finds."""
    from ludus.cli.doctor import examine_run
    from ludus.training.trial import read_progress_of

    progress = read_progress_of(folder)
    print_table(progress.columns, progress.rows)
    if progress.never:
        print_warning(f"reward terms that never counted: {', '.join(progress.never)}")
    examine_run(folder)


def _run_seeds(
    config: "TrainConfig",
    count: int,
    folder: Path | None,
    make_folder: Callable[[], Path],
    *,
    title: str,
    user: str,
    loaded: Loaded,
    verbose: bool,
) -> None:
    """Verify the settings, train one run per seed in turns, and print what they reached."""
    from ludus.training.destinations import remember
    from ludus.training.distributed import find_process
    from ludus.training.loggers.run_log import held_warnings
    from ludus.training.preflight import verify
    from ludus.training.resolve import resolve
    from ludus.training.run_folder import changed_config
    from ludus.training.session import ended_by_signals, read_progress, training_turns
    from ludus.training.summary import summarise
    from ludus.training.together import train_together

    if find_process().count > 1:
        raise ConfigError("--seeds trains in one process, but this is one of several; leave torchrun or --seeds out")
    if loaded.callbacks:
        raise ConfigError("--seeds and --callback exclude each other: a callback belongs to one run; leave one out")
    logging.getLogger("ludus").setLevel(logging.INFO)
    numbers = range(config.seed, config.seed + count)
    # The first one alone shows its progress: all are about equally far.
    quiet = ["monitoring.console=off"]
    settings = {
        each: changed_config(config, [f"seed={each}", *(quiet if each > numbers[0] else [])]) for each in numbers
    }
    progress = {each: read_progress(settings[each], folder and folder / f"seed-{each}") for each in numbers}
    left = [each for each in numbers if not progress[each].is_finished]
    exit_code = 0
    if left:
        first, place = resolve(settings[left[0]]), folder and folder / f"seed-{left[0]}"
        with ended_by_signals() as received:
            with held_warnings() as warnings:
                _check(verify(first, progress[left[0]].env_steps, place), verbose=verbose)
            remember(config.monitoring)
            folder = folder or make_folder()
            for line in summarise(first, folder, user, brief=not verbose):
                print_ok(line)
            turns = [
                training_turns(
                    settings[each],
                    folder / f"seed-{each}",
                    received,
                    title=f"{title}-{each}",
                    user=user,
                    warnings=warnings,
                )
                for each in left
            ]
            outcomes = train_together(turns, first.device)
        exit_code = max(outcome.exit_code for outcome in outcomes)
        for each, outcome in zip(left, outcomes, strict=True):
            if outcome.stop_reason:
                print_warning(f"seed {each} ended at env step {outcome.counters.env_steps:,}: {outcome.stop_reason}")
    assert folder is not None  # noqa: S101 - for the type checker: only a folder that is given can have finished runs
    _print_seeds({each: folder / f"seed-{each}" for each in numbers}, folder / "report.html")
    if exit_code:
        print_ok("repeat the command with the same --run-dir to resume all that are not finished")
    sys.exit(exit_code)


def _print_seeds(folders: Mapping[int, Path], page: Path) -> None:
    """Print the last evaluation of each seed and the mean with Student's interval over seeds; write both as a page."""
    from ludus.core.intervals import mean_interval
    from ludus.core.tables import read_table
    from ludus.reports.page.document import read_groups, write_report
    from ludus.training.loggers.csv_logger import EVALUATION

    scores = {seed: read_table(folder / EVALUATION).last("score") for seed, folder in folders.items()}
    known = [score for score in scores.values() if math.isfinite(score)]
    print_table(
        ["seed", "score", "folder"],
        [
            [str(seed), f"{score:.3f}" if math.isfinite(score) else "-", str(folders[seed])]
            for seed, score in scores.items()
        ],
    )
    if len(known) > 1:
        mean = mean_interval(known)
        print_ok(
            f"score over {len(known)} seeds: {mean.estimate:.3f} (95 % interval {mean.low:.3f} to {mean.high:.3f})"
        )
    try:
        written = write_report(read_groups(list(folders.values())), page)
    except LudusError as error:  # the runs are there: a page can be written later
        print_warning(f"no page was written: {error}")
    else:
        print_ok(f"curves and results of all seeds: {written.file}")


def _check(checks: Iterator[str], *, verbose: bool) -> None:
    """Make all checks; print each, or only the estimate of the time that the run will take."""
    line = StatusLine()
    line.show("checking the run")
    try:
        for check in checks:
            name = check.partition(":")[0]
            line.show(f"checking the run: {name} is right")
            if verbose or name == "time":
                line.close()
                print_ok(check)
    finally:
        line.close()


def verify(
    world: Annotated[str, Argument(help="World, such as brawl; or a configuration file that names its world.")],
    overrides: Overrides = None,
    preset: Annotated[str | None, Option(help="Preset of the world; see `ludus config list`.")] = None,
    config: Annotated[Path | None, Option(help="Your own configuration file; it may extend a preset.")] = None,
    plugin: Plugin = None,
) -> None:
    """Run preflight checks of a configuration, in seconds: world, players, rollout, update, checkpoint, memory."""
    from ludus.config import read_user_defaults
    from ludus.envs.registry import check_name_from_file
    from ludus.training.preflight import verify as preflight_checks
    from ludus.training.presets import load_run_config, world_of_file
    from ludus.training.resolve import resolve
    from ludus.training.summary import summarise

    is_file = world.endswith(_FILE_ENDINGS)
    load_plugins(plugin, "" if is_file else world)
    if is_file:
        if config is not None:
            raise ConfigError(f"two configuration files are given, {world} and --config {config}; choose one")
        world, config = world_of_file(Path(world)), Path(world)
        check_name_from_file(world, f"{config}: world.name")
    settings = load_run_config(world, preset, config, overrides or ())
    run = resolve(settings)
    for line in preflight_checks(run):
        print_ok(line)
    for line in summarise(run, None, read_user_defaults().name or ""):
        print_ok(line)
