"""Measures real games on their screens: pictures, clicks and decisions a second, launches, resets and recoveries.

    python benchmarks/city_screens.py [--seconds 10] [--instances 2] [--out docs/data/city_screens.json]

Needs the Debian packages of the profile `micropolis`, and xvfb. A decision is what an agent's step does:
choose a tool, click on the map, let the game run for 20 ms, and wait until all of it has been drawn and stands still.
The yardstick of a decision is a sleep of 235 ms: Micropolis draws its figures 200 ms late, whatever we do.
"""

import argparse
import json
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from ludus.worlds.city.drivers.driver import Box, Click, Gesture, Wait
from ludus.worlds.city.drivers.x11 import X11Driver
from ludus.worlds.city.profile import load_profile
from ludus.worlds.city.screen.session import ScreenSession, VirtualScreen
from ludus.worlds.city.screen.xserver import ScreenCapture

WIDE_LAND = 47  # a seed of Micropolis with room to build
RUN_S = 0.02
Row = dict[str, str | float]


def rate(do: Callable[[], object], seconds: float) -> float:
    """Returns how often something is done in a second."""
    started, done = time.perf_counter(), 0
    while (spent := time.perf_counter() - started) < seconds or not done:
        do()
        done += 1
    return done / spent


def seconds_of(do: Callable[[], object]) -> float:
    """Returns how long something takes."""
    started = time.perf_counter()
    do()
    return time.perf_counter() - started


def pictures(seconds: float) -> list[Row]:
    """Measures pictures of a screen of 1280x720 without a game, and of a line of text on it."""
    rows: list[Row] = []
    with VirtualScreen(1280, 720) as screen:
        capture = ScreenCapture(screen.display)
        whole, line = Box(0, 0, 1280, 720), Box(230, 28, 140, 16)
        rows.append(row("pictures of 1280x720", rate(lambda: capture.grab(whole), seconds), "per second"))
        rows.append(row("pictures of 140x16", rate(lambda: capture.raw(line), seconds), "per second"))
        capture.close()
    return rows


def decisions(driver: X11Driver, *, run: bool) -> Callable[[], None]:
    """Returns what builds one road after the other, and lets the game run if asked to."""
    profile, count = driver.profile, 0

    def decide() -> None:
        nonlocal count
        column, line = count % profile.grid.columns, (count // profile.grid.columns) % profile.grid.rows
        gestures: list[Gesture] = [profile.tools["road"].choice, Click(profile.grid.cell(column, line))]
        driver.do([*gestures, Wait(RUN_S)] if run else gestures)
        driver.capture()
        count += 1

    return decide


def memory_bytes(session: ScreenSession) -> int:
    """Returns the resident memory of a screen's supervisor and everything below it."""
    root = psutil.Process(session.screen._supervisor.pid)  # noqa: SLF001 - of no use to anyone else
    return sum(process.memory_info().rss for process in (root, *root.children(recursive=True)))


def micropolis(seconds: float, instances: int) -> list[Row]:
    """Measures Micropolis, alone and side by side."""
    drivers = [X11Driver(load_profile("micropolis")) for _ in range(instances)]
    rows: list[Row] = []
    try:
        drivers[0].launch()  # learns what it looks like, if that is not known yet
        drivers[0].close()
        rows.append(row("Micropolis: launch, city begun and verified", seconds_of(drivers[0].launch), "s"))
        rows.append(row("Micropolis: reset, verified", seconds_of(lambda: drivers[0].reset(WIDE_LAND)), "s"))
        session = drivers[0]._session  # noqa: SLF001 - what a click alone takes is not to be had otherwise
        if session is not None:
            click = rate(lambda: session.input.click(700, 300), seconds / 4)
            rows.append(row("Micropolis: guarded click", 1e3 / click, "ms"))
        rows.append(row("Micropolis: captures by the driver", rate(drivers[0].capture, seconds / 2), "per second"))
        for words, run in (("build, paused", False), ("build and run for 20 ms", True)):
            rows.append(
                row(f"Micropolis: decisions, {words}", rate(decisions(drivers[0], run=run), seconds), "per second")
            )
        for driver in drivers[1:]:
            driver.launch()
            driver.reset(WIDE_LAND)
        with ThreadPoolExecutor(instances) as threads:
            rates = list(threads.map(lambda driver: rate(decisions(driver, run=True), seconds), drivers))
        rows.append(row(f"Micropolis: the same, {instances} games side by side", sum(rates), "per second"))
        rows.append(row("yardstick: sleeps of 235 ms", rate(lambda: time.sleep(0.235), seconds / 2), "per second"))
        if session is not None:
            rows.append(row("Micropolis: memory of screen and game", memory_bytes(session) / 2**20, "MiB"))
            os.kill(session.pid, signal.SIGKILL)
            while drivers[0].trouble() is None:
                time.sleep(0.01)
            rows.append(row("Micropolis: recovery of a killed game", seconds_of(drivers[0].recover), "s"))
    finally:
        for driver in drivers:
            driver.close()
    return rows


def row(what: str, value: float, unit: str) -> Row:
    """Returns a row of the table, and shows it."""
    print(f"{what}: {value:.4g} {unit}", flush=True)
    return {"what": what, "value": value, "unit": unit}


def main() -> None:
    """Measures everything and stores it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--instances", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("docs/data/city_screens.json"))
    asked = parser.parse_args()
    busy = psutil.cpu_percent(1.0)
    rows = pictures(asked.seconds / 4) + micropolis(asked.seconds, asked.instances)
    result = {"rows": rows, "cores": os.cpu_count(), "busy_before_percent": busy}
    asked.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(f"[OK] {asked.out}")


if __name__ == "__main__":
    main()
