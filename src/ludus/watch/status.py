"""Whether a run is alive: from its `run.json`, and from the process that its lock names.

The lock itself is never tried: whoever tries it holds it for a moment, in which a run that starts would be refused. Its
file says which process wrote it, and when. A process that began later has only inherited the number.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from socket import gethostname
from typing import Any, NamedTuple

import psutil

from ludus.core.files import read_small
from ludus.core.tables import signature_of
from ludus.reports.run_data import LOCK, METRICS, RUN

RUNNING, FINISHED, STOPPED, KILLED, SILENT = "running", "finished", "stopped", "killed", "silent"
_LOCK_BYTES = 1000
_CLOCK_ERROR_S = 2.0  # of a process's start, which the system counts in ticks since it was booted
_SILENT_S = 300.0  # after which a run on another machine no longer counts as running


class Holder(NamedTuple):
    """The process that wrote a run's lock."""

    pid: int
    host: str
    written_s: float  # time of the lock's file


def read_status(folder: Path, run: Mapping[str, Any], *, is_complete: bool) -> tuple[str, str]:
    """Return the status of a run and why, in words; the reason may be empty.

    Args:
        folder: The run folder.
        run: Content of its `run.json`.
        is_complete: Whether its budget of env steps is used up.
    """
    sessions = run.get("sessions")
    last = sessions[-1] if isinstance(sessions, list) and sessions and isinstance(sessions[-1], dict) else {}
    holder = _read_holder(folder)
    if "ended" in last and not (holder is not None and _is_resuming(folder, holder)):
        return (FINISHED if is_complete else STOPPED), str(last.get("end_reason") or "")
    if holder is not None and holder.host == gethostname():
        if _is_alive(holder):
            return RUNNING, f"process {holder.pid}"
        return KILLED, f"process {holder.pid} is gone, and its session has no end"
    where = f"on {holder.host}" if holder is not None else "where is unknown"
    written = signature_of(folder / METRICS) or signature_of(folder / RUN)
    age_s = time.time() - written[2] / 1e9 if written else _SILENT_S
    if age_s < _SILENT_S:
        return RUNNING, where
    return SILENT, f"{where}; it wrote nothing for {age_s / 60:.0f} min"


def _read_holder(folder: Path) -> Holder | None:
    path = folder / LOCK
    seen = signature_of(path)
    try:
        note = json.loads((read_small(path, _LOCK_BYTES) or b"")[1:])  # Windows locks the first byte, a space
        return None if seen is None else Holder(int(note["pid"]), str(note["host"]), seen[2] / 1e9)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _is_resuming(folder: Path, holder: Holder) -> bool:
    """Return whether a process has taken the lock since the last session ended, and has yet to note its own."""
    noted = signature_of(folder / RUN)
    is_newer = noted is not None and holder.written_s > noted[2] / 1e9
    return is_newer and holder.host == gethostname() and _is_alive(holder)


def _is_alive(holder: Holder) -> bool:
    try:
        process = psutil.Process(holder.pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return process.create_time() <= holder.written_s + _CLOCK_ERROR_S
    except psutil.AccessDenied:
        return True
    except (psutil.Error, ValueError, OverflowError):
        return False
