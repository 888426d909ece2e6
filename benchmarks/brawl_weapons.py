"""Weapon balance of Brawl: equal bots fight each other with different weapons.

Every style that seeks a fight plays itself, one fighter with weapon A and one with weapon B for the whole match, in
both seats. The score of A is its share of wins, draws counted half. Writes docs/data/brawl_weapons.csv and prints the
table that is in docs/worlds/brawl.md.

    python benchmarks/brawl_weapons.py --matches 256
"""

import argparse
import csv
from itertools import combinations
from pathlib import Path

from benchmarks.cross_table import play_cross_table

from ludus.core.intervals import mean_interval
from ludus.worlds.brawl.moves import load_move_table

# All styles that seek a fight, with some noise: without it two equal bots can repeat one exchange for a whole match.
STYLES = ("based-safe", "aggressive", "hit-and-run", "aerial", "heavy-spammer", "edge-guarder", "switcher")
NOISE = 0.05
DATA = Path(__file__).parents[1] / "docs" / "data" / "brawl_weapons.csv"


def main() -> None:
    """Plays all pairs of weapons and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matches", type=int, default=256, help="matches of each style, pair of weapons and seat")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rows = []
    for first, second in combinations(load_move_table().names, 2):
        for style in STYLES:
            scores = []
            for seats in ((first, second), (second, first)):
                table = play_cross_table(
                    "brawl",
                    [f"{style}:noise={NOISE}"],
                    options.matches,
                    seed=options.seed,
                    config={"fixed_weapons": seats},
                )
                share = table.scores().flatten()
                scores.extend((share if seats[0] == first else 1.0 - share).tolist())
            rows.append((first, second, style, scores))
    DATA.parent.mkdir(parents=True, exist_ok=True)
    with DATA.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("weapon", "against", "style", "matches", "score", "low", "high"))
        for first, second, style, scores in rows:
            interval = mean_interval(scores)
            writer.writerow((first, second, style, len(scores), interval.estimate, interval.low, interval.high))
    print("| weapon | against | " + " | ".join(STYLES) + " | all styles |")
    print("|---" * (len(STYLES) + 3) + "|")
    for first, second in combinations(load_move_table().names, 2):
        own = {style: scores for a, b, style, scores in rows if (a, b) == (first, second)}
        cells = [f"{100 * sum(scores) / len(scores):.0f} %" for scores in own.values()]
        interval = mean_interval([score for scores in own.values() for score in scores])
        total = f"{100 * interval.estimate:.1f} % ({100 * interval.low:.1f}-{100 * interval.high:.1f})"
        print(f"| {first} | {second} | " + " | ".join(cells) + f" | {total} |")


if __name__ == "__main__":
    main()
