"""How the scripted players of Rocket play: scores, goals and behaviour of every pair of teams.

Every ordered pair plays the same number of matches of two minutes without overtime, so both sides count alike; a bot
plays all seats of its team. Writes the raw numbers to docs/data/, from which the tables of
docs/worlds/rocket.md are made.

    python benchmarks/rocket_bots.py --mode 1v1 --matches 40
"""

import argparse
import csv
from pathlib import Path

import torch
from benchmarks.cross_table import MatchTable, play_cross_table
from torch import Tensor

from ludus.core.intervals import mean_interval
from ludus.worlds.rocket.bots import BOT_NAMES

DATA = Path(__file__).parents[1] / "docs" / "data"
RATE_HZ = 15.0
MATCH_S = 120.0


def main() -> None:
    """Plays the cross table and writes both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", default="1v1", choices=("1v1", "2v2", "3v3"), help="equal team sizes")
    parser.add_argument("--matches", type=int, default=40, help="matches of every ordered pair")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    config = {"mode": options.mode, "episode": "match", "match_s": MATCH_S, "overtime_s": 0.0}
    table = play_cross_table(
        "rocket", BOT_NAMES, options.matches, seed=options.seed, device=options.device, config=config
    )
    DATA.mkdir(parents=True, exist_ok=True)
    size = int(options.mode[0])
    write_scores(table, size, DATA / f"rocket_bots_{options.mode}_scores.csv")
    write_behaviour(table, size, DATA / f"rocket_bots_{options.mode}_behaviour.csv")


def write_scores(table: MatchTable, size: int, file: Path) -> None:
    """Writes score and goals of each bot against each, over both sides."""
    scores = table.scores()
    both = torch.cat((scores, 1.0 - scores.transpose(0, 1)), dim=2)
    goals = table.events["team_goals"]  # (blue, orange, matches, seats); the same for all seats of a team
    own = torch.cat((goals[..., 0], goals[..., size].transpose(0, 1)), dim=2)
    minutes = torch.cat((table.steps, table.steps.transpose(0, 1)), dim=2) / RATE_HZ / 60.0
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(("bot", "against", "matches", "score", "low", "high", "goals_a_minute"))
        for row, bot in enumerate(table.names):
            for column, other in enumerate(table.names):
                interval = mean_interval(both[row, column].tolist())
                rate = float(own[row, column].sum() / minutes[row, column].sum())
                count = both.shape[2]
                writer.writerow((bot, other, count, interval.estimate, interval.low, interval.high, round(rate, 4)))


def write_behaviour(table: MatchTable, size: int, file: Path) -> None:
    """Writes what a car of each bot does, over all its matches against the other bots."""
    rows: list[list[str | float]] = []
    columns = ("touches per minute", "shots per minute", "saves per minute", "boost used per minute",
               "kickoffs won in %", "possession in %", "airborne in %", "supersonic in %", "speed",
               "distance to the ball")  # fmt: skip
    for bot, name in enumerate(table.names):
        steps = _others(table.steps.unsqueeze(-1).expand(*table.steps.shape, 2 * size), bot, size)
        minutes = steps.sum() / RATE_HZ / 60.0

        def events(event: str, bot: int = bot) -> float:
            return float(_others(table.events[event], bot, size).sum())

        def mean(measure: str, bot: int = bot) -> float:
            return float(_others(table.state_metrics[measure], bot, size).mean())

        a_minute = [events(event) / float(minutes) for event in ("touches", "shots", "saves", "boost_used")]
        shares = [events("kickoff_touches") / max(events("kickoffs"), 1.0), mean("possession")]
        shares += [1.0 - mean("on_ground") - mean("demolished"), mean("supersonic")]
        means = [mean("speed"), mean("ball_distance")]
        rows.append([name, *(round(value, 2) for value in (*a_minute, *(100.0 * share for share in shares), *means))])
    with file.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows((["bot", *columns], *rows))


def _others(values: Tensor, bot: int, size: int) -> Tensor:
    """All cars of a bot in matches against the others, as blue and as orange, of `(bots, bots, matches, seats)`."""
    other = torch.arange(values.shape[0]) != bot
    return torch.cat((values[bot][other][..., :size].flatten(), values[:, bot][other][..., size:].flatten()))


if __name__ == "__main__":
    main()
