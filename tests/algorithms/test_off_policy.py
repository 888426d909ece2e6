"""The off-policy learner: what is remembered of a step, what the library is shown, whose parameters the policy has."""

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import SAC
from torch import Tensor

from ludus.algorithms.algorithm import LearnerParts, find_algorithm
from ludus.algorithms.sac_td3.config import Td3Config
from ludus.algorithms.sac_td3.learner import OffPolicyLearner
from ludus.algorithms.sac_td3.replay import ReplayBuffer
from ludus.core.errors import ConfigError, StateError, UnsupportedError
from ludus.envs.base import EnvRequest, EnvSpec, Observations
from ludus.envs.tiny.base import State, TinyEnv
from ludus.nn.normalizer import Normalizer
from ludus.policies.config import NormalizationConfig, PolicyConfig
from ludus.policies.policy import Policy
from ludus.rollout.rewards import StepRewards, reward_event

GAMES, STEPS = 4, 3


class SliderEnv(TinyEnv):
    """Shows frame and game; games with an even number are over after 2 frames, the others are cut off after 3.

    The action, 0 to 10, is the reward.
    """

    def __init__(self, games: int = GAMES, space: spaces.Space[Any] | None = None) -> None:
        spec = EnvSpec(
            name="slider",
            version=1,
            teams=(0,),
            observation_space=spaces.Dict({"vector": spaces.Box(-np.inf, np.inf, (2,), np.float32)}),
            action_space=space or spaces.Box(0.0, 10.0, (1,), np.float32),
            rate_hz=1.0,
            step_limit=3,
            events=("reward",),
        )
        self.seen: list[Tensor] = []
        super().__init__(spec, EnvRequest(num_envs=games), truncates=True)

    def _begin(self) -> State:
        return {"played": torch.zeros(self.num_envs)}

    def _play(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        self.seen.append(actions.clone())
        self._state["played"] = self._state["played"] + 1.0
        over = (self._counters["game"] % 2 == 0) & (self._state["played"] == 2.0)
        return {"reward": actions[..., 0].clone()}, over

    def _observe(self) -> Observations:
        return {"vector": torch.stack((self._state["played"], self._counters["game"].float()), -1).unsqueeze(1)}


def make_learner(
    algorithm: str = "sac", env: TinyEnv | None = None, layers: PolicyConfig | None = None, **settings: Any
) -> OffPolicyLearner:
    env, layers = env or SliderEnv(), layers or PolicyConfig(activation="relu")
    fixed = {"train_freq": STEPS, "learning_starts": 0, "batch_size": 8, "gradient_steps": 2, "buffer_size": 100}
    torch.manual_seed(0)
    method = find_algorithm(algorithm)
    policy = Policy(env.spec, method.policy_config(layers))
    parts = LearnerParts(env, policy, layers, StepRewards(reward_event))
    learner = method.make_learner(method.config.model_validate(fixed | settings), parts)
    assert isinstance(learner, OffPolicyLearner)
    return learner


def iterate(learner: OffPolicyLearner, times: int = 1) -> dict[str, float]:
    return [learner.iterate() for _ in range(times)][-1]


def mean_weights(learner: OffPolicyLearner) -> Tensor:
    return learner.policy.state()["parameter.head.linear.weight"]


def test_what_follows_an_end_is_the_final_observation_and_only_a_termination_is_an_end() -> None:
    learner = make_learner()
    learner.collect()
    rollout = learner.rollout
    assert rollout.observations["vector"][..., 0].tolist() == [[0.0] * 4, [1.0] * 4, [0.0, 2.0, 0.0, 2.0]]
    assert rollout.following["vector"][..., 0].tolist() == [[1.0] * 4, [2.0] * 4, [1.0, 3.0, 1.0, 3.0]]
    assert rollout.terminated.tolist() == [[False] * 4, [True, False, True, False], [False] * 4]
    assert rollout.dones.tolist() == [[False] * 4, [True, False, True, False], [False, True, False, True]]
    learner.replay.add(rollout)
    batch = learner.replay.draw(1000, torch.Generator().manual_seed(0))
    over = (batch.next_observations[:, 0] == 2.0) & (batch.observations[:, 1] % 2 == 0)
    assert bool(over.any())
    assert torch.equal(batch.dones.squeeze(1) == 1.0, over)


@pytest.mark.parametrize("algorithm", ["sac", "td3"])
@pytest.mark.parametrize("learning_starts", [0, 100])
def test_the_world_gets_actions_in_its_bounds_and_the_library_in_its_own(algorithm: str, learning_starts: int) -> None:
    env = SliderEnv()
    noise: dict[str, Any] = {"action_noise": 2.0} if algorithm == "td3" else {}
    learner = make_learner(algorithm, env, learning_starts=learning_starts, **noise)
    learner.collect()
    played, kept = torch.stack(env.seen).squeeze(2), learner.rollout.actions
    assert float(kept.abs().max()) <= 1.0
    assert float(kept.std()) > 0.2  # both explore
    assert torch.allclose(played, 5.0 + 5.0 * kept)
    assert torch.equal(learner.rollout.rewards, played.squeeze(-1))


def test_nothing_is_learned_before_enough_is_remembered() -> None:
    learner = make_learner(learning_starts=24)
    before = learner.policy.state()
    for count in (0, 12):  # a rollout joins the buffer when the next is collected
        metrics = iterate(learner)
        assert metrics["updates"] == 0.0
        assert metrics["replay_size"] == count
        assert math.isnan(metrics["value_loss"])
        assert learner.loss_names == ()
    assert all(torch.equal(before[name], tensor) for name, tensor in learner.policy.state().items())
    metrics = iterate(learner)
    assert (metrics["updates"], metrics["replay_size"]) == (2.0, 24.0)
    assert set(learner.loss_names) == {"policy_loss", "value_loss", "entropy_coefficient"}
    assert not torch.equal(before["parameter.head.linear.weight"], mean_weights(learner))


@pytest.mark.parametrize("algorithm", ["sac", "td3"])
@pytest.mark.parametrize("hidden", [(), (8,), (8, 6)])
def test_the_policy_plays_what_the_library_has_learned(algorithm: str, hidden: tuple[int, ...]) -> None:
    layers = PolicyConfig.model_validate({"net_arch": {"pi": hidden, "vf": (5,)}, "activation": "silu"})
    learner = make_learner(algorithm, layers=layers)
    iterate(learner, 3)
    model, seen = learner._baseline._model, torch.randn(7, 2)
    step = learner.policy.step({"vector": seen}, {}, torch.zeros(7, dtype=torch.bool))
    unit, _ = model.predict(seen.numpy(), deterministic=True)  # its own bounds are -1 to 1
    assert torch.allclose(step.actions, 5.0 + 5.0 * torch.from_numpy(unit), atol=1e-5)
    assert step.values.tolist() == [0.0] * 7


def test_sac_draws_as_the_library_does() -> None:
    learner = make_learner("sac")
    iterate(learner, 3)
    model, seen = learner._baseline._model, torch.randn(7, 2)
    assert isinstance(model, SAC)
    mean, log_std, _ = model.actor.get_action_dist_params(seen)
    noise = torch.randn(7, 1)
    step = learner.policy.step({"vector": seen}, {}, torch.zeros(7, dtype=torch.bool), noise)
    assert torch.allclose(step.actions, 5.0 + 5.0 * torch.tanh(mean + log_std.exp() * noise), atol=1e-4)


def test_td3_updates_its_actor_with_the_delay_it_was_given() -> None:
    learner = make_learner("td3", gradient_steps=1, policy_delay=3)
    iterate(learner)  # nothing to learn from yet
    for number in range(1, 7):
        before = mean_weights(learner)
        metrics = iterate(learner)
        is_updated = not torch.equal(before, mean_weights(learner))
        assert is_updated == (number % 3 == 0) == (not math.isnan(metrics["policy_loss"]))


@pytest.mark.parametrize(
    ("settings", "first"),
    [({}, 1.0), ({"ent_coef_init": 0.02}, 0.02), ({"ent_coef": 0.3}, 0.3)],
)
def test_the_entropy_coefficient_begins_where_it_is_told_and_is_learned_from_there(
    settings: dict[str, Any], first: float
) -> None:
    learner = make_learner(**settings, gradient_steps=1)
    learner.iterate()  # nothing to learn from yet
    assert learner.iterate()["entropy_coefficient"] == pytest.approx(first)
    assert (learner.iterate()["entropy_coefficient"] == pytest.approx(first)) == ("ent_coef" in settings)


def test_without_a_number_there_is_a_gradient_step_for_every_env_step() -> None:
    assert make_learner(gradient_steps=None).gradient_steps == GAMES * STEPS


def test_the_learning_rate_follows_its_schedule() -> None:
    learner = make_learner(learning_rate={"kind": "linear", "start": 4e-3, "end": 0.0})
    iterate(learner)
    learner.collect()
    learner.update(0.75)
    assert learner.metrics()["learning_rate"] == pytest.approx(1e-3)
    assert learner._baseline._model.critic.optimizer.param_groups[0]["lr"] == pytest.approx(1e-3)


def test_torchs_global_random_numbers_are_left_alone() -> None:
    learner, was_enabled = make_learner(), bool(torch.backends.mkldnn.enabled)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    iterate(learner, 2)
    assert torch.equal(torch.rand(3), expected)
    assert bool(torch.backends.mkldnn.enabled) == was_enabled


def test_what_is_drawn_is_normalised_by_the_statistics_of_now() -> None:
    layers = PolicyConfig(normalize=NormalizationConfig(observations=True, returns=True, clip=1.0))
    learner = make_learner(layers=layers)
    iterate(learner, 3)
    normaliser = learner.policy.observations.normalisers["vector"]
    assert isinstance(normaliser, Normalizer)
    stored = learner.replay._storage["observations.vector"][: learner.replay.count]
    batch = learner.replay.draw(500, torch.Generator().manual_seed(0))
    assert {tuple(row) for row in batch.observations.tolist()} == {tuple(row) for row in normaliser(stored).tolist()}
    assert learner.policy.returns is not None
    scaled = learner.replay._storage["rewards"][: learner.replay.count] * learner.policy.returns.scale
    assert set(batch.rewards.squeeze(1).tolist()) == set(scaled.clamp(-1.0, 1.0).tolist())
    assert learner.policy.returns.state()["count"] == 3 * GAMES * STEPS


def test_a_full_buffer_forgets_the_oldest() -> None:
    learner = make_learner()
    learner.collect()
    buffer = ReplayBuffer(learner.policy, learner.rollout, capacity=20)
    for number in (1.0, 2.0, 3.0):
        learner.rollout.rewards.fill_(number)
        buffer.add(learner.rollout)  # 12 steps each
    assert (buffer.count, buffer.position) == (20, 16)
    assert buffer._storage["rewards"].tolist() == [2.0] * 4 + [3.0] * 12 + [2.0] * 4


def test_going_back_needs_no_copy_of_the_buffer() -> None:
    learner = make_learner(buffer_size=20)
    iterate(learner, 3)
    tensors, counters = learner.state()
    kept = copy.deepcopy(tensors)
    iterate(learner, 1)
    after = copy.deepcopy(learner.state()[0])
    for given in (tensors, kept):  # the views of then, and what was on the disk
        learner.load_state(given, counters, {})
        learner.collector._observations = {"vector": torch.zeros(GAMES, 1, 2)}
        learner.replay.add(learner.rollout)
        for name, tensor in learner.replay.state().items():
            assert torch.equal(tensor, after["replay"][name]), name


def test_a_state_of_something_else_is_refused() -> None:
    learner, wider = make_learner(), make_learner(layers=PolicyConfig.model_validate({"net_arch": {"vf": (5,)}}))
    tensors, counters = learner.state()
    with pytest.raises(StateError, match="critic"):
        wider.load_state(tensors, counters, {})
    with pytest.raises(StateError, match="replay_position is missing"):
        learner.load_state(tensors, {"iterations": 1}, {})
    with pytest.raises(StateError, match="replay buffer"):
        make_learner(buffer_size=12).replay.load_state(learner.replay.state(), 0, 13)


@pytest.mark.parametrize("space", [spaces.Discrete(3), spaces.Box(-np.inf, np.inf, (1,), np.float32)])
def test_actions_that_cannot_be_squashed_are_refused(space: spaces.Space[Any]) -> None:
    with pytest.raises(UnsupportedError, match="use algorithm ppo"):
        make_learner(env=SliderEnv(space=space))


def test_pictures_are_refused(make_arena: Any) -> None:
    shown = make_arena(2, picture=True).spec.observation_space
    spec = replace(SliderEnv().spec, observation_space=shown)
    with pytest.raises(ConfigError, match=r"picture.*algorithm ppo"):
        find_algorithm("td3").check(Td3Config(), PolicyConfig(), spec, 2)


def test_a_buffer_smaller_than_an_iteration_is_refused() -> None:
    with pytest.raises(ConfigError, match="12 env steps"):
        make_learner(buffer_size=11)
