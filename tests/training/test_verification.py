"""Verification: a line for each check of runs of every kind, and each check provoked to fail once."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import torch
from torch import Tensor

from ludus.algorithms.algorithm import DryRun
from ludus.algorithms.ppo import algorithm as ppo_algorithm
from ludus.algorithms.ppo.algorithm import _counting_saved
from ludus.algorithms.ppo.learner import PpoLearner
from ludus.core.errors import ConfigError, DeviceError, LudusError, UnknownNameError, VerificationError
from ludus.envs.base import EnvRequest, Observations, StepResult
from ludus.envs.registry import register_env
from ludus.envs.tiny.two_player import DuelEnv
from ludus.nn.mlp import Mlp
from ludus.policies.agent import Agent
from ludus.policies.config import PolicyConfig
from ludus.rewards.step_info import StepInfo
from ludus.rewards.terms import reward_term
from ludus.training import estimates, preflight
from ludus.training.components import Components
from ludus.training.config import TrainConfig
from ludus.training.estimates import MemoryEstimate, estimate_memory, small_copy
from ludus.training.preflight import verify
from ludus.training.preset_advice import faster_preset
from ludus.training.resolve import describe_precision, learner_rows
from ludus.training.summary import summarise

pytestmark = pytest.mark.train

GIB = 1024**3
CHECKS = ["world", "players and rewards", "batch", "rollout", "gradients", "update", "checkpoint", "time", "memory"]


class BlindDuel(DuelEnv):
    """A duel that says it is seen as twelve numbers and shows eight."""

    def __init__(self, request: EnvRequest) -> None:
        super().__init__(request)
        self.spec = replace(self.spec, name="unseen")

    def _observe(self) -> Observations:
        return {"vector": super()._observe()["vector"][..., :4]}


class SmallDuel(DuelEnv):
    """A duel of which two games can be played at once, and which nobody wins."""

    def __init__(self, request: EnvRequest) -> None:
        super().__init__(request)
        self.spec = replace(self.spec, name="small-duel", max_envs=2, events=("reward",))

    def _advance(self, actions: Tensor) -> StepResult:
        result = super()._advance(actions)
        return replace(result, events={"reward": result.events["reward"]})


register_env("unseen-v1", BlindDuel)
register_env("small-duel-v1", SmallDuel)


@reward_term("duel", "verification-bad-shape")
def _bad_shape(info: StepInfo) -> Tensor:
    return info.events["reward"].sum()


@reward_term("duel", "verification-raises")
def _raises(info: StepInfo) -> Tensor:
    return info.events["reward"] * info.state_metrics["nonsense"]


@reward_term("duel", "verification-infinite")
def _infinite(info: StepInfo) -> Tensor:
    return info.events["reward"] / 0.0


def make_config(**changes: Any) -> TrainConfig:
    return TrainConfig.model_validate(
        {
            "world": {"name": "duel", "num_envs": 64},
            "ppo": {"n_steps": 32, "sequence_length": 16, "batch_size": 256},
            "opponents": {"rock": 1, "random": 3},
        }
        | changes
    )


def phases(**second: Any) -> list[dict[str, Any]]:
    first = {"name": "one", "opponents": {"rock": 1}, "promotion": {"win_rate": 0.9}}
    return [first, {"name": "two", "opponents": {"cycle": 1}} | second]


def titles(config: TrainConfig) -> list[str]:
    return [line.partition(":")[0] for line in verify(config)]


def failing(config: TrainConfig, kind: type[LudusError], match: str) -> list[str]:
    """Returns the checks that passed before one failed."""
    passed: list[str] = []
    with pytest.raises(kind, match=match):
        passed.extend(line.partition(":")[0] for line in verify(config))
    return passed


def test_every_kind_of_policy_passes_every_check(policy_kind: tuple[str, PolicyConfig]) -> None:
    assert titles(make_config(policy=policy_kind[1].model_dump())) == CHECKS


@pytest.mark.parametrize(
    "changes",
    [
        {"opponents": None},
        {"opponents": {"self": 1}},
        {"opponents": {"self": 7, "rock": 3}, "policy": {"recurrent": {"size": 8}}},
        {"opponents": None, "curriculum": phases()},
        {"world": {"name": "gym:CartPole-v1", "num_envs": 8}, "opponents": None},
        {"world": {"name": "point", "num_envs": 8}, "opponents": None,
         "policy": {"state_dependent_exploration": True}},
        {"world": {"name": "recall", "num_envs": 1}, "opponents": None, "policy": {"recurrent": {"size": 8}},
         "ppo": {"n_steps": 32, "sequence_length": 1, "batch_size": 16}},
    ],
)  # fmt: skip
def test_runs_of_all_kinds_pass(changes: dict[str, Any]) -> None:
    assert titles(make_config(**changes)) == CHECKS


def test_a_past_self_is_played_where_there_will_be_one() -> None:
    lines = list(verify(make_config(opponents={"self": 1, "rock": 1})))
    assert "one more against a past self" in lines[3]
    assert "past self" not in list(verify(make_config()))[3]


def test_a_device_that_is_not_here_is_refused() -> None:
    assert failing(make_config(world={"name": "duel", "device": "meta"}), DeviceError, "lives on cpu or cuda") == []


def test_wrong_spaces_and_too_many_games_are_refused() -> None:
    assert failing(make_config(world={"name": "unseen"}), VerificationError, r"unseen-v1 breaks.*\(4, 2, 4\).*8") == []
    assert failing(make_config(world={"name": "small-duel", "num_envs": 3}), ConfigError, "at most 2; use fewer") == []


def test_an_unknown_opponent_is_named_with_its_stage() -> None:
    passed = failing(
        make_config(opponents=None, curriculum=phases(opponents={"cycle": 1, "rokc": 1})),
        UnknownNameError,
        "opponent in phase 'two' 'rokc' .did you mean 'rock'",
    )
    assert passed == ["world"]
    failing(make_config(opponents={"rokc": 1}), UnknownNameError, "unknown opponent 'rokc'.*valid: rock, cycle")
    failing(make_config(world={"name": "point"}), ConfigError, "no opponent can play in it; leave")


def test_an_unknown_reward_term_is_named_with_its_stage() -> None:
    second = {"rewards": {"weights": {"reward": 1.0, "winns": 1.0}}}
    failing(
        make_config(opponents=None, curriculum=phases(**second)),
        UnknownNameError,
        "reward term of duel in phase 'two' 'winns' .did you mean 'wins'",
    )
    failing(make_config(rewards={"weights": {"winns": 1.0}}), UnknownNameError, "unknown reward term of duel 'winns'")


def test_rules_that_could_never_hold_are_refused() -> None:
    absent = [{"name": "one", "opponents": {"rock": 1}, "promotion": {"win_rate": 0.9, "against": ["cycle"]}},
              {"name": "two", "opponents": {"cycle": 1}}]  # fmt: skip
    failing(make_config(opponents=None, curriculum=absent), ConfigError, "phase 'one': its promotion .* cycle, who")
    world = {"name": "small-duel", "num_envs": 2}
    failing(make_config(world=world, opponents=None, curriculum=phases()), ConfigError, "no event 'wins'")


def test_an_unknown_opponent_of_the_evaluation_is_refused() -> None:
    evaluation = {"opponents": ["rock", "nobody"]}
    assert failing(make_config(evaluation=evaluation), ConfigError, "unknown player 'nobody'") == ["world"]


@pytest.mark.parametrize(
    ("ppo", "message"),
    [
        ({"n_steps": 32, "batch_size": 300}, "batch_size 300 must divide the rollout's 32 steps x 64 rows = 2048"),
        ({"n_steps": 30, "sequence_length": 16, "batch_size": 64}, "sequence_length 16 must divide n_steps 30"),
    ],
)
def test_a_batch_that_does_not_divide_is_refused(ppo: dict[str, int], message: str) -> None:
    config = make_config(ppo=ppo, policy={"recurrent": {"size": 8}} if "sequence_length" in ppo else {})
    assert failing(config, ConfigError, message) == CHECKS[:2]


@pytest.mark.parametrize(
    ("term", "kind", "message"),
    [
        ("verification-bad-shape", ConfigError, "gave shape"),
        (
            "verification-raises",
            VerificationError,
            r"making a small copy of the run failed: KeyError: 'nonsense' \(.*test_verification\.py:\d+\); ",
        ),
        ("verification-infinite", VerificationError, "NaN or Inf in .*first seen in the reward"),
    ],
)
def test_a_reward_term_that_fails_is_found(term: str, kind: type[LudusError], message: str) -> None:
    assert failing(make_config(rewards={"weights": {term: 1.0}}), kind, message) == CHECKS[:3]


def test_parameters_that_get_no_gradient_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Mlp.forward

    def cut_off(self: Mlp, features: Tensor, film: Tensor | None = None) -> Tensor:
        return plain(self, features, film).detach()

    monkeypatch.setattr(Mlp, "forward", cut_off)
    passed = failing(make_config(), VerificationError, r"8 of 12 parameters get no gradient: actor\.")
    assert passed == CHECKS[:4]


def test_gradients_that_are_not_finite_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def overflowing(advantages: Tensor) -> Tensor:
        return torch.full_like(advantages, torch.inf)

    monkeypatch.setattr(ppo_algorithm, "normalise_advantages", overflowing)
    assert failing(make_config(), VerificationError, "gradient with NaN or Inf") == CHECKS[:4]


def test_an_agent_that_comes_back_different_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    load = Agent.load

    def damaged(path: Path, device: torch.device, **limits: Any) -> Agent:
        agent = load(path, device, **limits)
        with torch.no_grad():
            agent.policy.value_head.bias.add_(1.0)
        return agent

    monkeypatch.setattr(Agent, "load", damaged)
    passed = failing(make_config(), VerificationError, "other numbers in parameter.value_head.bias")
    assert passed == CHECKS[:6]


def test_a_disk_that_cannot_be_written_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(preflight, "save_checkpoint", full)
    assert failing(make_config(), VerificationError, "saving and loading the agent failed.*No space") == CHECKS[:6]


def test_too_little_memory_is_found_before_the_run_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=GIB // 16))
    passed = failing(
        make_config(), VerificationError, "needs about .* GiB and there are 0.06 GiB of the machine.*league.keep"
    )
    assert passed == CHECKS[:7]


def test_the_guards_limit_counts_too() -> None:
    failing(make_config(guard={"memory_gib": 0.01}), VerificationError, "0.01 GiB that guard.memory_gib allows")


def test_a_policy_that_is_too_large_is_found_before_its_weights_are_drawn() -> None:
    layers = {"net_arch": {"pi": [2**16] * 64}}  # 270 billion weights
    failing(make_config(policy=layers), VerificationError, "parameters and optimiser")


def test_a_huge_run_is_refused_without_being_made() -> None:
    config = make_config(world={"name": "duel", "num_envs": 2**30}, ppo={"n_steps": 512, "batch_size": 2**20})
    assert failing(config, VerificationError, "the run needs about .*rollout") == CHECKS[:7]


def estimate(config: TrainConfig, activations: int = 0) -> MemoryEstimate:
    with Components(config) as env:
        spec = env.env.spec
    with Components(small_copy(config, spec)) as components:
        components.learner.collect()
        return estimate_memory(config, components, DryRun(activation_bytes=activations))


def bytes_of(components: Components) -> dict[str, int]:
    """Counts what a real bench takes."""
    learner = components.learner
    assert isinstance(learner, PpoLearner)
    buffer, optimiser = components.buffer, learner.updater.optimiser
    numbers = ("rewards", "bootstraps", "log_probs", "values", "advantages", "returns")
    rollout = [buffer.actions, buffer.episode_starts, buffer.dones, *(getattr(buffer, name) for name in numbers)]
    parts: dict[str, list[Tensor]] = {
        "rollout": [*rollout, *buffer.observations.values(), *buffer.memory.values()],
        "memories": list(components.policy.initial(buffer.rows).values()),
        "parameters and optimiser": [*optimiser.tensors(), optimiser.gradient],
    }
    counts = {name: sum(tensor.nbytes for tensor in tensors) for name, tensors in parts.items()}
    return counts | {"trace": components.trace.memory_bytes()}


STRATEGY = {"layers": 1, "heads": 2, "width": 8, "window": 5}


@pytest.mark.parametrize("policy", [{}, {"recurrent": {"size": 8}}, {"strategy": STRATEGY}])
def test_the_estimate_is_what_a_run_of_full_size_takes(policy: dict[str, Any]) -> None:
    config = make_config(policy=policy)
    found = estimate(config).parts
    with Components(config) as components:
        real = bytes_of(components)
    assert {name: found[name] for name in real} == pytest.approx(real, rel=1e-3)


def test_snapshots_opponents_and_evaluation_count() -> None:
    policy = {"recurrent": {"size": 8}}
    plain = estimate(make_config(policy=policy)).parts
    assert plain["snapshots"] == plain["opponents' memories"] == plain["evaluation"] == 0
    league = {"keep": 100}
    evaluation = {"matches": 10, "opponents": ["rock", "cycle"]}
    config = make_config(policy=policy, opponents={"self": 1}, league=league, evaluation=evaluation)
    full = estimate(config).parts
    assert full["snapshots"] == pytest.approx(100 * plain["parameters and optimiser"] / 4, rel=1e-3)
    assert full["opponents' memories"] == full["memories"] == 64 * 2 * 8 * 4
    assert full["evaluation"] == pytest.approx(20 * (full["games"] / 64 + 2 * 2 * 8 * 4))


def test_activations_scale_with_the_minibatch() -> None:
    config = make_config()  # its copy has 8 steps x 4 rows
    assert estimate(config, 32 * 100).parts["minibatch"] - estimate(config).parts["minibatch"] == 256 * 100


def test_what_autograd_keeps_is_counted_once_and_without_parameters() -> None:
    weight = torch.ones(3, 4, requires_grad=True)
    inputs = torch.ones(5, 3)
    with _counting_saved([weight]) as saved:
        torch.exp(inputs @ weight)
    assert saved == [4 * (5 * 3 + 5 * 4)], "the inputs, and the exponentials"


@pytest.mark.parametrize(("opponents", "rows"), [(None, 128), ({"rock": 1}, 64)])
def test_rows_that_learn(opponents: dict[str, float] | None, rows: int) -> None:
    config = make_config(opponents=opponents)
    with Components(config) as components:
        assert learner_rows(config, components.env.spec) == components.learner.rows.count == rows


def test_an_estimate_reads_by_size() -> None:
    text = str(MemoryEstimate({"small": 1, "rollout": GIB, "games": GIB // 32, "trace": 2 * GIB}))
    assert text == "trace 2.00 GiB, rollout 1.00 GiB, the rest 32.0 MiB"


def test_a_summary_says_what_the_run_is(tmp_path: Path) -> None:
    config = make_config(
        opponents={"rock": 1, "self": 3},
        ppo={
            "n_steps": 32,
            "sequence_length": 16,
            "batch_size": 256,
            "learning_rate": {"kind": "linear", "start": 1e-3, "end": 0},
        },
        policy={"recurrent": {"size": 8}, "bfloat16": True},
        evaluation={"matches": 20, "every_env_steps": 5000},
        checkpoints={"every_env_steps": 10_000, "keep": 7},
    )
    text = "\n".join(summarise(config, tmp_path, "alice"))
    with Components(config) as components:
        count = sum(parameter.numel() for parameter in components.policy.parameters())
    for part in (
        "user alice", str(tmp_path), "device cpu", "thread", "precision float32", "64 games of duel-v1",
        f"{count:,} parameters", "LSTM of 8", "32 steps x 64 rows = 2,048 env steps", "minibatches of 256", "10 epochs",
        "learning rate linear start 0.001 end 0", "checkpoint every 10,000 env steps, 7 kept",
        "evaluation every 5,000 env steps, 20 matches against every bot", "opponents rock 25%, self 75%",
    ):  # fmt: skip
        assert part in text
    curriculum = "\n".join(summarise(make_config(opponents=None, curriculum=phases()), None, ""))
    assert "phase 1 one: rock 100%\nphase 2 two: cycle 100%" in curriculum
    assert "user not named, run folder not made yet" in curriculum
    assert "no evaluation" in curriculum


@pytest.mark.parametrize(("budget_s", "short_s", "games"), [(0.0, 0.0, 4), (1e9, 0.0, 64), (1e9, 1e9, 4)])
def test_the_speed_is_measured_in_as_many_games_as_there_is_time_and_need_for(
    monkeypatch: pytest.MonkeyPatch, budget_s: float, short_s: float, games: int
) -> None:
    monkeypatch.setattr(estimates, "_BUDGET_S", budget_s)
    monkeypatch.setattr(estimates, "_SHORT_S", short_s)
    config = make_config(total_env_steps=1000)
    [line] = [line for line in verify(config, 400) if line.startswith("time: about ")]
    assert "for 600 env steps at " in line
    assert f"measured in {games} of 64 games" in line


@pytest.mark.parametrize("is_long", [False, True])
def test_a_run_that_takes_very_long_is_warned_of(caplog: pytest.LogCaptureFixture, is_long: bool) -> None:
    lines = list(verify(make_config(total_env_steps=10**12 if is_long else 1000)))
    assert any(line.startswith("time: about ") for line in lines)
    warned = [record.getMessage() for record in caplog.records]
    assert [text.startswith("[WARN] training takes about ") for text in warned] == [True] * is_long
    assert all("total_env_steps" in text and "cuda" in text for text in warned)


def test_a_run_that_takes_very_long_names_a_preset_that_does_not(caplog: pytest.LogCaptureFixture) -> None:
    world = {"name": "gym:CartPole-v1", "num_envs": 8}
    list(verify(make_config(world=world, opponents=None, total_env_steps=10**12)))
    [warned] = [record.getMessage() for record in caplog.records if "training takes" in record.getMessage()]
    assert "or --preset CartPole, which takes about " in warned


def test_a_preset_that_saves_little_is_no_advice() -> None:
    config = make_config(world={"name": "gym:CartPole-v1", "num_envs": 8}, opponents=None)
    assert faster_preset(config, needed_s=1e-3) is None
    assert faster_preset(make_config(), needed_s=1e12) is None, "duel has no presets"


def test_the_summary_says_what_is_computed_on_a_cpu() -> None:
    said = "\n".join(summarise(make_config(policy={"bfloat16": True}), None, ""))
    assert "precision float32 (policy.bfloat16 applies to CUDA devices alone)" in said
    assert "bfloat16 products" not in said
    assert describe_precision("cuda", bfloat16=True) == "bfloat16, TF32 in the last layers"
