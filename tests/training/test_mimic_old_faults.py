"""Faults of the system that mimic replaces, each held not to come back."""

from pathlib import Path

import numpy as np
import pytest
import torch

from ludus.envs.registry import make_env
from ludus.envs.world_parts import merge_settings
from ludus.evaluation.evaluate import PolicyEvaluator, evaluate
from ludus.policies.config import NetArch, NormalizationConfig, PolicyConfig
from ludus.policies.policy import Policy
from ludus.training import Trainer
from ludus.training.presets import load_run_config
from ludus.worlds.mimic.scenarios import SCENARIOS

pytestmark = pytest.mark.fault

SHORT = {"episode_s": 0.5}


def make_policy(seed: int = 0) -> Policy:
    torch.manual_seed(seed)
    config = PolicyConfig(net_arch=NetArch(pi=(16,), vf=(16,)), normalize=NormalizationConfig(observations=True))
    with make_env("mimic", config=SHORT) as env:
        return Policy(env.spec, config)


def walked(policy: Policy, **asked: object) -> dict[str, object]:
    result = evaluate(policy, scenarios=["walk"], matches=4, world="mimic", config=SHORT, deterministic=True, **asked)  # type: ignore[arg-type]
    return dict(result.rows[0])


def test_evaluation_plays_the_policys_own_actions() -> None:
    """There a script evaluated random actions: here other weights walk otherwise, and the same ones the same."""
    first = walked(make_policy(0))
    assert walked(make_policy(0)) == first
    other = make_policy(1)
    with torch.no_grad():
        dict(other.head.named_parameters())["linear.bias"].add_(0.5)
    assert walked(other)["imitation"] != first["imitation"]


def test_evaluation_leaves_the_normaliser_alone() -> None:
    policy = make_policy()
    policy.observe({"vector": torch.randn(64, 30)})
    before = policy.state()
    walked(policy)
    after = policy.state()
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("trial", ["walk", "speed-1.0", "pushes"])
@pytest.mark.parametrize("batch", [20, 8])
def test_twenty_walks_of_an_evaluation_are_twenty_different_ones(trial: str, batch: int) -> None:
    with make_env("mimic", batch, config=merge_settings(SCENARIOS[trial], SHORT)) as env:
        walks = PolicyEvaluator(env, (), matches=20, deterministic=True).play_matches(make_policy())
    assert len(np.unique(walks.events["reward"].round(4))) == 20  # mirror images differ by rounding alone


def test_the_interval_of_a_trial_at_one_speed_has_a_width() -> None:
    (row,) = evaluate(make_policy(), scenarios=["speed-1.0"], matches=20, world="mimic", deterministic=True).rows
    assert row["mean_return_high"] - row["mean_return_low"] > 0.01 * row["mean_return"]


def test_actor_and_critic_share_no_layer() -> None:
    policy = make_policy()
    actor = {id(parameter) for parameter in (*policy.actor.parameters(), *policy.head.parameters())}
    critic = {id(parameter) for parameter in (*policy.critic.parameters(), *policy.value_head.parameters())}
    assert actor.isdisjoint(critic)


def test_the_step_of_a_fall_is_rewarded_as_any_other() -> None:
    with make_env("mimic", 32, config={"action": "torque"}) as env:
        env.reset()
        rewards = []
        for _ in range(120):
            result = env.step(torch.zeros(32, 1, 8))
            rewards += result.events["reward"][result.terminated].flatten().tolist()
    assert rewards
    assert all(reward > 0.0 for reward in rewards)


def test_runs_are_seeded(tmp_path: Path) -> None:
    small = ["world.num_envs=8", "ppo.n_steps=16", "ppo.batch_size=64", "total_env_steps=256", "evaluation.matches=2"]
    written = []
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        config = load_run_config("mimic", "debug", overrides=[*small, f"seed={seed}"])
        with Trainer(config, tmp_path / name) as trainer:
            trainer.run()
        written.append((tmp_path / name / "metrics.jsonl").read_bytes())
    assert written[0] == written[1]
    assert written[0] != written[2]
