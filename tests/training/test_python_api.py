"""The Python API: the same runs and numbers as the command line, from a mapping, a file or a world."""

import csv
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

import ludus
from ludus.algorithms.ppo.config import PpoConfig
from ludus.config import dump_yaml
from ludus.core.errors import ConfigError, ConfigFileError, ConfigMismatchError, UnknownNameError
from ludus.envs import bots
from ludus.envs.base import EnvSpec
from ludus.training import agent_opponents
from ludus.training.api import TrainedRun, _read, _section
from ludus.training.callbacks import Counters, Iteration
from ludus.training.config import TrainConfig

pytestmark = pytest.mark.train

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
    run = _read({"extends": "debug", "world": {"name": "brawl"}, "seed": 3}, None, (), ())
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


SECTIONS: dict[str, Any] = {
    "world": {"num_envs": 8},
    "ppo": {"n_steps": 16, "sequence_length": 8, "batch_size": 64, "n_epochs": 1},
    "monitoring": QUIET,
}


def test_sections_as_keywords_are_the_same_run(tmp_path: Path) -> None:
    first = ludus.train(SETTINGS, folder=tmp_path / "a")
    second = ludus.train("rps-v1", total_env_steps=512, seed=0, device="cpu", folder=tmp_path / "b", **SECTIONS)
    third = ludus.train(
        **SECTIONS | {"world": {"name": "rps-v1", "num_envs": np.int64(8)}}, total_env_steps=512, folder=tmp_path / "c"
    )
    metrics = [(run.folder / "metrics.jsonl").read_bytes() for run in (first, second, third)]
    assert metrics[0] == metrics[1] == metrics[2]
    assert first.config == third.config


def _ppo(config: TrainConfig) -> PpoConfig:
    assert isinstance(config.hyperparameters, PpoConfig)
    return config.hyperparameters


def test_later_settings_win_and_free_mappings_replace() -> None:
    mapping = {"world": {"name": "duel", "num_envs": 8}, "seed": 1, "ppo": {"n_steps": 16, "n_epochs": 2}}
    mapping["opponents"] = {"rock": 1, "random": 2}
    config = _read(mapping, None, ["ppo.n_epochs=5"], [_section("ppo", ("ppo",), {"n_steps": 32})], {"cycle": 1})
    assert (config.seed, _ppo(config).n_steps, _ppo(config).n_epochs, config.world.num_envs) == (1, 32, 5, 8)
    assert config.opponents == {"cycle": 1.0}
    changed = _read(config, None, ["seed=4"], [_section("ppo", ("ppo",), {"n_steps": 64})])
    assert (changed.seed, _ppo(changed).n_steps, _ppo(changed).n_epochs) == (4, 64, 5)
    without = _read("brawl", "debug", (), [_section("evaluation", ("evaluation",), None)])
    assert without.evaluation is None
    assert _read("brawl", "debug", (), ()).evaluation is not None


def test_all_faults_of_keywords_are_listed_with_key_and_origin(tmp_path: Path) -> None:
    with pytest.raises(ConfigFileError) as caught:
        ludus.train(
            "rps", folder=tmp_path / "run", ppo={"n_stepz": 3, "gamma": "much"}, pppo={}, seed=-1,
            monitoring={"console": print}, overrides=["device=cpu"],
        )  # fmt: skip
    text = str(caught.value)
    assert "ludus.train(ppo=...): ppo.n_stepz: unknown key" in text
    assert "did you mean 'n_steps'?" in text
    assert "ludus.train(ppo=...): ppo.gamma: should be a number (got 'much')" in text
    assert "ludus.train(pppo=...): pppo: unknown key" in text
    assert "did you mean 'ppo'?" in text
    assert "ludus.train(seed=...): seed:" in text
    assert "ludus.train(monitoring=...): monitoring.console: should be text" in text
    assert "command line: device=cpu: device: unknown key" in text
    assert not (tmp_path / "run").exists()


def test_learn_continues_and_metrics_are_a_table(tmp_path: Path) -> None:
    class Count(ludus.BaseCallback):
        rollouts = 0

        def on_rollout_start(self, counters: Counters) -> None:
            self.rollouts += 1

    count = Count()
    run = ludus.train(SETTINGS, callbacks=count, folder=tmp_path / "run")
    longer = run.learn(256)
    assert (longer.env_steps, longer.stop_reason, longer.config.total_env_steps) == (768, "", 768)
    assert count.rollouts == 6, "the same callbacks are used again"
    metrics = longer.metrics()
    assert metrics["env_steps"].tolist() == [128.0, 256.0, 384.0, 512.0, 640.0, 768.0]
    assert metrics["policy_loss"].dtype == np.float64
    assert run.learn(1, callbacks=()).env_steps == 896, "from where the folder is, in whole iterations"
    assert count.rollouts == 6
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        run.learn(0)


