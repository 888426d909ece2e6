"""Leagues over machines: start one in a folder, continue it, and change how many learners and evaluators it has."""

from collections.abc import Sequence
from pathlib import Path

from ludus.scale.cluster import ray_session, require_ray
from ludus.scale.league_folder import LEARNERS_FOLDER, PAYOFFS_FILE, SNAPSHOTS_FOLDER, STATE_FILE
from ludus.scale.league_head import LeagueHead, LeagueResult, Listener
from ludus.scale.population import LEAGUE_FILE, LeaguePlan, read_league
from ludus.scale.runs import check_target
from ludus.scale.stored import check_run_files, lock_folder, write_stored

_FILES = (LEAGUE_FILE, STATE_FILE, PAYOFFS_FILE)
_FOLDERS = (LEARNERS_FOLDER, SNAPSHOTS_FOLDER)
_ROOM = 4  # times as many processes as at first find room on a machine of our own, for `ludus league scale`


def start_league(
    plan: LeaguePlan,
    folder: Path,
    *,
    address: str | None = None,
    plugins: Sequence[str] = (),
    listener: Listener = lambda _level, _text: None,
) -> LeagueResult:
    """Begin a league in a folder and run it to its end.

    Args:
        plan: The league.
        folder: Where it is written to; on a cluster a folder that the machines of learners share.
        address: Address of a Ray cluster; None starts one on this machine, bound to loopback.
        plugins: Files and modules of the user's own that every process loads.
        listener: Notified of what happens.

    Raises:
        ConfigError: The folder holds a league already, or the cluster cannot be reached.
        MissingDependencyError: Ray is not installed.
        StoreError: The folder cannot be written.
    """
    advice = f"continue it with: ludus league resume {folder}"
    names = (LEAGUE_FILE, STATE_FILE, PAYOFFS_FILE, LEARNERS_FOLDER)
    check_target(folder, names, advice)
    require_ray("ludus league", libraries=("ray",))
    with lock_folder(folder, _FILES, _FOLDERS):
        check_target(folder, names, advice)  # another process may have begun, and ended, in the meantime
        write_stored(folder / LEAGUE_FILE, plan)
        return _run(plan, folder, address, plugins, listener)


def resume_league(
    folder: Path,
    *,
    address: str | None = None,
    plugins: Sequence[str] = (),
    listener: Listener = lambda _level, _text: None,
) -> LeagueResult:
    """Continue a league that was stopped or killed, see `start_league`; nothing that was reported is lost.

    Raises:
        FormatError: A file of the folder is damaged.
        RunLockedError: Another process runs this league.
        UnsupportedError: Ray cannot start.
    """
    plan = read_league(folder)
    require_ray("ludus league", libraries=("ray",))
    with lock_folder(folder, _FILES, _FOLDERS):
        return _run(plan, folder, address, plugins, listener)


def _run(
    plan: LeaguePlan, folder: Path, address: str | None, plugins: Sequence[str], listener: Listener
) -> LeagueResult:
    for learner in (folder / LEARNERS_FOLDER).glob("*"):
        if learner.is_symlink() or learner.is_dir():
            check_run_files(learner)
    with ray_session(address, min_cpus=_ROOM * _needed_cpus(plan)):
        return LeagueHead(plan, folder.resolve(), plugins, listener).run()


def scale_league(folder: Path, overrides: Sequence[str]) -> LeaguePlan:
    """Change how many learners and evaluators a league has, also while it runs, and return its plan.

    Args:
        folder: The league folder.
        overrides: Such as `evaluators=4` and `main.learners=2`.

    Raises:
        ConfigFileError: A change has a fault.
    """
    plan = read_league(folder).changed(overrides)
    write_stored(folder / LEAGUE_FILE, plan)
    return plan


def _needed_cpus(plan: LeaguePlan) -> float:
    config = plan.config
    learners = sum(1 for _ in config.learner_names())
    return learners * config.cpus_per_learner + config.evaluators * config.cpus_per_evaluator
