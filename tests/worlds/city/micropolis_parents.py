"""A program of which tests kill parts: one process after the other launches Micropolis and waits.

Run as `micropolis_parents.py PICTURES CYCLES`. For every game a line comes out: the process that launched it, its
screen, its folder and its supervisor. A line on its input lets that process close its game and end by itself.
"""

import os
import sys
from pathlib import Path

from ludus.worlds.city.drivers.x11 import X11Driver
from ludus.worlds.city.perception.pictures import LearnedPictures
from ludus.worlds.city.profile import load_profile


def play(pictures: Path) -> None:
    """Launches a game, says where it is, and closes it when it is told to."""
    with X11Driver(load_profile("micropolis"), pictures=LearnedPictures(pictures)) as driver:
        driver.launch()
        assert driver._session is not None
        screen = driver._session.screen
        os.write(1, f"{os.getpid()} {screen.display} {screen.folder} {screen._supervisor.pid}\n".encode())
        while os.read(0, 1) != b"\n":
            pass


def main() -> None:
    pictures, cycles = Path(sys.argv[1]), int(sys.argv[2])
    for _ in range(cycles):
        child = os.fork()  # what was imported once need not be imported again
        if child == 0:
            play(pictures)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
