"""An algorithm from outside: registered by a plugin, checked, trained, resumed, evaluated and played without it."""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ludus
from ludus.algorithms import Algorithm, LearnerParts, find_algorithm, register_algorithm
from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.learner import PpoLearner
from ludus.core.errors import ConfigError, ConfigFileError, UnknownNameError
from ludus.rewards.plugins import load_plugin
from ludus.store import load_checkpoint
from ludus.training import TrainConfig, Trainer
from ludus.training.distributed import Process
from ludus.training.preflight import verify
from ludus.training.summary import summarise

pytestmark = pytest.mark.train

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_algorithm.py"
SETTINGS: dict[str, Any] = {
    "world": {"name": "identity", "num_envs": 8, "device": "cpu"},
    "algorithm": "reinforce",
    "reinforce": {"n_steps": 16},
    "total_env_steps": 8 * 16 * 6,
    "monitoring": {"console": "off", "tensorboard": False, "curves": False},
}


@pytest.fixture(autouse=True)
def _registered() -> None:
    """Load the example as a plugin; every test ends without it."""
    load_plugin(EXAMPLE)


def make_config(**changes: Any) -> TrainConfig:
    return TrainConfig.model_validate(SETTINGS | changes)


def test_its_section_is_checked_like_any_other(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("world: {name: identity}\nalgorithm: reinforce\nreinforce: {n_step: 3, gamma: 2}\n")
    with pytest.raises(ConfigFileError) as caught:
        ludus.train(file, folder=tmp_path / "run")
    assert [fault.key for fault in caught.value.faults] == ["reinforce.n_step", "reinforce.gamma"]
    assert "n_steps" in caught.value.faults[0].hint


def test_the_checks_before_a_run_and_its_summary_know_it() -> None:
    lines = list(verify(make_config()))
    assert [line.partition(":")[0] for line in lines] == [
        "world", "players and rewards", "batch", "rollout", "update", "checkpoint", "time", "memory",
    ]  # fmt: skip
    assert any(line.startswith("reinforce:") for line in summarise(make_config(), None, ""))


def test_what_it_cannot_do_is_refused() -> None:
    phases = [{"name": "first", "opponents": {"random": 1.0}}]
    with pytest.raises(ValueError, match="algorithm reinforce cannot do curriculum"):
        make_config(curriculum=phases)
    with pytest.raises(ConfigError, match="algorithm reinforce"):
        Process(0, 2).share(make_config())


def test_it_learns_and_its_agent_plays_without_it(tmp_path: Path, forget: Callable[[str], None]) -> None:
    many = {"name": "identity", "num_envs": 64, "device": "cpu"}
    run = ludus.train({**SETTINGS, "world": many, "total_env_steps": 120_000}, folder=tmp_path / "run")
    forget("reinforce")
    found = ludus.evaluate(run.folder, matches=50)
    assert found.rows[0]["mean_return"] > 3.5  # of 4; blind play: 1


def test_a_resumed_run_is_the_same_bit_for_bit(tmp_path: Path) -> None:
    config = make_config()
    with Trainer(config, tmp_path / "whole") as trainer:
        trainer.run()
    with Trainer(config, tmp_path / "cut") as trainer:
        trainer.stop()
        trainer.run()
    with Trainer(config, tmp_path / "cut") as trainer:
        assert trainer.run().iterations == 6
    whole, cut = (load_checkpoint(tmp_path / name / "checkpoints" / "final") for name in ("whole", "cut"))
    assert whole.tensors.keys() == cut.tensors.keys()
    for group, tensors in whole.tensors.items():
        assert all(bool((tensors[name] == cut.tensors[group][name]).all()) for name in tensors), group


def test_a_run_of_another_algorithm_does_not_need_it(forget: Callable[[str], None]) -> None:
    document = make_config(algorithm="ppo", reinforce={}).to_json()
    forget("reinforce")
    assert TrainConfig.from_json(document).algorithm == "ppo"


def test_settings_made_before_it_was_registered_can_be_stored(forget: Callable[[str], None]) -> None:
    forget("reinforce")
    config = TrainConfig.model_validate({"world": {"name": "identity"}})
    runpy.run_path(str(EXAMPLE), run_name="again")
    assert TrainConfig.from_json(config.to_json()).algorithm == "ppo"


def test_without_it_the_error_names_what_there_is(forget: Callable[[str], None]) -> None:
    document = make_config().to_json()
    forget("reinforce")
    with pytest.raises(UnknownNameError, match="ppo, sac, td3"):
        find_algorithm("reinforce")
    with pytest.raises(ConfigError, match="unknown algorithm 'reinforce'"):
        TrainConfig.from_json(document)


def test_a_name_belongs_to_one_algorithm() -> None:
    runpy.run_path(str(EXAMPLE), run_name="again")  # the same once more is the same

    class Other(Algorithm[PpoConfig, PpoLearner]):
        config = PpoConfig

        def make_learner(self, settings: PpoConfig, parts: LearnerParts) -> Any:
            raise NotImplementedError

    with pytest.raises(ConfigError, match="'ppo'"):
        register_algorithm("ppo")(Other)
    with pytest.raises(ConfigError, match="my-own"):
        register_algorithm("my-own")(Other)
