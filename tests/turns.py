"""The workers of pytest-xdist collect the tests in turns: the first one alone, then all others side by side.

A fresh clone has no compiled files. Side by side from the beginning, every worker would compile all test files and what
they import, eleven seconds each; the others find what the first has compiled. Imported before anything that takes long.
"""

import fcntl
import os
import tempfile
from pathlib import Path

_RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID")  # set in workers alone
_PATH = Path(tempfile.gettempdir()) / f"ludus-tests-{_RUN}"
_FILE = _PATH.open("a+b", buffering=0) if _RUN else None


def end_turn() -> None:
    """Let the other workers collect, once this one has."""
    if _FILE is not None and not _FILE.closed:
        _FILE.write(b"collected\n")
        _FILE.close()  # which unlocks it, as the end of a worker that dies does


def forget_turns() -> None:
    """Remove the file by which workers wait for each other."""
    if _FILE is not None:
        _PATH.unlink(missing_ok=True)


if _FILE is not None:
    fcntl.flock(_FILE, fcntl.LOCK_EX)
    if os.fstat(_FILE.fileno()).st_size:  # somebody has collected
        _FILE.close()
