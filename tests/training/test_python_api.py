"""The Python API: the same runs and numbers as the command line, from a mapping, a file or a world."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import ludus
from ludus.config import dump_yaml
from ludus.core.errors import ConfigError, ConfigFileError, ConfigMismatchError, UnknownNameError
from ludus.training.api import TrainedRun, _read

QUIET = {"console": "off", "tensorboard": False, "curves": False}
SETTINGS: dict[str, Any] = {
    "world": {"name": "rps-v1", "num_envs": 8},
    "total_env_steps": 512,
    "ppo": {"n_steps": 16, "sequence_length": 8, "batch_size": 64, "n_epochs": 1},
    "monitoring": QUIET,
}


def test_import_stays_light_and_every_name_is_there() -> None:
    code = (
        "import sys, ludus; print([name for name in ('torch', 'warp', 'gymnasium', 'pydantic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert all(callable(getattr(ludus, name)) for name in ludus.__all__ if not name.startswith("__"))
    with pytest.raises(AttributeError, match="has no attribute 'trian'"):
        ludus.trian  # noqa: B018 - its absence is what is asked for


def test_a_mapping_a_file_and_an_object_are_the_same_run(tmp_path: Path) -> None:
    first = ludus.train(SETTINGS, folder=tmp_path / "a")
    (tmp_path / "mine.yaml").write_text(dump_yaml(SETTINGS))
    second = ludus.train(str(tmp_path / "mine.yaml"), folder=tmp_path / "b", overrides=["seed=0"])
    third = ludus.train(second.config, folder=tmp_path / "c")
    assert (first.env_steps, first.stop_reason) == (512, "")
    metrics = [(run.folder / "metrics.jsonl").read_bytes() for run in (first, second, third)]
    assert metrics[0] == metrics[1] == metrics[2]
    assert first.agent().spec.id == "rps-v1"


def test_a_world_and_a_preset_in_a_new_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small = ["total_env_steps=64", "world.num_envs=4", "ppo.n_steps=16", "ppo.batch_size=64", "monitoring.console=off"]
    run = ludus.train("gym:CartPole-v1", preset="default", overrides=[*small, "monitoring.curves=false"])
    assert run.folder.parent == Path("runs")
    assert run.env_steps == 64
    assert (tmp_path / "runs" / "latest").resolve() == run.folder.resolve()


def test_a_mapping_may_extend_a_preset(tmp_path: Path) -> None:
    run = _read({"extends": "debug", "world": {"name": "brawl"}, "seed": 3}, None, ())
    assert run.seed == 3
    assert run.opponents is not None
    assert not list(tmp_path.iterdir())


def test_resume_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    whole = ludus.train(SETTINGS, folder=tmp_path / "whole")
    ludus.train(SETTINGS | {"checkpoints": {"every_iterations": 1}}, folder=tmp_path / "part")
    for name in ("final", "init"):
        folder = tmp_path / "part" / "checkpoints" / name
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
    newest = max((tmp_path / "part" / "checkpoints").iterdir())
    for file in newest.iterdir():
        file.unlink()
    newest.rmdir()
    went_on = ludus.resume(tmp_path / "part")
    assert went_on.env_steps == whole.env_steps
    parts = [run / "checkpoints" / "final" / "policy.safetensors" for run in (whole.folder, went_on.folder)]
    assert parts[0].read_bytes() == parts[1].read_bytes()


def test_evaluate_takes_paths_agents_and_one_opponent(tmp_path: Path) -> None:
    settings = SETTINGS | {"world": {"name": "duel-v1", "num_envs": 8}, "opponents": "rock"}
    run = ludus.train(settings, folder=tmp_path / "run")
    by_path = ludus.evaluate(run.folder, "rock", matches=10)
    assert by_path.rows == ludus.evaluate(str(run.folder), ["rock"], matches=10).rows
    assert by_path.rows == ludus.evaluate(run.agent(), ["rock"], matches=10).rows
    exported = ludus.export_agent(run.folder, tmp_path / "agent.ludus")
    assert ludus.evaluate(exported.path, "rock", matches=10).rows == by_path.rows
    assert len(ludus.evaluate(run.folder, [run.folder, "rock"], matches=4).rows) == 2
    assert ludus.load_agent(exported.path).spec.id == "duel-v1"


def test_a_thread_can_train(tmp_path: Path) -> None:
    done: list[TrainedRun] = []
    thread = threading.Thread(target=lambda: done.append(ludus.train(SETTINGS, folder=tmp_path / "run")))
    thread.start()
    thread.join(timeout=120)
    assert done[0].env_steps == 512


def test_what_is_wrong_is_typed(tmp_path: Path) -> None:
    with pytest.raises(ConfigFileError, match=r"ppo\.epoch\b.*epochs"):
        ludus.train(SETTINGS | {"ppo": {"epoch": 1}}, folder=tmp_path / "run")
    with pytest.raises(ConfigError, match="does not say its world"):
        ludus.train({"seed": 1}, folder=tmp_path / "run")
    with pytest.raises(UnknownNameError, match="unknown world 'brwal'"):
        ludus.train("brwal", folder=tmp_path / "run")
    with pytest.raises(ConfigError, match="preset 'quick'"):
        ludus.train(SETTINGS, preset="quick", folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    ludus.train(SETTINGS, folder=tmp_path / "run")
    with pytest.raises(ConfigMismatchError, match="seed"):
        ludus.train(SETTINGS | {"seed": 5}, folder=tmp_path / "run")
