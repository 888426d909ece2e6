"""Canonical policies: mirrored views are turned and actions turned back: in torch, compiled, stacked and exported."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from ludus import make_env
from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.learner import PpoLearner
from ludus.core.errors import ConfigError
from ludus.envs.base import EnvSpec, StepResult
from ludus.policies.agent import build_policy
from ludus.policies.config import PolicyConfig
from ludus.policies.description import PolicyDescription
from ludus.policies.policy import Policy
from ludus.policies.stacked import StackedPolicy
from ludus.worlds.brawl.observation import FIELDS, MIRROR
from ludus.worlds.brawl.rules import Key

pytestmark = pytest.mark.train

ROWS, SIDE = 64, [field.name for field in FIELDS].index("world.high_side")
NETWORKS: dict[str, Any] = {"net_arch": {"pi": [24, 16], "vf": [16]}, "canonical": True}


@pytest.fixture(scope="module")
def spec() -> EnvSpec:
    with make_env("brawl") as env:
        return env.spec


def make_policy(spec: EnvSpec, **changes: Any) -> Policy:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        policy = Policy(spec, PolicyConfig.model_validate(NETWORKS | changes))
        with torch.no_grad():
            policy.head.linear.weight.mul_(100.0)  # keys depend on what is seen
    return policy


def draw_views(side: float | None = None) -> Tensor:
    """Returns views `(rows, size)` of one side, or of both in turn."""
    views = torch.randn(ROWS, len(FIELDS), generator=torch.Generator().manual_seed(4))
    views[:, SIDE] = torch.tensor([1.0, -1.0]).repeat(ROWS // 2) if side is None else side
    return views


def parameters(policy: Policy, views: Tensor) -> Tensor:
    starts = torch.zeros(1, ROWS, dtype=torch.bool)
    return policy.action_parameters({"vector": views[None]}, {}, starts)[0].detach()


def damage_dealt(result: StepResult) -> Tensor:
    return result.events["damage_dealt"]


def test_the_keys_of_a_mirrored_view_are_mirrored(spec: EnvSpec) -> None:
    policy = make_policy(spec)
    with torch.no_grad():
        for name in ("actor.layers.0.weight", "critic.layers.0.weight"):
            policy.get_parameter(name)[:, SIDE] = 0.0  # nothing but the view itself counts
    views = draw_views(1.0)
    images = MIRROR.observations["vector"].apply(views)
    found, mirrored = parameters(policy, views), parameters(policy, images)
    assert torch.equal(mirrored, found[:, MIRROR.actions.source])
    assert not torch.equal(mirrored[:, Key.LEFT], found[:, Key.LEFT])
    nobody = torch.zeros(ROWS, dtype=torch.bool)
    assert torch.equal(policy.value({"vector": views}, {}, nobody), policy.value({"vector": images}, {}, nobody))


def test_the_opponents_predicted_keys_are_turned_back(spec: EnvSpec) -> None:
    encoder = {"layers": 1, "heads": 2, "width": 8, "window": 3, "predict_actions": 1.0}
    canonical, plain = make_policy(spec, strategy=encoder), make_policy(spec, strategy=encoder, canonical=False)
    plain.load_state(canonical.state())
    views = draw_views(-1.0)
    turned = canonical.observations.flatten({"vector": views})["vector"]

    def predicted(policy: Policy, given: Tensor) -> Tensor:
        starts, actions = torch.ones(1, ROWS, dtype=torch.bool), torch.zeros(1, ROWS, *policy.head.action_shape)
        found = policy.unroll({"vector": given[None]}, policy.initial(ROWS), starts, actions).auxiliary
        return found["action_prediction"][0].detach()

    found, of_turned = predicted(canonical, views), predicted(plain, turned)
    assert torch.equal(found, of_turned[:, MIRROR.actions.source])
    assert not torch.equal(found, of_turned)


def test_a_view_from_the_usual_side_is_seen_as_it_is(spec: EnvSpec) -> None:
    canonical, plain = make_policy(spec), make_policy(spec, canonical=False)
    plain.load_state(canonical.state())
    assert torch.equal(parameters(canonical, draw_views(1.0)), parameters(plain, draw_views(1.0)))
    assert not torch.equal(parameters(canonical, draw_views(-1.0)), parameters(plain, draw_views(-1.0)))
    # The number that tells the side is not turned: what differs between the sides can be learned.
    flat = canonical.observations.flatten({"vector": draw_views()})["vector"]
    assert torch.equal(flat[:, SIDE], draw_views()[:, SIDE])
    assert torch.equal(flat[1::2, 0], -draw_views()[1::2, 0])


def test_statistics_are_those_of_turned_views(spec: EnvSpec) -> None:
    policy = make_policy(spec, normalize={"observations": True})
    views = draw_views(1.0)
    images = MIRROR.observations["vector"].apply(views)
    policy.observe({"vector": torch.stack((views, images))})
    means = policy.state()["normaliser.observations.normalisers.vector.mean"]
    torch.testing.assert_close(means[0], views[:, 0].double().mean().to(means.dtype))


@pytest.mark.parametrize("native", [True, False])
def test_rollouts_and_updates_agree_about_the_probability(spec: EnvSpec, native: bool) -> None:
    with make_env("brawl", 16, seed=1) as env:
        config = PpoConfig(n_steps=8, batch_size=128, n_epochs=1, native=native)
        learner = PpoLearner(env, make_policy(spec), config, seed=2, reward=damage_dealt)
        assert (learner.updater.native is not None) == native
        learner.collect()
        sides = learner.rollout.observations["vector"][..., SIDE]
        assert {float(side) for side in sides.flatten()} == {-1.0, 1.0}
        with torch.no_grad():
            rollout = learner.rollout
            found = learner.policy.unroll(rollout.observations, {}, rollout.episode_starts, rollout.actions)
        torch.testing.assert_close(found.log_probs, rollout.log_probs, atol=1e-5, rtol=1e-4)
        learner.update()
        assert learner.metrics()["ratio_error"] < 1e-4


def test_compiled_and_plain_learners_play_and_learn_alike(spec: EnvSpec) -> None:
    learned = []
    for native in (True, False):
        with make_env("brawl", 16, seed=1) as env:
            config = PpoConfig(n_steps=8, batch_size=64, n_epochs=2, native=native)
            learner = PpoLearner(env, make_policy(spec), config, seed=2, reward=damage_dealt)
            learner.iterate()
            learned.append((learner.rollout.actions.clone(), learner.policy.state()))
    assert torch.equal(learned[0][0], learned[1][0])
    for name, tensor in learned[0][1].items():
        torch.testing.assert_close(tensor, learned[1][1][name], atol=1e-5, rtol=1e-3, msg=name)


def test_snapshots_and_saved_agents_play_alike(spec: EnvSpec) -> None:
    policy, views, starts = make_policy(spec), {"vector": draw_views()}, torch.zeros(ROWS, dtype=torch.bool)
    expected = policy.step(views, {}, starts).actions
    stacked = StackedPolicy(policy, 2)
    stacked.load(1, policy.state())
    stacked.choose(torch.ones(ROWS, dtype=torch.int64))
    assert torch.equal(stacked.step(views, {}, starts).actions, expected)
    document = PolicyDescription.of(spec, policy.config).model_dump_json()
    again = build_policy(PolicyDescription.read(document), policy.state(), "cpu")
    assert torch.equal(again.step(views, {}, starts).actions, expected)


def test_onnx_files_turn_views_too(spec: EnvSpec, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    pytest.importorskip("onnxscript", reason="needs the extra onnx")
    from ludus.policies.agent import Agent
    from ludus.policies.export import write_onnx

    policy = make_policy(spec).eval()
    write_onnx(Agent(policy), tmp_path / "agent.onnx")
    session = onnxruntime.InferenceSession((tmp_path / "agent.onnx").read_bytes(), providers=["CPUExecutionProvider"])
    starts = torch.zeros(ROWS, dtype=torch.bool)
    given = {"observation.vector": draw_views().numpy(), "starts": starts.numpy()}
    names = {each.name for each in session.get_inputs()}
    actions, logits = session.run(["actions", "parameters"], {key: given[key] for key in given if key in names})
    assert torch.equal(torch.tensor(actions), policy.step({"vector": draw_views()}, {}, starts).actions)
    torch.testing.assert_close(torch.tensor(logits), parameters(policy, draw_views()), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("world", "word"), [("point", "side"), ("roshambo", "side")])
def test_worlds_that_do_not_tell_the_side_are_refused(world: str, word: str) -> None:
    with make_env(world) as env, pytest.raises(ConfigError, match=word):
        Policy(env.spec, PolicyConfig(canonical=True))


def test_a_policy_without_memory_is_made_without_torch_s_compiler() -> None:
    code = (
        "import sys, torch, ludus.training.resolve\n"
        "from ludus import make_env\n"
        "from ludus.policies.config import PolicyConfig\n"
        "from ludus.policies.policy import Policy\n"
        "config = PolicyConfig.model_validate({'canonical': True, 'recurrent': {'size': 32}})\n"
        "with torch.device('meta'):\n"
        "    Policy(make_env('brawl').spec, config, 'meta')\n"
        "print([name for name in ('sympy', 'triton', 'torch._dynamo', 'torch._inductor') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"  # they take seconds, and every run makes such a policy for its checks
