"""What agents cost: computed from descriptions as built policies are, within limits for everything that is shipped."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from ludus.config import PresetDirectory
from ludus.core.errors import CheckpointError, GameNotFoundError, StateError
from ludus.envs.base import EnvSpec
from ludus.envs.registry import make_env
from ludus.envs.world import find_world
from ludus.policies import LoadLimits
from ludus.policies.agent import Agent, agent_checkpoint, build_policy
from ludus.policies.config import PolicyConfig
from ludus.policies.cost import Allowance, Cost, cost_of
from ludus.policies.description import PolicyDescription
from ludus.policies.policy import Policy
from ludus.policies.shipped import agent_names
from ludus.store import save_checkpoint
from ludus.training.presets import load_run_config

pytestmark = pytest.mark.train

MARGIN = 10  # that everything shipped keeps from the usual limits
ENCODER = {"layers": 3, "heads": 2, "width": 16, "feedforward": 24, "window": 21, "pooling": 8, "latent": 6}
PRESETS = [
    (world, preset)
    for world in ("brawl", "city", "mimic", "rocket", "roshambo")
    for preset in PresetDirectory(find_world(world).package).names()
]
CONFIGS: dict[str, dict[str, Any]] = {
    "plain": {"net_arch": {"pi": [32, 16], "vf": [8]}},
    "encoder of each entry": {"encoder": [12, 7], "normalize": {"observations": True, "returns": True}},
    "lstm": {"recurrent": {"size": 12}},
    "lstm, separate": {"recurrent": {"size": 12, "critic": "separate", "skip": True}},
    "encoder": {"strategy": {**ENCODER, "predict_actions": 1.0}},
    "encoder and lstm": {"strategy": ENCODER, "recurrent": {"size": 9}},
    "encoder beside the lstm": {"strategy": ENCODER, "recurrent": {"size": 9, "skip": True}},
    "no hidden layers": {"net_arch": {"pi": [], "vf": []}},
}


def check_against_policy(spec: EnvSpec, config: PolicyConfig) -> Cost:
    """Compares what is computed with a policy; its operations are those that torch counts, or more."""
    cost = cost_of(PolicyDescription.of(spec, config))
    with torch.random.fork_rng(devices=[]):
        policy = Policy(spec, config)
    rows = {name: torch.zeros((1, *(space.shape or ()))) for name, space in spec.observation_space.items()}
    with FlopCounterMode(display=False) as counter:
        policy.step(rows, policy.initial(1), torch.ones(1, dtype=torch.bool))
    assert cost.parameters == sum(parameter.numel() for parameter in policy.parameters())
    assert cost.state_bytes == sum(tensor.nbytes for tensor in policy.initial(1).values())
    assert counter.get_total_flops() <= cost.flops
    return cost


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("picture", [False, True], ids=["vectors", "picture"])
def test_the_cost_is_that_of_the_policy(name: str, picture: bool, make_arena: type) -> None:
    cnn = {"channels": [6, 4], "kernels": [3, 2], "strides": [2, 1], "features": 10}
    config = PolicyConfig.model_validate({**CONFIGS[name], "cnn": cnn})
    cost = check_against_policy(make_arena(2, picture=picture).spec, config)
    if config.recurrent is None:  # its kernels are our own, which torch does not count
        assert cost.flops < 1e7


@pytest.mark.parametrize("name", ["duel", "point", "dig", "recall", "identity"])
@pytest.mark.parametrize("config", [{}, {"state_dependent_exploration": True}, {"squash": "stochastic"}], ids=str)
def test_the_cost_is_that_of_every_head(name: str, config: dict[str, Any]) -> None:
    with make_env(name) as env:
        is_box = type(env.spec.action_space).__name__ == "Box"
        if config and not is_box:
            pytest.skip("only continuous actions")
        check_against_policy(env.spec, PolicyConfig.model_validate(config))


def test_operations_are_counted_as_torch_counts_them() -> None:
    """4 inputs to 8 to 3 logits, and 4 to 5 to a value, two operations for a weight, and a little for the inputs."""
    with make_env("duel") as env:
        inputs = sum(int(space.shape[0]) for space in env.spec.observation_space.values() if space.shape)
        config = PolicyConfig.model_validate({"net_arch": {"pi": [8], "vf": [5]}})
        cost = check_against_policy(env.spec, config)
    assert cost.flops == 2 * (inputs * 8 + 8 * 3 + inputs * 5 + 5) + 4 * inputs
    assert cost.parameters == 9 * inputs - inputs + 8 + 9 * 3 + (inputs + 1) * 5 + 6


def described(**strategy: Any) -> PolicyDescription:
    with make_env("duel") as env:
        config = PolicyConfig.model_validate({"strategy": {**ENCODER, "block": None, **strategy}})
        return PolicyDescription.of(env.spec, config)


def test_a_longer_window_hardly_costs_more_operations() -> None:
    short, long = (cost_of(described(window=n)).flops for n in (100, 10_000))
    assert long < 100 * short


def within(cost: Cost) -> None:
    for field in fields(cost):
        assert MARGIN * getattr(cost, field.name) <= getattr(LoadLimits(), field.name), field.name
    assert Allowance(cost, LoadLimits()).most_seats >= 4096 * 2


@pytest.mark.parametrize("name", agent_names())
def test_every_shipped_agent_is_within_the_limits(name: str) -> None:
    allowance = Agent.load(name).policy.allowance
    assert allowance is not None
    within(allowance.cost)


@pytest.mark.parametrize(("world", "preset"), PRESETS)
def test_every_preset_is_within_the_limits(world: str, preset: str) -> None:
    config = load_run_config(world, preset)
    try:
        with make_env(config.world.name, 1, config=config.world.settings or None) as env:
            spec = env.spec
    except GameNotFoundError as error:
        pytest.skip(str(error))
    within(cost_of(PolicyDescription.of(spec, config.playing_policy())))


@pytest.mark.parametrize("name", [*(field.name for field in fields(Cost)), "load_s"])
def test_a_refusal_names_the_quantity_its_value_and_how_to_load_it_all_the_same(name: str, tmp_path: Path) -> None:
    with make_env("duel") as env, torch.random.fork_rng(devices=[]):
        policy = Policy(env.spec, PolicyConfig.model_validate({"recurrent": {"size": 8}}))
    save_checkpoint(tmp_path / "agent", agent_checkpoint(policy.spec, policy.config, policy.state()))
    with pytest.raises(CheckpointError, match=rf"limit of 1e-09; .*limits=LoadLimits\({name}=(\S+)\)") as refused:
        Agent.load(tmp_path / "agent", limits=LoadLimits(**{name: 1e-9}))
    if name != "load_s":  # which differs from time to time
        advised = float(str(refused.value).rpartition("=")[2].rstrip(")"))
        allowance = Agent.load(tmp_path / "agent", limits=LoadLimits(**{name: advised})).policy.allowance
        assert allowance is not None
    assert Agent.load(tmp_path / "agent", limits=None).policy.allowance is None


def test_own_checkpoints_are_built_without_limits() -> None:
    with make_env("duel") as env, torch.random.fork_rng(devices=[]):
        policy = Policy(env.spec, PolicyConfig())
    description = PolicyDescription.of(policy.spec, policy.config)
    assert build_policy(description, policy.state(), "cpu").allowance is None
    with pytest.raises(StateError, match="parameters"):
        build_policy(description, policy.state(), "cpu", LoadLimits(parameters=10))


def test_loading_draws_no_random_numbers(tmp_path: Path) -> None:
    with make_env("duel") as env, torch.random.fork_rng(devices=[]):
        policy = Policy(env.spec, PolicyConfig())
    save_checkpoint(tmp_path / "agent", agent_checkpoint(policy.spec, policy.config, policy.state()))
    before = torch.random.get_rng_state()
    Agent.load(tmp_path / "agent")
    assert torch.equal(torch.random.get_rng_state(), before)


def test_time_and_seats_of_a_batch_follow_from_the_cost() -> None:
    cost = Cost(flops=10**9, state_bytes=600, working_bytes=400)
    allowance = Allowance(cost, LoadLimits(batch_bytes=50_000, batch_flops=4e10, decision_s=2.0))
    assert allowance.most_seats == 40  # 50 by memory
    assert allowance.decision_s(5) == 2.0  # 5e9 operations
    assert allowance.decision_s(40) == 4.0  # 4e10, twice what the limit is for
