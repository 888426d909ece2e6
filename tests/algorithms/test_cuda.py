"""On a CUDA device: graphs give what plain calls give, in full precision and in bfloat16."""

from typing import Any

import pytest
import torch

from ludus import make_env
from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.learner import PpoLearner
from ludus.envs.spaces import are_allowed
from ludus.league.config import LeagueConfig
from ludus.league.opponents import LeagueOpponents
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.rollout.inference import make_inference

pytestmark = pytest.mark.cuda

STRATEGY = {"layers": 2, "heads": 2, "width": 32, "feedforward": 64, "window": 9}
OPTIONS = {"predict_actions": 0.5}
KINDS: dict[str, dict[str, Any]] = {
    "mlp": {"normalize": {"observations": True, "returns": True}},
    "lstm": {"recurrent": {"size": 32}},
    "streaming": {"strategy": STRATEGY, "recurrent": {"size": 32}},
    "encoder": {"strategy": STRATEGY},
    "exploring": {"exploration": {"frequency": 0.3}},
    "options": {"strategy": STRATEGY | OPTIONS, "recurrent": {"size": 32, "skip": True}},
}


def _train(
    kind: str, *, graphs: bool, bfloat16: bool = False, world: str = "duel-v1", batch_size: int = 512
) -> tuple[dict[str, torch.Tensor], list[dict[str, float]]]:
    torch.manual_seed(0)
    env = make_env(world, 32, "cuda")
    policy = Policy(env.spec, PolicyConfig.model_validate(KINDS[kind] | {"bfloat16": bfloat16}), "cuda")
    settings = {"n_steps": 32, "batch_size": batch_size, "n_epochs": 2, "learning_rate": 1e-3}
    settings["cuda_graphs"] = graphs
    learner = PpoLearner(env, policy, PpoConfig.model_validate(settings))
    metrics = [learner.iterate() for _ in range(3)]
    return policy.state(), metrics


@pytest.mark.parametrize("kind", list(KINDS))
def test_graphs_change_nothing(kind: str) -> None:
    graphed, graph_metrics = _train(kind, graphs=True)
    plain, plain_metrics = _train(kind, graphs=False)
    for name, tensor in plain.items():
        torch.testing.assert_close(graphed[name], tensor, atol=2e-4, rtol=1e-3, msg=name)
    for one, other in zip(graph_metrics, plain_metrics, strict=True):
        assert one["ratio_error"] < 1e-5
        assert other["ratio_error"] < 1e-5
        assert one["updates"] == other["updates"] == 8


def test_minibatches_that_are_too_many_for_one_graph_have_one_each() -> None:
    graphed, _ = _train("mlp", graphs=True, batch_size=16)  # 64 minibatches in each of two epochs
    plain, _ = _train("mlp", graphs=False, batch_size=16)
    for name, tensor in plain.items():
        torch.testing.assert_close(graphed[name], tensor, atol=2e-3, rtol=1e-2, msg=name)


def _classify(*, graphs: bool, **options: Any) -> tuple[dict[str, torch.Tensor], list[dict[str, float]]]:
    torch.manual_seed(0)
    env = make_env("duel-v1", 32, "cuda")
    config = PolicyConfig.model_validate({"strategy": STRATEGY | {"classify": 0.5} | options})
    policy = Policy(env.spec, config, "cuda")
    weights = {"random": 1.0, "rock": 1.0, "self": 1.0, "mirror": 1.0}
    others = LeagueOpponents(env, policy, weights, LeagueConfig(keep=2), 3, cuda_graphs=graphs)
    ppo = {"n_steps": 32, "n_minibatches": 2, "n_epochs": 2, "learning_rate": 1e-3, "cuda_graphs": graphs}
    learner = PpoLearner(env, policy, PpoConfig.model_validate(ppo), learner=others.learner, opponents=others)
    others.attach(learner.rows)
    metrics = [learner.iterate() for _ in range(3)]
    return policy.state(), metrics


@pytest.mark.parametrize("options", [{}, OPTIONS | {"stop_gradient": True, "block": ["opponent", "self"]}])
def test_graphs_recognise_as_plain_calls_do(options: dict[str, Any]) -> None:
    (graphed, graph_metrics), (plain, plain_metrics) = (_classify(graphs=graphs, **options) for graphs in (True, False))
    for name, tensor in plain.items():
        torch.testing.assert_close(graphed[name], tensor, atol=2e-4, rtol=1e-3, msg=name)
    for one, other in zip(graph_metrics, plain_metrics, strict=True):
        for name in ("recognition_loss", "recognition_accuracy"):
            assert one[name] == pytest.approx(other[name], abs=0.01), name
        for name in ("action_prediction_loss", "action_prediction_accuracy") if options else ():
            assert one[name] == pytest.approx(other[name], abs=0.02), name


@pytest.mark.parametrize("kind", ["lstm", "streaming", "options"])
def test_bfloat16_trains(kind: str) -> None:
    _, metrics = _train(kind, graphs=True, bfloat16=True)
    assert metrics[-1]["skipped_updates"] == 0
    assert metrics[0]["ratio_error"] < 0.1  # rounding differs between one step and whole segments


def test_graphs_follow_masks_and_the_frequency_of_exploration() -> None:
    trained = [_train("exploring", graphs=graphs, world="dig-v1") for graphs in (True, False)]
    (graphed, metrics), (plain, _) = trained
    for name, tensor in plain.items():
        torch.testing.assert_close(graphed[name], tensor, atol=2e-4, rtol=1e-3, msg=name)
    assert all(each["ratio_error"] < 1e-5 for each in metrics)
    torch.manual_seed(0)
    env = make_env("dig-v1", 4096, "cuda")
    policy = Policy(env.spec, PolicyConfig.model_validate(KINDS["exploring"]), "cuda")
    inference = make_inference(policy, 4096, cuda_graphs=True)
    seen = {name: tensor[:, 0] for name, tensor in env.reset().items()}
    episode_starts, generator = torch.zeros(4096, dtype=torch.bool, device="cuda"), torch.Generator("cuda")
    assert policy.mixture is not None
    for frequency in (0.0, 1.0):
        policy.mixture.set(frequency, 0.0)  # after the capture too
        noise = policy.draw_noise(1, 4096, generator, explore=True)[0]
        actions = inference.step(seen, {}, episode_starts, noise).actions
        assert are_allowed(env.spec.choices, seen["mask"], actions).all()
        explores = (actions[:, 0] >= 2).float().mean().item()
        assert explores == 1.0 if frequency else 0.3 < explores < 0.7
