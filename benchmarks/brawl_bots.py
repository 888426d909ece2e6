"""How the bots of Brawl play: a cross table of win rates and a table of behaviour.

Every ordered pair plays the same number of matches, so both sides and both seats count alike. Writes the raw numbers
to docs/data/ and prints the tables that are in docs/worlds/brawl.md.

    python benchmarks/brawl_bots.py --matches 200
"""

import argparse
import csv
from collections.abc import Callable
from pathlib import Path

import torch
from benchmarks.cross_table import MatchTable, play_cross_table
from torch import Tensor

from ludus.core.intervals import mean_interval
from ludus.worlds.brawl.bots import BOT_NAMES
from ludus.worlds.brawl.rules import RATE_HZ

DATA = Path(__file__).parents[1] / "docs" / "data"


def main() -> None:
    """Plays the cross table and prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matches", type=int, default=200, help="matches of every ordered pair")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    table = play_cross_table("brawl", BOT_NAMES, options.matches, seed=options.seed, device=options.device)
    DATA.mkdir(parents=True, exist_ok=True)
    print_scores(table)
    print()
    print_behaviour(table)


def print_scores(table: MatchTable) -> None:
    """Prints the score of the row bot against the column bot over both seats."""
    scores = table.scores()
    both = torch.cat((scores, 1.0 - scores.transpose(0, 1)), dim=2)
    with (DATA / "brawl_bots_scores.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("bot", "against", "matches", "score", "low", "high"))
        for row, bot in enumerate(table.names):
            for column, other in enumerate(table.names):
                total = both[row, column]
                interval = mean_interval(total.tolist())
                writer.writerow((bot, other, total.numel(), interval.estimate, interval.low, interval.high))
    print(f"| score in % over {both.shape[2]} matches | " + " | ".join(table.names) + " | mean |")
    print("|---" * (len(table.names) + 2) + "|")
    for row, bot in enumerate(table.names):
        means = 100 * both[row].mean(dim=1)
        others = torch.cat((means[:row], means[row + 1 :]))
        print(f"| {bot} | " + " | ".join(f"{mean:.0f}" for mean in means) + f" | {others.mean():.0f} |")


def print_behaviour(table: MatchTable) -> None:
    """Prints what the row bot does, over all its matches in either seat."""
    columns: dict[str, Callable[[int], float]] = {
        "attacks per minute": lambda bot: _a_minute(table, "attacks", bot),
        "hits of attacks in %": lambda bot: 100 * _ratio(table, "hits", "attacks", bot),
        "damage dealt per minute": lambda bot: _a_minute(table, "damage_dealt", bot),
        "combo hits in %": lambda bot: 100 * _ratio(table, "stun_hits", "hits", bot),
        "knockouts per match": lambda bot: _mean(table, "knockouts", bot),
        "falls per match": lambda bot: _mean(table, "falls", bot),
        "pick-ups per match": lambda bot: _mean(table, "pickups", bot),
        "airborne in %": lambda bot: 100 * (1 - _measure(table, "grounded", bot)),
        "distance": lambda bot: _measure(table, "distance", bot),
        "own x": lambda bot: _measure(table, "x", bot),
        "match in s": lambda bot: float(torch.cat((table.steps[bot], table.steps[:, bot])).mean()) / RATE_HZ,
    }
    rows = [[name, *(column(bot) for column in columns.values())] for bot, name in enumerate(table.names)]
    with (DATA / "brawl_bots_behaviour.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows((["bot", *columns], *rows))
    print("| bot | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for name, *values in rows:
        print(f"| {name} | " + " | ".join(f"{value:.1f}" for value in values) + " |")


def _of(values: Tensor, bot: int) -> Tensor:
    """All matches of a bot, in seat 0 and in seat 1, from `(players, players, matches, seats)`."""
    return torch.cat((values[bot, :, :, 0].flatten(), values[:, bot, :, 1].flatten()))


def _a_minute(table: MatchTable, event: str, bot: int) -> float:
    steps = torch.cat((table.steps[bot].flatten(), table.steps[:, bot].flatten())).sum()
    return float(_of(table.events[event], bot).sum() / steps * RATE_HZ * 60)


def _ratio(table: MatchTable, event: str, by: str, bot: int) -> float:
    return float(_of(table.events[event], bot).sum() / _of(table.events[by], bot).sum().clamp(min=1))


def _mean(table: MatchTable, event: str, bot: int) -> float:
    return float(_of(table.events[event], bot).mean())


def _measure(table: MatchTable, measure: str, bot: int) -> float:
    return float(_of(table.state_metrics[measure], bot).mean())


if __name__ == "__main__":
    main()
