"""One picture of an hour of Micropolis: four finished cities, one of each quarter of the run, early to late.

    python benchmarks/city_shots.py --folder runs/city-micropolis --out docs/images/city-micropolis.png

Each is the middle one of its quarter by population, so that none is chosen for its looks. `city_micropolis.py` keeps
the pictures, of one of the games.
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

QUARTERS = 4
STRIP_PIXELS = 26
_NAME = re.compile(r"shot-(?P<table>\d+)-(?P<played>\d+)-(?P<length>\d+)\.png")


def main() -> None:
    """Chooses the pictures and writes them as one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("runs/city-micropolis"))
    parser.add_argument("--out", type=Path, default=Path("docs/images/city-micropolis.png"))
    asked = parser.parse_args()
    cities = photographed(asked.folder)
    seconds = max(city["at_s"] for city in cities) / QUARTERS
    chosen = []
    for quarter in range(QUARTERS):
        mine = [city for city in cities if quarter * seconds < city["at_s"] <= (quarter + 1) * seconds]
        chosen.append(sorted(mine, key=lambda city: float(city["population"]))[len(mine) // 2])
    tiles = [captioned(city) for city in chosen]
    half = QUARTERS // 2
    whole = np.vstack([np.hstack(tiles[:half]), np.hstack(tiles[half:])])
    cv2.imwrite(str(asked.out), whole, [cv2.IMWRITE_PNG_COMPRESSION, 9])
    for city in chosen:
        print(f"{city['file'].name}: minute {city['at_s'] / 60.0:.0f}, {city['population']:,.0f} people")


def photographed(folder: Path) -> list[dict[str, Any]]:
    """Returns the finished cities of which there is a picture, each with its `file`."""
    files = {}
    for file in folder.glob("shot-*.png"):
        if found := _NAME.fullmatch(file.name):
            files[int(found["table"]), int(found["played"]), int(found["length"])] = file
    cities = [json.loads(line) for line in (folder / "cities.jsonl").read_text().splitlines()]
    return [
        city | {"file": files[key]}
        for city in cities
        if city["game"] == 0
        and not city["lost"]
        and city["population"] is not None
        and (key := (city["table"], city["played"], city["decisions"])) in files
    ]


def captioned(city: dict[str, Any]) -> NDArray[np.uint8]:
    """Returns a city's picture, BGR, with a strip above it that says when it was finished and how many live there."""
    picture = cv2.imread(str(city["file"]))
    if picture is None:
        raise FileNotFoundError(f"{city['file']} cannot be read as a picture")
    text = f"minute {city['at_s'] / 60.0:.0f}, decision {city['played']:,}: {city['population']:,.0f} people"
    strip = np.full((STRIP_PIXELS, picture.shape[1], 3), 255, np.uint8)
    cv2.putText(strip, text, (6, STRIP_PIXELS - 8), cv2.FONT_HERSHEY_SIMPLEX, 0.5, (0, 0, 0), 1, cv2.LINE_AA)
    return np.vstack([strip, picture.astype(np.uint8)])


if __name__ == "__main__":
    main()
