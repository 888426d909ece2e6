"""From decisions to gestures in a game that has a profile: by the places that the profile names, and by readings."""

from collections.abc import Mapping, Sequence

from ludus.envs.city.catalogue import STREET_CELLS, STREETS, Catalogue
from ludus.envs.city.config import CellGrid
from ludus.envs.city.drivers.driver import Click, Drag, Key, Point, Region, Scroll
from ludus.envs.city.gestures import FUNDING_LEVELS
from ludus.envs.city.profile import Deed, GameProfile
from ludus.envs.city.profile_catalogue import BULLDOZER, ROAD, TAX, funded_sliders

_HEADING = (0.025, 0.014)  # half the width and height around a menu's heading where exploring never clicks
_TAX_STEP = 1.0  # percent


class ProfileGestures:
    """Turns decisions into what is done on the screen of one game, and remembers the levels of funding.

    Attributes:
        headings: Where menus are opened.
        region: The part of the picture that the cells cover.
    """

    def __init__(self, profile: GameProfile, catalogue: Catalogue, cells: CellGrid) -> None:
        self._profile, self._catalogue = profile, catalogue
        self._lots = profile.lots if cells == "lots" else None
        grid = profile.grid
        self.region = (
            self._lots.region
            if self._lots is not None
            else Region(
                grid.region.left,
                grid.region.top,
                grid.region.left + grid.columns * grid.cell_width,
                grid.region.top + grid.rows * grid.cell_height,
            )
        )
        self.headings = tuple(menu.at for menu in profile.menus.values() if not menu.closed)
        self._closed = tuple(menu.at for menu in profile.menus.values() if menu.closed)
        self._fixed = self._make_fixed()
        self._funded = funded_sliders(profile)
        self._levels: dict[str, int] = {}
        self.begin()

    def begin(self) -> None:
        """Notes that a new city has begun, in which all departments are funded."""
        self._levels = dict.fromkeys(self._funded, len(FUNDING_LEVELS) - 1)

    def of(self, kind: int, cell: int, tax: float | None, target: Point | None = None) -> Sequence[Sequence[Deed]]:
        """Returns what is done for a decision: one or several things after each other, each drawn before the next.

        Args:
            kind: Number of the kind in the catalogue.
            cell: Number of the cell, for kinds that need one.
            tax: The tax that was read last; None if it is not known.
            target: Where to click, for kinds that choose an element of the interface; None clicks nowhere.
        """
        name = self._catalogue.kinds[kind].name
        fixed = self._fixed.get(name)
        if fixed is not None:
            return (fixed,)
        if name.startswith("tax_") and name.removeprefix("tax_") in ("up", "down"):
            return (self._change_tax(name, tax),)
        if self._catalogue.kinds[kind].group == "funding":
            return self._fund(*name.rsplit("_", 1))
        if name == "random_click":
            target = self._anywhere(cell)
        if self._catalogue.kinds[kind].group != "explore":
            return (self._build(name, cell),)
        return ((Click(target),),) if target is not None and not self.is_forbidden(target) else ((),)

    def is_forbidden(self, point: Point) -> bool:
        """Whether no exploring click may go there: a menu that no action opens."""
        return any(abs(point.x - at.x) <= _HEADING[0] and abs(point.y - at.y) <= _HEADING[1] for at in self._closed)

    def _build(self, name: str, cell: int) -> Sequence[Deed]:
        tools = self._profile.tools
        if self._lots is not None and name in self._lots.blocks:
            corner = self._lots.corners[cell]
            deeds: list[Deed] = []
            for part in self._lots.blocks[name]:
                start = _sum(corner, part.start)
                deeds.append(Click(tools[part.tool].at))
                deeds.append(Click(start) if part.end is None else Drag(start, _sum(corner, part.end)))
            return deeds
        if name in STREETS:
            return self._street(name, cell)
        return (Click(tools[BULLDOZER if name == "bulldoze" else name].at), Click(self._cell(cell)))

    def _street(self, name: str, cell: int) -> Sequence[Deed]:
        """A drag of some cells to the right or down, cut off at the edge of what is seen."""
        row, column = divmod(cell, self._catalogue.columns)
        across, down = STREETS[name]
        last_column = min(column + across * (STREET_CELLS - 1), self._catalogue.columns - 1)
        last_row = min(row + down * (STREET_CELLS - 1), self._catalogue.rows - 1)
        end = self._cell(last_row * self._catalogue.columns + last_column)
        return (Click(self._profile.tools[ROAD].at), Drag(self._cell(cell), end))

    def _change_tax(self, name: str, tax: float | None) -> Sequence[Deed]:
        """Clicks on the slider beside where it stands; nothing if that cannot be read."""
        if tax is None:
            return ()
        return (Click(self._profile.sliders[TAX].point(tax + (_TAX_STEP if name == "tax_up" else -_TAX_STEP))),)

    def _fund(self, name: str, way: str) -> Sequence[Sequence[Deed]]:
        """Opens the dialog by its menu, clicks on the slider of a department, and closes the dialog."""
        slider = self._funded[name]
        dialog = slider.dialog or ""
        level = min(max(self._levels[name] + (1 if way == "up" else -1), 0), len(FUNDING_LEVELS) - 1)
        self._levels[name] = level
        opens = next(
            (Click(menu.at), Click(menu.items[dialog]))
            for menu in self._profile.menus.values()
            if dialog in menu.items and not menu.closed
        )
        close = self._profile.dialogs[dialog].close
        return (opens, (Click(slider.point(FUNDING_LEVELS[level])),), close)

    def _cell(self, cell: int) -> Point:
        if self._lots is not None:
            return _sum(self._lots.corners[cell], self._lots.anchor)
        row, column = divmod(cell, self._catalogue.columns)
        return self._profile.grid.cell(column, row)

    def _anywhere(self, cell: int) -> Point:
        """The place of the window that a cell stands for if the whole window is divided as the map is."""
        row, column = divmod(cell, self._catalogue.columns)
        return Point((column + 0.5) / self._catalogue.columns, (row + 0.5) / self._catalogue.rows)

    def _make_fixed(self) -> Mapping[str, tuple[Deed, ...]]:
        """Kinds that are always the same gestures."""
        middle, profile = self.region.middle, self._profile
        return {
            "wait": (),
            "observe": (),
            "escape": (Key("Escape"),),
            "scroll_down": (Scroll(middle, -1),),
            "scroll_up": (Scroll(middle, 1),),
            **{f"camera_{name}": deeds for name, deeds in profile.camera.items()},
            **{
                f"menu.{name}.{item}": (Click(menu.at), Click(at))
                for name, menu in profile.menus.items()
                for item, at in menu.items.items()
            },
        }


def _sum(first: Point, second: Point) -> Point:
    return Point(first.x + second.x, first.y + second.y)
