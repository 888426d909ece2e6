"""The collector: rows and seats, truncation with memory, episode sums, opponents."""

from typing import Any

import pytest
import torch
from torch import Tensor

from ludus import make_env
from ludus.algorithms.ppo.config import PpoConfig
from ludus.core.errors import ConfigError, StateError
from ludus.envs.base import Observations, StepResult
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.rollout.collector import Collector

STEPS = 24


def _config(**changes: Any) -> PpoConfig:
    return PpoConfig.model_validate({"n_steps": STEPS, "sequence_length": 8, "batch_size": 24} | changes)


class _Recorder:
    """Keeps what every step gave, and plays rock where the learner does not."""

    def __init__(self) -> None:
        self.results: list[StepResult] = []
        self.acted = 0

    def act(self, observations: Observations, actions: Tensor) -> None:
        self.acted += observations["vector"].shape[0]
        actions.zero_()

    def after_step(self, result: StepResult) -> None:
        copied = {name: tensor.clone() for name, tensor in result.final_observations.items()}
        self.results.append(
            StepResult(result.observations, result.terminated, result.truncated, copied, result.events, {})
        )


@pytest.mark.parametrize("kind", ["lstm", "encoder"])
def test_truncations_are_valued_with_the_memory_of_that_moment(kind: str, make_arena: type) -> None:
    env = make_arena(3, end_chance=0.15)
    strategy = {"layers": 1, "heads": 2, "width": 8, "window": 5}
    part: dict[str, Any] = {"recurrent": {"size": 8}} if kind == "lstm" else {"strategy": strategy}
    torch.manual_seed(0)
    policy, recorder = Policy(env.spec, PolicyConfig.model_validate(part)), _Recorder()
    collector = Collector(env, policy, _config(sequence_length=STEPS), opponents=recorder)
    collector.collect(torch.Generator().manual_seed(0))
    buffer = collector.buffer
    first = {name: tensor[0] for name, tensor in buffer.memory.items()}
    checked = 0
    for t, result in enumerate(recorder.results):
        rows = result.truncated.repeat_interleave(2)
        if not rows.any():
            assert buffer.bootstraps[t].abs().max() == 0.0
            continue
        final = result.final_observations["vector"].flatten(0, 1)
        frames = {"vector": torch.cat((buffer.observations["vector"][: t + 1], final.unsqueeze(0)))}
        episode_starts = torch.cat((buffer.episode_starts[: t + 1], torch.zeros(1, 6, dtype=torch.bool)))
        actions = torch.zeros(t + 2, 6, 4, dtype=torch.int8)
        values = policy.unroll(frames, first, episode_starts, actions).values[-1]
        torch.testing.assert_close(buffer.bootstraps[t][rows], values[rows], atol=1e-6, rtol=1e-5)
        assert buffer.bootstraps[t][~rows].abs().sum() == 0.0
        checked += int(rows.sum())
    assert checked > 4


def test_starts_follow_ends(make_arena: type) -> None:
    env = make_arena(4)
    collector = Collector(env, Policy(env.spec, PolicyConfig()), _config())
    generator = torch.Generator().manual_seed(0)
    collector.collect(generator)
    assert collector.buffer.episode_starts[0].all()
    last = collector.buffer.dones[-1].clone()
    assert torch.equal(collector.buffer.episode_starts[1:], collector.buffer.dones[:-1])
    collector.collect(generator)
    assert torch.equal(collector.buffer.episode_starts[0], last)


def test_episode_sums_by_hand() -> None:
    env = make_env("endless-v1", 2, config={"step_limit": 10})
    collector = Collector(env, Policy(env.spec, PolicyConfig()), _config())
    generator = torch.Generator().manual_seed(0)
    collector.collect(generator)  # 24 steps: two episodes of 10 a game and 4 steps of the third
    assert collector.device_metrics().tolist() == [4.0, 10.0, 10.0, 1.0]
    collector.collect(generator)  # the third ends after 6 more, the fourth after 16
    assert collector.device_metrics().tolist() == [4.0, 10.0, 10.0, 1.0]


def test_only_the_learners_seats_are_rows() -> None:
    env = make_env("duel-v1", 3)
    learner = torch.tensor([[True, False], [False, True], [True, False]])
    recorder = _Recorder()
    policy = Policy(env.spec, PolicyConfig())
    collector = Collector(env, policy, _config(), learner=learner, opponents=recorder)
    assert collector.rows.count == 3
    assert collector.rows.index.tolist() == [0, 3, 4]
    collector.collect(torch.Generator().manual_seed(0))
    assert recorder.acted == 3 * STEPS
    # Against rock, paper wins: the rows' rewards are those of their own actions.
    expected = torch.tensor([0.0, 1.0, -1.0])[collector.buffer.actions]
    assert torch.equal(collector.buffer.rewards, expected)


