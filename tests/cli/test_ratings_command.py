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
    counts = {"wins": 10, "draws": 0, "losses": 10}
    assert document["win_rates"]["based"] == {"matches": 20, "win_rate": 0.5, "score": 0.5, **counts}
    assert list(document["modes"]) == ["1v1"], "tables that name no mode are of 1v1"
    assert document["win_rates"]["self"]["score"] == 0.95
    names = document["payoffs"]["names"]
    assert document["payoffs"]["points"][names.index("self-0002")][names.index("self-0001")] == 9.5
    shown = CliRunner().invoke(app, ["ratings", str(tmp_path)])
    assert shown.output.index("self-0002") < shown.output.index("self-0001")


TEAMS = """iteration,env_steps,learner,opponent,kind,matches,wins,draws,losses,mode,side
1,100,self-0001,keeper,keeper,10,9,0,1,1v1,1v1
2,200,self-0001,keeper,keeper,10,1,0,9,1v2,1v2
2,200,self-0001,keeper,keeper,10,8,0,2,1v2,2v1
"""


def test_modes_are_rated_apart_and_unequal_teams_by_side(tmp_path: Path) -> None:
    (tmp_path / "opponents.csv").write_text(TEAMS)
    document = json.loads(CliRunner().invoke(app, ["ratings", str(tmp_path), "--json"]).output)
    assert list(document) == ["modes"]
    alone, pairs = document["modes"]["1v1"], document["modes"]["1v2"]
    assert alone["win_rates"]["keeper"]["wins"] == 9
    assert alone["sides"] == {}
    assert pairs["win_rates"]["keeper"]["win_rate"] == 0.45
    assert {side: rates["keeper"]["win_rate"] for side, rates in pairs["sides"].items()} == {"1v2": 0.1, "2v1": 0.8}
    rating = {mode: {player["name"]: player["rating"] for player in document["modes"][mode]["players"]}
              for mode in ("1v1", "1v2")}  # fmt: skip
    learner = f"{tmp_path} learner"  # there is no evaluation and no past self
    assert rating["1v1"][learner] > 100.0 > 0.0 > rating["1v2"][learner]
    shown = [line.split() for line in CliRunner().invoke(app, ["ratings", str(tmp_path)]).output.splitlines()]
    assert [line[:2] for line in shown[3:7]] == [["1v1", str(tmp_path)], ["1v1", "keeper"], ["1v2", "keeper"],
                                                 ["1v2", str(tmp_path)]]  # fmt: skip
    assert shown[-1] == ["1v2", "2v1", "keeper", "10", "8", "0", "2"]


LONG = """iteration,env_steps,learner,opponent,kind,matches,wins,draws,losses
1,100,self-0001,defensive,defensive,100,5,0,95
1,100,self-0001,random,random,100,60,0,40
2,200,self-0001,defensive,defensive,10,7,0,3
2,200,self-0001,random,random,10,10,0,0
"""
EVALUATED = """iteration,env_steps,opponent,matches,wins,draws,losses,score
1,150,defensive,20,12,0,8,0.9
1,150,random,20,20,0,0,0.9
1,150,based,20,9,1,10,0.9
2,200,defensive,20,2,0,18,0.1
2,200,random,20,2,0,18,0.1
"""


def test_the_best_agent_is_rated_by_its_evaluation_and_stands_above_whom_it_beats(tmp_path: Path) -> None:
    (tmp_path / "opponents.csv").write_text(LONG)
    (tmp_path / "evaluation_results.csv").write_text(EVALUATED)
    best = tmp_path / "checkpoints" / "best"
    best.mkdir(parents=True)
    (best / "manifest.json").write_text('{"step": 150}')
    document = json.loads(CliRunner().invoke(app, ["ratings", str(tmp_path), "--json"]).output)
    order = [player["name"] for player in sorted(document["players"], key=lambda player: -player["rating"])]
    assert order == ["based", f"{tmp_path} best", "defensive", "random"]
    assert document["agent"] == f"{tmp_path} best"
    assert document["eras"] == [], "the learner of the whole run is no player"
    shown = CliRunner().invoke(app, ["ratings", str(tmp_path)]).output
    assert f"{tmp_path} best: rated by its evaluation at 150 env steps" in shown
    assert "self-0001" not in shown


def test_without_an_evaluation_the_newest_matches_count(tmp_path: Path) -> None:
    early = "".join(f"{i},{i},self-0001,defensive,defensive,100,5,0,95\n" for i in range(1, 5))
    late = "".join(f"{i},{i},self-0001,defensive,defensive,100,60,0,40\n" for i in range(5, 8))
    (tmp_path / "opponents.csv").write_text(LONG.splitlines()[0] + "\n" + early + late)
    document = json.loads(CliRunner().invoke(app, ["ratings", str(tmp_path), "--json"]).output)
    rating = {player["name"]: player["rating"] for player in document["players"]}
    assert rating[f"{tmp_path} learner"] > rating["defensive"]


def test_a_folder_without_matches_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["ratings", str(tmp_path)])
    assert isinstance(result.exception, ConfigError)
    with pytest.raises(ConfigError, match=r"opponents\.csv is missing"):
        raise result.exception
