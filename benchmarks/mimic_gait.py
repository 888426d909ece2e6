"""Measures how the shipped walker walks, compared with people, and which pushes it survives: what `ludus gait` does.

    python benchmarks/mimic_gait.py --json docs/data/mimic_gait.json --picture docs/images/mimic-people.png

The first walks are undisturbed; as many are pushed once for each direction and impulse.
"""

import argparse
import json
from pathlib import Path

from ludus.evaluation.players import load_agent, short_name
from ludus.worlds.mimic.gait_report import analyse_gait, draw_report


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agent", nargs="?", default="walker")
    parser.add_argument("--walks", type=int, default=40)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--picture", type=Path)
    asked = parser.parse_args()
    report = analyse_gait(load_agent(asked.agent), short_name(asked.agent), walks=asked.walks)
    text = json.dumps(report.as_json(), indent=1) + "\n"
    if asked.json is not None:
        asked.json.write_text(text)
    else:
        print(text)
    if asked.picture is not None:
        draw_report(report, asked.picture)


if __name__ == "__main__":
    main()
