"""The learner: same seed, same numbers; and a run that is cut and resumed equals the one that is not."""

from typing import Any

import pytest
import torch

from ludus import make_env
from ludus.algorithms.learner import Groups
from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.learner import PpoLearner
from ludus.core.errors import StateError
from ludus.envs.base import BatchedEnv
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.rollout.rewards import StepRewards

pytestmark = pytest.mark.train

KINDS: dict[str, dict[str, Any]] = {
    "mlp": {"normalize": {"observations": True, "returns": True}},
    "lstm": {"recurrent": {"size": 8}},
    "streaming": {
        "strategy": {"layers": 1, "heads": 2, "width": 8, "window": 5},
        "recurrent": {"size": 8},
    },
    "encoder": {"strategy": {"layers": 1, "heads": 2, "width": 8, "window": 5}},
}


def _make(kind: str, seed: int = 0) -> tuple[BatchedEnv, PpoLearner]:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    env = make_env("duel-v1", 4, seed=seed)
    config = PpoConfig.model_validate(
        {
            "n_steps": 16,
            "sequence_length": 8,
            "batch_size": 32,
            "n_epochs": 2,
            "learning_rate": {"kind": "kl_adaptive", "start": 3e-3, "target": 0.001},
        }
    )
    return env, PpoLearner(env, Policy(env.spec, PolicyConfig.model_validate(KINDS[kind])), config, seed=seed)


def _equal(one: Groups, other: Groups) -> bool:
    names = [{(group, name) for group, named in state.items() for name in named} for state in (one, other)]
    return names[0] == names[1] and all(torch.equal(one[group][name], other[group][name]) for group, name in names[0])


@pytest.mark.parametrize("kind", list(KINDS))
def test_same_seed_same_trace(kind: str) -> None:
    traces = []
    for seed in (0, 0, 1):
        _, learner = _make(kind, seed)
        metrics = [learner.iterate(i / 3) for i in range(3)]
        traces.append((learner.state(), str(metrics)))
    (first, first_counters), (second, second_counters), (third, _) = (state for state, _ in traces)
    assert _equal(first, second)
    assert first_counters == second_counters
    assert traces[0][1] == traces[1][1]
    assert not _equal(first, third)


@pytest.mark.parametrize("kind", list(KINDS))
def test_resuming_gives_the_same_bits(kind: str) -> None:
    env, learner = _make(kind)
    for i in range(2):
        learner.iterate(i / 4)
    tensors, counters = learner.state()
    snapshot = env.snapshot()
    for i in range(2, 4):
        learner.iterate(i / 4)

    other_env, other = _make(kind, seed=5)
    other.load_state(tensors, counters, other_env.restore(snapshot))
    assert other.iterations == 2
    assert other.env_steps == 2 * 16 * 8
    for i in range(2, 4):
        other.iterate(i / 4)
    expected, got = learner.state(), other.state()
    assert _equal(expected[0], got[0])
    assert expected[1] == got[1]


def test_nothing_is_learned_from_numbers_that_are_not_finite() -> None:
    _, learner = _make("lstm")
    learner.iterate()
    before = learner.updater.optimiser.flat.detach().clone()
    learner.collector._reward = StepRewards(lambda result: result.events["reward"] * float("nan"))
    learner.collector._reward.begin(learner.config.n_steps, learner.collector.rows)
    assert learner.iterate()["updates"] == 0.0
    assert torch.equal(learner.updater.optimiser.flat.detach(), before)


def test_a_state_without_its_random_part_is_refused() -> None:
    env, learner = _make("mlp")
    tensors, counters = learner.state()
    with pytest.raises(StateError, match="random"):
        learner.load_state({name: t for name, t in tensors.items() if name != "random"}, counters, env.reset())
