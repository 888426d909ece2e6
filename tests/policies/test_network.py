"""A user's own network in a policy: its forms, its state, what is saved of it, and what is said of a bad one."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from tests import own_networks
from tests.own_networks import Features, Unrolled
from torch import Tensor

from ludus.core.errors import CheckpointError, ConfigError, NetworkError, StateError
from ludus.envs.base import EnvSpec
from ludus.envs.registry import make_env
from ludus.envs.spaces import are_allowed
from ludus.nn.recurrent import RecurrentConfig
from ludus.policies import looped, user_module
from ludus.policies.agent import Agent, agent_checkpoint, build_policy
from ludus.policies.config import PolicyConfig
from ludus.policies.description import PolicyDescription
from ludus.policies.looped import PolicyLoop, stack_policies
from ludus.policies.network import UserNetwork
from ludus.policies.policy import Policy, clone_recurrent_state
from ludus.store import save_checkpoint

ROWS, STEPS = 5, 7
FILE = Path(own_networks.__file__)


def config(network: str, settings: dict[str, Any] | None = None, **arguments: Any) -> PolicyConfig:
    given = {"module": f"own_networks.py:{network}", "module_kwargs": arguments, "net_arch": {"pi": [4], "vf": [4]}}
    return PolicyConfig.model_validate(given | (settings or {}))


def make(network: str, settings: dict[str, Any] | None = None, world: str = "duel", **arguments: Any) -> Policy:
    with make_env(world) as env, torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Policy(env.spec, config(network, settings, **arguments))


def draw(policy: Policy, *leading: int, seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    space = policy.spec.observation_space
    return {name: torch.rand((*leading, *(entry.shape or ())), generator=generator) for name, entry in space.items()}


def test_features_are_what_ludus_builds_its_heads_on() -> None:
    policy = make("Features", width=6)
    frame = draw(policy, ROWS)
    step = policy.step(frame, {}, torch.zeros(ROWS, dtype=torch.bool))
    assert policy.network is not None
    features = policy.network.module(dict(frame))  # without dropout outside of updates
    assert torch.equal(step.values, policy.value_head(policy.critic(features)).squeeze(-1))
    assert torch.equal(step.actions, policy.head(policy.actor(features)).argmax(-1))
    assert policy.actor.layers[0].in_features == 6
    assert not policy.has_memory


def test_logits_and_values_go_to_the_distribution_as_they_are() -> None:
    policy = make("Actions")
    frame, starts = draw(policy, 1, ROWS), torch.zeros(1, ROWS, dtype=torch.bool)
    assert policy.network is not None
    logits, values = policy.network.module({name: tensor[0] for name, tensor in frame.items()})
    actions = torch.arange(ROWS).remainder(3).unsqueeze(0)
    found = policy.unroll(frame, {}, starts, actions)
    chosen = torch.log_softmax(logits, -1).gather(1, actions.t()).squeeze(1)
    torch.testing.assert_close(found.log_probs[0], chosen)
    torch.testing.assert_close(found.values[0], values)
    names = {name.partition(".")[0] for name, _ in policy.named_parameters()}
    assert names == {"network"}  # none of Ludus's own layers is left


def test_means_of_continuous_actions_get_ludus_own_deviations() -> None:
    policy = make("Actions", {"log_std": -1.0}, "point", outputs=2)
    assert {name for name, _ in policy.named_parameters() if not name.startswith("network.")} == {"head.log_std"}
    frame = draw(policy, ROWS)
    assert policy.network is not None
    torch.testing.assert_close(policy.step(frame, {}, torch.ones(ROWS).bool()).actions, policy.network.module(frame)[0])


KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "features": ("Features", {"normalize": {"observations": True}}),
    "recurrent": ("Recurrent", {}),
    "recurrent actions": ("RecurrentActions", {}),
    "unrolled": ("Unrolled", {}),
    "lstm on top": ("Recurrent", {"recurrent": {"size": 4, "skip": True}}),
    "strategy beside": ("Features", {"strategy": {"layers": 1, "heads": 2, "width": 8, "feedforward": 8, "window": 4}}),
}


@pytest.mark.parametrize("kind", list(KINDS))
def test_step_equals_unroll(kind: str) -> None:
    policy = make(*KINDS[kind], world="rps" if kind == "strategy beside" else "duel")
    policy.observe(draw(policy, 9, seed=9))
    frames, generator = draw(policy, 2 * STEPS, ROWS), torch.Generator().manual_seed(1)
    starts = torch.rand(2 * STEPS, ROWS, generator=generator) < 0.3
    memory, steps, stored = policy.initial(ROWS), [], {}
    for t in range(2 * STEPS):
        if t == STEPS:
            stored = clone_recurrent_state(memory)
        frame = {name: tensor[t] for name, tensor in frames.items()}
        steps.append(policy.step(frame, memory, starts[t], policy.draw_noise(1, ROWS, generator)[0]))
        memory = steps[-1].memory
    late = {name: tensor[STEPS:] for name, tensor in frames.items()}
    found = policy.unroll(late, stored, starts[STEPS:], torch.stack([step.actions for step in steps[STEPS:]]))
    torch.testing.assert_close(found.values, torch.stack([step.values for step in steps[STEPS:]]))
    torch.testing.assert_close(found.log_probs, torch.stack([step.log_probs for step in steps[STEPS:]]))


def test_rows_begin_with_the_first_state_and_gradients_reach_it() -> None:
    policy = make("Recurrent")
    memory = policy.initial(2)
    assert memory["network.hidden"].tolist() == [[0.5] * 5] * 2
    memory = policy.step(draw(policy, 2), memory, torch.tensor([True, True])).memory
    memory = policy.step(draw(policy, 2), memory, torch.tensor([False, True])).memory
    assert memory["network.steps"].tolist() == [1, 0]
    found = policy.unroll(draw(policy, 1, 2), memory, torch.ones(1, 2).bool(), torch.zeros(1, 2, dtype=torch.int64))
    found.values.sum().backward()  # type: ignore[no-untyped-call]
    first = policy.get_parameter("network.module.first").grad
    assert first is not None
    assert first.abs().sum() > 0


def test_its_own_unroll_is_used() -> None:
    policy = make("Unrolled")
    assert policy.network is not None
    module = policy.network.module
    assert isinstance(module, Unrolled)
    before = module.unrolled
    policy.unroll(draw(policy, 3, 2), policy.initial(2), torch.ones(3, 2).bool(), torch.zeros(3, 2, dtype=torch.int64))
    assert module.unrolled == before + 1


def test_entries_have_the_shapes_of_their_spaces_and_statistics() -> None:
    policy = make("Features", {"normalize": {"observations": True}})
    policy.observe({name: tensor * 4.0 + 3.0 for name, tensor in draw(policy, 1000).items()})
    frame = {name: tensor * 4.0 + 3.0 for name, tensor in draw(policy, 500, seed=1).items()}
    flat = policy.observations.flatten(frame)
    seen = policy.observations.entries(frame, flat)
    for name, tensor in frame.items():
        assert seen[name].shape == tensor.shape
        assert abs(float(seen[name].mean())) < 0.1
        assert float(seen[name].std()) == pytest.approx(1.0, abs=0.1)


def test_entries_of_every_kind_come_in_the_shapes_of_their_spaces() -> None:
    space = spaces.Dict(
        {
            "grid": spaces.Box(-1.0, 1.0, (2, 3), np.float32),
            "level": spaces.Discrete(4),
            "keys": spaces.MultiBinary(5),
            "picture": spaces.Box(0, 255, (4, 4, 3), np.uint8),
        }
    )
    spec = EnvSpec("seen", 1, (0,), space, spaces.Discrete(2), 1.0, None)
    Policy(spec, config("Watching", {"normalize": {"observations": True}}))
    assert own_networks.Watching.seen == {
        "grid": ((2, 3), torch.float32),
        "level": ((), torch.int64),
        "keys": ((5,), torch.float32),
        "picture": ((4, 4, 3), torch.uint8),
    }
    policy = Policy(spec, config("Watching", {"normalize": {"observations": True}}))
    own_networks.Watching.seen.clear()
    frame = {name: torch.zeros((2, *(entry.shape or ()))) for name, entry in space.items()}
    whole = {"level": torch.int64, "keys": torch.int8, "picture": torch.uint8}
    frame |= {name: frame[name].to(dtype) for name, dtype in whole.items()}
    policy.step(frame, {}, torch.ones(2).bool())
    assert own_networks.Watching.seen["grid"] == ((2, 3), torch.float32)
    assert own_networks.Watching.seen["keys"] == ((5,), torch.float32)


def test_masks_and_exploration_are_applied_to_logits_of_its_own() -> None:
    with make_env("dig") as env:
        choices = sum(env.spec.choices.counts)
        settings = config("Actions", {"exploration": {"frequency": 0.5}, "sees_action_mask": True}, outputs=choices)
        policy = Policy(env.spec, settings)
        observations = {name: tensor.flatten(0, 1) for name, tensor in env.reset().items()}
    mask = env.spec.actions.mask
    assert mask is not None
    rows = observations[mask].shape[0]
    noise = policy.draw_noise(64, rows, torch.Generator().manual_seed(0), explore=True)
    for each in noise:
        actions = policy.step(observations, {}, torch.zeros(rows).bool(), each).actions
        assert bool(are_allowed(env.spec.choices, observations[mask], actions).all())


BAD = {
    "flat": r"returned features of \(12,\)",
    "none": "returned NoneType, expected features",
    "whole numbers": r"torch.int64, expected \(3, features\)",
    "three": "expected features",
    "values": r"returned values of \(3, 4\) torch.float32, expected \(3, 1\)",
    "logits": r"returns 4 logits, but the actions of duel-v1, Discrete\(3\), have 3 parameters",
    "one row": r"returned features of \(1, 4\)",
    "double": "'layer.weight' of torch.float64, expected float32",
}


@pytest.mark.parametrize("fault", list(BAD))
def test_a_wrong_form_names_file_and_line(fault: str) -> None:
    with pytest.raises(NetworkError, match=BAD[fault]) as caught:
        make("Broken", fault=fault)
    assert re.search(rf"{re.escape(str(FILE))}:\d+", str(caught.value))


@pytest.mark.parametrize("fault", ["init", "raise"])
def test_an_exception_names_the_line_that_raised_it(fault: str) -> None:
    lines = FILE.read_text(encoding="utf-8").splitlines()
    line = next(number for number, text in enumerate(lines, 1) if text.endswith(f"# {fault}"))
    with pytest.raises(NetworkError, match=f"{FILE.name}:{line}"):
        make("Broken", fault=fault)
    with pytest.raises(NetworkError, match="unexpected keyword argument 'widht'"):
        make("Features", widht=3)


def test_nan_and_changed_forms_are_found_when_it_plays() -> None:
    policy = make("Broken", fault="NaN")
    with pytest.raises(NetworkError, match="NaN or infinity"):
        policy.step(draw(policy, 2), {}, torch.zeros(2).bool())
    policy = make("Broken", fault="later")
    for _ in range(7):
        policy.step(draw(policy, 2), {}, torch.zeros(2).bool())
    with pytest.raises(NetworkError, match="and 4 numbers per row before"):
        policy.step(draw(policy, 2), {}, torch.zeros(2).bool())


@pytest.mark.parametrize(
    ("fault", "said"),
    {
        "no dict": r"initial_state .* returned \(3, 5\)",
        "rows": r"a state 'a' of \(6, 5\)",
        "no state": "expected \\(output, next_state\\)",
        "other names": r"\['hidden'\], and \['hidden', 'steps'\] before",
        "other shape": r"'hidden' of \(3, 6\) torch.float32, expected \(3, 5\)",
        "other type": "'steps' of .* torch.float32, expected .* torch.int64",
    }.items(),
)
def test_a_bad_state_is_named(fault: str, said: str) -> None:
    with pytest.raises(NetworkError, match=said):
        make("BrokenState", fault=fault)


def test_an_unroll_that_is_not_what_steps_give_is_refused() -> None:
    with pytest.raises(NetworkError, match=r"unroll .* differs from steps of forward by"):
        make("Forgetful")


class ElsewhereAlone(Features):
    """Runs on no CPU, as one with kernels of its own for another device."""

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        devices = {tensor.device.type for tensor in (*observations.values(), *self.parameters(), *self.buffers())}
        if devices != {"meta"}:
            raise RuntimeError(f"no kernel for {devices}")
        return super().forward(observations)


def test_it_is_tried_out_on_the_device_that_it_is_for() -> None:
    name = user_module.register_network(ElsewhereAlone)
    with make_env("duel") as env:
        spec = env.spec
    network = UserNetwork(name, {}, spec, spec.observation_space, torch.device("meta"))
    assert network.output_size == 6
    with pytest.raises(NetworkError, match=r"no kernel for \{'cpu'\} \(.*test_network\.py:\d+"):
        UserNetwork(name, {}, spec, spec.observation_space, torch.device("cpu"))


def test_memory_and_heads_of_ludus_need_features() -> None:
    with pytest.raises(ConfigError, match=r"policy\.recurrent has no features"):
        make("Actions", {"recurrent": {"size": 4}})


def save(policy: Policy, folder: Path) -> Path:
    save_checkpoint(folder, agent_checkpoint(policy.spec, policy.config, policy.state()))
    return folder


def test_an_agent_comes_back_equal_with_its_statistics(tmp_path: Path) -> None:
    policy = make("Features", width=7)
    policy.network_buffers()["network.module.norm.running_mean"].fill_(0.25)
    agent = Agent.load(save(policy, tmp_path / "agent"))
    assert agent.plugins == ("own_networks.py",)
    loaded = agent.policy
    assert {"buffer.network.module.norm.running_mean", "parameter.network.module.layer.weight"} <= set(policy.state())
    for name, tensor in policy.state().items():
        assert torch.equal(tensor, loaded.state()[name]), name
    frame, starts = draw(policy, ROWS), torch.zeros(ROWS).bool()
    assert torch.equal(policy.eval().step(frame, {}, starts).values, loaded.step(frame, {}, starts).values)


def test_without_its_file_the_error_names_the_flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = save(make("Features"), tmp_path / "agent")
    monkeypatch.setattr(user_module, "_imported", lambda _: {})
    with pytest.raises(
        CheckpointError, match=r"'own_networks\.py:Features' is not loaded: pass --plugin own_networks\.py"
    ):
        Agent.load(agent)


def test_a_file_that_asks_for_another_size_is_refused_before_memory_is_taken() -> None:
    policy = make("Features")
    huge = policy.config.model_copy(update={"module_kwargs": {"width": 10**12}})
    description = PolicyDescription.of(policy.spec, policy.config).model_copy(update={"config": huge})
    with pytest.raises(StateError, match=r"layer\.weight is \(6, \d+\), but the description asks for \(1000000000000"):
        build_policy(description, policy.state(), "cpu")


def test_a_description_goes_round() -> None:
    policy = make("Features")
    own = PolicyDescription.of(policy.spec, policy.config).model_dump()
    assert own["config"]["module"] == "own_networks.py:Features"
    assert PolicyDescription.read(own).config == policy.config


def test_snapshots_play_one_after_the_other_as_each_alone(caplog: pytest.LogCaptureFixture) -> None:
    looped._notice.cache_clear()
    first, second = make("RecurrentActions"), make("RecurrentActions")
    with torch.no_grad():
        for parameter in second.parameters():
            parameter.add_(0.1)
    stacked = stack_policies(first, 4, values=False)
    stack_policies(first, 4)
    assert isinstance(stacked, PolicyLoop)
    notices = [record.getMessage() for record in caplog.records if "cannot be stacked" in record.getMessage()]
    assert len(notices) == 1
    stacked.load(2, first.state())
    stacked.load(0, second.state())
    slots = torch.tensor([0, 2, -1, 2, 0])
    stacked.choose(slots)
    memory, alone = stacked.initial(ROWS), {0: second.initial(ROWS), 2: first.initial(ROWS)}
    generator = torch.Generator().manual_seed(0)
    for t in range(4):
        frame, starts = draw(first, ROWS, seed=t), torch.tensor([t == 0, t == 0, t == 0, t in (0, 2), t == 0])
        noise = stacked.draw_noise(1, ROWS, generator)[0]
        step = stacked.step(frame, memory, starts, noise)
        memory = step.memory
        for slot, policy in ((0, second), (2, first)):
            expected = policy.step(frame, alone[slot], starts, noise)
            alone[slot] = expected.memory
            rows = slots == slot
            assert torch.equal(step.actions[rows], expected.actions[rows])
            assert torch.equal(step.memory["network.hidden"][rows], expected.memory["network.hidden"][rows])
    stacked.choose(slots[:3])
    with pytest.raises(StateError, match="slots were chosen for 3"):
        stacked.step(draw(first, ROWS), memory, torch.zeros(ROWS).bool())


def test_dropout_is_active_in_updates_alone() -> None:
    policy = make("Features", {"dropout": 0.5})
    frame, starts = draw(policy, 1, 64), torch.zeros(1, 64).bool()
    actions = torch.zeros(1, 64, dtype=torch.int64)
    played = policy.train().unroll(frame, {}, starts, actions).values
    assert torch.equal(played, policy.eval().unroll(frame, {}, starts, actions).values)
    policy.train()
    before, generator = torch.random.get_rng_state(), torch.Generator().manual_seed(3)
    with policy.updating(generator):
        assert policy.network is not None
        assert policy.network.module.training
        first = policy.unroll(frame, {}, starts, actions).values
    with policy.updating(torch.Generator().manual_seed(3)):
        again = policy.unroll(frame, {}, starts, actions).values
    with policy.updating(generator):
        other = policy.unroll(frame, {}, starts, actions).values
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(first, played)
    assert torch.equal(before, torch.random.get_rng_state())
    assert not policy.network.module.training


def test_a_recurrent_config_is_known_without_a_world() -> None:
    assert config("Recurrent").has_memory
    assert not config("Features").has_memory
    assert config("Features", {"recurrent": RecurrentConfig(size=4).model_dump()}).has_memory


def test_features_is_a_class_that_is_imported() -> None:
    assert user_module.find_network("own_networks.py:Features") is Features
