"""Tests of taxes, upkeep, debts, bankruptcy and grants, with sums computed by hand."""

import pytest
from flat_city import FlatCity  # type: ignore[import-not-found,unused-ignore]  # beside this file

from ludus.worlds.city.game.rules import Department, Kind, Notice, Over, Terrain


@pytest.fixture
def city() -> FlatCity:
    return FlatCity()


def test_taxes_fall_due_every_day(city: FlatCity) -> None:
    city.city["population"][0], city.city["filled"][0] = 100, 40
    city.live(9)  # people are counted again on the tenth day
    assert city.number("tax_due") == (100 + 40) * 7 * 2 * 9  # 7 percent, 2 thousandths of a dollar for each
    city.editor.set_tax(0, 20)
    city.city["tax_due"][0] = 0
    city.city["day"][0] = 0
    city.live(1)
    assert city.number("tax_due") == 140 * 20 * 2


def test_a_month_brings_whole_dollars_and_keeps_the_rest(city: FlatCity) -> None:
    city.live(29)
    city.city["tax_due"][0] = 123_456
    city.live(1)
    assert (city.number("income"), city.number("tax_due"), city.number("funds")) == (123, 456, 10_123)


def test_departments_are_paid_by_what_stands(city: FlatCity) -> None:
    for column in range(5):
        city.put(Kind.ROAD, column, 3)
    city.lay(Terrain.WATER, 5, 3)
    city.put(Kind.ROAD, 5, 3)  # a bridge
    city.put(Kind.COAL, 10, 10)
    city.put(Kind.POLICE, 12, 10)
    city.put(Kind.PARK, 14, 10)
    city.put(Kind.CLINIC, 15, 10)
    city.live(30)
    assert city.number("paid_transport") == 5 * 1 + 3
    assert city.number("paid_safety") == 30
    assert city.number("paid_welfare") == 2 + 36
    assert city.number("paid_utilities") == 60
    assert city.number("balance") == -(8 + 30 + 38 + 60)
    assert city.number("funds") == 10_000 - 136
    city.editor.set_funding(0, Department.TRANSPORT, 50)
    city.editor.set_funding(0, Department.WELFARE, 0)
    city.live(30)
    assert city.number("balance") == -(4 + 30 + 0 + 60)


def test_debts_cost_interest(city: FlatCity) -> None:
    city.city["funds"][0] = -550
    city.live(30)
    assert (city.number("paid_interest"), city.number("funds")) == (5, -555)


def test_a_city_below_the_debt_limit_is_warned_and_then_bankrupt(city: FlatCity) -> None:
    city.city["funds"][0] = -1_500
    city.live(30)
    assert city.number("notice") == Notice.DEBT
    city.live(30)
    assert city.number("day") == 30  # the clock waits until the notice is taken
    for month in range(2, 6):
        city.city["notice"][0] = 0
        city.live(30)
        assert (city.number("debt_months"), city.number("over")) == (month, Over.PLAYING)
    city.live(30)
    assert (city.number("over"), city.number("notice")) == (Over.BANKRUPT, Notice.BANKRUPT)
    city.city["notice"][0] = 0
    city.live(30)
    assert city.number("day") == 180


def test_whoever_gets_above_the_limit_in_time_goes_on(city: FlatCity) -> None:
    city.city["funds"][0] = -1_500
    city.live_on(120)
    city.city["funds"][0] = -900
    city.live_on(30)
    assert city.number("debt_months") == 0
    city.live_on(30 * 8)  # interest takes longer than that to get it below again
    assert city.number("over") == Over.PLAYING


def test_a_milestone_is_granted_once(city: FlatCity) -> None:
    for column in range(5):
        city.put(Kind.RESIDENTIAL, column, 5, amount=13)
    city.live(10)  # without road and power three leave each: 50 are left
    assert (city.number("population"), city.number("notice")) == (50, Notice.MILESTONE)
    assert (city.number("notice_amount"), city.number("funds"), city.number("milestones")) == (100, 10_100, 1)
    city.put(Kind.RESIDENTIAL, 9, 5, amount=48)
    city.live_on(10)
    assert (city.number("population"), city.number("milestones")) == (35 + 45, 1)


def test_an_empty_city_neither_earns_nor_pays(city: FlatCity) -> None:
    city.live_on(360)
    assert (city.number("funds"), city.number("population")) == (10_000, 0)


def test_the_end_of_a_year_is_reported_if_wanted() -> None:
    city = FlatCity(yearly_report=True)
    city.live(400)
    assert (city.number("day"), city.number("notice")) == (360, Notice.YEAR)
