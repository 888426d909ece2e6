"""How fast perception is: pictures a second, milliseconds a stage, and steps a second of one game."""

import time
from collections.abc import Callable

import numpy as np
import torch

from ludus.core.errors import UnknownNameError
from ludus.envs.base import EnvRequest
from ludus.envs.city.drivers.city_games import CityGames
from ludus.envs.city.drivers.driver import Click, Point, Wait
from ludus.envs.city.env import CityEnv
from ludus.envs.city.perception.embedded import embedded_reader

GAMES = ("embedded", "micropolis")
_STEP_S = 1.0  # of the game's clock
_WORLD_GAMES = 16
_ACTIONS = ["build", "street", "bulldoze", "tax"]


def run_vision_bench(game: str, seconds: float = 5.0) -> dict[str, float | str]:
    """Measures perception of a game in one thread.

    Returns:
        `frames_per_s` of reading alone, `ms_act`, `ms_capture` and `ms_read` a step, with `ms_compare` and `ms_glyphs`
        of the last, `steps_per_s` through full perception, and `truth_steps_per_s` with the truth instead of pictures.
        `world_steps_per_s` and `world_truth_steps_per_s` are those of `city-v1` with random decisions, which confirms
        placements, sees the map and makes observations, events and rewards' raw material too.

    Raises:
        UnknownNameError: There is no such game.
        GameNotFoundError: It is not installed.
    """
    if game not in GAMES:
        raise UnknownNameError("game to measure", game, GAMES)
    if game == "micropolis":
        from ludus.envs.city.bench_micropolis import bench_micropolis

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
    stages = {"act": 0.0, "capture": 0.0, "read": 0.0}
    reader.stage_s.clear()
    steps, start = 0, time.perf_counter()
    while (now := time.perf_counter()) < start + seconds / 6 or not steps:
        act()
        acted = time.perf_counter()
        seen = games.capture(0)
        captured = time.perf_counter()
        reader.read(seen)
        stages["act"] += acted - now
        stages["capture"] += captured - acted
        stages["read"] += time.perf_counter() - captured
        steps += 1
    elapsed = time.perf_counter() - start
    return {
        "game": "embedded",
        "frames_per_s": reads,
        **{f"ms_{name}": 1e3 * spent / steps for name, spent in (stages | dict(reader.stage_s)).items()},
        "steps_per_s": steps / elapsed,
        "truth_steps_per_s": truth,
        "world_steps_per_s": _world_rate({}, seconds / 4),
        "world_truth_steps_per_s": _world_rate({"metrics": "truth", "observe": ["readings", "menu"]}, seconds / 4),
    }


def _world_rate(settings: dict[str, object], seconds: float) -> float:
    """Returns the decisions a second of some games of the world in one thread."""
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
    """Returns how often a second something can be done."""
    count, start = 0, time.perf_counter()
    while time.perf_counter() < start + seconds or not count:
        work()
        count += 1
    return count / (time.perf_counter() - start)
