"""Mirrored experience: images beside originals, ratios of 1, symmetric learning, both kernels, what is refused."""

from typing import Any

import pytest
import torch

from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.learner import PpoLearner
from ludus.algorithms.ppo.symmetry import SymmetryAugmentation
from ludus.core.errors import ConfigError
from ludus.envs.registry import make_env
from ludus.nn.recurrent import RecurrentConfig
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy

GAMES = 6
NORMALISED = {"normalize": {"observations": True, "returns": True}, "log_std": -0.75}


def make_learner(policy: dict[str, Any] | None = None, **changes: Any) -> PpoLearner:
    env = make_env("point", GAMES, seed=2, config={"step_limit": 7})
    settings = {"n_steps": 16, "batch_size": 48, "n_epochs": 2, "learning_rate": 1e-3, "symmetry_augmentation": True}
    torch.manual_seed(0)
    networks = {"net_arch": {"pi": [16], "vf": [16]}} | (NORMALISED if policy is None else policy)
    built = Policy(env.spec, PolicyConfig.model_validate(networks))
    return PpoLearner(env, built, PpoConfig.model_validate(settings | changes), seed=4)


def mirrored(learner: PpoLearner) -> SymmetryAugmentation:
    assert learner._mirrored is not None
    return learner._mirrored


def test_images_lie_beside_their_originals() -> None:
    learner = make_learner()
    learner.iterate()  # the statistics are no longer those of the beginning
    learner.collect()
    rollout = learner.collector.buffer
    both = mirrored(learner).fill(rollout)
    assert (both.steps, both.rows, rollout.rows, both.size) == (16, 12, 6, 192)
    seen, image = (both.observations["vector"][:, rows] for rows in (slice(GAMES), slice(GAMES, None)))
    assert torch.equal(seen, rollout.observations["vector"])
    assert torch.equal(image, -seen[..., [1, 0, 3, 2, 5, 4]])
    assert torch.equal(both.actions[:, GAMES:], -rollout.actions.flip(-1))
    for name in ("advantages", "returns", "dones", "episode_starts"):
        assert torch.equal(getattr(both, name)[:, :GAMES], getattr(rollout, name))
        assert torch.equal(getattr(both, name)[:, GAMES:], getattr(rollout, name))
    with torch.no_grad():
        expected = learner.policy.unroll({"vector": image}, {}, rollout.episode_starts, -rollout.actions.flip(-1))
    torch.testing.assert_close(both.log_probs[:, GAMES:], expected.log_probs)
    torch.testing.assert_close(both.values[:, GAMES:], expected.values)
    assert torch.equal(both.log_probs[:, :GAMES], rollout.log_probs)
    assert torch.equal(both.values[:, :GAMES], rollout.values)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("policy", [NORMALISED, {}, {"state_dependent_exploration": True}])
def test_the_first_ratio_is_one(native: bool, policy: dict[str, Any]) -> None:
    learner = make_learner(policy, native=native, batch_size=192)
    for _ in range(3):
        metrics = learner.iterate()
        assert metrics["ratio_error"] < 1e-5
        assert metrics["approx_kl"] > 1e-7
        assert metrics["updates"] == 2  # 2 epochs of one minibatch that holds all 16 x 6 steps and their images
    assert learner.env_steps == 3 * 16 * GAMES  # what was really played


def test_the_compiled_functions_learn_the_same() -> None:
    native, plain = make_learner(native=True), make_learner(native=False)
    for learner in (native, plain):
        assert (learner.updater.native is not None) == (learner is native)
        metrics = learner.iterate()
        assert metrics["updates"] == 8
    for name, tensor in plain.policy.state().items():
        torch.testing.assert_close(native.policy.state()[name], tensor, atol=1e-5, rtol=1e-3, msg=name)


def test_images_join_the_statistics() -> None:
    learner = make_learner()
    learner.iterate()
    moments = learner.policy.state()
    mean = next(tensor for name, tensor in moments.items() if name.endswith("vector.mean"))
    # Every number comes with its opposite at the place that it changes places with.
    torch.testing.assert_close(mean, -mean[[1, 0, 3, 2, 5, 4]])
    assert mean.abs().max() > 1e-3


def test_a_linear_policy_that_begins_symmetric_stays_symmetric() -> None:
    learner = make_learner({"net_arch": {"pi": [], "vf": []}}, batch_size=192, native=False)
    policy, source = learner.policy, [1, 0, 3, 2, 5, 4]
    weight = policy.get_parameter("head.linear.weight")
    with torch.no_grad():
        weight.copy_((weight + weight.flip(0)[:, source]) / 2)
    for _ in range(3):
        learner.iterate()
    torch.testing.assert_close(weight, weight.flip(0)[:, source], atol=1e-6, rtol=1e-4)


def test_a_run_that_goes_on_is_the_same() -> None:
    straight, first = make_learner(), make_learner()
    for learner in (straight, first):
        learner.iterate()
    tensors, counters = first.state()
    games = first.collector.env.snapshot()
    second = make_learner()
    second.load_state(tensors, counters, second.collector.env.restore(games))
    for learner in (straight, second):
        learner.iterate()
    for name, tensor in straight.policy.state().items():
        assert torch.equal(second.policy.state()[name], tensor), name


def test_what_cannot_be_mirrored_is_refused() -> None:
    config = PpoConfig(symmetry_augmentation=True, n_steps=8, batch_size=16, sequence_length=4)
    with make_env("identity", 4) as env, pytest.raises(ConfigError, match=r"symmetry_augmentation.*identity-v1"):
        PpoLearner(env, Policy(env.spec, PolicyConfig()), config)
    with make_env("point", 4) as env, pytest.raises(ConfigError, match=r"has a memory.*policy.recurrent"):
        PpoLearner(env, Policy(env.spec, PolicyConfig(recurrent=RecurrentConfig(size=8))), config)
    with pytest.raises(ConfigError, match=r"8 steps x 3 rows x 2 .*= 48"):
        PpoConfig(symmetry_augmentation=True, n_steps=8, batch_size=36).minibatches(3)
    assert PpoConfig(symmetry_augmentation=True, n_steps=8, batch_size=16).minibatches(4) == 4
