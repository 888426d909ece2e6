"""Tests of the interface: clicks at the places where things are drawn do what is written there."""

import pytest
from city_clicks import PLAIN, Player, elements_of  # type: ignore[import-not-found,unused-ignore]  # beside this file

from ludus.core.errors import SnapshotError
from ludus.worlds.city.drivers.driver import Drag, Move, Scroll
from ludus.worlds.city.game.rules import CityRules, Kind, Notice, Over, Terrain, Tool
from ludus.worlds.city.interface.machine import TOOL_KEYS
from ludus.worlds.city.interface.menus import Dialog, Overlay, Speed, Window, all_entries
from ludus.worlds.city.interface.state import InterfaceState
from ludus.worlds.city.interface.theme import THEMES
from ludus.worlds.city.painting.typefaces import typeface_of


@pytest.fixture
def player() -> Player:
    return Player()


def test_every_button_of_the_palette_selects_its_tool(player: Player) -> None:
    for tool in Tool:
        player.click(f"tool.{tool.name.lower()}")
        assert player.state.tool == tool
        assert player.games.texts(0)["message"].endswith("selected")


def test_every_letter_selects_its_tool(player: Player) -> None:
    assert sorted(TOOL_KEYS.values()) == list(Tool)
    for key, tool in TOOL_KEYS.items():
        player.key(key)
        assert player.state.tool == tool


def test_a_click_on_the_map_builds_in_that_cell(player: Player) -> None:
    player.click("tool.road")
    player.click_cell(7, 4)
    assert player.kind(7, 4) == Kind.ROAD
    assert player.games.simulation.city["funds"][0] == 9_990.0
    assert player.games.texts(0)["message"] == "Road built for $10"
    player.click_cell(7, 4)
    assert player.games.texts(0)["message"] == "Something stands there already"
    player.games.simulation.city["funds"][0] = 100
    player.click("tool.coal")
    player.click_cell(9, 9)
    assert player.games.texts(0)["message"] == "Not enough money: costs $2,500"
    assert player.kind(9, 9) == Kind.EMPTY


def open_menu(player: Player, path: str) -> None:
    """Clicks from the heading down to an entry."""
    parts = path.split(".")
    for depth in range(2, len(parts) + 1):
        player.click(".".join(parts[:depth]))


@pytest.mark.parametrize("path", [path for path, entry in all_entries() if not entry.children])
def test_every_entry_of_every_menu_can_be_clicked(player: Player, path: str) -> None:
    open_menu(player, path)
    assert player.state.path == ()
    checks = {
        "menu.file.new": lambda: player.state.dialogs[0][0] == Dialog.ABANDON,
        "menu.speed.fast": lambda: player.state.speed == Speed.FAST,
        "menu.budget.window": lambda: player.state.window == Window.BUDGET,
        "menu.budget.taxes.raise": lambda: player.number("tax") == 8,
        "menu.budget.taxes.12": lambda: player.number("tax") == 12,
        "menu.budget.funding.safety.50": lambda: player.number("funding_safety") == 50,
        "menu.budget.funding.welfare.0": lambda: player.number("funding_welfare") == 0,
        "menu.overlays.land_value": lambda: player.state.overlay == Overlay.VALUE,
        "menu.overlays.services.school": lambda: player.state.overlay == Overlay.SCHOOL,
        "menu.windows.graph": lambda: player.state.window == Window.GRAPH,
        "menu.options.hints": lambda: player.state.hints == 0,
        "menu.options.report": lambda: player.number("report") == 1,
    }
    assert checks.get(path, lambda: True)()
    player.games.capture(0)  # whatever was opened can be drawn


def test_marks_show_what_holds(player: Player) -> None:
    player.click("menu.speed")
    marks = player.games.interfaces[0].marks()
    assert {"menu.speed.normal", "menu.overlays.none", "menu.budget.taxes.7", "menu.options.hints"} <= marks
    assert "menu.speed.fast" not in marks


