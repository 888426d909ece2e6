"""The audit of perception, and its command, on a few states."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from ludus.cli.main import app
from ludus.core.errors import UnknownNameError
from ludus.worlds.city.audit import Audit, audit_city
from ludus.worlds.city.drivers.city_games import CityGames
from ludus.worlds.city.interface.layout import BARS
from ludus.worlds.city.interface.theme import FIELDS
from ludus.worlds.city.perception.embedded import embedded_reader
from ludus.worlds.city.perception.reading import Reading, unreadable

pytestmark = pytest.mark.screen


def test_every_theme_is_read_right_and_nothing_is_read_wrong() -> None:
    result = CliRunner().invoke(app, ["city", "audit", "--states", "60", "--json"])
    assert result.exit_code == 0, result.output
    fields = {field["field"]: field for field in json.loads(result.output)["fields"]}
    assert set(fields) == {*FIELDS, *BARS}
    for field in fields.values():
        assert field["wrong"] == 0.0, field
        assert field["accuracy"] >= 0.95, field
        assert field["low"] < field["accuracy"] <= field["high"]
        assert field["states"] == 60


def test_the_audit_tells_wrong_from_unreadable_and_old() -> None:
    audit = Audit()
    audit.note(Reading("funds", 5.0, 1.0), 5.0, 0.001)
    audit.note(Reading("funds", 6.0, 1.0, text="$6"), 5.0, 0.001)
    audit.note(unreadable("funds", "?"), 5.0, 0.003)
    audit.note(Reading("funds", 5.0, 0.5, age_s=1.0), 5.0, 0.005)
    measured: Any = audit.document("embedded")["fields"]
    (field,) = measured
    assert [field[name] for name in ("accuracy", "wrong", "unreadable", "states")] == [0.25, 0.25, 0.5, 4]
    assert field["examples"][0] == "5.0 read as '$6'"
    assert field["latency_ms"] == 2.0


def test_a_covered_field_is_unreadable_not_zero() -> None:
    games = CityGames(1)
    reader = embedded_reader(games, 0)
    frame = games.capture(0).copy()
    region = reader.fields["population"].region
    region.cut(frame)[:] = 127
    reading = reader.read(frame)["population"]
    assert reading.value is None
    assert reading.confidence == 0.0
    games.close()


def test_unknown_games_are_named() -> None:
    with pytest.raises(UnknownNameError, match="embedded, micropolis"):
        audit_city("micropolus")
