"""Faults of the system that mimic replaces, each held not to come back."""

from pathlib import Path

import torch

from ludus.envs.registry import make_env
from ludus.evaluation.duels import evaluate
from ludus.policies.config import NetArch, NormalisationConfig, PolicyConfig
from ludus.policies.policy import Policy
from ludus.training import Trainer
from ludus.training.presets import load_run_config

SHORT = {"episode_s": 0.5}


def make_policy(seed: int = 0) -> Policy:
    torch.manual_seed(seed)
    config = PolicyConfig(net_arch=NetArch(pi=(16,), vf=(16,)), normalise=NormalisationConfig(observations=True))
    with make_env("mimic", config=SHORT) as env:
        return Policy(env.spec, config)


def walked(policy: Policy, **asked: object) -> dict[str, object]:
    result = evaluate(policy, trials=["walk"], matches=4, world="mimic", config=SHORT, deterministic=True, **asked)  # type: ignore[arg-type]
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


def test_evaluation_starts_are_not_all_the_same_step() -> None:
    with make_env("mimic", 20, config={"starts": "fixed", "mirror": False}) as env:
        phases = env.reset()["vector"][:, 0, :2]
    assert len({tuple(round(number, 3) for number in row) for row in phases.tolist()}) == 2
    with make_env("mimic", 20, config={"starts": "fixed"}) as env:
        assert len(set(env.reset()["vector"][:, 0, 2].tolist())) == 10


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
    small = ["world.num_games=8", "ppo.steps=16", "ppo.batch_size=64", "total_env_steps=256", "evaluation.matches=2"]
    written = []
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        config = load_run_config("mimic", "debug", overrides=[*small, f"seed={seed}"])
        with Trainer(config, tmp_path / name) as trainer:
            trainer.run()
        written.append((tmp_path / name / "metrics.jsonl").read_bytes())
    assert written[0] == written[1]
    assert written[0] != written[2]
