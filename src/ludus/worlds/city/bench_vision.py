"""Speed of perception: frames per second, milliseconds per stage, and steps per second of one game."""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from ludus.core.errors import UnknownNameError
from ludus.envs.base import EnvRequest
from ludus.worlds.city.drivers.city_games import CityGames
from ludus.worlds.city.drivers.driver import Click, Frame, Point, Wait
from ludus.worlds.city.drivers.micropolis import MONTH_S, teach_letters
from ludus.worlds.city.drivers.x11 import X11Driver
from ludus.worlds.city.env import CityEnv
from ludus.worlds.city.perception.embedded import embedded_reader
from ludus.worlds.city.perception.reader import ProfileReader
from ludus.worlds.city.profile import load_profile

_FIELDS = ("date", "funds", "tax", "population")
_SETTLE_S = 1.0
_WIDE_LAND = 47  # a seed with room to build


def bench_micropolis(seconds: float, folder: Path | None = None) -> dict[str, float | str]:
    """Measure steps of building, running the game for a month, capturing it and reading it until two reads agree."""
    profile = load_profile("micropolis")
    perception = ProfileReader(profile, folder, use_ocr=False, names=_FIELDS)
    verified: list[bool] = []
    try:
        with X11Driver(profile) as driver:
            driver.launch()
            teach_letters(driver, perception)
            driver.reset(_WIDE_LAND)

            def act() -> None:
                row, column = divmod(len(verified), profile.grid.columns)
                cell = profile.grid.cell(column, row % profile.grid.rows)
                driver.act([profile.tools["road"].choice, Click(cell), Wait(MONTH_S)])

            def read(_: Frame) -> None:
                readings = perception.reader.settle(driver.capture, _SETTLE_S).values()
                verified.append(all(reading.is_readable and reading.age_s == 0.0 for reading in readings))

            measured = _stages(act, driver.capture, read, seconds)
    finally:
        perception.close()
    reading_s = 1e-3 * measured["ms_read"] * len(verified)
    rates = {"frames_per_s": perception.reader.frames / max(reading_s, 1e-9)}
    return {"game": "micropolis", **rates, **measured, "verified": sum(verified) / len(verified)}


def _stages(
    act: Callable[[], None], capture: Callable[[], Frame], read: Callable[[Frame], object], seconds: float
) -> dict[str, float]:
    """Return milliseconds per stage and steps per second of acting, capturing and reading in turn."""
    spent, steps, start = np.zeros(3), 0, time.perf_counter()
    while (now := time.perf_counter()) < start + seconds or not steps:
        act()
        acted = time.perf_counter()
        frame = capture()
        captured = time.perf_counter()
        read(frame)
        spent += np.diff([now, acted, captured, time.perf_counter()])
        steps += 1
    stages = dict(zip(("ms_act", "ms_capture", "ms_read"), (1e3 * spent / steps).tolist(), strict=True))
    return {**stages, "steps_per_s": steps / (time.perf_counter() - start)}


GAMES = ("embedded", "micropolis")
_STEP_S = 1.0  # of the game's clock
_WORLD_GAMES = 16
_ACTIONS = ["build", "street", "bulldoze", "tax"]


def run_vision_bench(game: str, seconds: float = 5.0) -> dict[str, float | str]:
    """Measure perception of a game in one thread.

    Returns:
        `frames_per_s` of reading alone; `ms_act`, `ms_capture` and `ms_read` per step, with `ms_compare` and
        `ms_glyphs` of the last; `steps_per_s` through full perception, and `truth_steps_per_s` with the truth instead
        of pictures. `world_steps_per_s` and `world_truth_steps_per_s` are those of `city-v1` with random decisions,
        which also confirms placements, sees the map and computes observations and events.

    Raises:
        UnknownNameError: There is no such game.
        GameNotFoundError: It is not installed.
    """
    if game not in GAMES:
        raise UnknownNameError("game to measure", game, GAMES)
    if game == "micropolis":
        return bench_micropolis(seconds)
    games = CityGames(1, seed=0)
    try:
        return _bench_embedded(games, seconds)
    finally:
        games.close()


def _bench_embedded(games: CityGames, seconds: float) -> dict[str, float | str]:
    reader, random = embedded_reader(games, 0), np.random.default_rng(0)
    frame = games.capture(0).copy()
    reads = _rate(lambda: reader.read(frame), seconds / 6)

    def act() -> None:
        if bool(games.over()[0]):
            games.restart()
        games.act(0, [Click(Point(float(random.random()), float(random.random()))), Wait(_STEP_S)])
        games.advance()

    def act_and_ask() -> None:
        act()
        games.truth(0)

    truth = _rate(act_and_ask, seconds / 6)
    reader.stage_s.clear()
    frames = reader.frames
    measured = _stages(act, lambda: games.capture(0), reader.read, seconds / 6)
    steps = reader.frames - frames
    return {
        "game": "embedded",
        "frames_per_s": reads,
        **measured,
        **{f"ms_{name}": 1e3 * spent / steps for name, spent in reader.stage_s.items()},
        "truth_steps_per_s": truth,
        "world_steps_per_s": _world_rate({}, seconds / 4),
        "world_truth_steps_per_s": _world_rate({"metrics": "truth", "observe": ["readings", "menu"]}, seconds / 4),
    }


def _world_rate(settings: dict[str, object], seconds: float) -> float:
    """Return the decisions per second of a batch of games in one thread."""
    config = {"actions": _ACTIONS, "closes": True, "workers": 0, "rules": {"threads": 1}, **settings}
    with CityEnv(EnvRequest(_WORLD_GAMES, config=config)) as env:
        env.reset()
        bots, actions = env.bots(["random"]), torch.zeros((_WORLD_GAMES, 1, 2), dtype=torch.int64)
        assignment, spent_s, steps = torch.zeros((_WORLD_GAMES, 1), dtype=torch.int32), 0.0, 0
        while spent_s < seconds or not steps:
            bots.act(assignment, actions)
            start = time.perf_counter()
            env.step(actions)
            spent_s += time.perf_counter() - start
            steps += _WORLD_GAMES
    return steps / spent_s


def _rate(work: Callable[[], object], seconds: float) -> float:
    """Return how often per second a function can be called."""
    count, start = 0, time.perf_counter()
    while time.perf_counter() < start + seconds or not count:
        work()
        count += 1
    return count / (time.perf_counter() - start)
