"""Agents for the tests of evaluation: policies made by hand whose play is known, and their folders."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from ludus.envs.registry import make_env
from ludus.policies.agent import agent_checkpoint
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.store import save_checkpoint

MakePolicy = Callable[..., Policy]
SaveAgent = Callable[[Policy, Path], Path]


@pytest.fixture
def stubborn() -> MakePolicy:
    """Makes a policy that always does the same: `stubborn("duel", [-9, 9, -9])` gives the head's parameters."""

    def make(world: str, parameters: list[float]) -> Policy:
        with make_env(world) as env:
            policy = Policy(env.spec, PolicyConfig())
        with torch.no_grad():
            for parameter in policy.parameters():
                parameter.zero_()
            policy.get_parameter("head.linear.bias").copy_(torch.tensor(parameters))
        return policy

    return make


@pytest.fixture
def fresh() -> MakePolicy:
    """Makes an untrained policy of a world: `fresh("brawl", PolicyConfig(...), seed=1)`."""

    def make(world: str, config: PolicyConfig | None = None, seed: int = 0) -> Policy:
        with make_env(world) as env, torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return Policy(env.spec, config or PolicyConfig())

    return make


@pytest.fixture
def save_agent() -> SaveAgent:
    """Saves a policy as the `best` agent of a run folder and returns the run folder."""

    def save(policy: Policy, run: Path) -> Path:
        (run / "checkpoints").mkdir(parents=True)
        save_checkpoint(run / "checkpoints" / "best", agent_checkpoint(policy.spec, policy.config, policy.state()))
        return run

    return save
