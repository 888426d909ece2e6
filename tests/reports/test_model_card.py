"""Model cards of strangers' agents and run folders: names are text, and neither long nor many."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ludus.reports.model_card import CardSubject, write_model_card

NAMES = ("<script>alert(1)</script>", "![x](http://evil.example/x.png)", "a|b", "```\n</code><b>", "\x1b]0;x\x07\u202e",
         "x\n\n# Heading\n\n---\n", "y" * 3_000_000)  # fmt: skip
SPACE = {"kind": "box", "shape": [2], "counts": [], "dtype": "float32"}
POLICY = {"module": "{name}", "strategy": None, "recurrent": None, "net_arch": {"pi": [8]}, "activation": "tanh"}


def subject(name: str, **changes: Any) -> CardSubject:
    description = {"world": name, "rate_hz": 10.0, "settings": {name: name}, "action_space": SPACE,
                   "observation_space": [[name, SPACE]], "config": POLICY | {"module": name}}  # fmt: skip
    return CardSubject(name, f"{name}.ludus", "ab" * 32, description | changes, 10, name, 0)


@pytest.fixture
def make_folder(tmp_path: Path) -> Any:
    """Makes a run folder in which everything has one name: `make_folder(name, count)`."""

    def make(name: str, count: int) -> Path:
        words = dict.fromkeys(("system", "cores", "device"), name)
        session = {
            "command": [name] * 3,
            "machine": words,
            "versions": {name: name},
            "git": {"commit": name, "clean": 0},
        }
        sessions = [session | {"command": [name, str(number)]} for number in range(count)]
        run = {"world": name, "sessions": sessions, "parent": {"folder": name, "env_steps": name}}
        (tmp_path / "run.json").write_text(json.dumps(run))
        evaluation = {"opponents": [name] * count, "scenarios": name, "matches": name, "seed": name}
        config = {"algorithm": name, "seed": name, "total_env_steps": int("9" * 400), "evaluation": evaluation}
        (tmp_path / "config.yaml").write_text(json.dumps(config))
        (tmp_path / "metrics.jsonl").write_text("")
        cell = name[:1000].replace('"', "").replace("\n", " ").replace("\x1b", "")
        rows = "".join(f'0,"{cell}{number}","{cell}",1,1.0,0.5,nan\n' for number in range(count))
        header = "env_steps,opponent,mode,matches,win_rate,win_rate_low,win_rate_high\n"
        (tmp_path / "evaluation_results.csv").write_text(header + rows)
        return tmp_path

    return make


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_names_are_shown_as_they_are(name: str, make_folder: Any) -> None:
    for card in (write_model_card(subject(name), None), write_model_card(subject(name), make_folder(name, 2))):
        assert all(letter.isprintable() or letter == "\n" for letter in card)
        assert card.isascii()
        fenced = r"```sh\n[^\n]*(?:\n[^\n]*)?\n```"
        prose = re.sub(r"`[^`\n]*`", "CODE", re.sub(r"\\.", "", re.sub(fenced, "FENCE", card)))
        assert not re.search(r"[<>`\[]|://", prose)
        headings = [line for line in prose.splitlines() if line.startswith("#")]
        assert len(headings) == 6
        for line in prose.splitlines():
            assert line.count("|") in (0, 3, 5)  # of the two tables: the names' own are escaped
        assert len(card) < 40_000


def test_much_is_cut(make_folder: Any) -> None:
    card = write_model_card(subject("x"), make_folder("x", 5_000))
    assert len(card) < 40_000
    assert "There are 4,900 more rows." in card
    assert "and 4960 more" in card
