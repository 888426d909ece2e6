"""Minibatches in parts: the same steps as in one piece; and the recovery of an update that ran out of memory."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests import own_networks

from ludus.algorithms.ppo import update
from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.learner import PpoLearner
from ludus.algorithms.ppo.recovery import find_out_of_memory
from ludus.core.errors import ConfigError, DeviceError, NetworkError
from ludus.envs.registry import make_env
from ludus.league.config import LeagueConfig
from ludus.league.opponents import LeagueOpponents
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.training.config import TrainConfig

pytestmark = pytest.mark.train

STRATEGY = {"layers": 1, "heads": 2, "width": 8, "feedforward": 8, "window": 5, "latent": 4}
KINDS: dict[str, dict[str, Any]] = {
    "mlp": {},
    "lstm": {"recurrent": {"size": 8}},
    "auxiliary": {"strategy": STRATEGY | {"classify": 0.5}},
    "own": {"module": "own_networks.py:Recurrent"},
}


def make_learner(kind: str, device: str = "cpu", **settings: Any) -> PpoLearner:
    assert own_networks
    torch.manual_seed(0)
    env = make_env("duel-v1", 16, device)
    policy = Policy(env.spec, PolicyConfig.model_validate({"net_arch": {"pi": [8], "vf": [8]}} | KINDS[kind]), device)
    given = {"n_steps": 16, "batch_size": 96, "n_epochs": 2, "sequence_length": 4, "learning_rate": 1e-2}
    given |= {"ent_coef": 0.1, "clip_range_vf": 0.2, "native": False, "target_kl": 0.5}
    weights = {"random": 1.0, "rock": 1.0, "mirror": 1.0}
    opponents = LeagueOpponents(env, policy, weights, LeagueConfig(), 0)
    given["batch_size"] = 16 * int(opponents.learner.sum()) // 2
    config = PpoConfig.model_validate(given | settings)
    learner = PpoLearner(env, policy, config, learner=opponents.learner, opponents=opponents)
    opponents.attach(learner.rows)
    return learner


def run(learner: PpoLearner, iterations: int = 2) -> tuple[dict[str, torch.Tensor], list[dict[str, float]]]:
    metrics = [learner.iterate() for _ in range(iterations)]
    return learner.policy.state(), metrics


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("parts", [2, 5])
def test_parts_give_the_steps_of_the_whole(kind: str, parts: int) -> None:
    whole, whole_metrics = run(make_learner(kind))
    state, metrics = run(make_learner(kind, n_accumulate=parts))
    for name, tensor in whole.items():
        torch.testing.assert_close(state[name], tensor, atol=2e-5, rtol=1e-4, msg=name)
    for one, other in zip(metrics, whole_metrics, strict=True):
        assert one == pytest.approx(other, rel=1e-3, abs=1e-5, nan_ok=True)


def fail(learner: PpoLearner, monkeypatch: pytest.MonkeyPatch, calls: range) -> list[int]:
    """Let calls of `unroll` in the update run out of memory, as a device would; return the rows of every call."""
    unroll, rows = learner.policy.unroll, list[int]()

    def failing(observations: Any, memory: Any, episode_starts: torch.Tensor, actions: Any) -> Any:
        rows.append(episode_starts.shape[1])
        if len(rows) - 1 in calls:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nmore")
        return unroll(observations, memory, episode_starts, actions)

    monkeypatch.setattr(learner.policy, "unroll", failing)
    monkeypatch.setattr(learner.updater, "_recovers", True)  # as on a GPU
    return rows


@pytest.mark.parametrize("kind", ["mlp", "own"])
def test_an_update_that_runs_out_of_memory_is_repeated_in_parts(
    kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    whole, whole_metrics = run(make_learner(kind))
    learner = make_learner(kind)
    rows = fail(learner, monkeypatch, range(1, 3))  # after a step that must be undone, and once more in two parts
    state, metrics = run(learner)
    assert rows[:5] == [rows[0], rows[0], rows[0] // 2, -(-rows[0] // 4), -(-rows[0] // 4)]
    assert learner.updater.parts == 4
    for name, tensor in whole.items():
        torch.testing.assert_close(state[name], tensor, atol=2e-5, rtol=1e-4, msg=name)
    assert metrics[0] == pytest.approx(whole_metrics[0], rel=1e-3, abs=1e-5, nan_ok=True)
    assert metrics[1] == pytest.approx(whole_metrics[1], rel=1e-3, abs=1e-5, nan_ok=True)
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(said) == 2
    assert "Tried to allocate 2.00 GiB.)" in said[0]
    assert "ppo.n_accumulate=2" in said[0]
    assert "ppo.n_accumulate=4" in said[1]


def test_it_gives_up_with_the_parameters_of_before(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = make_learner("lstm")
    learner.collect()
    before, optimiser = learner.policy.state(), learner.updater.optimiser.state()
    random = learner._generator.get_state()
    rows = fail(learner, monkeypatch, range(1, 10**6))
    with pytest.raises(DeviceError, match=r"minibatches in \d+ parts .*ppo\.n_steps"):
        learner.update()
    assert min(rows) >= 1
    for name, tensor in before.items():
        assert torch.equal(learner.policy.state()[name], tensor), name
    for name, tensor in optimiser.items():
        assert torch.equal(learner.updater.optimiser.state()[name], tensor), name
    assert torch.equal(learner._generator.get_state(), random)


def test_other_errors_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = make_learner("mlp")
    learner.collect()
    monkeypatch.setattr(learner.policy, "unroll", lambda *_: (_ for _ in ()).throw(NetworkError("a bug")))
    with pytest.raises(NetworkError, match="a bug"):
        learner.update()
    assert learner.updater.parts == 1


def test_the_allocator_is_found_behind_other_errors() -> None:
    error = RuntimeError("operation failed due to a previous error during capture")
    error.__context__ = torch.OutOfMemoryError("too large")
    assert str(find_out_of_memory(error)) == "too large"
    assert find_out_of_memory(RuntimeError("another")) is None


@pytest.fixture
def notices(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    update._notice.cache_clear()
    return lambda: [record.getMessage() for record in caplog.records if "compiled functions" in record.getMessage()]


@pytest.mark.parametrize("setting", ["ppo.n_accumulate", "policy.dropout"])
def test_the_compiled_functions_are_left_with_a_notice(setting: str, notices: Callable[[], list[str]]) -> None:
    with make_env("identity", 4) as env:
        policy = Policy(env.spec, PolicyConfig(dropout=0.1 if setting == "policy.dropout" else 0.0))
        config = PpoConfig(n_accumulate=2 if setting == "ppo.n_accumulate" else 1)
        for _ in range(2):
            assert update.Updater(policy, config).native is None
        assert update.Updater(Policy(env.spec, PolicyConfig()), PpoConfig()).native is not None
    assert len(notices()) == 1
    assert setting in notices()[0]


def test_dropout_is_the_same_for_the_same_seed_and_resumes() -> None:
    KINDS["dropout"] = {"dropout": 0.2, "strategy": STRATEGY}
    try:
        one, other = make_learner("dropout"), make_learner("dropout")
        one.iterate()
        torch.rand(7)  # what else draws from torch's own generator changes nothing
        other.iterate()
        groups, counters = one.state()
        one.iterate()
        for name, tensor in one.policy.state().items():
            assert not torch.equal(tensor, other.policy.state()[name]) or "position" in name or "seen" in name, name
        other.load_state(groups, counters, other.collector._observations)
        other.iterate()
        for name, tensor in one.policy.state().items():
            assert torch.equal(tensor, other.policy.state()[name]), name
    finally:
        del KINDS["dropout"]


def test_settings_are_checked() -> None:
    ppo = {"n_steps": 16, "batch_size": 32, "sequence_length": 8, "n_accumulate": 5}
    config = TrainConfig.model_validate({"world": {"name": "duel"}, "policy": {"recurrent": {}}, "ppo": ppo})
    with (
        make_env("duel", 1) as env,
        pytest.raises(ConfigError, match=r"ppo\.n_accumulate is 5, but a minibatch has 4 segments"),
    ):
        config.method.check(config.hyperparameters, config.policy, env.spec, 2)
