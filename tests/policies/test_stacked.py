"""Stacked policies: every row gets what the snapshot in its slot would have given it."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from gymnasium import spaces
from tests.strategies import TINY_STRATEGY
from torch import Tensor, nn

from ludus.core.errors import ConfigError, StateError, UnsupportedError
from ludus.envs.base import EnvSpec
from ludus.policies.config import NormalizationConfig, PolicyConfig
from ludus.policies.grouping import BlockGrouping, Grouping, HostGrouping, OffsetGrouping
from ludus.policies.policy import Policy, Step
from ludus.policies.stacked import StackedPolicy

pytestmark = pytest.mark.train

ROWS, SLOTS, STEPS = 14, 5, 20
CPU = torch.device("cpu")
GROUPINGS: dict[str, Callable[[], Grouping]] = {
    "segments": lambda: HostGrouping(SLOTS, CPU, most_filling=0.0),
    "equal groups": lambda: HostGrouping(SLOTS, CPU, most_filling=100.0),
    "either": lambda: HostGrouping(SLOTS, CPU, most_filling=1.3),
    "offsets": lambda: OffsetGrouping(SLOTS, CPU, torch.float32),
    "blocks": lambda: BlockGrouping(SLOTS, CPU, block_rows=4),
}


def _frames(spec: EnvSpec, generator: torch.Generator) -> dict[str, Tensor]:
    frames = {}
    for name, space in spec.observation_space.items():
        shape = (ROWS, *(space.shape or ()))
        pictures = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
        frames[name] = pictures if space.dtype == np.uint8 else torch.randn(shape, generator=generator)
    return frames


def _snapshots(spec: EnvSpec, config: PolicyConfig) -> dict[int, Policy]:
    """Three different policies for three of the slots."""
    policies = {}
    for slot in (0, 2, 4):
        torch.manual_seed(slot)
        policies[slot] = policy = Policy(spec, config)
        for parameter in policy.parameters():  # biases and scales start alike, which would hide a mix-up
            parameter.data += 0.1 * torch.randn_like(parameter)
        policy.observe(_frames(spec, torch.Generator().manual_seed(slot)))
    return policies


class Moment(NamedTuple):
    """One step of a game."""

    slots: Tensor
    episode_starts: Tensor
    frames: dict[str, Tensor]
    noise: Tensor
    own: dict[int, Step]


class Game(NamedTuple):
    """Frames, who is in each row, and what three snapshots do there, each with a memory of its own."""

    policies: dict[int, Policy]
    steps: list[Moment]
    last: dict[str, torch.Size]


def _play(spec: EnvSpec, config: PolicyConfig) -> Game:
    policies = _snapshots(spec, config)
    generator = torch.Generator().manual_seed(9)
    memories = {slot: policy.initial(ROWS) for slot, policy in policies.items()}
    choices = torch.tensor([0, 2, 4, -1])
    slots = choices[torch.randint(0, 4, (ROWS,), generator=generator)]
    steps = []
    for t in range(STEPS):
        episode_starts = torch.rand(ROWS, generator=generator) < (1.0 if t == 0 else 0.15)
        fresh = choices[torch.randint(0, 4, (ROWS,), generator=generator)]
        slots = torch.where(episode_starts, torch.full_like(fresh, 2) if t == 7 else fresh, slots)
        frames, noise = _frames(spec, generator), policies[0].draw_noise(1, ROWS, generator)[0]
        own = {slot: policy.step(frames, memories[slot], episode_starts, noise) for slot, policy in policies.items()}
        memories = {slot: step.memory for slot, step in own.items()}
        steps.append(Moment(slots, episode_starts, frames, noise, own))
    return Game(policies, steps, {name: tensor.shape for name, tensor in memories[0].items()})


def _check(game: Game, grouping: Grouping | None) -> None:
    stacked = StackedPolicy(game.policies[0], SLOTS, grouping=grouping)
    for slot, policy in game.policies.items():
        stacked.load(slot, policy.state())
    memory = stacked.initial(ROWS)
    for slots, episode_starts, frames, noise, own in game.steps:
        stacked.choose(slots)
        step = stacked.step(frames, memory, episode_starts, noise)
        memory = step.memory
        assert all(tensor.isfinite().all() for tensor in (*memory.values(), step.log_probs))
        for slot, expected in own.items():
            rows = slots == slot
            for ours, theirs in zip(step[:3], expected[:3], strict=True):
                torch.testing.assert_close(ours[rows], theirs[rows], atol=1e-5, rtol=1e-5)
    assert {name: tensor.shape for name, tensor in memory.items()} == game.last


@pytest.fixture(scope="module")
def games() -> dict[str, Game]:
    """The games of the kinds of policies so far: the snapshots play them once for all groupings."""
    return {}


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_a_stacked_step_equals_each_snapshots_own(
    policy_kind: tuple[str, PolicyConfig], make_arena: type, grouping: str, games: dict[str, Game]
) -> None:
    name, config = policy_kind
    if name not in games:
        games[name] = _play(make_arena(1, picture=name.startswith("cnn")).spec, config)
    _check(games[name], GROUPINGS[grouping]())


@pytest.mark.parametrize(
    ("space", "config"),
    [
        (spaces.Discrete(5), PolicyConfig()),
        (spaces.MultiDiscrete([2, 3, 4]), PolicyConfig()),
        (spaces.Box(-1.0, 1.0, (3,), np.float32), PolicyConfig()),
        (spaces.Box(-1.0, 1.0, (3,), np.float32), PolicyConfig(state_dependent_exploration=True)),
    ],
)
def test_every_action_head_can_be_stacked(space: spaces.Space[object], config: PolicyConfig, make_arena: type) -> None:
    _check(_play(replace(make_arena(1).spec, action_space=space), config), None)


def test_without_values_the_actions_are_the_same(make_arena: type) -> None:
    spec = make_arena(1).spec
    config = PolicyConfig.model_validate({"recurrent": {"size": 8, "critic": "separate"}})
    policy = _snapshots(spec, config)[2]
    generator = torch.Generator().manual_seed(0)
    frames, noise = _frames(spec, generator), policy.draw_noise(1, ROWS, generator)[0]
    steps = []
    for values in (True, False):
        stacked = StackedPolicy(policy, 2, values=values)
        stacked.load(1, policy.state())
        stacked.choose(torch.ones(ROWS, dtype=torch.int64))
        episode_starts = torch.ones(ROWS, dtype=torch.bool)
        steps.append(stacked.step(frames, stacked.initial(ROWS), episode_starts, noise))
        assert torch.equal(stacked.value(frames, stacked.initial(ROWS), episode_starts), steps[-1].values)
    assert torch.equal(steps[0].actions, steps[1].actions)
    assert steps[0].values.abs().min() > 0.0
    assert torch.equal(steps[1].values, torch.zeros(ROWS))
    assert set(steps[1].memory) == {"recurrent.hidden", "recurrent.cell"}


def test_rows_that_nobody_asks_for_are_finite_even_alone(make_arena: type) -> None:
    spec = make_arena(1).spec
    config = PolicyConfig.model_validate({"recurrent": {"size": 8}, "normalize": {"observations": True}})
    policy = Policy(spec, config)
    for make in GROUPINGS.values():
        stacked = StackedPolicy(policy, SLOTS, grouping=make())
        stacked.load(0, policy.state())
        stacked.choose(torch.full((ROWS,), -1))
        frames = _frames(spec, torch.Generator().manual_seed(0))
        step = stacked.step(frames, stacked.initial(ROWS), torch.ones(ROWS, dtype=torch.bool))
        assert all(tensor.isfinite().all() for tensor in (*step.memory.values(), step.log_probs, step.values))


def test_making_one_draws_nothing_from_the_global_stream(make_arena: type) -> None:
    policy = Policy(make_arena(1).spec, PolicyConfig(normalize=NormalizationConfig(returns=True)))
    before = torch.get_rng_state()
    StackedPolicy(policy, 3)
    assert torch.equal(before, torch.get_rng_state())


def test_what_does_not_fit_is_refused(make_arena: type) -> None:
    spec = make_arena(1).spec
    policy, other = Policy(spec, PolicyConfig()), Policy(spec, PolicyConfig(encoder=(8,)))
    stacked = StackedPolicy(policy, 3)
    with pytest.raises(ConfigError, match=r"slot 3 .* 0 to 2"):
        stacked.load(3, policy.state())
    with pytest.raises(StateError, match=r"actor\.layers\.0\.weight"):
        stacked.load(0, other.state())
    with pytest.raises(StateError, match="chosen for 0"):
        stacked.step({}, {}, torch.zeros(2, dtype=torch.bool))
    with pytest.raises(ConfigError, match="0 slots"):
        StackedPolicy(policy, 0)


def test_an_architecture_without_a_twin_is_named(make_arena: type, monkeypatch: pytest.MonkeyPatch) -> None:
    make = Policy.__init__

    def with_embedding(self: Policy, spec: EnvSpec, config: PolicyConfig, device: torch.device | str = "cpu") -> None:
        make(self, spec, config, device)
        self.table = nn.Embedding(2, 2)

    monkeypatch.setattr(Policy, "__init__", with_embedding)
    policy = Policy(make_arena(1).spec, PolicyConfig())
    with pytest.raises(UnsupportedError, match=r"table.*Embedding"):
        StackedPolicy(policy, 2)


def test_on_a_cpu_past_selves_stay_plain_when_the_learner_is_compiled(make_arena: type) -> None:
    policy = Policy(make_arena(1).spec, PolicyConfig(strategy=TINY_STRATEGY))
    stacked = StackedPolicy(policy, 2)
    stacked.load(0, policy.state())
    stacked.choose(torch.zeros(ROWS, dtype=torch.int64))
    frames = {"vector": torch.randn(ROWS, 12)}
    episode_starts = torch.ones(ROWS, dtype=torch.bool)
    plain = policy.step(frames, policy.initial(ROWS), episode_starts)
    policy.use_compiler()
    assert policy.is_compiled
    step = stacked.step(frames, stacked.initial(ROWS), episode_starts)
    torch.testing.assert_close(step.values, plain.values)
    assert not stacked._network.is_compiled
