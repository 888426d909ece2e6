"""Measures City's perception: how much of what it reads is right, and how fast it is.

    python benchmarks/city_vision.py [--states 600 --real-states 320] [--out docs/data/city_vision.json]

What `ludus audit city` and `ludus bench vision` print, of both games. Needs the Debian packages micropolis,
micropolis-data and xvfb; with libfaketime decisions of Micropolis take less time.
"""

import argparse
import json
from pathlib import Path

from ludus.worlds.city.audit import audit_city, run_vision_bench


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


if __name__ == "__main__":
    main()
