"""Overlapping iterations: each update learns from the rollout before; exact resume, faults, and what is refused."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from ludus import make_env
from ludus.algorithms.algorithm import DryRun, find_algorithm
from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.learner import PpoLearner
from ludus.algorithms.ppo.overlap import PlayingPolicy, WaitingRollout
from ludus.core.errors import ConfigError, ConfigMismatchError, StateError
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.store import load_checkpoint
from ludus.training import BaseCallback, Counters, Iteration, TrainConfig, Trainer, train
from ludus.training.components import Components
from ludus.training.distributed import Process
from ludus.training.estimates import estimate_memory, small_copy
from ludus.training.preflight import verify
from ludus.training.run_folder import fork_run

NORMALISED = {"normalize": {"observations": True, "returns": True}}
KINDS: dict[str, dict[str, Any]] = {
    "mlp": NORMALISED,
    "lstm": {"recurrent": {"size": 8}},
    "strategy": {
        "strategy": {"layers": 1, "heads": 2, "width": 8, "window": 5, "predict_actions": 0.5, "classify": 0.5},
        "recurrent": {"kind": "gru", "size": 8},
    },
    "exploring": {"exploration": {"frequency": {"kind": "linear", "start": 0.5, "end": 0.1}}},
}
STEPS, GAMES, ITERATIONS = 16, 6, 4
PER_ITERATION = STEPS * GAMES


def make_config(kind: str = "mlp", **changes: Any) -> TrainConfig:
    ppo = {"n_steps": STEPS, "sequence_length": 8, "batch_size": 48, "n_epochs": 2, "learning_rate": 1e-3}
    settings = {
        "world": {"name": "duel", "num_envs": GAMES, "device": "cpu"},
        "total_env_steps": ITERATIONS * PER_ITERATION,
        "policy": {"net_arch": {"pi": [16], "vf": [16]}, **KINDS[kind]},
        "opponents": {"rock": 1, "random": 3},
        "checkpoints": {"every_iterations": 1},
    }
    if kind == "exploring":
        settings["world"] = {"name": "dig", "num_envs": GAMES, "device": "cpu"}
        settings["opponents"] = None
    changed = ppo | {"overlap": True} | changes.pop("ppo", {})
    return TrainConfig.model_validate(settings | {"ppo": changed} | changes)


def learner_of(components: Components) -> PpoLearner:
    assert isinstance(components.learner, PpoLearner)
    return components.learner


def assert_equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert set(one) == set(other)
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name


def by_hand(components: Components, count: int) -> list[dict[str, Tensor]]:
    """Play and update with the parts of a learner that does not overlap; return the policy after every iteration."""
    learner = learner_of(components)
    buffer, policies = learner.collector.buffer, []
    before = buffer.make_another(learner.policy)
    for number in range(count):
        progress = number / count
        learner.policy.explore(learner.exploration, progress)
        learner.collector.collect(learner._generator)
        if number > 0:
            learner.updater.update(before, progress, learner._generator)
            learner.policy.observe(before.observations)
        before.copy_(buffer)
        policies.append(learner.policy.state())
    return policies


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("kind", list(KINDS))
def test_each_update_learns_from_the_rollout_before(kind: str, native: bool) -> None:
    with Components(make_config(kind, ppo={"native": native})) as components:
        learner, first = learner_of(components), components.policy.state()
        seen = []
        for number in range(ITERATIONS):
            metrics = learner.iterate(number / ITERATIONS)
            assert metrics["updates"] == (4 if number else 0)
            assert metrics["skipped_updates"] == 0
            seen.append(components.policy.state())
    parameters = [name for name in first if name.startswith("parameter.")]
    assert all(torch.equal(first[name], seen[0][name]) for name in parameters)
    assert not all(torch.equal(first[name], seen[1][name]) for name in parameters)
    with Components(make_config(kind, ppo={"native": native, "overlap": False})) as components:
        for state, expected in zip(seen, by_hand(components, ITERATIONS), strict=True):
            assert_equal(state, expected)


def test_the_first_ratios_are_those_to_weights_one_update_older() -> None:
    with Components(make_config("lstm", ppo={"batch_size": PER_ITERATION, "n_epochs": 1})) as components:
        learner = learner_of(components)
        errors = [learner.iterate()["ratio_error"] for _ in range(3)]
    assert math.isnan(errors[0])
    assert errors[1] < 1e-5  # its rollout was played before anything was learned
    assert errors[2] > 1e-4


def test_where_nothing_is_learned_no_metric_says_that_it_was() -> None:
    rate = {"kind": "kl_adaptive", "start": 3e-3, "target": 0.01}
    with Components(make_config("lstm", ppo={"learning_rate": rate})) as components:
        learner = learner_of(components)
        metrics, judged = learner.iterate(), learner.loss_names
        assert judged == ()
        assert learner.updater.adaptive_rate == 3e-3
        assert metrics["learning_rate"] == pytest.approx(3e-3)
        for name in ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction", "ratio_error"):
            assert math.isnan(metrics[name])
        assert metrics["gradient_norm"] == metrics["updates"] == 0.0
        assert math.isfinite(metrics["explained_variance"])
        metrics = learner.iterate()
        assert set(learner.loss_names) == {"policy_loss", "value_loss", "entropy"}
        assert all(math.isfinite(metrics[name]) for name in learner.loss_names)
        assert learner.updater.adaptive_rate != 3e-3


def test_images_have_the_probabilities_of_the_weights_that_played() -> None:
    env = make_env("point", GAMES, seed=2, config={"step_limit": 7})
    torch.manual_seed(0)
    policy = Policy(env.spec, PolicyConfig.model_validate({"net_arch": {"pi": [16], "vf": [16]}} | NORMALISED))
    settings = {"n_steps": STEPS, "batch_size": 48, "n_epochs": 2, "learning_rate": 1e-3}
    ppo = PpoConfig.model_validate(settings | {"symmetry_augmentation": True, "overlap": True})
    learner = PpoLearner(env, policy, ppo, seed=4)
    learner.iterate()
    played = {name: tensor.clone() for name, tensor in policy.named_parameters()}
    scales = [buffer.clone() for buffer in policy.buffers()]
    learner.iterate()
    waiting = learner._waiting
    assert waiting is not None
    assert waiting.buffer.rows == 2 * GAMES
    assert learner.iterations == 2
    with torch.no_grad():
        for name, tensor in policy.named_parameters():
            assert not torch.equal(tensor, played[name]) or "log_std" in name
            tensor.copy_(played[name])
        for buffer, value in zip(policy.buffers(), scales, strict=True):
            buffer.copy_(value)
        rows = slice(GAMES, None)
        seen = {name: tensor[:, rows] for name, tensor in waiting.buffer.observations.items()}
        found = policy.unroll(seen, {}, waiting.buffer.episode_starts[:, rows], waiting.buffer.actions[:, rows])
    torch.testing.assert_close(waiting.buffer.log_probs[:, rows], found.log_probs)
    torch.testing.assert_close(waiting.buffer.values[:, rows], found.values)


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_copy_of_the_policy_plays_like_it(kind: str) -> None:
    with Components(make_config(kind)) as components:
        learner = learner_of(components)
        for number in range(2):
            learner.iterate(number / 2)
        original, buffer = components.policy, learner.collector.buffer
        state = torch.get_rng_state()
        player = PlayingPolicy(original, is_compiled=False)
        assert torch.equal(torch.get_rng_state(), state)  # nothing is drawn from the numbers of the run
        player.refresh()
        batch = buffer.minibatch(torch.arange(buffer.segments))
        with player.playing(), torch.no_grad():
            one, other = (
                policy.unroll(batch.observations, batch.memory, batch.episode_starts, batch.actions)
                for policy in (original, player.policy)
            )
        player.join()
        assert torch.equal(one.log_probs, other.log_probs)
        assert torch.equal(one.values, other.values)
        assert player.policy.returns is original.returns
        shared = {tensor.data_ptr() for tensor in player.policy.parameters()}
        assert not shared & {tensor.data_ptr() for tensor in original.parameters()}
        before = {name: tensor.clone() for name, tensor in player.policy.named_parameters()}
        learner.iterate(0.5)
        assert_equal(before, dict(player.policy.named_parameters()))
        player.refresh()
        assert_equal(dict(original.named_parameters()), dict(player.policy.named_parameters()))


def test_it_learns() -> None:
    """The identity world of `test_learns.py` in as many iterations as without overlap."""
    torch.manual_seed(0)
    env = make_env("identity-v1", 32)
    ppo = {"n_steps": 32, "batch_size": 256, "n_epochs": 4, "learning_rate": 2e-3, "ent_coef": 0.01, "overlap": True}
    learner = PpoLearner(env, Policy(env.spec, PolicyConfig()), PpoConfig.model_validate(ppo))
    assert max(learner.iterate(i / 40)["episode_return"] for i in range(40)) > 3.8


@pytest.mark.parametrize("kind", ["lstm", "exploring"])
def test_a_copy_plays_with_the_weights_from_before_the_update(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a CUDA device does at once, in the order in which the host gives it: first the update, then the rollout."""
    settings = make_config(kind, ppo={"native": False})
    with monkeypatch.context() as patched, Components(settings) as components:
        del components.learner
        patched.setattr(
            "ludus.algorithms.ppo.learner.make_player", lambda policy, _: PlayingPolicy(policy, is_compiled=False)
        )
        components._make_players(None)
        learner, seen = learner_of(components), []
        for number in range(ITERATIONS):
            assert learner.iterate(number / ITERATIONS)["updates"] == (4 if number else 0)
            seen.append((components.policy.state(), learner.collector.buffer.log_probs.clone()))
    with Components(make_config(kind, ppo={"native": False, "overlap": False})) as components:
        del components.learner
        components._make_players(None)
        learner, policy = learner_of(components), components.policy
        before = learner.collector.buffer.make_another(policy)
        for number, (state, log_probs) in enumerate(seen):
            policy.explore(learner.exploration, number / ITERATIONS)
            old = policy.state()
            if number:
                learner.updater.update(before, number / ITERATIONS, learner._generator)
            new = policy.state()
            policy.load_state(old)
            learner.collector.collect(learner._generator)
            policy.load_state(new)
            before.copy_(learner.collector.buffer)
            assert torch.equal(before.log_probs, log_probs)
            assert_equal(new, state)


