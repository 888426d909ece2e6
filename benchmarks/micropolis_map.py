"""The true map of Micropolis, through its prompt, for benchmarks and tests."""

import numpy as np
from numpy.typing import NDArray

from ludus.worlds.city.drivers.micropolis import MicropolisTruth

COLUMNS, ROWS = 120, 100  # tiles of the map
TILE_MASK = 0x3FF  # a tile's low bits say what it is; the others are flags such as power
POWERED, ZONE_MIDDLE = 0x8000, 0x0400


class MicropolisMap(MicropolisTruth):
    """Asks for tiles and the speed, too."""

    def speed(self) -> int:
        """Return the speed; 0 is paused."""
        return int(self.ask("sim Speed"))

    def tile(self, x: int, y: int) -> int:
        """Return a tile of the map with its flags."""
        return int(self.ask(f"sim Tile {x:d} {y:d}"))

    def tiles(self) -> NDArray[np.int32]:
        """Return all tiles with their flags, `(rows, columns)`."""
        loop = f"for {{set y 0}} {{$y<{ROWS}}} {{incr y}} {{for {{set x 0}} {{$x<{COLUMNS}}} {{incr x}} "
        self.ask(f"set ludusTiles {{}}; {loop}{{lappend ludusTiles [sim Tile $x $y]}}}}")
        numbers = [int(word) for word in self.ask("set ludusTiles").split()]
        return np.asarray(numbers, np.int32).reshape(ROWS, COLUMNS)
