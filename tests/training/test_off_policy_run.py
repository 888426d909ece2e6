"""Off-policy runs: the same run folder, evaluation, checkpoints, faults and agents as those of PPO; and they learn."""

import csv
import json
import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import torch
from pydantic import ValidationError
from tests.commands import Commands
from torch import Tensor

from ludus.core.errors import ConfigError, MissingDependencyError, NotFiniteError
from ludus.envs import registry
from ludus.envs import world as world_record
from ludus.envs.base import EnvRequest, StepResult
from ludus.envs.tiny.single_player import PointEnv
from ludus.evaluation.evaluate import evaluate
from ludus.policies.agent import Agent
from ludus.store import Checkpoint, load_checkpoint
from ludus.training import TrainConfig, Trainer, train
from ludus.training.components import Components
from ludus.training.distributed import Process
from ludus.training.preflight import verify
from ludus.training.summary import summarise

pytestmark = pytest.mark.train

GAMES, STEPS, ITERATIONS = 4, 4, 8
PER_ITERATION = GAMES * STEPS
GOOD_RETURN = -9.5  # of the play that `point-v1` describes as good; random play has about -45


def make_config(**changes: Any) -> TrainConfig:
    settings: dict[str, Any] = {
        "world": {"name": "point", "num_envs": GAMES, "device": "cpu", "settings": {"step_limit": 10}},
        "algorithm": "sac",
        "total_env_steps": ITERATIONS * PER_ITERATION,
        "policy": {
            "net_arch": {"pi": [8], "vf": [8]},
            "activation": "relu",
            "normalize": {"observations": True, "returns": True},
        },
        "settings": {
            "train_freq": STEPS,
            "gradient_steps": 3,
            "batch_size": 16,
            "learning_starts": 2 * PER_ITERATION,
            "buffer_size": 70,  # full and overwritten in the middle of a rollout before the end
        },
        "evaluation": {"every_env_steps": 4 * PER_ITERATION, "matches": 6},
    }
    own = settings.pop("settings") | changes.pop("settings", {})
    whole = settings | changes
    return TrainConfig.model_validate(whole | ({} if whole["algorithm"] == "ppo" else {whole["algorithm"]: own}))


def final(folder: Path) -> Checkpoint:
    return load_checkpoint(folder / "checkpoints" / "final")


def assert_same(one: Path, other: Path) -> None:
    """Checks that two runs ended with the same bytes."""
    first, second = final(one), final(other)
    assert first.documents == second.documents
    for group, tensors in first.tensors.items():
        assert all(torch.equal(tensor, second.tensors[group][name]) for name, tensor in tensors.items()), group
    for name in ("metrics.jsonl", "monitor.csv", "reward_breakdown.csv", "evaluation_results.csv"):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


@pytest.mark.parametrize("algorithm", ["sac", "td3"])
def test_the_run_folder_has_everything(tmp_path: Path, algorithm: str) -> None:
    counters = train(make_config(algorithm=algorithm), tmp_path)
    assert (counters.env_steps, counters.iterations) == (ITERATIONS * PER_ITERATION, ITERATIONS)
    assert counters.updates == 3 * (ITERATIONS - 2)  # a rollout joins the buffer an iteration later, 32 are enough
    rows = {}
    for name in ("monitor.csv", "reward_breakdown.csv", "evaluation_results.csv"):
        lines = (tmp_path / name).read_text().splitlines()
        rows[name] = list(csv.DictReader(lines[1:] if name == "monitor.csv" else lines))
    assert [row["env_steps"] for row in rows["evaluation_results.csv"]] == ["64", "128"]
    assert all(row["matches"] == "6" for row in rows["evaluation_results.csv"])
    assert len(rows["reward_breakdown.csv"]) == ITERATIONS
    assert all(row["total"] == row["reward"] for row in rows["reward_breakdown.csv"])
    assert [row["l"] for row in rows["monitor.csv"]] == ["10"] * 12
    logged = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["replay_size"] for line in logged] == [0, 16, 32, 48, 64, 70, 70, 70]
    assert [line["value_loss"] is None for line in logged] == [True, True] + [False] * 6
    assert (logged[-1]["entropy_coefficient"] is None) == (logged[-1]["entropy"] is None) == (algorithm == "td3")
    names = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert names == {"init", "best", "final"}
    groups = {"policy", "critics", "optimiser", "collector", "replay", "trace", "random", "games"}
    assert set(final(tmp_path).tensors) == groups
    assert final(tmp_path).tensors["replay"]["rewards"].shape == (70,)