class Stop(BaseCallback):
    """Stops a run after some iterations."""

    def __init__(self, after: int) -> None:
        self._after = after

    def on_iteration(self, iteration: Iteration) -> None:
        if iteration.counters.iterations == self._after:
            self.trainer.stop()


def assert_same_checkpoints(one: Path, other: Path) -> None:
    first, second = (load_checkpoint(folder / "checkpoints" / "final") for folder in (one, other))
    assert first.documents == second.documents
    assert set(first.tensors) == set(second.tensors)
    for group, tensors in first.tensors.items():
        assert_equal(dict(tensors), dict(second.tensors[group]))


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("after", [1, 3])
def test_a_run_that_was_stopped_and_goes_on_equals_one_that_was_not(tmp_path: Path, kind: str, after: int) -> None:
    config = make_config(kind)
    train(config, tmp_path / "straight")
    with Trainer(config, tmp_path / "stopped", [Stop(after)]) as trainer:
        assert trainer.run().iterations == after
    train(config, tmp_path / "stopped")
    assert_same_checkpoints(tmp_path / "straight", tmp_path / "stopped")
    tensors = load_checkpoint(tmp_path / "straight" / "checkpoints" / "final").tensors
    assert tensors["waiting"]["actions"].shape[:2] == (STEPS, GAMES)
    assert not load_checkpoint(tmp_path / "straight" / "checkpoints" / "init").tensors["waiting"]["filled"]
    lines = [json.loads(line) for line in (tmp_path / "stopped" / "metrics.jsonl").read_text().splitlines()]
    assert [line["policy_loss"] is None for line in lines] == [True, False, False, False]