def test_seats_that_nobody_plays_are_refused() -> None:
    env = make_env("duel-v1", 2)
    policy = Policy(env.spec, PolicyConfig())
    with pytest.raises(ConfigError, match="pass opponents"):
        Collector(env, policy, _config(), learner=torch.tensor([[True, False]] * 2))
    with pytest.raises(ConfigError, match="plays no seat"):
        Collector(env, policy, _config(), learner=torch.zeros(2, 2, dtype=torch.bool))
    with pytest.raises(ConfigError, match=r"\(2, 2\)"):
        Collector(env, policy, _config(), learner=torch.ones(3, 2, dtype=torch.bool))


def test_return_normalisation_scales_rewards_by_the_returns_deviation() -> None:
    env = make_env("endless-v1", 2, config={"step_limit": 4, "terminates": True})
    config = PolicyConfig.model_validate({"normalize": {"returns": True}})
    policy = Policy(env.spec, config)
    with torch.no_grad():
        for parameter in policy.critic.parameters():
            parameter.zero_()
    collector = Collector(env, policy, _config(gamma=0.5, gae_lambda=1.0))
    collector.collect(torch.Generator().manual_seed(0))
    # Discounted sums within an episode of four: 1, 1.5, 1.75, 1.875; values are 0, so returns are scaled sums ahead.
    deviation = torch.tensor([1.0, 1.5, 1.75, 1.875]).std(correction=0)
    expected = torch.tensor([1.875, 1.75, 1.5, 1.0]) / deviation
    torch.testing.assert_close(collector.buffer.returns[:4, 0], expected)


def test_held_noise_is_drawn_once_or_every_few_steps() -> None:
    env = make_env("point-v1", 2)
    config = PolicyConfig.model_validate({"state_dependent_exploration": True, "net_arch": {"pi": [4], "vf": [4]}})
    policy = Policy(env.spec, config)
    states = []
    for hold in (None, 8):
        generator = torch.Generator().manual_seed(0)
        Collector(env, policy, _config(sde_sample_freq=hold)).collect(generator)
        states.append(generator.get_state())
    once, thrice = torch.Generator().manual_seed(0), torch.Generator().manual_seed(0)
    policy.draw_noise(1, 2, once)
    for _ in range(3):
        policy.draw_noise(1, 2, thrice)
    assert torch.equal(states[0], once.get_state())
    assert torch.equal(states[1], thrice.get_state())


def test_state_that_does_not_fit_is_refused() -> None:
    env = make_env("identity-v1", 2)
    collector = Collector(env, Policy(env.spec, PolicyConfig()), _config())
    with pytest.raises(StateError, match="running"):
        collector.load_state(collector.state() | {"running": torch.zeros(1)}, env.reset())


def test_staggered_episodes_are_cut_off_once_at_times_spread_over_the_step_limit() -> None:
    env = make_env("roshambo", 4, config={"throws": 8})
    torch.manual_seed(0)
    recorder, learner = _Recorder(), torch.tensor([[True, False]]).expand(4, 2)
    policy = Policy(env.spec, PolicyConfig())
    collector = Collector(env, policy, _config(), learner=learner, opponents=recorder, stagger_episodes=True)
    collector.collect(torch.Generator().manual_seed(0))
    buffer = collector.buffer
    ends = [(buffer.dones[:, row].nonzero().squeeze(1) + 1).tolist() for row in range(4)]
    assert ends == [[8, 16, 24], [2, 10, 18], [4, 12, 20], [6, 14, 22]]
    cut = torch.zeros_like(buffer.dones)
    for row in range(1, 4):
        cut[2 * row - 1, row] = True
    assert torch.equal(buffer.bootstraps != 0.0, cut)
    for row in range(1, 4):
        step = 2 * row - 1
        final = recorder.results[step].final_observations["vector"][row, :1]
        assert final[0, 0] == 2 * row / 8  # throws played when it was cut off
        value = policy.value({"vector": final}, {}, torch.zeros(1, dtype=torch.bool))
        torch.testing.assert_close(buffer.bootstraps[step, row], value[0])
        assert not buffer.observations["vector"][step + 1, row].any()  # nothing has been played of the next match


def test_staggered_episodes_resume_where_they_were() -> None:
    def make() -> Collector:
        env = make_env("roshambo", 4, config={"throws": 60})
        torch.manual_seed(0)
        return Collector(env, Policy(env.spec, PolicyConfig()), _config(), stagger_episodes=True)

    collector, generator, second = make(), torch.Generator().manual_seed(0), make()
    collector.collect(generator)
    second.load_state(collector.state(), second.env.restore(collector.env.snapshot()))
    copied = torch.Generator().manual_seed(0)
    copied.set_state(generator.get_state())
    collector.collect(generator)
    second.collect(copied)
    assert collector.buffer.dones.any()
    assert torch.equal(collector.buffer.dones, second.buffer.dones)
    assert torch.equal(collector.buffer.observations["vector"], second.buffer.observations["vector"])


def test_episodes_without_a_step_limit_cannot_be_staggered(make_arena: type) -> None:
    env = make_arena(2)
    with pytest.raises(ConfigError, match="no step limit; set it to false"):
        Collector(env, Policy(env.spec, PolicyConfig()), _config(), opponents=_Recorder(), stagger_episodes=True)
