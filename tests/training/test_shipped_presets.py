"""Every preset that is shipped trains; test sizes differ from full ones in budget and cadence alone."""

from pathlib import Path
from typing import Any

import pytest

from ludus.config import PresetDirectory
from ludus.envs.world import find_world
from ludus.training import TrainConfig, Trainer
from ludus.training.presets import load_run_config
from ludus.worlds.brawl.rewards import SETS

pytestmark = pytest.mark.train

BRAWL = PresetDirectory(find_world("brawl").package).names()
ON_SCREENS = ("lincity", "micropolis", "opencity")
CITY = [name for name in PresetDirectory(find_world("city").package).names() if name not in ON_SCREENS]
MIMIC = PresetDirectory(find_world("mimic").package).names()
ROCKET = PresetDirectory(find_world("rocket").package).names()
ROSHAMBO = PresetDirectory(find_world("roshambo").package).names()
# Sizes that a test can afford; nothing else is changed.
SMALL = [
    "world.num_envs=8", "world.device=cpu", "world.settings.step_limit=30", "ppo.n_steps=32", "ppo.batch_size=128",
    "league.keep=3",
]  # fmt: skip
SMALL_LSTM = ["policy.recurrent.size=32", "policy.net_arch.pi=[32, 32]", "policy.net_arch.vf=[32, 32]"]
SMALL_AGENT = [
    *SMALL_LSTM, "policy.strategy.layers=2", "policy.strategy.width=32", "policy.strategy.feedforward=64",
    "policy.bfloat16=false", "ppo.compile=false",
]  # fmt: skip


def two_iterations(config: TrainConfig, folder: Path, *, most_seats: int = 1) -> None:
    steps = config.method.rollout_steps(config.hyperparameters)
    assert steps is not None
    changes: dict[str, Any] = {"total_env_steps": most_seats * config.world.num_envs * steps + 1}
    with Trainer(config.model_copy(update=changes), folder) as trainer:
        assert trainer.run().iterations == 2


@pytest.mark.parametrize("preset", BRAWL)
def test_a_preset_of_brawl_trains(preset: str, tmp_path: Path) -> None:
    config = load_run_config("brawl", preset, overrides=SMALL)
    if config.policy.strategy is not None:
        config = load_run_config("brawl", preset, overrides=[*SMALL, *SMALL_AGENT])
    elif config.policy.recurrent is not None:
        config = load_run_config("brawl", preset, overrides=[*SMALL, *SMALL_LSTM])
    if config.evaluation is not None:
        small = config.evaluation.model_copy(update={"matches": 1, "opponents": ("constant",)})
        config = config.model_copy(update={"evaluation": small})
    two_iterations(config, tmp_path)


@pytest.mark.parametrize("preset", CITY)
def test_a_preset_of_city_trains(preset: str, tmp_path: Path) -> None:
    steps = 48 if preset == "adaptive" else 16  # it looks back over 40 of them
    small = [
        "world.num_envs=2",
        "world.settings.steps=6",
        f"ppo.n_steps={steps}",
        "ppo.batch_size=16",
        "evaluation.matches=1",
    ]
    two_iterations(load_run_config("city", preset, overrides=small), tmp_path)
    assert "population" in (tmp_path / "evaluation_results.csv").read_text()


@pytest.mark.parametrize("preset", MIMIC)
def test_a_preset_of_mimic_trains(preset: str, tmp_path: Path) -> None:
    small = ["world.num_envs=8", "ppo.n_steps=32", "ppo.batch_size=64", "evaluation.matches=2"]
    two_iterations(load_run_config("mimic", preset, overrides=small), tmp_path)
    assert (tmp_path / "evaluation_results.csv").read_text().count("walk") >= 1


@pytest.mark.parametrize("preset", ROCKET)
def test_a_preset_of_rocket_trains(preset: str, tmp_path: Path) -> None:
    config = load_run_config("rocket", preset, overrides=["world.num_envs=16", "ppo.n_steps=16", "league.keep=3"])
    assert config.evaluation is not None
    minibatches = config.hyperparameters.model_copy(update={"batch_size": 64, "n_minibatches": None})
    short = {**config.evaluation.settings, "match_s": 2.0, "overtime_s": 0.0}
    evaluation = config.evaluation.model_copy(update={"matches": 2, "opponents": ("idle",), "settings": short})
    if config.curriculum:  # numbers of rows that nothing else divides
        minibatches = config.hyperparameters.model_copy(update={"n_minibatches": 1})
    two_iterations(config.model_copy(update={"ppo": minibatches, "evaluation": evaluation}), tmp_path, most_seats=2)


