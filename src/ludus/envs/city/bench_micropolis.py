"""How fast perception of the real Micropolis is, with every read verified."""

import time
from pathlib import Path

from ludus.envs.city.drivers.driver import Click, Wait
from ludus.envs.city.drivers.x11 import X11Driver
from ludus.envs.city.micropolis_lessons import MONTH_S, teach_letters
from ludus.envs.city.perception.profiles import ProfileReader
from ludus.envs.city.profile import load_profile

_FIELDS = ("date", "funds", "tax", "population")
_SETTLE_S = 1.0
_WIDE_LAND = 47  # a seed with room to build


def bench_micropolis(seconds: float, folder: Path | None = None) -> dict[str, float | str]:
    """Measures steps of building, running the game for a month, capturing it and reading it until two reads agree."""
    profile = load_profile("micropolis")
    perception = ProfileReader(profile, folder, use_ocr=False, names=_FIELDS)
    stages = {"act": 0.0, "capture": 0.0, "read": 0.0}
    try:
        with X11Driver(profile) as driver:
            driver.launch()
            teach_letters(driver, perception)
            driver.reset(_WIDE_LAND)
            steps, verified, start = 0, 0, time.perf_counter()
            while (now := time.perf_counter()) < start + seconds or not steps:
                row, column = divmod(steps, profile.grid.columns)
                cell = profile.grid.cell(column, row % profile.grid.rows)
                driver.act([Click(profile.tools["road"].at), Click(cell), Wait(MONTH_S)])
                acted = time.perf_counter()
                driver.capture()
                captured = time.perf_counter()
                readings = perception.reader.settle(driver.capture, _SETTLE_S)
                stages["act"] += acted - now
                stages["capture"] += captured - acted
                stages["read"] += time.perf_counter() - captured
                verified += all(reading.is_readable and reading.age_s == 0.0 for reading in readings.values())
                steps += 1
            elapsed = time.perf_counter() - start
    finally:
        perception.close()
    return {
        "game": "micropolis",
        "frames_per_s": perception.reader.frames / max(stages["read"], 1e-9),
        **{f"ms_{name}": 1e3 * spent / steps for name, spent in stages.items()},
        "steps_per_s": steps / elapsed,
        "verified": verified / steps,
    }
