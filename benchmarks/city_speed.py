"""How fast the embedded city builder runs on one core: the simulation alone, with its interface, and with its picture.

A step of a game is what an agent does in a decision: select a tool, click on the map, let ten days pass, and look. The
cities are towns that the balanced strategy has built for some years. `--json` prints one JSON object.

    python -m benchmarks.city_speed --games 16 --seconds 3
"""

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
from benchmarks.city_player import StrategyPlayer
from torch import Tensor

from ludus.worlds.city.drivers.city_games import CityGames
from ludus.worlds.city.drivers.driver import Click, Key, Point, Wait
from ludus.worlds.city.game.rules import CityRules
from ludus.worlds.city.interface.layout import point_in
from ludus.worlds.city.interface.theme import RESOLUTIONS, THEMES, CityDisplay


def main() -> None:
    """Measures every theme at every size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=16)
    parser.add_argument("--years", type=int, default=4, help="age of the towns")
    parser.add_argument("--seconds", type=float, default=2.0, help="of processor time for each measurement")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    rules = CityRules(threads=1)
    town = built_town(rules, options.games, options.years)
    measured: dict[str, float] = {"simulation_us": simulation_us(rules, town, options.games, options.seconds)}
    for theme in THEMES:
        for width, height in RESOLUTIONS:
            games = CityGames(
                options.games, rules=rules, display=CityDisplay(themes=(theme,), width=width, height=height)
            )
            games.restore(town)
            played = step_rate(games, options.seconds, capture=False)
            drawn = step_rate(games, options.seconds, capture=True)
            games.close()
            measured[f"{theme}_{width}x{height}_played_per_s"] = played
            measured[f"{theme}_{width}x{height}_drawn_per_s"] = drawn
            if not options.json:
                print(f"{theme:8} {width:4}x{height:<4} {played:7.0f} steps/s played, {drawn:7.0f} played and drawn")
    if options.json:
        print(json.dumps(measured))
    else:
        print(f"simulation of ten days: {measured['simulation_us']:.1f} us a city")


def built_town(rules: CityRules, cities: int, years: int) -> dict[str, Tensor]:
    """Returns towns that the balanced strategy has built."""
    games = CityGames(cities, rules=rules, seed=1)
    players = [StrategyPlayer("balanced", games, game) for game in range(cities)]
    for _ in range(years * 36):
        for game, player in enumerate(players):
            games.act(game, player.decide())
        games.advance()
    kept = games.snapshot()
    games.close()
    return kept


def simulation_us(rules: CityRules, town: dict[str, Tensor], cities: int, seconds: float) -> float:
    """Returns the microseconds that ten days of one city take."""
    games = CityGames(cities, rules=rules)
    games.restore(town)
    simulation, days = games.simulation, np.full(cities, 10, np.int32)

    def live() -> None:
        simulation.city["notice"][:] = 0
        simulation.live(days)

    rate = calls_per_s(live, seconds)
    games.close()
    return 1e6 / rate / cities


def step_rate(games: CityGames, seconds: float, *, capture: bool) -> float:
    """Returns the steps of single games in a second of processor time."""
    random = np.random.default_rng(1)
    layout = games.layout(0)
    size, view = (layout.width, layout.height), layout.view.box
    buttons = [point_in(*tool.box.middle, *size) for tool in layout.tools if tool.name != "tool.query"]

    def step() -> None:
        for game in range(games.num_envs):
            x, y = random.random(2)
            cell = Point((view.left + x * view.width) / size[0], (view.top + y * view.height) / size[1])
            button = buttons[int(random.integers(len(buttons)))]
            games.act(game, [Key("Return"), Click(button), Click(cell), Wait(1.0)])
        games.advance()
        if capture:
            for game in range(games.num_envs):
                games.capture(game)

    return calls_per_s(step, seconds) * games.num_envs


def calls_per_s(call: Callable[[], None], seconds: float) -> float:
    """Returns the calls in a second of processor time, so that others on the machine count little."""
    for _ in range(3):
        call()
    calls, start = 0, time.process_time()
    while time.process_time() - start < seconds:
        call()
        calls += 1
    return calls / (time.process_time() - start)


if __name__ == "__main__":
    main()
