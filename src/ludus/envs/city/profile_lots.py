"""Lots: a coarser grid over a game's map, and blocks, several uses of tools that fill a lot in one decision.

A decision for every tile is fine where games are fast. A real game takes a few decisions a second: with lots each of
them does more, and there are fewer places to choose among.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Self

from pydantic import Field, model_validator

from ludus.envs.city.drivers.driver import Point, Region
from ludus.envs.city.profile_words import Box, Name, Number, Place, Positive, Section


class BlockStep(Section):
    """One use of a tool; exactly one of `at` and `drag`, in pixels from the lot's upper left corner.

    Attributes:
        tool: Its name among `tools`.
        at: Where it is clicked.
        drag: From where to where it is dragged: x, y, x, y; across or down.
    """

    tool: Name
    at: Place | None = None
    drag: Box | None = None

    @model_validator(mode="after")
    def _is_one_use(self) -> Self:
        if (self.at is None) == (self.drag is None):
            raise ValueError("should have exactly one of at and drag")
        if self.drag is not None and self.drag[0] != self.drag[2] and self.drag[1] != self.drag[3]:
            raise ValueError(f"should be dragged across or down, not aslant: {self.drag}")
        return self


class LotGrid(Section):
    """The lots.

    Attributes:
        region: Its name among `regions`; whole lots lie in it from its upper left corner.
        size: Width and height of a lot.
        anchor: Where in a lot a single tool is used.
        extra: What a block may cost beside its tools, for clearing the ground.
        blocks: What a lot can be filled with, by name.
    """

    region: Name
    size: tuple[Positive, Positive]
    anchor: Place
    extra: Annotated[Number, Field(ge=0)] = 0.0
    blocks: Annotated[dict[Name, Annotated[tuple[BlockStep, ...], Field(min_length=1)]], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class BlockPart:
    """One use of a tool in a block, as fractions of the picture from the lot's upper left corner.

    Attributes:
        tool: Its name.
        start: Where it is clicked, or the drag begins.
        end: Where the drag ends; None for a click.
        cells: How many cells of the map it is used on.
    """

    tool: str
    start: Point
    end: Point | None
    cells: int


@dataclass(frozen=True, slots=True)
class Lots:
    """The lots of a profile.

    Attributes:
        region: All lots together.
        corners: Upper left corners of all lots, row by row.
        columns: Of the lots.
        rows: Of the lots.
        anchor: Where in a lot a single tool is used.
        extra: What a block may cost beside its tools.
        blocks: By name.
    """

    region: Region
    corners: tuple[Point, ...]
    columns: int
    rows: int
    anchor: Point
    extra: float
    blocks: Mapping[str, tuple[BlockPart, ...]]


def make_lots(grid: LotGrid, region: Box, measured_on: tuple[float, float], cell: tuple[float, float]) -> Lots:
    """Makes lots of what a file says.

    Args:
        grid: The section.
        region: Of the lots, in pixels.
        measured_on: Width and height of the picture that places were measured on.
        cell: Width and height of a cell of the map.
    """
    width, height = measured_on
    nearly = 1e-6  # a region that is a whole number of lots wide is one, whatever the rounding
    columns = int((region[2] - region[0]) / grid.size[0] + nearly)
    rows = int((region[3] - region[1]) / grid.size[1] + nearly)
    corners = tuple(
        Point((region[0] + column * grid.size[0]) / width, (region[1] + row * grid.size[1]) / height)
        for row in range(rows)
        for column in range(columns)
    )

    def part(step: BlockStep) -> BlockPart:
        start = step.at if step.drag is None else step.drag[:2]
        end = start if step.drag is None else step.drag[2:]
        if start is None or end is None:
            raise TypeError("a step of a block is a click or a drag")
        cells = 1 + round(abs(end[0] - start[0]) / cell[0]) + round(abs(end[1] - start[1]) / cell[1])
        last = None if step.drag is None else Point(end[0] / width, end[1] / height)
        return BlockPart(step.tool, Point(start[0] / width, start[1] / height), last, cells)

    right, bottom = region[0] + columns * grid.size[0], region[1] + rows * grid.size[1]
    return Lots(
        region=Region(region[0] / width, region[1] / height, right / width, bottom / height),
        corners=corners,
        columns=columns,
        rows=rows,
        anchor=Point(grid.anchor[0] / width, grid.anchor[1] / height),
        extra=grid.extra,
        blocks={name: tuple(map(part, steps)) for name, steps in grid.blocks.items()},
    )


def middle_lots(lots: Lots, columns: int, rows: int) -> Lots:
    """Returns the lots in the middle of all, so many of them at most."""
    columns, rows = min(columns, lots.columns), min(rows, lots.rows)
    left, top = (lots.columns - columns) // 2, (lots.rows - rows) // 2
    width = (lots.region.right - lots.region.left) / lots.columns
    height = (lots.region.bottom - lots.region.top) / lots.rows
    first = lots.corners[top * lots.columns + left]
    corners = [lots.corners[(top + row) * lots.columns + left :][:columns] for row in range(rows)]
    return replace(
        lots,
        region=Region(first.x, first.y, first.x + columns * width, first.y + rows * height),
        corners=tuple(corner for line in corners for corner in line),
        columns=columns,
        rows=rows,
    )
