"""How scripted strategies fare in the embedded city builder: population, funds and happiness after some years.

Every strategy plays the same cities through the interface, one placement a decision. Prints a table; with `--csv` it
writes the numbers too, from which the table of docs/worlds/city.md is made.

    python -m benchmarks.city_strategies --years 20 --cities 16
"""

import argparse
import csv
from pathlib import Path

import numpy as np
from benchmarks.city_player import StrategyPlayer
from numpy.typing import NDArray

from ludus.core.intervals import mean_interval
from ludus.worlds.city.drivers.city_games import CityGames
from ludus.worlds.city.game.rules import MONTH_DAYS, YEAR_MONTHS, CityRules, Over
from ludus.worlds.city.strategies import STRATEGIES

COLUMNS = ("population", "most", "funds", "happiness", "traffic", "pollution", "land value", "bankrupt in %")


def main() -> None:
    """Plays all strategies and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--years", type=int, default=20)
    parser.add_argument("--cities", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--strategies", nargs="*", default=list(STRATEGIES))
    parser.add_argument("--csv", type=Path, help="file for the numbers")
    options = parser.parse_args()
    rows: list[list[str | float]] = []
    print(f"| strategy | {' | '.join(COLUMNS)} |\n|---|{'---:|' * len(COLUMNS)}")
    for name in options.strategies:
        outcome = play(name, options.years, options.cities, options.seed)
        shown = []
        for column in COLUMNS:
            interval = mean_interval(outcome[column].tolist())
            rows.append([name, column, interval.estimate, interval.low, interval.high])
            half = (interval.high - interval.low) / 2.0
            shown.append(f"{interval.estimate:,.0f}" + (f" ± {half:,.0f}" if half >= 0.5 else ""))
        print(f"| {name} | {' | '.join(shown)} |", flush=True)
    if options.csv is not None:
        with options.csv.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([["strategy", "measure", "mean", "low", "high"], *rows])


def play(name: str, years: int, cities: int, seed: int) -> dict[str, NDArray[np.float64]]:
    """Plays a strategy in several cities for some years and returns how they end, `(cities,)` a measure."""
    rules = CityRules(threads=1)
    games = CityGames(cities, rules=rules, seed=seed)
    players = [StrategyPlayer(name, games, game, seed) for game in range(cities)]
    most = np.zeros(cities)
    decisions = years * YEAR_MONTHS * MONTH_DAYS // rules.days_per_second
    for _ in range(decisions):
        for game, player in enumerate(players):
            games.act(game, player.decide())
        games.advance()
        most = np.maximum(most, games.simulation.city["population"])
    city = games.simulation.city
    games.close()
    return {
        "population": city["population"].astype(float),
        "most": most,
        "funds": city["funds"].astype(float),
        "happiness": city["happiness"].astype(float),
        "traffic": city["traffic"].astype(float),
        "pollution": city["pollution"].astype(float),
        "land value": city["value"].astype(float),
        "bankrupt in %": 100.0 * (city["over"] == Over.BANKRUPT),
    }


if __name__ == "__main__":
    main()