def test_submenus_open_under_the_pointer_and_close_with_a_click_elsewhere(player: Player) -> None:
    player.click("menu.budget")
    player.hover("menu.budget.funding")
    player.hover("menu.budget.funding.transport")
    assert "menu.budget.funding.transport.80" in player.names()
    player.hover("menu.budget.taxes")
    assert "menu.budget.funding.transport.80" not in player.names()
    player.hover("menu.overlays")
    assert "menu.overlays.power" in player.names()
    player.click_cell(20, 18)
    assert player.state.path == ()
    assert player.state.window == Window.NONE  # the click closed the menu and did nothing else


def test_a_dialog_has_to_be_closed_before_anything_else(player: Player) -> None:
    player.games.simulation.city["notice"][0] = Notice.BOOM
    player.games.interfaces[0].take_notices()
    player.click("tool.road")
    assert player.state.tool == Tool.QUERY
    assert player.games.texts(0)["message"] == "Close the dialog first"
    player.key("r", "Left", "F1")
    player.wait(5.0)
    assert (player.state.tool, player.state.window, player.number("day")) == (Tool.QUERY, Window.NONE, 0)
    player.click("dialog.ok")
    player.wait(5.0)
    assert player.number("day") == 50


def test_several_notices_become_dialogs_one_after_the_other(player: Player) -> None:
    player.games.simulation.city["notice"][0] = Notice.YEAR | Notice.DEBT | Notice.MILESTONE
    player.games.interfaces[0].take_notices()
    titles = []
    while "dialog" in player.names():
        titles.append(
            next(element.label for element in elements_of(player.games.interfaces[0]) if element.name == "dialog")
        )
        player.key("Return")
    assert titles == ["Milestone", "Yearly report", "Warning"]


def shown_values(player: Player) -> dict[str, str]:
    """Returns what stands in the dialog or window on the screen, by its labels."""
    pane = player.games.interfaces[0].pane()
    assert pane is not None
    return {"title": pane.pane.title} | {row.label: row.value for row in pane.pane.rows}


def test_a_window_says_at_once_what_a_click_has_changed(player: Player) -> None:
    player.key("space", "F1")  # no day passes that would bring it up to date
    assert "Taxes 7%" in shown_values(player)
    player.click("window.tax.up")
    assert "Taxes 8%" in shown_values(player)
    player.click("window.close")
    player.games.editor.do(0, Tool.ROAD, 6, 6)
    player.click("tool.query")
    player.click_cell(5, 6)
    assert shown_values(player)["Here"] == "Land"
    player.click_cell(6, 6)
    assert shown_values(player)["Here"] == "Road"
    player.games.simulation.city["notice"][0] = Notice.YEAR | Notice.MILESTONE
    player.games.interfaces[0].take_notices()
    assert shown_values(player)["title"] == "Milestone"
    player.click("dialog.ok")
    assert shown_values(player)["title"] == "Yearly report"


def test_a_plant_is_demolished_only_after_a_question(player: Player) -> None:
    player.games.editor.do(0, Tool.COAL, 5, 5)
    player.click("tool.bulldozer")
    player.click_cell(5, 5)
    player.click("dialog.no")
    assert player.kind(5, 5) == Kind.COAL
    player.click_cell(5, 5)
    player.click("dialog.yes")
    assert player.kind(5, 5) == Kind.EMPTY
    assert player.number("funds") == 10_000 - 2_500 - 2


def test_a_city_can_be_left_for_a_new_one(player: Player) -> None:
    open_menu(player, "menu.file.new")
    player.key("Escape")
    assert player.number("over") == Over.PLAYING
    open_menu(player, "menu.file.new")
    player.click("dialog.yes")
    assert player.number("over") == Over.ABANDONED
    assert player.games.over().tolist() == [True]


