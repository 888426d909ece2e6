"""Promise 20: a checkpoint alone is an agent: copied elsewhere, it gives the recorded score again."""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.commands import Commands

pytestmark = pytest.mark.package

LUDUS = Path(sys.executable).with_name("ludus")
PPO = {"n_steps": 16, "sequence_length": 8, "batch_size": 64, "n_epochs": 1}
QUIET = {"console": "off", "tensorboard": False, "curves": False}
BRAWL: dict[str, Any] = {
    "world": {"name": "brawl", "num_envs": 4, "settings": {"threads": 1, "step_limit": 200, "stocks": 1}},
    "total_env_steps": 2 * 64,
    "policy": {"recurrent": {"size": 8}, "normalize": {"observations": True, "returns": True}},
    "ppo": PPO,
    "opponents": "random",
    "evaluation": {"opponents": ["random", "based"], "matches": 12, "seed": 5},
    "monitoring": QUIET,
}
DUEL: dict[str, Any] = {
    "world": {"name": "duel", "num_envs": 16, "settings": {"rounds": 7}},
    "total_env_steps": 20 * 256,
    "ppo": PPO | {"learning_rate": 3e-3},
    "opponents": {"rock": 1, "random": 1},
    "evaluation": {"every_env_steps": 5 * 256, "matches": 200, "seed": 6},
    "monitoring": QUIET,
}


def train_and_copy(commands: "Commands", folder: Path, settings: dict[str, Any]) -> tuple[Path, list[dict[str, str]]]:
    """Trains, copies the best agent, deletes the run; returns the copy and what was recorded of it."""
    world = settings["world"]["name"]
    file, run, copy = folder / "settings.yaml", folder / "run", folder / "elsewhere" / "agent"
    file.write_text(json.dumps(settings))
    code, said = commands.run("train", world, "--config", file, "--run-dir", run)
    assert code == 0, said
    copy.parent.mkdir()
    shutil.copytree(run / "checkpoints" / "best", copy)
    saved = json.loads((copy / "training.json").read_text())["counters"]["env_steps"]
    with (run / "evaluation_results.csv").open(newline="") as table:
        recorded = [row for row in csv.DictReader(table) if int(row["env_steps"]) == saved]
    shutil.rmtree(run)
    file.unlink()
    return copy, recorded


def check_equal(recorded: list[dict[str, str]], found: list[dict[str, Any]]) -> None:
    """Checks that rows say the same; a table writes every bit of a number."""
    assert [row["opponent"] for row in recorded] == [row["opponent"] for row in found]
    for expected, got in zip(recorded, found, strict=True):
        assert {"matches", "wins", "win_rate", "win_rate_low", "win_rate_high", "mean_length"} <= set(got)
        assert {name: str(value) for name, value in got.items()} == {name: expected[name] for name in got}


def test_a_fresh_process_gives_the_same_numbers_again(commands: "Commands", tmp_path: Path) -> None:
    copy, recorded = train_and_copy(commands, tmp_path, BRAWL)
    assert any(float(row["damage_dealt"]) > 0.0 for row in recorded)
    done = subprocess.run(
        [LUDUS, "eval", "agent", "--json", "--device", "cpu", "--matches", "12", "--seed", "5",
         "--against", "random", "--against", "based"],
        cwd=copy.parent, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    check_equal(recorded, json.loads(done.stdout)["opponents"])


@pytest.fixture(scope="module")
def duellist(command_server: "Commands", root: Path) -> tuple[Path, list[dict[str, str]]]:
    return train_and_copy(command_server, root, DUEL)


def evaluate(commands: "Commands", agent: Path, *options: object) -> list[dict[str, Any]]:
    output = commands.start("eval", agent, "--json", "--device", "cpu", *options)
    assert output.wait() == 0, output.said
    found: list[dict[str, Any]] = json.loads(output.said[output.said.index("{") :])["opponents"]
    return found


def test_the_same_seed_gives_the_same_numbers(
    commands: "Commands", duellist: tuple[Path, list[dict[str, str]]]
) -> None:
    agent, recorded = duellist
    assert any(0.0 < float(row["win_rate"]) < 1.0 for row in recorded)
    check_equal(recorded, evaluate(commands, agent, "--matches", 200, "--seed", 6))


def test_another_seed_gives_the_recorded_score_within_its_interval(
    commands: "Commands", duellist: tuple[Path, list[dict[str, str]]]
) -> None:
    agent, recorded = duellist
    found = {row["opponent"]: row for row in evaluate(commands, agent, "--matches", 2000, "--seed", 7)}
    assert found.keys() == {row["opponent"] for row in recorded}
    for row in recorded:
        other = found[row["opponent"]]
        assert other["win_rate_low"] <= float(row["win_rate_high"])
        assert float(row["win_rate_low"]) <= other["win_rate_high"]
