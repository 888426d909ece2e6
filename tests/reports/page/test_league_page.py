"""The page of a stranger's league folder."""

import json
from pathlib import Path
from typing import Any

import pytest

from ludus.core.errors import ConfigError
from ludus.reports.league_page import write_league_page

NAME = "</script><img src=x>\u202e\x1b[2J"
STATE: dict[str, Any] = {"world": NAME, "state": NAME, "reason": "r" * 1_000_000, "wall_s": 1, "evaluators": 1,
                         "matches": 1, "total_env_steps": 1, "learners": [
                             {"name": NAME, "state": NAME, "reason": NAME, "generation": 1, "env_steps": 1,
                              "earlier_env_steps": 0, "replaced": 0}]}  # fmt: skip


def member(name: str, rating: Any = 0) -> dict[str, Any]:
    return {"name": name, "env_steps": 1, "rating": rating}


def write(folder: Path, members: list[Any], payoffs: str = "") -> Path:
    (folder / "state.json").write_text(json.dumps(STATE | {"members": members}))
    (folder / "payoffs.jsonl").write_text(payoffs)
    return folder


def test_names_are_text_and_short(tmp_path: Path) -> None:
    members = [member(f"{NAME}{number}", number) for number in range(100)]
    members.append(member("n" * 1_000_000, 1000))
    met = json.dumps({"id": 1, "matches": [["n" * 1_000_000, f"{NAME}99", 3, 1, 2]]}) + "\n"
    page = write_league_page(write(tmp_path, members, met)).read_text()
    assert page.count("</script>") == 2
    assert "<img" not in page
    assert "\u202e" not in page
    assert len(page) < 200_000
    assert "[3,1,2]" in page


@pytest.mark.parametrize("damaged", ["x", member("a", "x"), {"name": "a"}, {**member("a"), "env_steps": None}])
def test_damaged_members_are_a_typed_error(damaged: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not written by ludus league"):
        write_league_page(write(tmp_path, [damaged]))


@pytest.mark.parametrize("row", ["x", 5, ["a", "b", "x", 1, 1], ["a", "b", float("inf"), 1, 1], ["a", "b", 1]])
def test_damaged_rows_of_payoffs_are_left_out(row: Any, tmp_path: Path) -> None:
    payoffs = json.dumps({"id": 1, "matches": [row, ["a", "b", 3, 1, 2]]}) + "\n"
    page = write_league_page(write(tmp_path, [member("a"), member("b")], payoffs)).read_text()
    assert '"table":[[null,[3,1,2]],[[2,1,3],null]]' in page
