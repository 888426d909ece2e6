"""Tests of growth: it needs roads, power, demand and work, and it has bounds."""

import numpy as np
import pytest
from flat_city import FlatCity  # type: ignore[import-not-found,unused-ignore]  # beside this file

from ludus.worlds.city.game.rules import Flag, Kind, Notice


def town(city: FlatCity, *, road: bool = True, power: bool = True, water: bool = False) -> FlatCity:
    """Three blocks of zones along a street."""
    for column in range(2, 30):
        if road:
            city.put(Kind.ROAD, column, 10)
        zone = (Kind.RESIDENTIAL, Kind.RESIDENTIAL, Kind.COMMERCIAL, Kind.INDUSTRIAL)[column % 4]
        for row in (8, 9, 11, 12):
            city.put(zone, column, row)
    if power:
        city.put(Kind.COAL, 31, 10)
        city.put(Kind.ROAD if road else Kind.LINE, 30, 10)
    if water:
        for column in (3, 9, 15, 21, 27):
            city.put(Kind.TOWER, column, 13)
    return city


@pytest.mark.parametrize(("road", "power"), [(False, True), (True, False), (False, False)])
def test_nothing_grows_without_road_or_power(road: bool, power: bool) -> None:
    city = town(FlatCity(), road=road, power=power)
    city.live_on(720)
    assert city.cells.amount[0].sum() == 0


def test_a_town_with_road_and_power_grows_to_the_first_capacity() -> None:
    city = town(FlatCity())
    city.live_on(360)
    first = city.number("population")
    city.live_on(1800)
    assert 100 < first < city.number("population")
    assert city.cells.amount[0].max() == 12


def test_water_doubles_the_capacity() -> None:
    city = town(FlatCity(), water=True)
    city.live_on(3600)
    watered = (city.cells.flags[0] & Flag.WATER) != 0
    assert 12 < city.cells.amount[0][watered].max() <= 48
    assert city.cells.amount[0][~watered].max() <= 12


def test_zones_that_lose_power_empty_by_three_a_tick() -> None:
    city = FlatCity()
    city.put(Kind.ROAD, 10, 10)
    city.put(Kind.RESIDENTIAL, 11, 10, amount=10)
    left = []
    for _ in range(4):
        city.live_on(10)
        left.append(city.amount(11, 10))
    assert left == [7, 4, 1, 0]


def test_a_network_without_work_stays_a_hamlet() -> None:
    city = FlatCity()
    for column in range(2, 30):
        city.put(Kind.ROAD, column, 10)
        for row in (8, 9, 11, 12):
            city.put(Kind.RESIDENTIAL, column, row)
    city.put(Kind.COAL, 31, 10)
    for row in range(11, 21):
        city.put(Kind.LINE, 31, row)
    for column in range(2, 30):  # work, but on a road of its own
        city.put(Kind.ROAD, column, 20)
        city.put(Kind.INDUSTRIAL, column, 21)
    city.live_on(1800)
    assert 0 < city.total(Kind.RESIDENTIAL) < 60
    assert 0 < city.total(Kind.INDUSTRIAL) < 45  # and nobody there to work more


def test_high_taxes_drive_people_away() -> None:
    fair, dear = town(FlatCity()), town(FlatCity())
    fair.live_on(720)
    dear.live_on(720)
    assert fair.number("population") == dear.number("population")
    dear.editor.set_tax(0, 20)
    fair.live_on(360)
    dear.live_on(360)
    assert dear.number("population") < 0.7 * fair.number("population")
    assert dear.number("happiness") < fair.number("happiness") - 20


@pytest.mark.parametrize(("people", "grows"), [(8, True), (10, False)])
def test_a_full_road_lets_nothing_grow_beside_it(people: int, grows: bool) -> None:
    city = FlatCity()
    city.put(Kind.ROAD, 10, 10)
    city.put(Kind.COAL, 12, 12)
    for row in range(8, 13):
        for column in range(8, 13):
            if (column, row) not in ((10, 10), (12, 12)):
                city.put(Kind.RESIDENTIAL if column < 10 else Kind.INDUSTRIAL, column, row, amount=people)
    city.live(10)
    assert city.number("traffic") == 100.0  # 23 zones x 8 = 184 trips on a road for 160; 230 are more than 1.25 x 160
    assert (city.total(Kind.RESIDENTIAL) > 10 * people) == grows


def test_smoke_spreads_from_industry_and_coal() -> None:
    city = FlatCity()
    city.put(Kind.COAL, 10, 10)
    city.live(10)
    air = city.cells.air[0].reshape(24, 32)
    assert air[10, 10] == pytest.approx(0.25 * 70.0)
    assert air[10, 11] == 0.0
    city.live(10)
    assert air[10, 10] == pytest.approx(0.5 * 17.5 + 17.5)
    assert air[10, 11] == pytest.approx(0.115 * 17.5)


def test_the_value_of_land_is_the_sum_of_what_reaches_it() -> None:
    city = FlatCity()
    city.simulation.cells.terrain[0, 5 * 32 + 6] = 2  # trees to the right of the cell
    city.put(Kind.PARK, 5, 7)
    city.live(10)
    value = city.cells.value[0].reshape(24, 32)
    shore = np.asarray(city.simulation.snapshot()["shore"])[0].reshape(24, 32)
    assert value[5, 5] == pytest.approx(28.0 + 10.0 * shore[5, 5] + 3.0 + 12.0)


def test_demand_of_an_empty_city_by_hand() -> None:
    city = FlatCity()
    city.live(10)
    assert city.number("demand_residential") == 100.0  # 100 x 20 / 20
    assert city.number("demand_commercial") == 50.0  # 100 x 4 / 8
    assert city.number("demand_industrial") == 100.0  # 100 x 15 / 15


def test_everything_stays_in_its_bounds_over_a_hundred_years() -> None:
    city = town(FlatCity(events=True), water=True)
    seen = 0
    for _ in range(100):
        city.live_on(360)
        seen |= int(city.number("notice"))
        for name in ("happiness", "traffic", "pollution", "value"):
            assert 0.0 <= city.number(name) <= 100.0
        for name in ("demand_residential", "demand_commercial", "demand_industrial"):
            assert -100.0 <= city.number(name) <= 100.0
        assert city.cells.amount[0].min() >= 0
        assert city.cells.amount[0].max() <= 48
        assert city.number("population") <= 48 * int((city.cells.kind[0] == Kind.RESIDENTIAL).sum())
    assert not seen & Notice.BANKRUPT
