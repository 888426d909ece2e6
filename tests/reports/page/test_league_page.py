"""The page of a stranger's league folder."""

import json
from pathlib import Path
from typing import Any

import pytest

from ludus.core.errors import FormatError
from ludus.reports.league_page import write_league_page

NAME = "</script><img src=x>\u202e\x1b[2J"
STATE: dict[str, Any] = {"world": NAME, "state": NAME, "reason": "r" * 1_000_000, "wall_s": 1, "evaluators": 1,
                         "matches": 1, "total_env_steps": 1, "learners": [{"name": NAME}]}  # fmt: skip


def write(folder: Path, members: list[Any], payoffs: str = "") -> Path:
    (folder / "state.json").write_text(json.dumps(STATE | {"members": members}))
    (folder / "payoffs.jsonl").write_text(payoffs)
    return folder


def test_names_are_text_and_short(tmp_path: Path) -> None:
    members = [{"name": f"{NAME}{number}", "rating": number} for number in range(100)]
    members.append({"name": "n" * 1_000_000, "rating": 1000})
    met = json.dumps({"id": 1, "matches": [["n" * 1_000_000, f"{NAME}99", 3, 1, 2]]}) + "\n"
    page = write_league_page(write(tmp_path, members, met)).read_text()
    assert page.count("</script>") == 2
    assert "<img" not in page
    assert "\u202e" not in page
    assert len(page) < 200_000
    assert "[3,1,2]" in page


@pytest.mark.parametrize(
    ("members", "payoffs"),
    [
        (["x"], ""),
        ([{"name": "a", "rating": "x"}], ""),
        ([{"name": "a"}, {"name": "b"}], '{"id": 1, "matches": ["x", 5]}\n'),
        ([{"name": "a"}, {"name": "b"}], '{"id": 1, "matches": [["a", "b", "x", 1, 1]]}\n'),
        ([{"name": "a"}, {"name": "b"}], '{"id": 1, "matches": [["a", "b", Infinity, 1, 1]]}\n'),
    ],
)
def test_damaged_tables_are_a_typed_error(members: list[Any], payoffs: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="is damaged"):
        write_league_page(write(tmp_path, members, payoffs))
