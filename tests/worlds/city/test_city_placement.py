"""Tests of building and tearing down: costs by hand, and every reason for which nothing is done."""

import pytest
from flat_city import COLUMNS, FlatCity  # type: ignore[import-not-found,unused-ignore]  # beside this file

from ludus.worlds.city.game.placement import Fault
from ludus.worlds.city.game.rules import Department, Kind, Over, Terrain, Tool


@pytest.fixture
def city() -> FlatCity:
    return FlatCity()


@pytest.mark.parametrize(
    ("tool", "terrain", "cost"),
    [
        (Tool.ROAD, Terrain.LAND, 10),
        (Tool.ROAD, Terrain.TREES, 15),
        (Tool.ROAD, Terrain.HILL, 20),
        (Tool.ROAD, Terrain.WATER, 60),
        (Tool.LINE, Terrain.LAND, 4),
        (Tool.LINE, Terrain.WATER, 12),
        (Tool.COAL, Terrain.LAND, 2500),
        (Tool.COAL, Terrain.HILL, 5000),
        (Tool.PARK, Terrain.TREES, 65),
    ],
)
def test_a_cell_costs_what_the_table_says(city: FlatCity, tool: Tool, terrain: Terrain, cost: int) -> None:
    city.lay(terrain, 4, 5)
    plan = city.editor.do(0, tool, 4, 5)
    assert (plan.fault, plan.cost, plan.cells) == (Fault.NONE, cost, (5 * COLUMNS + 4,))
    assert city.number("funds") == 10_000 - cost
    assert city.cells.kind[0, 5 * COLUMNS + 4] == int(tool)
    assert city.cells.terrain[0, 5 * COLUMNS + 4] == (Terrain.LAND if terrain == Terrain.TREES else terrain)


def test_a_zone_takes_the_free_cells_of_its_brush(city: FlatCity) -> None:
    city.put(Kind.ROAD, 11, 10)
    city.lay(Terrain.WATER, 10, 11)
    plan = city.editor.do(0, Tool.RESIDENTIAL, 10, 10)
    assert plan.cells == (10 * COLUMNS + 10, 11 * COLUMNS + 11)
    assert plan.cost == 100
    assert city.editor.do(0, Tool.COMMERCIAL, 20, 10).cost == 4 * 60
    assert city.editor.do(0, Tool.INDUSTRIAL, 31, 23).cost == 60  # the corner of the map


def test_nothing_is_built_that_cannot_be_paid(city: FlatCity) -> None:
    city.city["funds"][0] = 199
    plan = city.editor.do(0, Tool.RESIDENTIAL, 3, 3)
    assert (plan.fault, plan.cost) == (Fault.TOO_EXPENSIVE, 200)
    assert city.number("funds") == 199
    assert (city.cells.kind[0] == Kind.EMPTY).all()


@pytest.mark.parametrize(
    ("tool", "column", "row", "fault"),
    [
        (Tool.ROAD, 7, 7, Fault.OCCUPIED),
        (Tool.RESIDENTIAL, 8, 7, Fault.ON_WATER),
        (Tool.POLICE, 8, 7, Fault.ON_WATER),
        (Tool.PUMP, 12, 7, Fault.FAR_FROM_WATER),
        (Tool.BULLDOZER, 20, 7, Fault.NOTHING_THERE),
        (Tool.ROAD, 32, 7, Fault.OUTSIDE),
        (Tool.ROAD, 3, -1, Fault.OUTSIDE),
    ],
)
def test_faults_are_named_and_cost_nothing(city: FlatCity, tool: Tool, column: int, row: int, fault: Fault) -> None:
    city.put(Kind.ROAD, 7, 7)
    for x, y in ((8, 7), (9, 7), (8, 8), (9, 8)):
        city.lay(Terrain.WATER, x, y)
    before = city.cells.kind.copy()
    assert city.editor.do(0, tool, column, row).fault == fault
    assert city.number("funds") == 10_000
    assert (city.cells.kind == before).all()


def test_a_pump_stands_beside_water_also_across_a_corner(city: FlatCity) -> None:
    city.lay(Terrain.WATER, 9, 9)
    assert city.editor.plan(0, Tool.PUMP, 10, 10).fault == Fault.NONE
    assert city.editor.plan(0, Tool.PUMP, 11, 9).fault == Fault.FAR_FROM_WATER


def test_the_bulldozer_clears_buildings_and_trees_for_two_dollars(city: FlatCity) -> None:
    city.lay(Terrain.TREES, 2, 2)
    assert city.editor.do(0, Tool.BULLDOZER, 2, 2).cost == 2
    assert city.cells.terrain[0, 2 * COLUMNS + 2] == Terrain.LAND
    city.put(Kind.RESIDENTIAL, 4, 4, amount=30)
    city.editor.do(0, Tool.BULLDOZER, 4, 4)
    assert city.cells.kind[0, 4 * COLUMNS + 4] == Kind.EMPTY
    assert city.amount(4, 4) == 0
    assert city.number("funds") == 10_000 - 4


def test_building_and_clearing_never_gains_money(city: FlatCity) -> None:
    for tool in Tool:
        before = city.number("funds")
        city.editor.do(0, tool, 15, 15)
        city.editor.do(0, Tool.BULLDOZER, 15, 15)
        assert city.number("funds") <= before


def test_a_city_that_is_over_cannot_be_built_in(city: FlatCity) -> None:
    city.city["over"][0] = Over.BANKRUPT
    assert city.editor.do(0, Tool.ROAD, 1, 1).fault == Fault.OVER


def test_taxes_and_funding_keep_to_their_ranges(city: FlatCity) -> None:
    assert city.editor.set_tax(0, 25) == 20
    assert city.editor.set_tax(0, -3) == 0
    assert city.editor.set_funding(0, Department.SAFETY, 87) == 80
    assert city.editor.set_funding(0, Department.SAFETY, 130) == 100
    assert city.editor.funding(0, Department.WELFARE) == 100