@pytest.mark.parametrize("overlap", [True, False])
def test_a_fork_switches_it(tmp_path: Path, overlap: bool) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    before = make_config("lstm", ppo={"overlap": not overlap})
    with Trainer(before, source, [Stop(2)]) as trainer:
        assert trainer.run().iterations == 2
    after = make_config("lstm", ppo={"overlap": overlap})
    with pytest.raises(ConfigMismatchError, match=r"ppo.overlap: "):
        train(after, source)
    fork_run(source, target, after)
    assert train(after, target).updates == 12  # of four iterations, one learned nothing: the first that overlapped
    assert ("waiting" in load_checkpoint(target / "checkpoints" / "final").tensors) == overlap


class Saboteur(BaseCallback):
    """Loses a parameter after the second iteration, and notes the rollouts that wait when iterations begin."""

    def __init__(self) -> None:
        self.waiting: list[dict[str, Tensor]] = []

    def on_rollout_start(self, counters: Counters) -> None:
        self.waiting.append(learner_of(self.trainer.components).state()[0]["waiting"])

    def on_iteration(self, iteration: Iteration) -> None:
        if iteration.counters.iterations == 2:
            self.trainer.components.policy.value_head.bias.data.fill_(math.nan)


def test_a_fault_brings_the_waiting_rollout_back(tmp_path: Path) -> None:
    saboteur = Saboteur()
    with Trainer(make_config(), tmp_path, [saboteur]) as trainer:
        assert trainer.run().iterations == ITERATIONS
        assert trainer.rollbacks == 1
    waiting = saboteur.waiting
    assert len(waiting) == ITERATIONS + 1
    assert [bool(state["filled"]) for state in waiting] == [False, True, True, True, True]
    assert_equal(waiting[2], waiting[3])  # the third iteration and its repetition
    assert not torch.equal(waiting[3]["log_probs"], waiting[4]["log_probs"])


