"""Learning while exploring: ratios, what is recorded, the gradient from samples, tiny worlds, resuming exactly."""

from typing import Any

import pytest
import torch
from torch import Tensor

from ludus import make_env
from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.learner import PpoLearner
from ludus.envs.base import BatchedEnv, StepResult
from ludus.envs.spaces import are_allowed
from ludus.nn.heads import MaskedCategoricalHead
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy

pytestmark = pytest.mark.train

ANNEALED = {"frequency": {"kind": "linear", "start": 0.6, "end": 0.0}, "random_frequency": 0.5}


def _learner(
    world: str, policy: dict[str, Any], games: int = 32, seed: int = 0, config: dict[str, Any] | None = None, **ppo: Any
) -> tuple[BatchedEnv, PpoLearner]:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    env = make_env(world, games, seed=seed, config=config)
    settings = {
        "n_steps": 32,
        "batch_size": 256,
        "n_epochs": 4,
        "learning_rate": 3e-3,
        "ent_coef": 0.01,
        "sequence_length": 8,
    } | ppo
    made = Policy(env.spec, PolicyConfig.model_validate(policy))
    return env, PpoLearner(env, made, PpoConfig.model_validate(settings), seed=seed)


@pytest.mark.parametrize("memory", [{}, {"recurrent": {"size": 8}}])
def test_the_first_ratio_is_one_and_what_was_played_is_recorded(memory: dict[str, Any]) -> None:
    env, learner = _learner("dig-v1", {"exploration": ANNEALED, **memory}, games=8)
    assert learner.updater.native is None  # the compiled functions know nothing of it
    played: list[Tensor] = []
    step = env.step

    def watched(actions: Tensor) -> StepResult:
        played.append(actions[:, 0].clone())
        return step(actions)

    env.step = watched  # type: ignore[method-assign]
    for progress, frequency in ((0.0, 0.6), (0.5, 0.3), (1.0, 0.0)):
        played.clear()
        metrics = learner.iterate(progress)
        assert metrics["ratio_error"] < 1e-5
        assert metrics["approx_kl"] > 1e-6
        assert metrics["exploration_frequency"] == pytest.approx(frequency)
        buffer = learner.rollout
        assert torch.equal(torch.stack(played), buffer.actions)
        assert are_allowed(env.spec.choices, buffer.observations["mask"], buffer.actions).all()
    assert "exploration_frequency" not in _learner("dig-v1", {}, games=8)[1].iterate()


def test_sampled_gradients_are_those_of_the_expected_return() -> None:
    """A bandit by the learner's own parts: the policy's first loss has the gradient of the mixture's expected return.

    The mean over many played actions is compared with finite differences of the exact return. The arms are the answers
    of `identity-v1`, which is not played.
    """
    torch.manual_seed(2)
    spec = make_env("identity-v1", 1, config={"cues": 4, "steps": 1}).spec
    config = PolicyConfig.model_validate({"net_arch": {"pi": [], "vf": []}, "exploration": {"frequency": 0.4}})
    policy = Policy(spec, config)
    assert isinstance(policy.head, MaskedCategoricalHead)
    policy.head.linear.weight.data.zero_()
    bias = policy.head.linear.bias
    bias.data.copy_(torch.tensor([0.5, -0.5, 1.0, 0.0]))
    assert policy.mixture is not None
    policy.mixture.set(0.4, 0.2)
    worth = torch.tensor([1.0, -0.5, 2.0, 0.0])
    count = 200_000
    seen = {"vector": torch.zeros(count, 4)}
    noise = policy.draw_noise(1, count, torch.Generator().manual_seed(0), explore=True)[0]
    step = policy.step(seen, {}, torch.zeros(count, dtype=torch.bool), noise)
    found = policy.unroll(
        {"vector": seen["vector"].unsqueeze(0)}, {}, torch.zeros(1, count, dtype=torch.bool), step.actions.unsqueeze(0)
    )
    ratio = torch.exp(found.log_probs[0] - step.log_probs)
    (gradient,) = torch.autograd.grad((ratio * worth[step.actions]).mean(), bias)

    def expected(logits: Tensor) -> Tensor:
        return ((0.6 * torch.softmax(logits, 0) + 0.4 / 4.0) * worth).sum()  # no kind is exploratory, so all are

    at, worth = bias.detach().double(), worth.double()
    moves = 1e-5 * torch.eye(4, dtype=torch.float64)
    exact = torch.stack([(expected(at + move) - expected(at - move)) / 2e-5 for move in moves])
    torch.testing.assert_close(gradient.double(), exact, atol=5e-3, rtol=0.0)
    assert exact.abs().max() > 0.1


def test_a_bandit_is_learned_while_three_of_ten_actions_are_not_the_policy_s() -> None:
    _, learner = _learner("identity-v1", {"exploration": {"frequency": 0.3}}, config={"cues": 4, "steps": 1})
    for _ in range(14):
        metrics = learner.iterate()
    assert metrics["episode_return"] == pytest.approx(0.7 + 0.3 / 4.0, abs=0.05)  # the best that the mixture can do
    cues = {"vector": torch.eye(4)}
    assert learner.policy.step(cues, {}, torch.ones(4, dtype=torch.bool)).actions.tolist() == [0, 1, 2, 3]
    parameters = learner.policy.action_parameters({"vector": torch.eye(4).unsqueeze(0)}, {}, torch.ones(1, 4).bool())
    assert torch.softmax(parameters[0], -1).diagonal().min() > 0.85


def test_kinds_cells_and_masks_are_learned_while_exploring() -> None:
    _, learner = _learner("dig-v1", {"exploration": {"frequency": 0.3}}, learning_rate=5e-3)
    for _ in range(8):
        learner.iterate()
    env = make_env("dig-v1", 64, seed=9)
    seen, total = env.reset(), 0.0
    for _ in range(8):
        rows = {name: tensor[:, 0] for name, tensor in seen.items()}
        step = learner.policy.step(rows, {}, torch.zeros(64, dtype=torch.bool))
        result = env.step(step.actions.unsqueeze(1))
        total += result.events["reward"].mean().item()
        seen = result.observations
    assert total > 5.5  # of 6; random play is below 0


def test_a_run_that_is_cut_goes_on_exactly() -> None:
    def state(learner: PpoLearner) -> dict[str, Tensor]:
        return {
            f"{group}.{name}": tensor for group, named in learner.state()[0].items() for name, tensor in named.items()
        }

    policy = {"exploration": ANNEALED}
    _, whole = _learner("dig-v1", policy, games=8)
    for i in range(4):
        whole.iterate(i / 4)
    env, first = _learner("dig-v1", policy, games=8)
    for i in range(2):
        first.iterate(i / 4)
    tensors, counters = first.state()
    again, second = _learner("dig-v1", policy, games=8, seed=5)
    second.load_state(tensors, counters, again.restore(env.snapshot()))
    for i in range(2, 4):
        second.iterate(i / 4)
    assert state(whole).keys() == state(second).keys()
    assert all(torch.equal(tensor, state(second)[name]) for name, tensor in state(whole).items())
