"""`ludus watch`: a page on this machine that shows runs while they train; and the page of `ludus train --watch`."""

import os
import signal
import subprocess
import sys
import threading
import time
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from ludus.cli.console import print_ok, print_warning
from ludus.cli.options import Plugin
from ludus.core.errors import ConfigError
from ludus.core.files import RUNS_FOLDER, make_folder, suggest_run

if TYPE_CHECKING:
    from ludus.watch.server import WatchServer

_NICENESS = 10  # the training comes first
_LOOK_EVERY_S = 2.0
_LEAVE_AFTER_S = 30.0  # without an open page, once the training that started it has ended
_START_S = 20.0  # that the page of a training may take to start
_ADDRESS = "watching "


def watch(
    folder: Annotated[
        Path | None,
        Argument(metavar="RUN_OR_FOLDER", help="Run folder, or a folder with runs in it.", show_default="runs"),
    ] = None,
    host: Annotated[
        str, Option(help="Address to listen on; all but this machine's own need the token that is printed.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None, Option(min=0, max=65535, help="Port; 0 for any free one.", show_default="8713 or the next free one")
    ] = None,
    browser: Annotated[bool, Option(help="Open the page in a browser, if there is one.")] = True,
    matches: Annotated[bool, Option(help="Play a match of the newest agent, in another process.")] = True,
    plugin: Plugin = None,
    follow_pid: Annotated[
        int | None,
        Option(hidden=True, help="Training that started this page: it ends with it and the last browser tab."),
    ] = None,
) -> None:
    """Show runs in a web page while they train: status, curves, league, rewards, alarms, log and the newest match.

    It only reads the run folders, and can be started and stopped at any time. Ctrl-C ends it.
    """
    from ludus.watch.server import WatchServer

    root = _find_folder(folder)
    command = [sys.executable, "-m", "ludus.cli.watch_matches", *(plugin or ())] if matches else None
    with WatchServer(root, host=host, port=port, match_command=command) as server:
        end_with_signals()
        if hasattr(os, "nice"):
            os.nice(_NICENESS)
        print_ok(f"{_ADDRESS}{root} at {server.address}")
        if server.token:
            print_warning("whoever has this address can see the runs; the connection is not encrypted")
        sys.stdout.flush()
        if browser:
            open_browser(server.address)
        if follow_pid is not None:
            leave = threading.Thread(target=_leave_with, args=(server, follow_pid), daemon=True)
            leave.start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            if follow_pid is None:  # otherwise its output is not shown
                print_ok("stopped watching; the runs go on")


def _find_folder(folder: Path | None) -> Path:
    from ludus.config import read_user_defaults

    found = folder or read_user_defaults().runs_folder or RUNS_FOLDER
    if not found.is_dir():
        raise ConfigError(f"there is no folder {found}{suggest_run(found)}")
    return found.resolve()


def end_with_signals() -> None:
    """Let SIGTERM end the server as Ctrl-C does."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)  # also where a shell started it in the background, and ignores Ctrl-C for it


def _leave_with(server: "WatchServer", pid: int) -> None:
    """End the server once a process is gone and no page has been open for a while."""
    import psutil

    try:
        process: psutil.Process | None = psutil.Process(pid)
    except psutil.Error:
        process = None
    while (process is not None and process.is_running()) or server.idle_s < _LEAVE_AFTER_S:
        time.sleep(_LOOK_EVERY_S)
    server.shutdown()


def open_browser(address: str) -> None:
    """Open an address in a browser with a window; none on a machine without a screen."""
    has_screen = sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    if has_screen:  # a browser in the terminal would take it away from the training
        webbrowser.open(address)


def start_page(run: Path, runs: Path) -> None:
    """Start a page in a process of its own for a run that is about to train, and print its address.

    The run depends on it in no way: what goes wrong is a warning. It shows all runs of the folder `runs` if the run is
    one of them, else the run alone. The run folder is made, which the run would do a moment later.
    """
    make_folder(run)
    root = runs if run.resolve().parent == runs.resolve() else run
    command = [sys.executable, "-m", "ludus", "watch", str(root), "--no-browser", "--follow-pid", str(os.getpid())]
    try:
        process = subprocess.Popen(  # noqa: S603 - this program
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
    except OSError as error:
        print_warning(f"the page cannot be started: {error.strerror}; training continues without it")
        return
    line = _first_line(process)
    if _ADDRESS not in line:
        print_warning("the page did not start; training continues without it; to see why, use: ludus watch")
        return
    print_ok(line.partition("] ")[2])
    open_browser(line.rpartition(" ")[2])


def _first_line(process: "subprocess.Popen[bytes]") -> str:
    """Return the first line that a process prints; empty if it ends or takes too long."""
    found: list[bytes] = []
    stdout = process.stdout
    if stdout is None:
        return ""
    reader = threading.Thread(target=lambda: found.append(stdout.readline()), daemon=True)
    reader.start()
    reader.join(_START_S)
    return found[0].decode(errors="replace").strip() if found else ""