def test_a_rollout_of_other_games_is_not_learned_from() -> None:
    phases = [
        {"name": "few", "opponents": {"rock": 1}, "promotion": {"after_env_steps": 2 * PER_ITERATION}},
        {"name": "more", "opponents": {"rock": 1}, "world": {"num_envs": 2 * GAMES}},
    ]
    ppo = {"n_minibatches": 2}
    with Components(make_config(opponents=None, curriculum=phases, ppo=ppo)) as components:
        for _ in range(2):
            components.learner.iterate()
        components.begin_phase(1, components.env_steps)
        learner = learner_of(components)
        assert learner.collector.buffer.rows == 2 * GAMES
        assert [learner.iterate()["updates"] for _ in range(2)] == [0, 4]


def test_without_it_nothing_waits() -> None:
    with Components(make_config(ppo={"overlap": False})) as components:
        learner = learner_of(components)
        assert learner.iterate()["updates"] == 4
        assert learner.groups == tuple(learner.state()[0]) == ("policy", "optimiser", "collector", "random")


def test_runs_pass_every_check_and_are_described() -> None:
    config = make_config("lstm")
    assert [line for line in verify(config) if line.startswith("update: policy loss")]
    assert "learned from while the next is collected" in config.method.summary(config.hyperparameters, GAMES)


def test_several_processes_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"ppo.overlap is true, but the run has 2 processes; set it to false"):
        Process(0, 2, 0).share(make_config())
    assert Process(0, 2, 0).share(make_config(ppo={"overlap": False})).world.num_envs == GAMES // 2


@pytest.mark.parametrize("mirrored", [False, True])
def test_the_memory_of_the_waiting_rollout_counts(mirrored: bool) -> None:
    ppo = {"symmetry_augmentation": mirrored}
    world = {"name": "point", "num_envs": GAMES, "device": "cpu"}
    found = []
    for overlap in (False, True):
        config = make_config(world=world, opponents=None, ppo=ppo | {"overlap": overlap})
        with Components(config) as components:
            spec = components.env.spec
        with Components(small_copy(config, spec)) as components:
            components.learner.collect()
            memory = find_algorithm("ppo").memory(config.hyperparameters, components.learner, GAMES, DryRun())
            found.append((memory, estimate_memory(config, components, DryRun()).total))
    (plain, plain_total), (memory, total) = found
    waiting = memory.parts["waiting rollout"]
    assert plain.parts["waiting rollout"] == 0
    assert waiting == memory.parts["rollout"] * (2 if mirrored else 1) > 0
    assert memory.state - plain.state == waiting
    assert total - plain_total == 4 * waiting  # itself, two states to go back to, and the copy that is written


def wrong_states(state: dict[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    without = {name: tensor for name, tensor in state.items() if name != "log_probs"}
    actions = state["actions"].clone()
    actions.view(-1)[0] = 7
    return {
        "'log_probs' is missing": without,
        "'filled' is missing": {name: tensor for name, tensor in state.items() if name != "filled"},
        "'actions' is 7; valid: 0 to 2": state | {"actions": actions},
        "'values' is": state | {"values": state["values"][1:]},
        "'actions' is unknown": {"filled": torch.tensor(False), "actions": actions},
        "'bots' is 99": state | {"bots": torch.full_like(state["bots"], 99)},
    }


def test_states_that_do_not_fit_are_refused() -> None:
    with Components(make_config("strategy")) as components:
        learner = learner_of(components)
        learner.iterate()
        groups, counters = learner.state()
        learner.load_state(groups, counters, components.env.restore(components.env.snapshot()))
        for message, state in wrong_states(groups["waiting"]).items():
            with pytest.raises(StateError, match=message):
                learner.load_state({**groups, "waiting": state}, counters, {})


def test_a_rollout_from_a_device_that_keeps_bfloat16_is_taken() -> None:
    with Components(make_config()) as components:
        learner = learner_of(components)
        learner.iterate()
        state = learner.state()[0]["waiting"]
        other = WaitingRollout(components.policy, learner.collector.buffer)
        seen = next(name for name in state if name.startswith("observations."))
        other.load_state(state | {seen: state[seen].bfloat16()})
        assert other.buffer.tensors()[seen].dtype == torch.float32
        assert torch.equal(other.buffer.tensors()[seen], state[seen].bfloat16().float())
