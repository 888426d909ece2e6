"""`ludus train --game`: which game of a world is played, which preset it takes, and worlds that have only one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ludus.cli.train import _preset_for
from ludus.core.errors import ConfigError

Run = Callable[..., tuple[int, str, str]]


def test_a_game_takes_the_preset_of_its_name() -> None:
    assert _preset_for("city", "micropolis") == "micropolis"
    assert _preset_for("city", "simutrans") is None
    assert _preset_for("city-v1", "my/own.yaml") is None


def test_other_worlds_refuse_a_game(run: Run, tmp_path: Path) -> None:
    code, _, said = run("train", "brawl", "--game", "micropolis", "--run-dir", str(tmp_path / "run"))
    assert code != 0
    assert "--game micropolis: brawl has no games to choose among" in said
    assert not (tmp_path / "run").exists()


def test_an_unknown_game_is_named_with_those_there_are(run: Run, tmp_path: Path) -> None:
    code, _, said = run("train", "city", "--game", "simtown", "--run-dir", str(tmp_path / "run"))
    assert code != 0
    assert "simtown" in said
    assert "micropolis" in said


def test_worlds_without_settings_have_no_games() -> None:
    with pytest.raises(ConfigError, match="no games to choose among"):
        _preset_for("gym:CartPole-v1", "micropolis")
