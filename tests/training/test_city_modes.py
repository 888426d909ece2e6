"""City's modes: each preset trains, and does what it says."""

import csv
from pathlib import Path

from ludus.envs.registry import make_env
from ludus.training import TrainConfig, Trainer
from ludus.training.presets import load_run_config

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
        return env.spec.kind_names
