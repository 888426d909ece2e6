"""How fast perception of the real Micropolis is, with every read verified."""

import time
from pathlib import Path

from ludus.envs.city.drivers.driver import Wait
from ludus.envs.city.drivers.x11 import X11Driver
from ludus.envs.city.perception.profiles import ProfileReader
from ludus.envs.city.profile import load_profile

_FIELDS = ("date", "funds", "tax")
_SETTLE_S = 1.0
_RUN_S = 0.02  # that the game runs for in a step


def bench_micropolis(seconds: float, folder: Path | None = None) -> dict[str, float | str]:
    """Measures steps of running the game, capturing it and reading it until two reads agree."""
    profile = load_profile("micropolis")
    perception = ProfileReader(profile, folder, use_ocr=False, names=_FIELDS)
    stages = {"act": 0.0, "capture": 0.0, "read": 0.0}
    with X11Driver(profile) as driver:
        driver.launch()
        steps, readable, start = 0, 0, time.perf_counter()
        while (now := time.perf_counter()) < start + seconds or not steps:
            driver.act([Wait(_RUN_S)])
            acted = time.perf_counter()
            driver.capture()
            captured = time.perf_counter()
            readings = perception.reader.settle(driver.capture, _SETTLE_S)
            stages["act"] += acted - now
            stages["capture"] += captured - acted
            stages["read"] += time.perf_counter() - captured
            readable += all(reading.is_readable and reading.age_s == 0.0 for reading in readings.values())
            steps += 1
        elapsed = time.perf_counter() - start
    perception.close()
    return {
        "game": "micropolis",
        "frames_per_s": perception.reader.frames / max(stages["read"], 1e-9),
        **{f"ms_{name}": 1e3 * spent / steps for name, spent in stages.items()},
        "steps_per_s": steps / elapsed,
        "verified": readable / steps,
    }