def test_the_budget_is_changed_by_its_buttons(player: Player) -> None:
    player.key("F1")
    player.click("window.tax.up", "window.tax.up", "window.safety.down", "window.transport.down", "window.transport.up")
    assert (player.number("tax"), player.number("funding_safety"), player.number("funding_transport")) == (9, 90, 100)
    player.click("tax.down")
    assert player.games.texts(0)["tax"] == "8%"
    player.click("window.close")
    assert "window" not in player.names()
    player.key("plus", "minus", "minus")
    assert player.number("tax") == 7


def test_a_query_tells_what_is_there(player: Player) -> None:
    player.games.editor.do(0, Tool.ROAD, 6, 6)
    player.games.editor.do(0, Tool.RESIDENTIAL, 7, 6)
    player.wait()
    player.click_cell(7, 6)
    pane = player.games.interfaces[0].pane()
    assert pane is not None
    said = {row.label: row.value for row in pane.pane.rows}
    assert (said["Here"], said["People"], said["Road"], said["Power"]) == ("Residential", "0", "yes", "no")
    player.key("r")
    player.click_cell(6, 6, "right")  # the right button asks with any tool
    assert player.state.window == Window.QUERY


def test_button_line_and_bill_name_the_same_price(player: Player) -> None:
    def shown() -> tuple[str, str]:
        hint = player.games.interfaces[0].hint()
        return "" if hint is None else hint.text, player.games.texts(0)["tool"]

    player.click("tool.industrial")
    player.hover("tool.industrial")
    assert shown() == ("Industrial $240", "Industrial $240"), "four cells of $60"
    player.games.simulation.cells.terrain[0, 6 * PLAIN.columns + 6] = Terrain.TREES
    player.games.act(0, [Move(player.at_cell(6, 6))])
    assert shown() == ("", "Industrial $245"), "one of them has trees"
    player.click_cell(6, 6)
    assert player.games.texts(0)["message"] == "Industrial built for $245"
    assert player.games.simulation.city["funds"][0] == 10_000.0 - 245.0
    assert shown() == ("", "Industrial"), "nothing can be built there any more"
    player.games.act(0, [Move(player.at_cell(7, 7))])
    assert shown() == ("", "Industrial $180"), "one cell is taken"


