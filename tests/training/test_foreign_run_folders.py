"""Run folders of strangers: links out of them are refused, and nothing that they say switches the network on."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.commands import Commands

from ludus.config import dump_yaml
from ludus.core.errors import ConfigError
from ludus.training import Counters, TrainConfig, train
from ludus.training.config import MonitoringConfig
from ludus.training.destinations import FILE, remember, withhold
from ludus.training.loggers.csv_logger import MONITOR
from ludus.training.run_folder import RUN_FILE, RunLock, describe_run, fork_run

SETTINGS: dict[str, Any] = {
    "world": {"name": "rps-v1", "num_envs": 4},
    "total_env_steps": 64,
    "ppo": {"n_steps": 8, "batch_size": 32, "n_epochs": 1},
    "monitoring": {"console": "off", "curves": False, "tensorboard": False},
}
CONFIG = TrainConfig.model_validate(SETTINGS)
ONLINE = {"mode": "online", "entity": "strangers", "project": "p"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("foreign") / "run"
    describe_run(folder, CONFIG, Counters())
    train(CONFIG, folder)
    return folder


@pytest.fixture(autouse=True)
def _own_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LUDUS_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize("name", ["checkpoints", "snapshots", "replays", "videos", "run.lock", "run.log", MONITOR])
@pytest.mark.parametrize("is_there", [True, False])
def test_links_out_of_a_run_folder_are_refused_before_anything_is_written(
    trained: Path, tmp_path: Path, name: str, is_there: bool
) -> None:
    run, outside = shutil.copytree(trained, tmp_path / "run"), tmp_path / "outside"
    if name in ("checkpoints", "snapshots") and is_there:
        shutil.copytree(trained / "checkpoints", outside)
    elif is_there:
        outside.write_text("precious")
    if (run / name).is_dir():
        shutil.rmtree(run / name)
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(outside)
    before = {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()} if outside.is_dir() else {}
    with pytest.raises(ConfigError, match=name):
        RunLock(run)
    with pytest.raises(ConfigError, match=name):
        fork_run(run, tmp_path / "fork", CONFIG)
    assert outside.exists() == is_there
    assert not outside.is_file() or outside.read_text() == "precious"
    assert before == {path: path.read_bytes() for path in before}


def test_a_linked_run_folder_and_links_inside_of_it_are_used(trained: Path, tmp_path: Path) -> None:
    run = shutil.copytree(trained, tmp_path / "run")
    (run / "mine").symlink_to("checkpoints")
    (run / "loop").symlink_to("loop")
    (tmp_path / "latest").symlink_to("run")
    with RunLock(tmp_path / "latest"):
        pass


@pytest.mark.parametrize("asked", [{"webhook": {"address_env": "CI_SERVER"}}, {"wandb": ONLINE}])
def test_a_destination_that_was_never_named_is_off_and_warned_of(
    asked: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    config = TrainConfig.model_validate(SETTINGS | {"monitoring": asked})
    (name,) = asked
    assert getattr(withhold(config).monitoring, name) is None
    assert f"monitoring.{name} is off" in caplog.text
    remember(config.monitoring)  # as a training of the user's own does
    assert withhold(config) is config
    other = TrainConfig.model_validate(SETTINGS | {"monitoring": {"wandb": ONLINE | {"project": "another"}}})
    assert withhold(other).monitoring.wandb is None


@pytest.mark.parametrize("asked", [{}, {"webhook": {}}, {"wandb": ONLINE | {"mode": "offline"}}])
def test_what_is_the_users_own_or_stays_here_is_used(asked: dict[str, Any]) -> None:
    config = TrainConfig.model_validate(SETTINGS | {"monitoring": asked})
    assert withhold(config) is config


def test_the_variable_of_the_user_defaults_is_known(tmp_path: Path) -> None:
    (tmp_path / "home" / "ludus").mkdir(parents=True)
    (tmp_path / "home" / "ludus" / "config.yaml").write_text("webhook_env: MY_HOOK\n")
    config = TrainConfig.model_validate(SETTINGS | {"monitoring": {"webhook": {"address_env": "MY_HOOK"}}})
    assert withhold(config) is config


@pytest.mark.parametrize("text", ["", "{", "[]", '{"destinations": 3}', '{"destinations": [1, {}]}'])
def test_a_damaged_list_of_destinations_is_an_empty_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "home" / "ludus").mkdir(parents=True)
    (tmp_path / "home" / "ludus" / FILE).write_text(text)
    config = TrainConfig.model_validate(SETTINGS | {"monitoring": {"wandb": ONLINE}})
    assert withhold(config).monitoring.wandb is None
    remember(config.monitoring)
    assert withhold(config) is config


def test_a_folder_that_cannot_be_written_is_only_a_warning_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/dev/null")
    remember(MonitoringConfig.model_validate({"wandb": ONLINE}))
    assert not caplog.text


def test_resuming_a_strangers_run_opens_no_connection(trained: Path, tmp_path: Path, commands: Commands) -> None:
    folder = shutil.copytree(trained, tmp_path / "run")
    document = SETTINGS | {"monitoring": SETTINGS["monitoring"] | {"webhook": {"address_env": "CI_SERVER"}}}
    (folder / "config.yaml").write_text(dump_yaml(TrainConfig.model_validate(document).to_json()))
    environment = {"CI_SERVER": "http://127.0.0.1:9/secret"}
    code, said = commands.run("resume", folder, "total_env_steps=128", environment=environment)
    assert code == 0, said
    assert "monitoring.webhook is off" in said
    assert "webhook message was lost" not in said
    assert "secret" not in said
    assert json.loads((folder / RUN_FILE).read_text())["sessions"][-1]["env_steps"] == 128
