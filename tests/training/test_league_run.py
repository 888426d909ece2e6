"""Runs with past selves: snapshots on the disk, exact resume, phases, and tables that tell the same."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ludus.league.payoffs import Payoffs
from ludus.policies.agent import Agent
from ludus.store import load_checkpoint, save_checkpoint
from ludus.training import BaseCallback, Counters, Iteration, TrainConfig, Trainer, train
from ludus.training.run_folder import changed_config, fork_run

pytestmark = pytest.mark.train

GAMES, STEPS = 8, 10
PER_ITERATION = GAMES * STEPS


def make_config(**changes: Any) -> TrainConfig:
    return TrainConfig.model_validate(
        {
            "world": {"name": "duel", "num_envs": GAMES, "settings": {"rounds": 3}},
            "total_env_steps": 8 * PER_ITERATION,
            "policy": {"net_arch": {"pi": [4], "vf": [4]}},
            "ppo": {"n_steps": STEPS, "batch_size": 40, "n_epochs": 1},
            "opponents": {"self": 3, "rock": 1},
            "league": {"snapshot_every_env_steps": PER_ITERATION, "sampler": "pfsp", "keep": 4},
            "checkpoints": {"every_iterations": 2, "keep": 1},
            **changes,
        }
    )


class Watcher(BaseCallback):
    """Keeps what it is told; stops the run after some iterations."""

    def __init__(self, stop_after: int = 0) -> None:
        self.iterations: list[Iteration] = []
        self.messages: list[str] = []
        self._stop_after = stop_after

    def on_iteration(self, iteration: Iteration) -> None:
        self.iterations.append(iteration)
        if len(self.iterations) == self._stop_after:
            self.trainer.stop()

    def on_message(self, level: str, text: str, counters: Counters) -> None:
        self.messages.append(f"{level} {counters.iterations}: {text}")


def run(config: TrainConfig, folder: Path, stop_after: int = 0) -> Watcher:
    watcher = Watcher(stop_after)
    with Trainer(config, folder, [watcher]) as trainer:
        trainer.run()
    return watcher


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def snapshots(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "snapshots").iterdir())


def league_of(folder: Path, checkpoint: str) -> list[str]:
    document = load_checkpoint(folder / "checkpoints" / checkpoint).documents["training"]
    assert isinstance(document, dict)
    course: Any = document["course"]
    return [snapshot["name"] for snapshot in course["league"]["snapshots"]]


def assert_same_run(one: Path, other: Path) -> None:
    for name in ("metrics.jsonl", "monitor.csv", "reward_breakdown.csv", "opponents.csv"):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    first, second = (load_checkpoint(folder / "checkpoints" / "final") for folder in (one, other))
    assert first.documents == second.documents
    for group, tensors in first.tensors.items():
        for name, tensor in tensors.items():
            assert tensor.equal(second.tensors[group][name]), f"{group}.{name}"


def test_a_league_goes_on_exactly_where_it_was_stopped(tmp_path: Path) -> None:
    config = make_config()
    run(config, tmp_path / "straight")
    for stop_after in (3, 2):
        run(config, tmp_path / "stopped", stop_after)
    run(config, tmp_path / "stopped")
    assert_same_run(tmp_path / "straight", tmp_path / "stopped")


def test_the_league_keeps_what_any_checkpoint_refers_to(tmp_path: Path) -> None:
    run(make_config(), tmp_path)
    league = league_of(tmp_path, "final")
    assert len(league) == 4, "the oldest leave, unless they are playing"
    assert league[-1] == "self-0008"
    assert "self-0001" not in league
    referred = {name for path in (tmp_path / "checkpoints").iterdir() for name in league_of(tmp_path, path.name)}
    assert set(snapshots(tmp_path)) == referred
    assert Agent.load(tmp_path / "snapshots" / "self-0008").spec.id == "duel-v1"


def test_the_table_of_matches_tells_what_the_episodes_told(tmp_path: Path) -> None:
    watcher = run(make_config(), tmp_path)
    table = rows(tmp_path / "opponents.csv")
    assert sum(int(row["matches"]) for row in table) == len(rows(tmp_path / "monitor.csv"))
    assert {row["opponent"] for row in table if row["kind"] == "self"} >= {"self-0001", "self-0002"}
    assert table[0]["opponent"] == "rock", "before the first snapshot bots have the share of past selves"
    payoffs = Payoffs.from_rows(table)
    won = sum(int((iteration.episodes.outcomes == 1).sum()) for iteration in watcher.iterations)
    assert payoffs.total().wins == won
    last = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[-1])
    assert {"rating_elo", "rating_openskill"} <= set(last)


def test_a_snapshot_of_nan_is_skipped_and_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = make_config()
    run(config, tmp_path, stop_after=6)
    folder = tmp_path / "snapshots" / league_of(tmp_path, "interrupted")[0]
    checkpoint = load_checkpoint(folder)
    next(iter(checkpoint.tensors["policy"].values())).fill_(float("nan"))
    shutil.rmtree(folder)
    save_checkpoint(folder, checkpoint)
    watcher = run(config, tmp_path)
    assert f"snapshot {folder.name} is skipped" in caplog.text
    assert "NaN" in caplog.text
    assert watcher.iterations[-1].counters.env_steps == config.total_env_steps


def test_a_corrupt_or_missing_snapshot_is_skipped_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = make_config()
    run(config, tmp_path, stop_after=6)
    names = league_of(tmp_path, "interrupted")
    shutil.rmtree(tmp_path / "snapshots" / names[0])
    damaged = next((tmp_path / "snapshots" / names[1]).glob("*.safetensors"))
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    watcher = run(config, tmp_path)
    assert f"snapshot {names[0]} is skipped" in caplog.text
    assert f"snapshot {names[1]} is skipped" in caplog.text
    assert watcher.iterations[-1].counters.env_steps == config.total_env_steps
    assert not {names[0], names[1]} & set(league_of(tmp_path, "final"))


def test_without_bots_the_learner_begins_against_itself_and_resumes_so(tmp_path: Path) -> None:
    config = make_config(opponents={"self": 1}, league={"snapshot_every_env_steps": 10**6, "keep": 2})
    run(config, tmp_path / "straight")
    run(config, tmp_path / "stopped", stop_after=3)
    run(config, tmp_path / "stopped")
    assert {row["opponent"] for row in rows(tmp_path / "straight" / "opponents.csv")} == {"start"}
    assert_same_run(tmp_path / "straight", tmp_path / "stopped")


def test_stages_change_opponents_and_rewards_and_survive_a_stop(tmp_path: Path) -> None:
    phases = [
        {
            "name": "first",
            "opponents": {"rock": 1},
            "rewards": {"weights": {"reward": 1.0}},
            "promotion": {"after_env_steps": 2 * PER_ITERATION},
        },
        {"name": "second", "opponents": {"random": 1, "self": 1}, "rewards": {"weights": {"wins": 5.0}}},
    ]
    config = make_config(opponents=None, curriculum=phases)
    watcher = run(config, tmp_path / "straight")
    assert watcher.messages == [
        "info 2: from phase 'first' to 'second': 160 env steps are over",
    ]
    assert [iteration.phase for iteration in watcher.iterations] == ["first"] * 2 + ["second"] * 6
    breakdown = rows(tmp_path / "straight" / "reward_breakdown.csv")
    assert [float(row["wins"]) != 0.0 for row in breakdown[:3]] == [False, False, True]
    assert all(float(row["reward"]) == 0.0 for row in breakdown[2:])
    met = rows(tmp_path / "straight" / "opponents.csv")
    assert {row["opponent"] for row in met if int(row["iteration"]) <= 2} == {"rock"}
    run(config, tmp_path / "stopped", stop_after=1)
    run(config, tmp_path / "stopped", stop_after=2)
    run(config, tmp_path / "stopped")
    assert_same_run(tmp_path / "straight", tmp_path / "stopped")


def test_evaluation_keeps_the_best_and_a_resume_knows_it(tmp_path: Path) -> None:
    config = make_config(
        evaluation={"every_env_steps": 2 * PER_ITERATION, "matches": 4, "opponents": ["rock", "cycle"]}
    )
    train(config, tmp_path / "straight")
    run(config, tmp_path / "stopped", stop_after=5)
    run(config, tmp_path / "stopped")
    straight, stopped = (tmp_path / name / "evaluation_results.csv" for name in ("straight", "stopped"))
    assert straight.read_bytes() == stopped.read_bytes()
    table = rows(straight)
    assert [int(row["iteration"]) for row in table] == [2, 2, 4, 4, 6, 6, 8, 8]
    scores = [float(row["score"]) for row in table]
    best = load_checkpoint(tmp_path / "straight" / "checkpoints" / "best").documents["training"]
    assert isinstance(best, dict)
    course: Any = best["course"]
    assert course["evaluation"]["best"] == max(scores)
    assert_same_run(tmp_path / "straight", tmp_path / "stopped")


def test_a_branch_meets_opponents_by_its_own_shares(tmp_path: Path) -> None:
    config = make_config(opponents={"rock": 1, "cycle": 1})
    run(config, tmp_path / "parent", stop_after=4)
    before = rows(tmp_path / "parent" / "opponents.csv")
    assert {row["opponent"] for row in before} == {"rock", "cycle"}
    branch = changed_config(config, ['opponents={"rock": 1.0, "cycle": 1e-9}'])
    fork_run(tmp_path / "parent", tmp_path / "branch", branch)
    run(branch, tmp_path / "branch")
    # Games that were under way end against whom they began; with three rounds each that is within one iteration.
    later = [row for row in rows(tmp_path / "branch" / "opponents.csv") if int(row["iteration"]) > 5]
    assert {row["opponent"] for row in later} == {"rock"}