@pytest.mark.parametrize("preset", ROSHAMBO)
def test_a_preset_of_roshambo_trains(preset: str, tmp_path: Path) -> None:
    if preset == "population":
        pytest.importorskip("pyspiel", reason="the package open_spiel is missing: pip install -e '.[openspiel]'")
    small = ["world.num_envs=8", "world.settings.throws=20", "ppo.n_steps=64", "ppo.batch_size=256", "league.keep=3"]
    two_iterations(load_run_config("roshambo", preset, overrides=[*small, "evaluation.matches=1"]), tmp_path)


def test_the_three_stages_of_rocket_have_teams_of_their_own_and_past_selves_in_15_of_100_games() -> None:
    config = load_run_config("rocket", "1v1-2v2")
    modes = [config.at_phase(index).world.settings["mode"] for index in range(3)]
    assert modes == ["1v1", "1v2", "2v2"]
    assert all(phase.opponents == {"mirror": 85.0, "self": 15.0} for phase in config.curriculum)
    assert config.checkpoints.every_env_steps == 250_000


def test_mimic_walks_unless_another_preset_is_named() -> None:
    assert load_run_config("mimic") == load_run_config("mimic", "walk")
    assert load_run_config("mimic", "walk-3d").world.settings == {"walker": "walker-13"}


@pytest.mark.parametrize(("preset", "algorithm"), [("walk-sac", "sac"), ("walk-td3", "td3")])
def test_off_policy_walkers_are_the_walkers_of_ppo(preset: str, algorithm: str) -> None:
    config, walk = load_run_config("mimic", preset), load_run_config("mimic", "walk")
    assert config.algorithm == algorithm
    assert config.world.settings == walk.world.settings
    assert config.rewards == walk.rewards
    assert config.policy.net_arch == walk.policy.net_arch
    assert config.policy.normalize.observations
    settings = config.hyperparameters
    assert settings.gamma == walk.hyperparameters.gamma
    assert settings.gradient_steps is not None
    env_steps = config.world.num_envs * settings.train_freq
    assert settings.gradient_steps / env_steps == 0.25
    # Entropy must not be worth more than rewards, which normalisation makes small.
    if algorithm == "sac":
        assert settings.ent_coef_init <= 0.01


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CartPole-v1", "MountainCarContinuous-v0", "Hopper-v5"])
def test_the_presets_of_gymnasium_train(name: str, tmp_path: Path) -> None:
    two_iterations(load_run_config(f"gym:{name}", overrides=["evaluation.matches=1"]), tmp_path)


def test_the_competition_leaves_opponents_out_to_be_judged_by() -> None:
    opponents = set(load_run_config("brawl", "competition").opponents or {})
    assert {"self", "constant", "random", "based", "edge-guarder:delay=0,noise=0", "habits:family=0"} < opponents
    assert not {"switcher", "habits", "habits:family=3", "habits:family=6"} & opponents


@pytest.mark.parametrize("preset", ["quick", "competition"])
def test_waiting_for_the_clock_does_not_pay(preset: str) -> None:
    config = load_run_config("brawl", preset)
    assert config.rewards.base == "dense"
    assert "draw" not in config.rewards.weights
    assert SETS["dense"]["draw"] < 0.0


def test_the_strategy_agent_is_that_of_the_system_before() -> None:
    """Its encoder, LSTM, heads, opponents and snapshots; figures in the documentation of that system."""
    agent = load_run_config("brawl", "strategy")
    encoder, memory = agent.policy.strategy, agent.policy.recurrent
    assert encoder is not None
    assert memory is not None
    assert (encoder.layers, encoder.heads, encoder.width, encoder.window, memory.size) == (6, 8, 256, 65, 512)
    assert agent.policy.net_arch.pi == agent.policy.net_arch.vf == (96, 96)
    assert (agent.rewards.base, dict(agent.rewards.weights)) == ("sparse", {})
    assert agent.opponents == {"self": 70.0, "constant": 5.0, "based": 15.0, "random": 10.0}
    assert (agent.league.snapshot_every_env_steps, agent.league.keep) == (50_000, 200)


def test_the_stages_of_the_curriculum() -> None:
    phases = load_run_config("brawl", "curriculum").curriculum
    rules = [(phase.promotion.win_rate, phase.promotion.against) for phase in phases if phase.promotion]
    assert rules == [(0.9, ("constant",)), (0.7, ("based",))]
    assert "self" in phases[2].opponents