@pytest.mark.parametrize("algorithm", ["sac", "td3"])
def test_a_run_that_was_broken_off_and_goes_on_equals_one_that_was_not(tmp_path: Path, algorithm: str) -> None:
    config = make_config(algorithm=algorithm)
    train(config, tmp_path / "straight")
    with Trainer(config, tmp_path / "broken") as trainer:
        learner, plain = trainer.components.learner, trainer.components.learner.update

        def update(progress: float = 0.0) -> None:
            if learner.iterations == 6:  # its rollout is collected, and the one before it overwrote the oldest steps
                trainer.interrupt("the test")
            plain(progress)

        learner.update = update  # type: ignore[method-assign]
        assert trainer.run().iterations == 6
    train(config, tmp_path / "broken")
    assert_same(tmp_path / "straight", tmp_path / "broken")


def test_without_the_buffer_a_run_goes_on_with_an_empty_one_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = make_config(settings={"checkpoint_buffer": False})
    with Trainer(config, tmp_path) as trainer:
        list(trainer._go_on())
        list(trainer._go_on())
        list(trainer._go_on())
        trainer.stop()
        trainer.run()
    assert "replay" not in load_checkpoint(tmp_path / "checkpoints" / "interrupted").tensors
    with caplog.at_level(logging.WARNING):
        train(config, tmp_path)
    assert "the replay buffer of 32 env steps was not stored" in caplog.text
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["replay_size"] for line in lines] == [0, 16, 32, 16, 32, 48, 64, 70]
    assert [line["updates"] for line in lines] == [0, 0, 3, 3, 6, 9, 12, 15]


def pendulums(num_envs: int) -> "gym.vector.VectorEnv[Any, Any, Any]":
    return gym.make_vec("Pendulum-v1", num_envs=num_envs, vectorization_mode="sync")


def test_games_that_cannot_be_restored_start_anew_and_the_learner_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world_record, "_WORLDS", dict(world_record.known_worlds()))
    registry.register_env("pendulums-v1", pendulums)
    world = {"name": "pendulums-v1", "num_envs": GAMES}
    config = make_config(world=world, evaluation={"every_env_steps": 10_000, "matches": 2})
    with Trainer(config, tmp_path) as trainer:
        list(trainer._go_on())
        list(trainer._go_on())
        trainer.stop()
        trainer.run()
    with caplog.at_level(logging.WARNING):
        assert train(config, tmp_path).iterations == ITERATIONS
    assert "cannot restore its games: all 4 restart" in caplog.text
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["replay_size"] for line in lines] == [0, 16, 32, 48, 64, 70, 70, 70]
    torques, _ = Agent.load(tmp_path).predict(torch.randn(100, 3))
    assert 1.0 < float(torques.abs().max()) <= 2.0


class BrokenPoint(PointEnv):
    """Gives one reward, or one observation, that is not finite, in its 14th step."""

    def __init__(self, request: EnvRequest) -> None:
        settings = dict(request.config or {})
        self._place, self._steps = settings.pop("place"), 0
        super().__init__(replace(request, config=settings))

    def _advance(self, actions: Tensor) -> StepResult:
        result = super()._advance(actions)
        self._steps += 1
        if self._steps == 14:
            numbers = result.events["reward"] if self._place == "reward" else result.observations["vector"]
            numbers[0] = torch.nan
        return result


@pytest.mark.parametrize("place", ["reward", "observation"])
@pytest.mark.parametrize("checkpoint_buffer", [True, False])
def test_what_is_not_finite_is_undone_and_never_remembered(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    place: str,
    checkpoint_buffer: bool,
) -> None:
    monkeypatch.setattr(world_record, "_WORLDS", dict(world_record.known_worlds()))
    registry.register_env("broken-point-v1", BrokenPoint)
    world = {"name": "broken-point", "num_envs": GAMES, "settings": {"place": place}}
    off_policy = {"checkpoint_buffer": checkpoint_buffer}
    config = make_config(world=world, evaluation=None, settings=off_policy)
    with caplog.at_level(logging.WARNING):
        assert train(config, tmp_path).iterations == ITERATIONS
    assert f"NaN or Inf in iteration 4, first seen in the {place}" in caplog.text
    assert "not stored" not in caplog.text
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["replay_size"] for line in lines] == [0, 16, 32, 48, 64, 70, 70, 70]
    for tensors in final(tmp_path).tensors.values():
        assert all(bool(tensor.isfinite().all()) for tensor in tensors.values() if tensor.is_floating_point())


def test_a_run_that_cannot_stay_finite_ends_with_its_last_finite_state(tmp_path: Path) -> None:
    config = make_config(evaluation=None, settings={"learning_rate": 1e30})
    with pytest.raises(NotFiniteError, match="NaN or Inf in iteration 3, first seen in the loss"):
        train(config, tmp_path)
    tensors = load_checkpoint(tmp_path / "checkpoints" / "interrupted").tensors["critics"]
    assert all(bool(tensor.isfinite().all()) for tensor in tensors.values())


