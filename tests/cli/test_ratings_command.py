"""`ludus ratings`: the table of matches alone says who is how strong."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ludus.cli.main import app
from ludus.core.errors import ConfigError

TABLE = """iteration,env_steps,learner,opponent,kind,matches,wins,draws,losses
1,100,self-0001,based,based,10,2,0,8
2,200,self-0002,based,based,10,8,0,2
2,200,self-0002,self-0001,self,10,9,1,0
"""


def test_ratings_follow_from_the_table(tmp_path: Path) -> None:
    (tmp_path / "opponents.csv").write_text(TABLE + "3,300,self-0003,ba")  # the last line was cut off by a kill
    result = CliRunner().invoke(app, ["ratings", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.output)
    players = {player["name"]: player for player in document["players"]}
    assert players["self-0002"]["rating"] > players["based"]["rating"] > players["self-0001"]["rating"]
    assert all(player["rating_low"] < player["rating"] < player["rating_high"] for player in players.values())
    assert document["win_rates"]["based"] == {"matches": 20, "win_rate": 0.5, "score": 0.5}
    assert document["win_rates"]["self"]["score"] == 0.95
    names = document["payoffs"]["names"]
    assert document["payoffs"]["points"][names.index("self-0002")][names.index("self-0001")] == 9.5
    shown = CliRunner().invoke(app, ["ratings", str(tmp_path)])
    assert shown.output.index("self-0002") < shown.output.index("self-0001")


def test_a_folder_without_matches_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["ratings", str(tmp_path)])
    assert isinstance(result.exception, ConfigError)
    with pytest.raises(ConfigError, match=r"has no opponents\.csv"):
        raise result.exception