def test_a_run_that_was_stopped_learns_on_towards_its_budget(tmp_path: Path) -> None:
    class Stop(ludus.BaseCallback):
        def on_iteration(self, iteration: Iteration) -> None:
            self.trainer.stop("enough")

    run = ludus.train(SETTINGS, callbacks=[Stop()], folder=tmp_path / "run")
    assert (run.env_steps, run.stop_reason) == (128, "enough")
    run = run.learn(200, callbacks=())
    assert (run.env_steps, run.stop_reason) == (384, "learn(200) is done")
    run = ludus.resume(run.folder)
    assert (run.env_steps, run.stop_reason, run.config.total_env_steps) == (512, "", 512)
    whole = ludus.train(SETTINGS, folder=tmp_path / "whole")
    parts = [each / "checkpoints" / "final" / "policy.safetensors" for each in (run.folder, whole.folder)]
    assert parts[0].read_bytes() == parts[1].read_bytes()


def scissors(observation: Any, state: None) -> tuple[torch.Tensor, None]:
    return torch.full_like(observation.frame, 2), state


class PaperBot:
    def reset(self) -> None: ...

    def act(self, observation: Any) -> int:
        return 1


def test_opponents_are_names_functions_classes_and_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bots, "_REGISTERED", {})
    monkeypatch.setattr(agent_opponents, "_GIVEN", {})
    sections = SECTIONS | {"total_env_steps": 256, "seed": 1}
    sections["world"] = {"num_envs": 16}
    first = ludus.train("duel", opponents="rock", folder=tmp_path / "first", **sections)
    mix = {"rock": 1, scissors: 1, PaperBot: 1, first.agent(): 1, first.folder: 1}
    run = ludus.train("duel", opponents=mix, folder=tmp_path / "run", **sections)
    names = list(run.config.opponents or {})
    assert names[:3] == ["rock", "scissors", "paperbot"]
    assert names[3].startswith("agent-")
    assert names[4] == str(first.folder)
    met = {row["opponent"] for row in csv.DictReader((run.folder / "opponents.csv").open(newline=""))}
    assert len(met) >= 4
    agent_opponents._GIVEN.clear()  # as in another process: the run folder holds a copy
    assert run.learn(16).env_steps == 512
    assert (
        run.evaluate(["rock", scissors], matches=4).rows
        == ludus.evaluate(run.folder, ["rock", scissors], matches=4).rows
    )


class Net(torch.nn.Module):
    """A network of the user's own."""

    def __init__(self, spec: EnvSpec, width: int = 4) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(spec.observation_space["vector"].shape[0], width)  # type: ignore[index]

    def forward(self, observations: dict[str, torch.Tensor]) -> torch.Tensor:
        features: torch.Tensor = self.layer(observations["vector"])
        return features


def test_vector_environments_and_networks_of_the_users_own_train(tmp_path: Path) -> None:
    carts = gymnasium.make_vec("CartPole-v1", num_envs=3, vectorization_mode="sync")
    run = ludus.train(
        env=carts,
        policy={"module": Net, "module_kwargs": {"width": 5}},
        ppo={"n_steps": 16, "batch_size": 48, "n_epochs": 1},
        total_env_steps=96,
        monitoring={"console": "off"},
        folder=tmp_path / "run",
    )
    assert (run.config.world.name, run.config.world.num_envs, run.env_steps) == ("cart-pole-v1", 3, 96)
    assert run.config.policy.module == "test_python_api.py:Net"
    assert run.agent().policy.network is not None
    with pytest.raises(ConfigError, match=r"must be a class.*pass Net"):
        ludus.train("rps", policy=Net(run.agent().spec))  # type: ignore[arg-type]


def test_callbacks_must_be_callbacks(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"objects of ludus\.BaseCallback.*instead of the class"):
        ludus.train(SETTINGS, callbacks=[ludus.BaseCallback])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="choose one"):
        ludus.train("rps", env=object)
    with pytest.raises(ConfigError, match="nothing says which world"):
        ludus.train(seed=1)

    class Faulty(ludus.BaseCallback):
        def on_iteration(self, iteration: Iteration) -> None:
            raise KeyError("mine")

    with pytest.raises(ludus.CallbackError, match=r"Faulty failed: KeyError: 'mine' \(.*test_python_api.py:\d+\)"):
        ludus.train(SETTINGS, callbacks=[Faulty()], folder=tmp_path / "run")
    assert (tmp_path / "run" / "checkpoints" / "interrupted").is_dir()
    assert ludus.resume(tmp_path / "run").env_steps == 512


def test_dir_shows_the_api() -> None:
    assert dir(ludus) == sorted(ludus.__all__)
    assert {"train", "BaseCallback", "Agent", "CallbackError", "check_env", "reward_term"} < set(dir(ludus))


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
