"""What people should know of a run before they look at its curves: how it ended, what went wrong, what is missing."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ludus.reports import run_data as files
from ludus.reports.doctor import examine
from ludus.reports.page.runs import Run

ALARM, WARNING, INFO = "alarm", "warning", "info"
_MOST_ROLLBACKS = 5
# Many worlds and policies have nothing to write there, and older runs have no resources.
_NOT_ALWAYS = (files.STRATEGY, files.OPPONENTS, files.BEHAVIOUR, files.RESOURCES)
_MOST_EXAMINED_BYTES = 256 << 20  # of episodes; more would take the doctor long
_KNOWN_KEYS = ("world", "seed", "user", "sessions", "parent")


@dataclass(frozen=True, slots=True)
class Notice:
    """One line.

    Attributes:
        run: Which run it is of.
        level: `alarm`, `warning` or `info`.
        text: What there is to know.
        env_steps: When it was, if it was at some time.
        details: More lines: evidence and remedy.
    """

    run: str
    level: str
    text: str
    env_steps: int | None = None
    details: tuple[str, ...] = ()


def notices_of(run: Run) -> tuple[Notice, ...]:
    """Returns all notices of a run, the worst first."""
    found = [Notice(run.name, *each) for each in (*_faults(run), *_sessions(run), *_story(run))]
    found += _findings(run)
    return tuple(sorted(found, key=lambda notice: (ALARM, WARNING, INFO).index(notice.level)))


def _findings(run: Run) -> Iterator[Notice]:
    """Gives what the doctor finds wrong with a run."""
    episodes = run.folder / files.EPISODES
    if files.METRICS in run.missing or (episodes.is_file() and episodes.stat().st_size > _MOST_EXAMINED_BYTES):
        return
    try:
        findings = examine(files.read_run(run.folder)).findings
    except (ValueError, TypeError, LookupError, ArithmeticError) as error:
        # Files may be damaged in ways that no diagnosis foresees; the rest of the page is worth reading all the same.
        yield Notice(run.name, WARNING, f"The doctor cannot judge this run, whose files seem damaged: {error}")
        return
    for name, finding in findings:
        changes = [f"Change {change.line}" for change in finding.changes]
        details = (*finding.evidence, finding.remedy, *changes)
        yield Notice(run.name, WARNING, f"{finding.what} ({name})", None, details)


def _faults(run: Run) -> Iterator[tuple[str, str, int | None]]:
    metrics = run.tables[files.METRICS]
    steps, rollbacks = metrics.numbers("env_steps"), np.nan_to_num(metrics.numbers("rollbacks"))
    places = np.flatnonzero(np.diff(rollbacks, prepend=0.0) > 0.0)
    for place in places[:_MOST_ROLLBACKS]:
        yield ALARM, "Numbers were not finite: training went back to a checkpoint", _step(steps[place])
    if len(places) > _MOST_ROLLBACKS:
        yield ALARM, f"{len(places) - _MOST_ROLLBACKS} more rollbacks", None
    skipped = np.nan_to_num(metrics.numbers("skipped_updates"))
    if skipped.any():
        text = f"{skipped.sum():,.0f} updates were skipped in {np.count_nonzero(skipped):,} iterations"
        yield WARNING, text, _step(steps[np.flatnonzero(skipped)[0]])
    for name in run.missing:
        if name not in _NOT_ALWAYS:
            yield WARNING, f"{name} is not there or has no rows yet; what it would show is left out", None


def _sessions(run: Run) -> Iterator[tuple[str, str, int | None]]:
    total, sessions = run.total_env_steps, run.sessions
    for number, session in enumerate(sessions, 1):
        last = number == len(sessions)
        if "ended" not in session and not (last and run.state == "finished"):
            text = "has not ended: it is still running, or it was killed" if last else "was cut off before its end"
            yield WARNING, f"Session {number}, begun {session.get('started', 'at an unknown time')}, {text}", None
    if run.state == "stopped" and total is not None:
        yield WARNING, f"Stopped at {run.env_steps:,} of {total:,} env steps", run.env_steps
    if len(sessions) > 1:
        yield INFO, f"Trained in {len(sessions)} sessions", None


def _story(run: Run) -> Iterator[tuple[str, str, int | None]]:
    parent = run.document.get("parent")
    if isinstance(parent, dict):
        changes = parent.get("changes")
        listed = f" with changes: {'; '.join(map(str, changes))}" if isinstance(changes, list) and changes else ""
        text = f"Branched off {parent.get('folder')}, checkpoint {parent.get('checkpoint')}{listed}"
        reached = parent.get("env_steps")
        yield INFO, text, reached if isinstance(reached, int) else None
    for name, reached in run.document.items():
        if name not in _KNOWN_KEYS and isinstance(reached, int):
            yield INFO, f"{name.replace('_', ' ').capitalize()} reached", reached


def _step(value: float) -> int | None:
    return int(value) if np.isfinite(value) else None
