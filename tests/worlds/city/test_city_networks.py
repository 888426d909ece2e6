"""Tests of roads, power, water and services: who is reached by what, with distances counted by hand."""

import pytest
from flat_city import FlatCity  # type: ignore[import-not-found,unused-ignore]  # beside this file

from ludus.worlds.city.game.rules import Department, Flag, Kind


@pytest.fixture
def city() -> FlatCity:
    return FlatCity()


@pytest.mark.parametrize(
    ("column", "row", "served"), [(12, 10, True), (12, 12, True), (13, 10, False), (10, 13, False)]
)
def test_a_zone_needs_a_road_within_two_cells(city: FlatCity, column: int, row: int, served: bool) -> None:
    city.put(Kind.ROAD, 10, 10)
    city.put(Kind.RESIDENTIAL, column, row)
    city.live(10)
    assert city.has(Flag.ROAD, column, row) == served


@pytest.mark.parametrize(("column", "row", "reached"), [(7, 5, True), (6, 6, True), (8, 5, False), (7, 6, False)])
def test_power_jumps_two_cells(city: FlatCity, column: int, row: int, reached: bool) -> None:
    city.put(Kind.COAL, 5, 5)
    city.put(Kind.RESIDENTIAL, column, row)
    city.live(10)
    assert city.has(Flag.POWER, column, row) == reached


@pytest.mark.parametrize("between", [Kind.LINE, Kind.ROAD, Kind.COMMERCIAL, Kind.PARK])
def test_power_goes_on_over_what_is_built(city: FlatCity, between: Kind) -> None:
    city.put(Kind.WIND, 5, 5)
    city.put(between, 7, 5)
    city.put(between, 9, 5)
    city.put(Kind.RESIDENTIAL, 11, 5)
    city.live(10)
    assert city.has(Flag.POWER, 11, 5)
    city.put(Kind.RUBBLE, 9, 5)
    city.live(10)
    assert not city.has(Flag.POWER, 11, 5)


def test_power_reaches_the_nearest_first_until_it_is_used_up(city: FlatCity) -> None:
    city.put(Kind.WIND, 0, 5)  # 60 units; a zone with 8 people takes 1 + 8 / 8 = 2 of them
    for column in range(1, 32):
        city.put(Kind.RESIDENTIAL, column, 5, amount=8)
    city.live(10)
    assert (city.number("power_supply"), city.number("power_need")) == (60, 62)
    assert [city.has(Flag.POWER, column, 5) for column in (1, 15, 30, 31)] == [True, True, True, False]


def test_two_plants_of_one_network_add_up(city: FlatCity) -> None:
    city.put(Kind.WIND, 0, 5)
    city.put(Kind.WIND, 0, 6)
    city.put(Kind.COAL, 20, 20)  # connected with nothing
    for column in range(1, 32):
        city.put(Kind.RESIDENTIAL, column, 5, amount=8)
    city.live(10)
    assert city.number("power_supply") == 60 + 60 + 400
    assert city.has(Flag.POWER, 31, 5)


@pytest.mark.parametrize(
    ("column", "row", "reached"), [(14, 10, True), (15, 10, False), (12, 13, True), (13, 13, False)]
)
def test_a_tower_reaches_four_cells_as_the_crow_flies(city: FlatCity, column: int, row: int, reached: bool) -> None:
    city.put(Kind.TOWER, 10, 10)
    city.put(Kind.WIND, 10, 9)
    city.live(10)
    assert city.has(Flag.WATER, column, row) == reached


def test_water_needs_power(city: FlatCity) -> None:
    city.put(Kind.TOWER, 10, 10)
    city.live(10)
    assert not city.has(Flag.WATER, 10, 10)


@pytest.mark.parametrize("kind", [Kind.POLICE, Kind.FIRE, Kind.CLINIC, Kind.SCHOOL])
def test_services_need_power_and_a_road(city: FlatCity, kind: Kind) -> None:
    flag = Flag[kind.name]
    city.put(kind, 10, 10)
    city.put(Kind.WIND, 10, 11)
    city.live(10)
    assert not city.has(flag, 10, 10)
    city.put(Kind.ROAD, 12, 12)
    city.live(10)
    assert city.has(flag, 16, 10)
    assert not city.has(flag, 17, 10)


def test_half_the_funding_reaches_half_as_far(city: FlatCity) -> None:
    city.put(Kind.POLICE, 10, 10)
    city.put(Kind.SCHOOL, 11, 10)
    city.put(Kind.WIND, 10, 11)
    city.put(Kind.ROAD, 11, 11)
    city.editor.set_funding(0, Department.SAFETY, 50)
    city.live(10)
    assert city.has(Flag.POLICE, 7, 10)
    assert not city.has(Flag.POLICE, 6, 10)
    assert city.has(Flag.SCHOOL, 17, 10)


def test_a_park_needs_nothing(city: FlatCity) -> None:
    city.put(Kind.PARK, 10, 10)
    city.live(10)
    assert city.has(Flag.PARK, 13, 10)
    assert not city.has(Flag.PARK, 14, 10)
