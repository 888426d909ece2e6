"""Measures City's perception: how much of what it reads is right, and how fast it is.

    python benchmarks/city_vision.py [--states 600 --real-states 320] [--out docs/data/city_vision.json]

The first is what `ludus city audit` prints. Both games are measured, which needs the Debian packages micropolis,
micropolis-data and xvfb; with libfaketime decisions of Micropolis take less time.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import torch

from ludus.envs.base import EnvRequest
from ludus.worlds.city.audit import audit_city
from ludus.worlds.city.drivers.city_games import CityGames
from ludus.worlds.city.drivers.driver import Click, Point, Wait
from ludus.worlds.city.drivers.micropolis import MONTH_S, teach_letters
from ludus.worlds.city.drivers.x11 import X11Driver
from ludus.worlds.city.env import CityEnv
from ludus.worlds.city.perception.embedded import embedded_reader
from ludus.worlds.city.perception.reader import ProfileReader
from ludus.worlds.city.profile import load_profile

_FIELDS = ("date", "funds", "tax", "population")
_READ_S = 1.0
_WIDE_LAND = 47  # a seed with room to build
_STEP_S = 1.0  # of the game's clock
_WORLD_GAMES = 16
_ACTIONS = ["build", "street", "bulldoze", "tax"]


def main() -> None:
    """Measures both games and stores the numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=600, help="of the embedded game")
    parser.add_argument("--real-states", type=int, default=320, help="of Micropolis")
    parser.add_argument("--seconds", type=float, default=10.0, help="for every measurement of speed")
    parser.add_argument("--out", type=Path, default=Path("docs/data/city_vision.json"))
    asked = parser.parse_args()
    document = {
        "speed": [run_vision_bench(game, asked.seconds) for game in ("embedded", "micropolis")],
        "audit": [audit_city("embedded", asked.states), audit_city("micropolis", asked.real_states)],
    }
    asked.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"[OK] {asked.out}")


def run_vision_bench(game: str, seconds: float) -> dict[str, float | str]:
    """Measure perception of a game in one thread: `embedded` or `micropolis`.

    Returns:
        `frames_per_s` of reading alone; `ms_act`, `ms_capture` and `ms_read` per step, with `ms_compare` and
        `ms_glyphs` of the last; `steps_per_s` through full perception, and `truth_steps_per_s` with the truth instead
        of pictures. `world_steps_per_s` and `world_truth_steps_per_s` are those of `city-v1` with random decisions,
        which also confirms placements, sees the map and computes observations and events.
    """
    if game == "micropolis":
        return _bench_micropolis(seconds)
    with closing(CityGames(1, seed=0)) as games:
        return _bench_embedded(games, seconds)


def _bench_micropolis(seconds: float) -> dict[str, float | str]:
    """Measure steps of building, running the game for a month, capturing it and reading it until two reads agree."""
    profile = load_profile("micropolis")
    perception = ProfileReader(profile, use_ocr=False, names=_FIELDS)
    verified: list[bool] = []
    with closing(perception), X11Driver(profile) as driver:
        driver.launch()
        teach_letters(driver, perception)
        driver.reset(_WIDE_LAND)

        def act() -> None:
            row, column = divmod(len(verified), profile.grid.columns)
            cell = profile.grid.cell(column, row % profile.grid.rows)
            driver.do([profile.tools["road"].choice, Click(cell), Wait(MONTH_S)])

        def read() -> None:
            readings = perception.reader.settle(driver.capture, _READ_S).values()
            verified.append(all(reading.is_readable and reading.age_s == 0.0 for reading in readings))

        times_s = _times_s(seconds, act, driver.capture, read)
    rate = perception.reader.frames / max(times_s[2] * len(verified), 1e-9)
    share = sum(verified) / len(verified)
    return {"game": "micropolis", "frames_per_s": rate, **_stages(times_s), "verified": share}


def _bench_embedded(games: CityGames, seconds: float) -> dict[str, float | str]:
    reader, random, frame = embedded_reader(games, 0), np.random.default_rng(0), games.capture(0)

    def act() -> None:
        if bool(games.over()[0]):
            games.restart()
        games.act(0, [Click(Point(float(random.random()), float(random.random()))), Wait(_STEP_S)])
        games.advance()

    read_s = _times_s(seconds / 6, lambda: reader.read(frame))[0]
    truth_s = sum(_times_s(seconds / 6, act, games.interfaces[0].figures.numbers))
    reader.stage_s.clear()
    frames = reader.frames
    times_s = _times_s(seconds / 6, act, lambda: games.capture(0), lambda: reader.read(frame))  # it is a view
    steps = reader.frames - frames
    return {
        "game": "embedded",
        "frames_per_s": 1.0 / read_s,
        **_stages(times_s),
        **{f"ms_{name}": 1e3 * spent / steps for name, spent in reader.stage_s.items()},
        "truth_steps_per_s": 1.0 / truth_s,
        "world_steps_per_s": _world_rate({}, seconds / 4),
        "world_truth_steps_per_s": _world_rate({"metrics": "truth", "observe": ["readings", "menu"]}, seconds / 4),
    }


def _world_rate(settings: dict[str, object], seconds: float) -> float:
    """Return the decisions per second of a batch of games in one thread."""
    config = {"actions": _ACTIONS, "closes": True, "workers": 0, "rules": {"threads": 1}, **settings}
    with CityEnv(EnvRequest(_WORLD_GAMES, config=config)) as env:
        env.reset()
        bots, actions = env.bots(["random"]), torch.zeros((_WORLD_GAMES, 1, 2), dtype=torch.int64)
        assignment = torch.zeros((_WORLD_GAMES, 1), dtype=torch.int32)
        return _WORLD_GAMES / _times_s(seconds, lambda: bots.act(assignment, actions), lambda: env.step(actions))[1]


def _stages(times_s: Sequence[float]) -> dict[str, float]:
    """Name the times of acting, capturing and reading."""
    stages = zip(("ms_act", "ms_capture", "ms_read"), times_s, strict=True)
    return {**{name: 1e3 * spent for name, spent in stages}, "steps_per_s": 1.0 / sum(times_s)}


def _times_s(seconds: float, *stages: Callable[[], object]) -> list[float]:
    """Call functions in turn for some time, at least once; return the mean seconds that each takes."""
    spent_s, rounds, start = [0.0] * len(stages), 0, time.perf_counter()
    while time.perf_counter() < start + seconds or not rounds:
        for number, stage in enumerate(stages):
            before = time.perf_counter()
            stage()
            spent_s[number] += time.perf_counter() - before
        rounds += 1
    return [total / rounds for total in spent_s]


if __name__ == "__main__":
    main()
