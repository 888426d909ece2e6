"""Agents in the browser build do what they do in Python: the same actions in whole matches, and the same read-out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks.browser_parity import state_hash
from tests.conftest import POLICY_KINDS
from tests.own_networks import Features
from tests.share.conftest import Game
from torch import Tensor

from ludus.core.errors import UnsupportedError
from ludus.envs.kernel_env import KernelEnv
from ludus.envs.registry import make_env
from ludus.nn.recurrent import RecurrentConfig
from ludus.nn.strategy import StrategyConfig
from ludus.policies.agent import Agent, build_policy
from ludus.policies.config import PolicyConfig
from ludus.policies.description import PolicyDescription
from ludus.policies.policy import Policy, part_of
from ludus.policies.user_module import register_network
from ludus.share import precision
from ludus.share.policy import FORMATS, check_supported, pack_policy, with_matrices
from ludus.share.program import capture_world
from ludus.share.wasm import compile_program

pytestmark = pytest.mark.compile

Games = Callable[[str], Game]
SEED = 7
BOTS = {"brawl": "aggressive", "rocket": "shooter"}
FULL = PolicyConfig(
    encoder=(24,),
    activation="silu",
    strategy=StrategyConfig(
        layers=2, heads=2, width=16, feedforward=32, window=17, pooling=8, latent=6, classify=0.5, block="opponent"
    ),
    recurrent=RecurrentConfig(size=16, skip=True, memory_feature_scale=0.3),
)
EVENTS = FULL.model_copy(
    update={
        "strategy": StrategyConfig(
            layers=2, heads=2, width=16, feedforward=32, window=9, pooling=8, latent=6, predict_actions=1.0,
            block=("self", "opponent"), events=("opponent.state_in_air",),
        )
    }
)  # fmt: skip
SHIPPED = (("champion", "brawl"), ("rookie", "brawl"), ("striker", "rocket"), ("novice", "rocket"))
KINDS = ("mlp-normalised", "lstm-separate", "streaming-lstm", "film-lstm")

_PLAY = """(engine, data, description, bot, frames, seed, uniforms) => {
  const policy = engine.addPolicy(data, description);
  engine.reset(seed);
  engine.setBot(0, bot);
  policy.reset(1);
  const parameters = [], readouts = [], actions = [];
  let hash = 0;
  for (let frame = 0; frame < frames; frame++) {
    engine.actBots();
    policy.act(1, uniforms ? { uniforms: uniforms[frame] } : { deterministic: true });
    parameters.push(Array.from(policy.parameters()));
    actions.push(Array.from(engine.actions.subarray(engine.actionSize)));
    const readout = policy.readout(1);
    readouts.push(readout && Array.from(readout.probabilities));
    engine.step();
    hash = engine.hash(hash);
  }
  return { hash, parameters, actions, readouts };
}"""


class Match:
    """A match in Python: the policy in seat 1 against a bot in seat 0."""

    def __init__(
        self, game: Game, policy: Policy, frames: int, noise: Tensor | None = None, *, seed: int = SEED
    ) -> None:
        program = game.program
        self.parameters: list[Tensor] = []
        self.actions: list[list[float]] = []
        self.readouts: list[Tensor] = []
        self.hash = 0
        hook = policy.head.register_forward_hook(lambda _module, _inputs, output: self.parameters.append(output[0]))
        with make_env(program.world, config=program.settings) as env:
            assert isinstance(env, KernelEnv)
            bots = env.bots(program.bots)
            assignment = torch.tensor([[program.bots.index(BOTS[env.spec.name]), -1]], dtype=torch.int32)
            observations = env.reset(seed=seed)
            actions = env.working_tensors()["actions"].clone()
            memory = policy.initial(1)
            for frame in range(frames):
                bots.act(assignment, actions)
                seen, starts = {"vector": observations["vector"][:, 1].clone()}, torch.tensor([frame == 0])
                if "recognition" in policy.auxiliary:
                    self.readouts.append(self._readout(policy, seen, memory, starts))
                step = policy.step(seen, memory, starts, None if noise is None else noise[frame : frame + 1])
                memory = step.memory
                actions[:, 1] = policy.clip_actions(step.actions).to(actions.dtype)
                self.actions.append(actions[0, 1].flatten().tolist())
                observations = env.step(actions).observations
                self.hash = state_hash(env, self.hash)
            self.memory = memory
        hook.remove()

    @staticmethod
    def _readout(policy: Policy, seen: Mapping[str, Tensor], memory: Mapping[str, Tensor], starts: Tensor) -> Tensor:
        assert policy.memory.strategy is not None
        before = {name: tensor.clone() for name, tensor in part_of(memory, "strategy").items()}
        latent, _ = policy.memory.strategy.step(policy.opponent_frames(seen), before, starts)
        logits: Tensor = policy.auxiliary["recognition"](latent, latent)
        return torch.softmax(logits, -1)[0]


def _drawn(game: Game, config: PolicyConfig) -> Policy:
    """Return an untrained policy whose actions depend on what it sees: all its parts have weights that matter."""
    with make_env(game.program.world, config=game.program.settings) as env, torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        policy = Policy(env.spec, config)
        with torch.no_grad():
            policy.head.linear.weight.mul_(100.0)
            for name, parameter in policy.named_parameters():
                if "bias" in name or "film" in name:
                    parameter.add_(0.05 * torch.randn_like(parameter))
        size = env.spec.observation_space["vector"].shape
        policy.observe({"vector": 1.0 + 2.0 * torch.randn(64, *(size or ()))})
        return policy.eval()


def _play(
    game: Game, policy: Policy, frames: int, uniforms: Sequence[Sequence[float]] | None = None, *, seed: int = SEED
) -> Any:
    packed = pack_policy(policy)
    bot = BOTS[game.program.world.partition("-")[0]]
    return game.node(_PLAY, packed.data, packed.description, bot, frames, seed, uniforms)


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize(("name", "world"), SHIPPED)
def test_shipped_agents_play_the_same_match(game: Games, name: str, world: str) -> None:
    policy = Agent.load(name).policy
    match, found = Match(game(world), policy, 600), _play(game(world), policy, 600)
    assert found["actions"] == match.actions
    assert found["hash"] == match.hash
    expected = torch.stack(match.parameters)
    assert torch.tensor(found["parameters"]).sub(expected).abs().max() < 1e-5 * expected.abs().max()


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize(("seed", "is_mirrored"), [(7, False), (9, True)])
def test_a_canonical_policy_turns_mirrored_views(game: Games, seed: int, is_mirrored: bool) -> None:
    policy = _drawn(game("brawl"), POLICY_KINDS["mlp-normalised"].model_copy(update={"canonical": True}))
    assert policy.canonical is not None
    with make_env("brawl") as env:
        seen = env.reset(seed=seed)["vector"][:, 1]
    assert policy.canonical.is_mirrored({"vector": seen}).tolist() == [is_mirrored]
    match, found = Match(game("brawl"), policy, 150, seed=seed), _play(game("brawl"), policy, 150, seed=seed)
    assert found["actions"] == match.actions
    assert found["hash"] == match.hash
    expected = torch.stack(match.parameters)
    expected = expected[:, policy.canonical.keys] if is_mirrored else expected
    assert torch.tensor(found["parameters"]).sub(expected).abs().max() < 1e-5


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_policy_plays_the_same_match(game: Games, kind: str) -> None:
    policy = _drawn(game("brawl"), POLICY_KINDS[kind])
    match, found = Match(game("brawl"), policy, 150), _play(game("brawl"), policy, 150)
    assert found["hash"] == match.hash
    expected = torch.stack(match.parameters)
    assert expected.std(0).max() > 0.01  # it depends on what is seen
    assert torch.tensor(found["parameters"]).sub(expected).abs().max() < 1e-5


@pytest.mark.usefixtures("node")
def test_the_readout_says_who_the_opponent_seems_to_be(game: Games) -> None:
    policy = _drawn(game("brawl"), FULL)
    match, found = Match(game("brawl"), policy, 120), _play(game("brawl"), policy, 120)
    assert found["hash"] == match.hash
    readouts = torch.tensor(found["readouts"])
    assert readouts.sub(torch.stack(match.readouts)).abs().max() < 1e-6
    assert readouts[0].sub(readouts[-1]).abs().max() > 1e-4  # it changes with what the opponent did
    assert pack_policy(policy).description["readout"]["classes"] == list(policy.spec.bots)  # type: ignore[index,call-overload]


@pytest.mark.usefixtures("node")
def test_an_encoder_of_events_keeps_the_same_ones(game: Games) -> None:
    policy = _drawn(game("brawl"), EVENTS)
    match, found = Match(game("brawl"), policy, 480), _play(game("brawl"), policy, 480)
    assert found["hash"] == match.hash
    assert torch.tensor(found["parameters"]).sub(torch.stack(match.parameters)).abs().max() < 1e-5
    kept = match.memory["strategy.position"].item()
    assert 9 < kept < 120  # more than the window, and by far not every frame


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize(("name", "world"), [("rookie", "brawl"), ("novice", "rocket")])
def test_sampled_actions_come_from_the_same_numbers(game: Games, name: str, world: str) -> None:
    policy = Agent.load(name).policy
    noise = policy.draw_noise(300, 1, torch.Generator().manual_seed(2)).squeeze(1)
    match, found = Match(game(world), policy, 300, noise), _play(game(world), policy, 300, noise.tolist())
    assert found["actions"] == match.actions
    assert found["hash"] == match.hash
    assert match.hash != Match(game(world), policy, 300).hash


@pytest.mark.usefixtures("node")
def test_two_seats_remember_apart(game: Games) -> None:
    """The memory of one seat does not change what the other does, and `reset` forgets."""
    policy = pack_policy(_drawn(game("brawl"), POLICY_KINDS["streaming-lstm"]))
    play = """(engine, data, description) => {
      const policy = engine.addPolicy(data, description), runs = [];
      for (const together of [false, true, false]) {
        engine.reset(3);
        policy.reset(0); policy.reset(1);
        for (let frame = 0; frame < 20; frame++) {
          if (together) policy.act(0, { deterministic: true });
          policy.act(1, { deterministic: true });
        }
        runs.push(Array.from(policy.parameters()));
      }
      return runs;
    }"""
    alone, together, again = game("brawl").node(play, policy.data, policy.description)
    assert alone == together == again


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("matrices", FORMATS)
def test_smaller_weights_are_what_they_are_measured_as(game: Games, matrices: Any) -> None:
    """Packed in a format, the browser computes what torch computes with weights of that precision."""
    policy = _drawn(game("brawl"), FULL)
    packed = pack_policy(policy, matrices)
    found = game("brawl").node(_PLAY, packed.data, packed.description, "aggressive", 3, 7, None)
    other = build_policy(PolicyDescription.of(policy.spec, FULL), with_matrices(policy, matrices), "cpu").eval()
    match = Match(game("brawl"), other, 3)
    assert torch.tensor(found["parameters"]).sub(torch.stack(match.parameters)).abs().max() < 1e-5
    sizes = {each: len(pack_policy(policy, each).data) for each in FORMATS}
    assert sizes["int8"] < sizes["bfloat16"] < sizes["float32"]


def test_int8_rows_have_scales_of_their_own() -> None:
    policy = Agent.load("rookie").policy
    weight = policy.get_parameter("actor.layers.0.weight").detach()
    found = with_matrices(policy, "int8")["parameter.actor.layers.0.weight"]
    step = weight.abs().amax(1, keepdim=True) / 127
    assert ((found - weight).abs() <= 0.5001 * step).all()
    assert torch.allclose(found / step, torch.round(found / step), atol=1e-3)


def test_the_loss_of_a_format_is_measured_on_real_matches() -> None:
    agent = Agent.load("rookie")
    observations, starts = precision.play_matches(agent)
    int8, bfloat16, float32 = (precision.measure(agent.policy, each, observations, starts) for each in FORMATS)
    assert (float32.changed, float32.probability) == (0.0, 0.0)
    assert 0.0 < bfloat16.probability < int8.probability < 0.05
    assert starts.numel() == int8.decisions == 4096


def test_small_agents_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent.load("rookie")
    assert precision.pack_agent(agent).description["precision"] == {
        "matrices": "float32", "decisions": 0, "changed": 0.0, "probability": 0.0
    }  # fmt: skip
    monkeypatch.setattr(precision, "LOSSLESS_BYTES", 1_000)
    chosen: Any = precision.pack_agent(agent).description["precision"]
    assert chosen["matrices"] in FORMATS
    assert chosen["changed"] <= precision.MAX_CHANGED
    assert chosen["probability"] <= precision.MAX_PROBABILITY


@pytest.mark.usefixtures("node")
def test_continuous_actions_keep_to_their_bounds(game: Games) -> None:
    """Means beyond the bounds are cut; noise is standard normal."""
    game("rocket")  # most of it is compiled then
    program = capture_world("rocket", {"actions": "continuous"})
    built = Game(program, compile_program(program))
    policy = _drawn(built, PolicyConfig(net_arch={"pi": (8,), "vf": (8,)}, log_std=-1.0))  # type: ignore[arg-type]
    noise = policy.draw_noise(100, 1, torch.Generator().manual_seed(2)).squeeze(1)
    match, found = Match(built, policy, 100, noise), _play(built, policy, 100, noise.tolist())
    actions = np.array(found["actions"])
    assert np.abs(actions - np.array(match.actions)).max() < 1e-5
    assert actions.min() == -1.0
    assert actions.max() == 1.0


def test_pictures_are_refused(make_arena: Callable[..., Any]) -> None:
    policy = Policy(make_arena(1, picture=True).spec, POLICY_KINDS["cnn"])
    with pytest.raises(UnsupportedError, match="picture"):
        check_supported(policy)


def test_a_network_of_the_users_own_is_refused(make_arena: Callable[..., Any]) -> None:
    policy = Policy(make_arena(1).spec, PolicyConfig(module=register_network(Features)))
    with pytest.raises(UnsupportedError, match=r"own_networks\.py:Features.*MLPs"):
        check_supported(policy)


def test_squashed_actions_are_refused() -> None:
    with make_env("mimic") as env:
        policy = Policy(env.spec, PolicyConfig(squash="stochastic"))
    with pytest.raises(UnsupportedError, match="SAC"):
        check_supported(policy)
