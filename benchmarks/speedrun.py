"""Runs `ludus speedrun` for several worlds and seeds, one after the other, and adds the results to docs/speedrun.md.

python benchmarks/speedrun.py                                # brawl, rocket and mimic with seed 0
python benchmarks/speedrun.py --worlds brawl --seeds 0 1 2 --device cuda
"""

import argparse
import subprocess
import sys
from pathlib import Path

BOARD = Path(__file__).parents[1] / "docs" / "speedrun.md"
WORLDS = ("brawl", "rocket", "mimic")


def main() -> None:
    """Runs them all; the exit code is that of the last one that did not reach its target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="*", default=list(WORLDS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    parser.add_argument("--device", default="auto")
    parser.add_argument("overrides", nargs="*", help="settings as key=value")
    options = parser.parse_args()
    code = 0
    for world in options.worlds:
        for seed in options.seeds:
            words = ["--seed", str(seed), "--device", options.device, "--board", str(BOARD), *options.overrides]
            done = subprocess.run([sys.executable, "-m", "ludus", "speedrun", world, *words], check=False)
            code = done.returncode or code
    sys.exit(code)


if __name__ == "__main__":
    main()
