"""City's modes: each preset trains, and does what it says."""

import csv
import json
from pathlib import Path

import pytest
import torch

from ludus.curriculum import adaptive
from ludus.envs.registry import make_env
from ludus.nn.heads import NOISE_SIZE
from ludus.training import TrainConfig, Trainer
from ludus.training.components import Components
from ludus.training.presets import load_run_config

pytestmark = pytest.mark.train

SMALL = [
    "world.num_envs=4",
    "world.settings.workers=0",
    "world.settings.steps=24",
    "world.settings.rules.threads=1",
    "ppo.n_steps=16",
    "ppo.batch_size=64",
    "ppo.n_epochs=1",
    "total_env_steps=128",
    "evaluation.matches=2",
    "evaluation.every_env_steps=128",
]
CHANGES = {
    "autonomous": [],
    "adaptive": ["adaptive_curriculum.patience=4"],
    "discovery": [],
    "goal": ["world.settings.goals.population=1"],
    "strategic": ["adaptive_curriculum.ahead=3", "adaptive_curriculum.every_iterations=1"],
}


def run(preset: str, folder: Path) -> TrainConfig:
    config = load_run_config("city", preset, overrides=[*SMALL, *CHANGES[preset]])
    with Trainer(config, folder) as trainer:
        assert trainer.run().iterations == 2
    return config


def table(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / name).open(newline="") as file:
        return list(csv.DictReader(file))


def metrics(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_autonomous_explores_and_remembers_what_it_finds(tmp_path: Path) -> None:
    run("autonomous", tmp_path)
    assert [row["exploration_frequency"] for row in metrics(tmp_path)] == pytest.approx([0.3, 0.3])
    terms = table(tmp_path, "reward_breakdown.csv")
    assert sum(float(row["discovery"]) for row in terms) > 0.0
    assert sum(float(row["discovered"]) for row in table(tmp_path, "behavior_metrics.csv")) > 0.0


def test_autonomous_explores_and_plays_any_kind_as_often_as_its_settings_say() -> None:
    """A policy that only ever waits: what else is played comes of exploring."""
    config, draws = load_run_config("city", "autonomous", overrides=SMALL), 50_000
    with Components(config) as components:
        policy, choices = components.policy, components.env.spec.choices
        exploratory = choices.exploratory_kinds()
        policy.explore(config.policy.exploration, 0.5)
        assert policy.mixture is not None
        noise = torch.rand(draws, len(choices.counts) + NOISE_SIZE, generator=torch.Generator().manual_seed(1))
        waits = torch.zeros(draws, len(choices.counts), dtype=torch.int64)
        kinds = policy.mixture.replace(torch.zeros(draws, sum(choices.counts)), noise, waits)[:, 0]
    count, explore = len(exploratory), int(exploratory.sum())
    assert (explore, count > 30) == (7, True)
    share_exploring = float(exploratory[kinds].float().mean())
    share_of_others = float((~exploratory[kinds] & (kinds > 0)).float().mean())
    # Of 30 % exploring decisions, 20 % play any kind, and 80 % one of the seven for exploring. Five standard errors.
    assert share_exploring == pytest.approx(0.3 * (0.8 + 0.2 * explore / count), abs=0.01)
    assert share_of_others == pytest.approx(0.3 * 0.2 * (count - explore - 1) / count, abs=0.006)


def test_adaptive_explores_where_nothing_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptive, "EXPLORE_ABOVE", 0.01)
    monkeypatch.setattr(adaptive, "BUILD_BELOW", 0.0)
    run("adaptive", tmp_path)
    assert [row["exploration_frequency"] for row in metrics(tmp_path)] == pytest.approx([0.05, 0.1])
    assert metrics(tmp_path)[0]["steering_exploring"] == 1.0


def test_discovery_rewards_what_is_new(tmp_path: Path) -> None:
    config = run("discovery", tmp_path)
    assert config.evaluation is not None
    assert config.evaluation.score == "discovered"
    terms = table(tmp_path, "reward_breakdown.csv")
    assert sum(float(row["discovery"]) + float(row["new_menus"]) for row in terms) > 0.0
    found = table(tmp_path, "evaluation_results.csv")[0]
    assert {"discovered", "new_menus"} <= set(found)


def test_goals_that_are_reached_are_rewarded_and_counted(tmp_path: Path) -> None:
    run("goal", tmp_path)
    terms = table(tmp_path, "reward_breakdown.csv")
    assert {"goal_population", "goal_happiness", "goal_funds", "goals_reached"} <= set(terms[0])
    # Whatever else happens, progress is not all there is: the terms add up to the reward.
    for row in terms:
        parts = [float(value) for name, value in row.items() if name not in ("iteration", "env_steps", "total")]
        assert float(row["total"]) == sum(parts)
    evaluated = table(tmp_path, "evaluation_results.csv")[0]
    assert float(evaluated["score"]) == float(evaluated["goals_reached"])


def test_strategic_measures_effects(tmp_path: Path) -> None:
    config = run("strategic", tmp_path)
    assert config.policy.exploration is not None
    assert [config.policy.exploration.frequency.value(at) for at in (0.0, 1.0)] == [0.8, 0.1]
    rows = table(tmp_path, "effects.csv")
    assert {row["metric"] for row in rows} >= {"goal_population", "population", "funds", "traffic"}
    assert {row["kind"] for row in rows} <= set(_kinds(config))
    for row in rows:
        assert float(row["low"]) <= float(row["mean"]) <= float(row["high"])
        assert row["is_sure"] == "False"  # two rollouts of four games prove nothing


def _kinds(config: TrainConfig) -> tuple[str, ...]:
    with make_env("city", config=config.world.settings) as env:
        return env.spec.actions.names