def test_an_agent_plays_without_the_library(tmp_path: Path, commands: Commands) -> None:
    train(make_config(), tmp_path / "run")
    script = (
        "import sys, numpy as np\n"
        "from ludus.policies.agent import Agent\n"
        "agent = Agent.load(sys.argv[1])\n"
        "actions, _ = agent.predict(np.ones((3, 6), np.float32), deterministic=True)\n"
        "assert 'stable_baselines3' not in sys.modules\n"
        "print(actions.tolist())\n"
    )
    (tmp_path / "script.py").write_text(script)
    code, said = commands.run(tmp_path / "script.py", tmp_path / "run" / "checkpoints" / "final")
    assert code == 0, said
    agent = Agent.load(tmp_path / "run" / "checkpoints" / "final")
    expected, _ = agent.predict(torch.ones(3, 6), deterministic=True)
    assert torch.allclose(torch.tensor(json.loads(said)), expected)
    assert (agent.policy.config.squash, agent.policy.config.net_arch.vf) == ("stochastic", ())


@pytest.mark.parametrize("algorithm", ["sac", "td3"])
def test_a_run_is_verified_and_summed_up(algorithm: str) -> None:
    lines = list(verify(make_config(algorithm=algorithm)))
    assert "batch: 4 steps x 4 rows, then 3 gradient steps of 16 out of the last 70" in lines
    assert any(line.startswith("update: policy loss") for line in lines)
    assert "replay buffer" in lines[-1]
    summary = "\n".join(summarise(make_config(algorithm=algorithm), None, ""))
    assert f"{algorithm}: 4 steps x 4 rows = 16 env steps, then 3 gradient steps of 16" in summary


def test_verification_refuses_what_does_not_fit_the_world() -> None:
    with pytest.raises(ConfigError, match=r"buffer_size.*16 env steps"):
        list(verify(make_config(settings={"buffer_size": 15, "learning_starts": 0})))
    discrete = make_config(world={"name": "identity", "num_envs": 2})
    with pytest.raises(ConfigError, match="algorithm sac needs continuous actions"):
        list(verify(discrete))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"opponents": "random"}, "opponents"),
        ({"curriculum": [{"name": "one", "opponents": {"random": 1}}]}, "curriculum"),
        ({"policy": {"recurrent": {"size": 4}}}, "policy.recurrent"),
        ({"policy": {"strategy": {}}}, "policy.strategy"),
        ({"policy": {"encoder": [4]}}, "policy.encoder"),
        ({"policy": {"state_dependent_exploration": True}}, "policy.state_dependent_exploration"),
    ],
)
def test_what_cannot_be_combined_is_refused(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError, match=f"algorithm sac .*{named}"):
        make_config(**changes)
    make_config(algorithm="ppo", **changes)


def test_settings_that_could_never_learn_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"learning_starts 71 .*buffer_size"):
        make_config(settings={"learning_starts": 71})
    with pytest.raises(ValidationError, match=r"policy\.squash"):
        make_config(policy={"squash": "stochastic"})


def test_several_processes_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"algorithm sac .*not in 2"):
        Process(0, 2).share(make_config())


def test_without_the_library_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    monkeypatch.delitem(sys.modules, "ludus.algorithms.sac_td3.baselines", raising=False)
    with pytest.raises(MissingDependencyError, match=r'pip install -e ".*\[sb3\]"'):
        Components(make_config())


@pytest.mark.parametrize(("algorithm", "margin"), [("sac", 1.5), ("td3", 4.0)])
def test_it_learns(algorithm: str, margin: float) -> None:
    config = make_config(
        algorithm=algorithm,
        world={"name": "point", "num_envs": 32, "device": "cpu"},
        policy={"net_arch": {"pi": [32, 32], "vf": [32, 32]}, "activation": "relu"},
        settings={
            "learning_rate": 3e-3,
            "train_freq": 4,
            "gradient_steps": 8,
            "learning_starts": 512,
            "buffer_size": 20_000,
            "batch_size": 128,
            "gamma": 0.9,
            "tau": 0.02,
            **({"ent_coef": 0.01} if algorithm == "sac" else {"action_noise": 0.3}),
        },
    )
    with Components(config) as components:
        while components.env_steps < 9_000:
            components.learner.collect()
            components.learner.update()
        result = evaluate(components.policy, None, world="point", matches=100, seed=5, deterministic=True)
    assert result.score > GOOD_RETURN - margin
