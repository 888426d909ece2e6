"""The catalogue of a game that has a profile: the kinds of action that its tools, menus and sliders make possible."""

from collections.abc import Iterator, Sequence

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.envs.city.catalogue import CAMERA, EXPLORATORY, STREET_CELLS, STREETS, ActionKind, Catalogue
from ludus.envs.city.config import GROUPS, CellGrid, Group
from ludus.envs.city.profile import GameProfile, Slider

BULLDOZER, ROAD, TAX = "bulldozer", "road", "tax"  # names in a profile that mean the same in every game


def profile_catalogue(
    profile: GameProfile, groups: Sequence[Group], cells: CellGrid, names: Sequence[str] | None
) -> Catalogue:
    """Returns the catalogue of a game.

    Args:
        profile: The game.
        groups: Groups that there are beside waiting.
        cells: Whether a cell is a tile of the map or a lot.
        names: Kinds that there are beside waiting; None for all of the groups.

    Raises:
        ConfigError: The game has no lots, or nothing to do is left.
        UnknownNameError: A name is none of a kind in these groups.
    """
    if cells == "lots" and profile.lots is None:
        raise ConfigError(f"the profile of {profile.title} has no lots; use cells: tiles, or add a section lots to it")
    kinds = [kind for kind in _all_kinds(profile, cells) if kind.group in groups]
    unknown = [name for name in names or () if name not in {kind.name for kind in kinds}]
    if unknown:
        raise UnknownNameError(f"kind of action of {profile.title}", unknown[0], [kind.name for kind in kinds])
    kinds = [kind for kind in kinds if names is None or kind.name in names]
    if not kinds:
        raise ConfigError(f"actions {', '.join(groups)} leave nothing to do in this game; valid: {', '.join(GROUPS)}")
    grid = profile.lots if cells == "lots" and profile.lots is not None else profile.grid
    return Catalogue([ActionKind("wait", "wait"), *kinds], grid.columns, grid.rows)


def funded_sliders(profile: GameProfile) -> dict[str, Slider]:
    """Returns the sliders of departments: those in a dialog that an item of a menu, which may be opened, opens."""
    return {
        name: slider
        for name, slider in profile.sliders.items()
        if slider.dialog is not None
        and any(slider.dialog in menu.items for menu in profile.menus.values() if not menu.closed)
    }


def _all_kinds(profile: GameProfile, cells: CellGrid) -> Iterator[ActionKind]:
    if cells == "lots" and profile.lots is not None:
        yield from _block_kinds(profile)
    for name, tool in profile.tools.items():
        # A tool for a single cell does nothing for a lot; there are blocks for what it builds.
        if tool.cost > 0 and name != BULLDOZER and (cells == "tiles" or tool.cells > 1):
            yield ActionKind(name, "build", uses_cell=True, least_cost=tool.cost, most_cost=tool.most)
    if BULLDOZER in profile.tools:
        tool = profile.tools[BULLDOZER]
        yield ActionKind("bulldoze", "bulldoze", uses_cell=True, least_cost=tool.cost, most_cost=tool.most)
    if ROAD in profile.tools and cells == "tiles":
        tool = profile.tools[ROAD]
        for name in STREETS:
            yield ActionKind(name, "street", uses_cell=True, least_cost=tool.cost, most_cost=tool.most * STREET_CELLS)
    if TAX in profile.sliders and TAX in profile.readings and profile.sliders[TAX].dialog is None:
        yield from (ActionKind(f"tax_{way}", "tax") for way in ("up", "down"))
    for name in funded_sliders(profile):
        yield from (ActionKind(f"{name}_{way}", "funding") for way in ("up", "down"))
    for menu, content in profile.menus.items():
        if not content.closed:
            yield from (ActionKind(f"menu.{menu}.{item}", "menu") for item in content.items)
    yield from (ActionKind(name, "camera") for name in CAMERA if name.removeprefix("camera_") in profile.camera)
    yield from (ActionKind(name, "explore", uses_cell=name == "random_click") for name in EXPLORATORY)


def _block_kinds(profile: GameProfile) -> Iterator[ActionKind]:
    """Blocks cost what all their parts do on plain ground, and a little for clearing it, no less and no more."""
    if profile.lots is None:
        return
    for name, parts in profile.lots.blocks.items():
        cost = sum(profile.tools[part.tool].cost * part.cells for part in parts)
        yield ActionKind(name, "build", uses_cell=True, least_cost=cost, most_cost=cost + profile.lots.extra)
