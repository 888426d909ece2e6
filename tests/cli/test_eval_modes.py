"""`ludus eval` of a run of teams: its modes, settings of one's own, and sides of unequal teams."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ludus.training import TrainConfig, train

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("teams")
    config = {
        "world": {"name": "tug", "num_envs": 4, "settings": {"rounds": 2}},
        "total_env_steps": 40,
        "policy": {"net_arch": {"pi": [4], "vf": [4]}},
        "ppo": {"n_steps": 10, "n_minibatches": 1, "n_epochs": 1},
        "opponents": {"mirror": 1, "random": 1},
        "evaluation": {
            "every_env_steps": 1000,
            "matches": 2,
            "settings": {"rounds": 4},
            "modes": {"1v1": {}, "1v2": {"orange": 2}},
        },
    }
    train(TrainConfig.model_validate(config), folder)
    return folder


def test_all_modes_of_the_run_are_played(run: Run, folder: Path) -> None:
    code, out, _ = run("eval", folder, "--against", "idle", "--matches", 6, "--device", "cpu")
    assert code == 0, out
    lines = [line.split() for line in out.splitlines()]
    assert lines[0][:4] == ["opponent", "mode", "side", "matches"]
    assert [line[:4] for line in lines[1:3]] == [["idle", "1v1", "6", *lines[1][3:4]], ["idle", "1v2", "1v2", "3"]]
    assert lines[3][:4] == ["idle", "1v2", "2v1", "3"]


def test_one_mode_or_settings_of_ones_own(run: Run, folder: Path) -> None:
    arguments = ("eval", folder, "--against", "idle", "--matches", 4, "--device", "cpu", "--json")
    chosen = json.loads(run(*arguments, "--mode", "1v2")[1])["opponents"]
    assert [(row["mode"], row["side"], row["mean_length"]) for row in chosen] == [
        ("1v2", "1v2", 4.0),
        ("1v2", "2v1", 4.0),
    ]
    own = json.loads(run(*arguments, "--set", "rounds=9", "--set", "blue=3")[1])["opponents"]
    assert [(row["side"], row["mean_length"]) for row in own] == [("1v3", 9.0), ("3v1", 9.0)]
    both = json.loads(run(*arguments, "--mode", "1v1", "--set", "rounds=6")[1])["opponents"]
    assert [(row["mode"], row["mean_length"]) for row in both] == [("1v1", 6.0)]


def test_unknown_modes_and_settings_are_refused(run: Run, folder: Path) -> None:
    code, _, err = run("eval", folder, "--mode", "1v3", "--device", "cpu")
    assert code == 2
    assert "unknown mode '1v3'" in err
    assert "valid: 1v1, 1v2" in err
    code, _, err = run("eval", folder, "--set", "bleu=2", "--device", "cpu")
    assert code == 2
    assert "did you mean 'blue'" in err
    assert run("eval", folder / "checkpoints" / "final", "--against", "idle", "--matches", 2, "--device", "cpu")[0] == 0
