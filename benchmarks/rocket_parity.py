"""Prints Rocket's parity table: golden values of car soccer, what ours does, and how far it may be off.

    python -m benchmarks.rocket_parity                 # prints all rows and writes docs/data/rocket_parity.json
    python -m benchmarks.rocket_parity --out FILE      # writes them elsewhere

The golden values were measured with RocketSim 2.2.1 or are published; no such package is needed to run this. Fails if
any value is off.
"""

import argparse
import json
import sys
from pathlib import Path

from benchmarks.rocket_parity_car import Row, car_rows
from benchmarks.rocket_parity_contacts import contact_rows

DATA = Path(__file__).parents[1] / "docs" / "data" / "rocket_parity.json"


def is_met(row: Row) -> bool:
    """Whether our value is within its tolerance."""
    return abs(row.ours - row.golden) <= row.tolerance


def main() -> None:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=DATA, help="where to write the rows as JSON")
    options = parser.parse_args()
    parts = {"Ball and contacts": contact_rows(), "Car": car_rows()}
    for part, rows in parts.items():
        print(f"{part:60} {'golden':>12} {'ours':>12} tolerance")
        for row in rows:
            verdict = "ok" if is_met(row) else "OFF"
            print(f"{row.name:60} {row.golden:12.6g} {row.ours:12.6g} {row.tolerance:<9.3g} {verdict}")
    lines = [{"part": part, **row._asdict()} for part, rows in parts.items() for row in rows]
    options.out.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
    off = [row for rows in parts.values() for row in rows if not is_met(row)]
    print(f"{len(lines) - len(off)} of {len(lines)} values are met; written to {options.out}")
    sys.exit(1 if off else 0)


if __name__ == "__main__":
    main()
