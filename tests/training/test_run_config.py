"""The configuration of a run: user defaults, presets, files and overrides in one, for every shipped preset."""

from pathlib import Path

import gymnasium
import pytest

from ludus.config import PresetDirectory, dump_yaml, parse_document, read_config
from ludus.core.errors import ConfigError, ConfigFileError, UnknownNameError
from ludus.envs.world import find_world, registered_envs
from ludus.training.config import TrainConfig
from ludus.training.presets import load_run_config, load_run_config_with_origins

WORLDS = (*registered_envs(), "gym:CartPole-v1")
PRESETS = [(world, name) for world in WORLDS for name in PresetDirectory(find_world(world).package).names()]


@pytest.fixture(autouse=True)
def user_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a user's defaults are looked for; there are none yet."""
    monkeypatch.delenv("LUDUS_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "ludus").mkdir(parents=True)
    return tmp_path / "home" / "ludus" / "config.yaml"


@pytest.mark.parametrize(("world", "preset"), PRESETS)
def test_every_preset_is_valid_and_survives_its_own_output(world: str, preset: str) -> None:
    config = load_run_config(world, preset)
    assert config.world.name == world
    text = dump_yaml(config.to_json())
    assert read_config(TrainConfig, [parse_document(text, "config.yaml")]) == config
    assert PresetDirectory(find_world(world).package).about(preset), "the first line of a preset says what it is for"


def test_a_gymnasium_world_takes_the_common_preset() -> None:
    config = load_run_config("gym:Taxi-v3")
    assert (config.world.name, config.world.num_envs, config.total_env_steps) == ("gym:Taxi-v3", 8, 500_000)
    assert config.hyperparameters.minibatches(8) == 4
    assert config.evaluation is not None  # without one there is no best agent


@pytest.mark.parametrize(
    "name", [name for name in PresetDirectory(find_world("gym:CartPole-v1").package).names() if name != "default"]
)
def test_a_tuned_gymnasium_environment_takes_its_own_preset(name: str) -> None:
    newest = max((env_id for env_id in gymnasium.registry if env_id.startswith(f"{name}-v")), key=str)
    config = load_run_config(f"gym:{newest}")
    assert config == load_run_config(f"gym:{newest}", name)
    rollout = config.world.num_envs * config.hyperparameters.n_steps
    assert config.hyperparameters.minibatches(config.world.num_envs) == rollout // config.hyperparameters.batch_size
    assert config.evaluation is not None
    assert config.evaluation.every_env_steps < config.total_env_steps


def test_an_environment_of_the_same_name_elsewhere_is_not_taken_for_gymnasiums() -> None:
    assert find_world("gym:Pendulum-v1").default_preset == "Pendulum"
    for name in ("gym:mine:Pendulum-v1", "gym:mine/Pendulum-v1", "gym:Pendulums-v1"):
        assert find_world(name).default_preset == "default"


def test_the_default_preset_of_a_world_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    presets = tmp_path / "presets"
    presets.mkdir()
    monkeypatch.setattr(PresetDirectory, "_folder", lambda _: presets)
    (presets / "other.yaml").write_text("seed: 2\n")
    with pytest.raises(ConfigError, match=r"duel has no preset quick; .*: other"):
        load_run_config("duel")
    (presets / "quick.yaml").write_text("extends: other\ntotal_env_steps: 7\n")
    config = load_run_config("duel")
    assert (config.seed, config.total_env_steps) == (2, 7)
    assert load_run_config("duel", "other").total_env_steps != 7


def test_a_world_without_presets_begins_with_the_plain_defaults() -> None:
    assert load_run_config("duel") == TrainConfig.model_validate({"world": {"name": "duel"}})
    with pytest.raises(UnknownNameError, match="unknown preset 'quick'; valid: none"):
        load_run_config("duel", "quick")


def test_unknown_worlds_and_presets() -> None:
    with pytest.raises(UnknownNameError, match="unknown world 'chess'"):
        load_run_config("chess")
    with pytest.raises(UnknownNameError, match=r"unknown preset 'debgu' .did you mean 'debug'"):
        load_run_config("brawl", "debgu")
    with pytest.raises(ConfigError, match="are given; choose one"):
        load_run_config("brawl", "debug", Path("mine.yaml"))


def test_each_layer_wins_over_those_before_it(tmp_path: Path, user_file: Path) -> None:
    user_file.write_text("device: cuda\nname: Ada\n")
    mine = tmp_path / "mine.yaml"
    mine.write_text("extends: debug\nseed: 5\nppo: {n_epochs: 3}\n")
    config, found = load_run_config_with_origins("brawl", None, mine, ["ppo.n_steps=64", "seed=6"])
    assert (config.world.name, config.world.device, config.seed) == ("brawl", "cuda", 6)
    assert (config.hyperparameters.n_steps, config.hyperparameters.n_epochs) == (64, 3)
    debug = PresetDirectory("ludus.worlds.brawl").file("debug")
    origins = {
        ("world", "name"): "command line: WORLD",
        ("world", "device"): f"{user_file}:1:9",
        ("seed",): "command line: seed=6",
        ("ppo", "n_steps"): "command line: ppo.n_steps=64",
        ("ppo", "n_epochs"): f"{mine}:3:17",
    }
    assert {path: str(found.of(path)) for path in origins} == origins
    budget = found.of(("total_env_steps",))
    assert budget is not None
    assert budget.source == str(debug)
    assert load_run_config("brawl", None, mine, ["world.device=cpu"]).world.device == "cpu"


def test_a_users_defaults_never_switch_on_a_report(user_file: Path) -> None:
    user_file.write_text("webhook_env: MY_HOOK\nwandb_project: fights\n")
    assert load_run_config("duel").monitoring.wandb is None
    assert load_run_config("duel").monitoring.webhook is None
    filled = load_run_config("duel", overrides=["monitoring.webhook={}", "monitoring.wandb.mode=offline"]).monitoring
    assert filled.webhook is not None
    assert filled.webhook.address_env == "MY_HOOK"
    assert filled.wandb is not None
    assert filled.wandb.project == "fights"
    own = load_run_config("duel", overrides=["monitoring.wandb.project=mine"]).monitoring
    assert own.wandb is not None
    assert own.wandb.project == "mine"


def test_faults_in_the_users_own_file_are_named(user_file: Path) -> None:
    user_file.write_text("devise: cuda\n")
    with pytest.raises(ConfigFileError, match=r"config.yaml:1:1: devise: unknown key .* did you mean 'device'"):
        load_run_config("brawl", "debug")


def test_a_file_for_another_world_is_refused(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("world:\n  name: brawl-v1\n")
    assert load_run_config("brawl", file=mine).world.name == "brawl-v1"
    with pytest.raises(ConfigFileError, match=r"mine.yaml:2:9: world.name: should be duel, the world .*'brawl-v1'"):
        load_run_config("duel", file=mine)
    mine.write_text("world:\n  name: brwal-v1\n")
    with pytest.raises(ConfigFileError, match=r":2:9: world.name: should be a world .* did you mean 'brawl-v1'\?"):
        load_run_config("brawl", file=mine)


def test_the_worlds_own_settings_are_checked_with_their_lines(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("world:\n  settings:\n    stoks: 2\n    step_limit: 1\nppo: {vf_coef: .inf}\n")
    with pytest.raises(ConfigFileError) as caught:
        load_run_config("brawl", file=mine, overrides=["world.settings.threads=0", "seed=x"])
    assert [(fault.place, fault.key) for fault in caught.value.faults] == [
        (f"{mine}:3:5", "world.settings.stoks"),
        (f"{mine}:4:17", "world.settings.step_limit"),
        (f"{mine}:5:16", "ppo.vf_coef"),
        ("command line: world.settings.threads=0", "world.settings.threads"),
        ("command line: seed=x", "seed"),
    ]
    assert caught.value.faults[0].hint.startswith("did you mean 'stocks'?")
    config = load_run_config("gym:CartPole-v1", overrides=["world.settings.workers=2"])
    assert config.world.settings == {"workers": 2}
    with pytest.raises(ConfigFileError, match="did you mean 'workers'"):
        load_run_config("gym:CartPole-v1", overrides=["world.settings.worker=2"])
    with pytest.raises(ConfigFileError, match=r"world.settings.x.0: should be a finite number \(got nan\)"):
        load_run_config("gym:CartPole-v1", overrides=["world.settings.x=[.nan]"])