@pytest.mark.parametrize("theme", sorted(THEMES))
@pytest.mark.parametrize("height", [400, 720])
def test_every_price_fits_into_the_line(theme: str, height: int) -> None:
    look = THEMES[theme]
    player = Player(theme, (height * 8 // 5, height), CityRules(zone_brush=4, hamlet=False, threads=1))
    player.games.simulation.cells.terrain[:] = Terrain.HILL
    player.games.simulation.city["funds"][0] = 1_000_000
    face = typeface_of(look.family, look.size_for(height))
    for tool in Tool:
        player.click(f"tool.{tool.name.lower()}")
        player.games.act(0, [Move(player.at_cell(4, 4))])
        text = player.games.texts(0)["tool"]
        assert face.width(text) + 6 <= player.games.layout(0).tool_label.width, text


def test_tooltips_tell_what_is_under_the_pointer(player: Player) -> None:
    player.hover("tool.police")
    hint = player.games.interfaces[0].hint()
    assert hint is not None
    assert hint.text == "Police $500"
    player.hover("field.funds")
    hint = player.games.interfaces[0].hint()
    assert hint is not None
    assert hint.text == "Money of the city"
    open_menu(player, "menu.options.hints")
    player.hover("tool.police")
    assert player.games.interfaces[0].hint() is None


def test_the_camera_moves_by_keys_wheel_and_arrows_and_stops_at_the_edge() -> None:
    player = Player(rules=PLAIN.model_copy(update={"columns": 64, "rows": 48}))
    view = player.games.layout(0).view
    player.key("Right", "Down", "Down")
    assert (player.state.column, player.state.row) == (4, 8)
    player.games.act(0, [Scroll(player.at_cell(20, 20), 1)])
    assert player.state.row == 4
    player.click("scroll.left", "scroll.left", "scroll.up", "scroll.up", "scroll.right")
    assert (player.state.column, player.state.row) == (4, 0)
    player.key(*["Right"] * 30, *["Down"] * 30)
    assert (player.state.column, player.state.row) == (64 - view.columns, 48 - view.rows)
    player.key("d")
    player.click_cell(63, 47)
    assert player.kind(63, 47) == Kind.ROAD


def test_dragging_lays_roads_around_a_corner_and_zones_over_an_area(player: Player) -> None:
    player.key("d")
    player.games.act(0, [Drag(player.at_cell(3, 3), player.at_cell(6, 5))])
    roads = {(x, y) for x in range(32) for y in range(24) if player.kind(x, y) == Kind.ROAD}
    assert roads == {(3, 3), (4, 3), (5, 3), (6, 3), (6, 4), (6, 5)}
    assert player.games.texts(0)["message"] == "6 built for $60"
    player.key("p")
    player.games.act(0, [Drag(player.at_cell(12, 6), player.at_cell(10, 5))])
    assert sum(player.kind(x, y) == Kind.PARK for x in range(32) for y in range(24)) == 6
    player.games.simulation.city["funds"][0] = 25
    player.key("d")
    player.games.act(0, [Drag(player.at_cell(20, 10), player.at_cell(28, 10))])
    assert player.number("funds") == 5
    assert player.games.texts(0)["message"] == "Not enough money: costs $10"


def test_the_clock_follows_the_speed(player: Player) -> None:
    player.wait(1.0)
    assert player.number("day") == 10
    player.key("1")
    player.wait(1.0)
    assert player.number("day") == 15
    player.key("3")
    player.wait(1.0)
    assert player.number("day") == 35
    player.key("space")
    player.wait(9.0)
    assert (player.number("day"), player.games.texts(0)["speed"]) == (35, "Pause")
    player.key("space")
    assert player.games.texts(0)["speed"] == "Fast"
    player.key("2")
    for _ in range(20):
        player.wait(0.033)  # what is less than a day is kept
    assert player.number("day") == 35 + 6


def test_escape_leaves_what_is_uppermost(player: Player) -> None:
    player.key("r", "F1")
    open_menu(player, "menu.overlays.power")
    player.click("menu.file")
    for path, window, overlay, tool in (
        ((), Window.BUDGET, Overlay.POWER, Tool.RESIDENTIAL),
        ((), Window.NONE, Overlay.POWER, Tool.RESIDENTIAL),
        ((), Window.NONE, Overlay.NONE, Tool.RESIDENTIAL),
        ((), Window.NONE, Overlay.NONE, Tool.QUERY),
    ):
        player.key("Escape")
        state = player.state
        assert (state.path, state.window, state.overlay, state.tool) == (path, window, overlay, tool)


def test_the_state_survives_as_whole_numbers(player: Player) -> None:
    player.key("r", "F2", "Down", "3")
    player.click("menu.budget", "menu.budget.taxes")
    player.state.dialogs = [(Dialog.FIRE, 0, 77), (Dialog.STORM, 3, 5)]
    assert InterfaceState.of_words(player.state.words(), 768) == player.state


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"tool": 99}, "tool.* 99"),
        ({"window": Window.QUERY, "window_cell": 768}, "window_cell.* 768"),
        ({"message": 3, "message_first": 0}, "message_first.* 0"),
        ({"path": (9,)}, "menu"),
        ({"path": (0, 0)}, "menu"),
        ({"dialogs": [(Dialog.FIRE, 0, -1)]}, "dialog.* 2 .*-1"),
    ],
)
def test_a_state_that_cannot_be_is_refused(player: Player, changes: dict[str, object], named: str) -> None:
    for name, value in changes.items():
        setattr(player.state, name, value)
    with pytest.raises(SnapshotError, match=named):
        InterfaceState.of_words(player.state.words(), 768)
