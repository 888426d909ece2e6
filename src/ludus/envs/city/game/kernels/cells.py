"""Small questions about cells, as Warp functions."""

import warp as wp

from ludus.envs.city.game.kernels.structs import Grid, Rules
from ludus.envs.city.game.rules import Kind, Terrain


@wp.func
def is_zone(kind: wp.int32) -> bool:
    """Whether people or jobs can come to a cell."""
    return kind >= Kind.RESIDENTIAL and kind <= Kind.INDUSTRIAL


@wp.func
def conducts(kind: wp.int32) -> bool:
    """Whether power goes on from such a cell; cables lie under the roads."""
    return kind >= Kind.ROAD and kind < Kind.RUBBLE


@wp.func
def beside(cell: wp.int32, side: wp.int32, rules: Rules) -> wp.int32:
    """The neighbour of a cell (side 0 left, 1 right, 2 above, 3 below), or -1 at the edge of the map."""
    x = cell % rules.columns
    there = int(-1)
    if side == 0 and x > 0:
        there = cell - 1
    elif side == 1 and x < rules.columns - 1:
        there = cell + 1
    elif side == 2 and cell >= rules.columns:
        there = cell - rules.columns
    elif side == 3 and cell < rules.cells - rules.columns:
        there = cell + rules.columns
    return there


@wp.func
def has(flags: wp.int32, bit: wp.int32) -> wp.float32:
    """1 if a flag is set, else 0."""
    return wp.where((flags & bit) != 0, 1.0, 0.0)


@wp.func
def kind_at(grid: Grid, game: wp.int32, cell: wp.int32) -> wp.int32:
    """What stands on a cell; -1 for a cell of -1, outside the map. Warp evaluates both sides of an `and`."""
    kind = int(-1)
    if cell >= 0:
        kind = grid.kind[game, cell]
    return kind


@wp.func
def is_wood(grid: Grid, game: wp.int32, cell: wp.int32) -> wp.int32:
    """1 for a cell with trees, else 0."""
    wood = int(0)
    if cell >= 0:
        wood = wp.where(grid.terrain[game, cell] == Terrain.TREES, 1, 0)
    return wood
