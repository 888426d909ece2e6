"""`ludus eval --best-of`: the score by match number as a table, in JSON and as a plot."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import ludus

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sets")
    config = {
        "world": {"name": "duel", "num_envs": 4, "settings": {"rounds": 2}},
        "total_env_steps": 80,
        "policy": {"recurrent": {"size": 4}, "net_arch": {"pi": [4], "vf": [4]}},
        "ppo": {"n_steps": 10, "sequence_length": 10, "n_minibatches": 1, "n_epochs": 1},
        "opponents": {"rock": 1, "random": 1},
        "league": {"best_of": 2},
        "evaluation": {"every_env_steps": 1000, "matches": 4, "score": "win_rate_match_2"},
    }
    return ludus.train(config, folder=folder, overrides=["monitoring.console=off"]).folder


def test_the_run_evaluates_in_the_sets_of_its_league(folder: Path) -> None:
    header = (folder / "evaluation_results.csv").read_text().splitlines()[0].split(",")
    assert {"win_rate_match_1", "win_rate_match_2", "win_rate_match_2_low", "win_rate_gain"} <= set(header)
    assert "win_rate_match_3" not in header


def test_the_table_shows_matches_opponents_and_the_gain(run: Run, folder: Path, tmp_path: Path) -> None:
    picture = tmp_path / "sets.png"
    options = ("--best-of", 3, "--matches", 12, "--against", "rock", "--against", "cycle", "--device", "cpu")
    code, out, _ = run("eval", folder, *options, "--plot", picture)
    assert code == 0
    assert all(text in out for text in ("match 1", "match 3", "last - first", "mean", "of 8 sets"))
    assert picture.read_bytes().startswith(b"\x89PNG")
    code, out, _ = run("eval", folder, *options, "--json")
    document = json.loads(out)
    assert (document["best_of"], len(document["by_match"])) == (3, 3)
    assert [row["matches"] for row in document["opponents"]] == [12, 12]


def test_long_sets_show_some_of_their_matches(run: Run, folder: Path) -> None:
    code, out, _ = run("eval", folder, "--best-of", 20, "--matches", 20, "--against", "rock", "--device", "cpu")
    assert code == 0
    assert "match 1 " in out
    assert "match 20" in out
    assert "match 2 " not in out


def test_a_plot_needs_sets(run: Run, folder: Path, tmp_path: Path) -> None:
    code, _, err = run("eval", folder, "--plot", tmp_path / "sets.png", "--device", "cpu")
    assert code == 2
    assert "--best-of" in err


def test_the_command_of_the_model_card_plays_the_sets_of_the_run(run: Run, folder: Path, tmp_path: Path) -> None:
    assert run("export", folder, "--out", tmp_path / "sets.ludus", "--card", tmp_path / "sets.md")[0] == 0
    assert "--best-of 2" in (tmp_path / "sets.md").read_text()
