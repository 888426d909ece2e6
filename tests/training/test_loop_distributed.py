"""The loop on two processes: one run, one writer, common decisions; stop and go on; no process is left waiting."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from ludus.core.errors import ConfigError, ConfigMismatchError, RankError, UnsupportedError
from ludus.envs.base import EnvRequest, StepResult
from ludus.envs.registry import register_env
from ludus.envs.tiny.two_player import DuelEnv
from ludus.policies.agent import Agent
from ludus.policies.policy import with_prefix
from ludus.store import load_checkpoint
from ludus.training import BaseCallback, Counters, Iteration, TrainConfig, Trainer, train
from ludus.training.components import Components
from ludus.training.distributed import Process
from ludus.training.resolve import resolve

pytestmark = pytest.mark.train

STEPS, GAMES, ITERATIONS = 8, 4, 6
PER_ITERATION = STEPS * GAMES
SCENARIOS = ("stopped", "resumed", "lost", "told", "saving", "reward", "staged", "staged-stopped", "staged-resumed")
# One against one, then pairs with mirrored games; 4 and 6 rows a process.
STAGES: list[dict[str, Any]] = [
    {"name": "1v1", "opponents": {"self": 1}, "promotion": {"after_env_steps": 1}},
    {
        "name": "2v2",
        "opponents": {"mirror": 1, "self": 1},
        "world": {"num_envs": 4, "settings": {"blue": 2, "orange": 2}},
        "promotion": {"after_env_steps": 150},
    },
    {"name": "1v2", "opponents": {"mirror": 1, "random": 1}, "world": {"settings": {"orange": 2}}},
]

Hook = Callable[[int, StepResult], None]


class HookedDuel(DuelEnv):
    """A duel in which a hook sees every step, counted from 1."""

    hook: Hook | None = None

    def __init__(self, request: EnvRequest) -> None:
        super().__init__(request)
        self._calls = 0

    def step(self, actions: Tensor) -> StepResult:
        result = super().step(actions)
        self._calls += 1
        if HookedDuel.hook is not None:
            HookedDuel.hook(self._calls, result)
        return result


register_env("hooked-v1", HookedDuel)


class Recorder(BaseCallback):
    """Writes down what it is told; does something after the second iteration."""

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        self.told: list[str] = []
        self._then = then

    def on_iteration(self, iteration: Iteration) -> None:
        self.told.append(f"iteration {iteration.counters.iterations}")
        if iteration.counters.iterations == 2:
            self._then()

    def on_checkpoint(self, folder: Path, counters: Counters) -> None:
        self.told.append(f"checkpoint {folder.name} {counters.iterations}")


def make_config(**changes: Any) -> TrainConfig:
    return TrainConfig.model_validate(
        {
            "world": {"name": "hooked", "num_envs": GAMES},
            "total_env_steps": ITERATIONS * PER_ITERATION,
            "policy": {"recurrent": {"size": 4}, "normalize": {"observations": True, "returns": True}},
            "ppo": {"n_steps": STEPS, "sequence_length": 4, "batch_size": 16, "n_epochs": 2},
            "opponents": {"rock": 1, "random": 3},
            "checkpoints": {"every_env_steps": 2 * PER_ITERATION},
        }
        | changes
    )


def _note(path: Path, rank: int, trainer: Trainer, recorder: Recorder) -> None:
    """Keeps what the test compares: the whole policy, the last rollout, the counters and what callbacks were told."""
    buffer = trainer.components.buffer
    rollout = {"returns": buffer.returns, "values": buffer.values, "rewards": buffer.rewards, "actions": buffer.actions}
    state = with_prefix("policy", trainer.components.policy.state()) | rollout
    save_file({name: tensor.contiguous() for name, tensor in state.items()}, f"{path}-{rank}.safetensors")
    counters = [trainer.counters.env_steps, trainer.counters.iterations, trainer.counters.updates, trainer.rollbacks]
    Path(f"{path}-{rank}.json").write_text(json.dumps({"counters": counters, "told": recorder.told}))


def _run(path: Path, folder: Path, rank: int) -> None:
    """Runs as the whole process of `torchrun` does."""
    recorder = Recorder()
    with Trainer(make_config(), folder, [recorder]) as trainer:
        trainer.run()
        _note(path, rank, trainer, recorder)


def _run_stages(path: Path, folder: Path, rank: int, *, stops: bool) -> None:
    """Runs through phases with games of their own; stops after the second iteration if asked to."""
    config = make_config(
        world={"name": "tug", "num_envs": 8, "settings": {"rounds": 3}},
        ppo={"n_steps": STEPS, "sequence_length": 4, "n_minibatches": 2, "n_epochs": 2},
        opponents=None,
        curriculum=STAGES,
        total_env_steps=700,
        league={"snapshot_every_env_steps": 50, "keep": 3},
    )
    trainers: list[Trainer] = []
    recorder = Recorder((lambda: trainers[0].stop()) if stops else lambda: None)
    with Trainer(config, folder, [recorder]) as trainer:
        trainers.append(trainer)
        trainer.run()
        _note(path, rank, trainer, recorder)


def _fail(path: Path, rank: int, hook: Hook | None = None, then: Callable[[], None] = lambda: None) -> None:
    """Runs into an error and keeps its text and the time that it took to end."""
    started_s = time.monotonic()
    HookedDuel.hook = hook
    try:
        train(make_config(), path, [Recorder(then)])
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    else:
        text = "no error"
    HookedDuel.hook = None
    Path(f"{path}-{rank}.json").write_text(json.dumps([text, time.monotonic() - started_s]))


def _stop(path: Path, rank: int) -> None:
    """Stops by a request on the second process, in the last step of the third iteration."""
    recorder = Recorder()
    with Trainer(make_config(), path, [recorder]) as trainer:

        def hook(step: int, result: StepResult) -> None:  # noqa: ARG001
            if rank == 1 and step == 3 * STEPS:
                trainer.stop()

        HookedDuel.hook = hook
        trainer.run()
        HookedDuel.hook = None
        _note(path, rank, trainer, recorder)


def _save_in_callback(path: Path, rank: int) -> None:
    trainers: list[Trainer] = []

    def save() -> None:
        trainers[0].save("best")

    with Trainer(make_config(), path, [Recorder(save)]) as trainer:
        trainers.append(trainer)
        try:
            trainer.run()
        except (UnsupportedError, RankError) as error:
            Path(f"{path}-{rank}.json").write_text(json.dumps(type(error).__name__))


def _spoil(rank: int) -> Hook:
    def hook(step: int, result: StepResult) -> None:
        if rank == 1 and step == 12:
            result.events["reward"].fill_(torch.nan)

    return hook


def _break(rank: int) -> Hook:
    def hook(step: int, result: StepResult) -> None:  # noqa: ARG001
        if rank == 1 and step == 12:
            raise ValueError("the game broke")

    return hook


def _raise_in_callback() -> None:
    raise ValueError("the callback broke")


def _play_all(folder: Path, ports: list[str]) -> None:
    """Plays the scenarios as one of two processes of `torchrun`: the first as it was started, the others on ports."""
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    _run(folder / "straight", folder / "straight", rank)
    os.environ.pop("TORCHELASTIC_USE_AGENT_STORE", None)  # torchrun's own meeting place serves one meeting
    for name, port in zip(SCENARIOS, ports, strict=True):
        os.environ["MASTER_PORT"] = port
        path = folder / name
        if name == "stopped":
            _stop(path, rank)
        elif name == "resumed":
            _run(path, folder / "stopped", rank)
        elif name == "lost":
            _fail(path, rank, _break(rank))
        elif name == "told":
            _fail(path, rank, then=_raise_in_callback)
        elif name == "saving":
            _save_in_callback(path, rank)
        elif name.startswith("staged"):
            _run_stages(path, folder / name.replace("resumed", "stopped"), rank, stops=name == "staged-stopped")
        else:
            HookedDuel.hook = _spoil(rank)
            _run(path, path, rank)
            HookedDuel.hook = None


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All scenarios, one after the other in the same two processes: starting them is what takes time."""
    folder = tmp_path_factory.mktemp("runs")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", __file__]
    ports = map(str, _free_ports(len(SCENARIOS)))
    done = subprocess.run([*command, str(folder), *ports], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (folder / "stderr").write_text(done.stderr)
    return folder


def noted(folder: Path, name: str) -> tuple[list[dict[str, Tensor]], list[Any]]:
    tensors = [load_file(folder / f"{name}-{rank}.safetensors") for rank in range(2)]
    return tensors, [json.loads((folder / f"{name}-{rank}.json").read_text()) for rank in range(2)]


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("name", ["straight", "resumed", "reward"])
def test_all_processes_end_with_the_same_policy_and_counters(runs: Path, name: str) -> None:
    tensors, facts = noted(runs, name)
    policy = [key for key in tensors[0] if key.startswith("policy.")]
    assert len(policy) > 10
    assert all(torch.equal(tensors[0][key], tensors[1][key]) for key in policy)
    rollbacks = 1 if name == "reward" else 0
    assert facts[0]["counters"] == facts[1]["counters"] == [ITERATIONS * PER_ITERATION, ITERATIONS, 24, rollbacks]
    assert not torch.equal(tensors[0]["actions"], tensors[1]["actions"]), "each explores in its own way"


def test_only_the_first_process_writes_and_tells(runs: Path) -> None:
    _, facts = noted(runs, "straight")
    assert facts[1]["told"] == []
    assert facts[0]["told"] == [
        "checkpoint init 0", "iteration 1", "iteration 2", "checkpoint step-000000000064 2", "iteration 3",
        "iteration 4", "checkpoint step-000000000128 4", "iteration 5", "iteration 6", "checkpoint final 6",
    ]  # fmt: skip
    assert [line["env_steps"] for line in lines(runs / "straight")] == [32, 64, 96, 128, 160, 192]
    final = load_checkpoint(runs / "straight" / "checkpoints" / "final")
    groups = {"policy", "optimiser", "collector", "trace", "random", "games", "opponents", "rank-1"}
    assert set(final.tensors) == groups
    assert final.tensors["games"]["duel-v1/game"].tolist() == [0, 1]
    assert final.tensors["rank-1"]["games.duel-v1/game"].tolist() == [2, 3]
    assert Agent.load(runs / "straight").spec.id == "duel-v1"


def test_metrics_are_those_of_the_joined_batch(runs: Path) -> None:
    processes, _ = noted(runs, "straight")
    joined = {name: torch.cat([rank[name] for rank in processes], 1) for name in ("returns", "values", "rewards")}
    last = lines(runs / "straight")[-1]
    explained = 1.0 - (joined["returns"] - joined["values"]).var() / joined["returns"].var()
    assert last["explained_variance"] == pytest.approx(explained.item(), abs=1e-5)
    assert last["reward"] == pytest.approx(joined["rewards"].mean().item(), abs=1e-6)
    logged = lines(runs / "straight")
    assert [line["episodes"] for line in logged] == [0, GAMES, GAMES, GAMES, GAMES, 0], "10 rounds a match"
    assert logged[0]["episode_return"] is None
    assert logged[1]["episode_length"] == 10.0


def test_stopping_on_one_process_and_going_on_gives_the_same_bytes_as_not_stopping(runs: Path) -> None:
    _, facts = noted(runs, "stopped")
    assert [fact["counters"][1] for fact in facts] == [3, 3]
    assert facts[0]["told"][-1] == "checkpoint interrupted 3"
    one, other = runs / "straight", runs / "stopped"
    assert (one / "metrics.jsonl").read_bytes() == (other / "metrics.jsonl").read_bytes()
    files = {path.name for path in (one / "checkpoints" / "final").iterdir()} - {"manifest.json"}  # it counts saves
    assert "rank-1.safetensors" in files
    for name in files:
        straight, stopped = (folder / "checkpoints" / "final" / name for folder in (one, other))
        assert straight.read_bytes() == stopped.read_bytes(), name


def test_stages_with_games_of_their_own_are_those_of_all_processes(runs: Path) -> None:
    tensors, facts = noted(runs, "staged")
    policy = [key for key in tensors[0] if key.startswith("policy.")]
    assert all(torch.equal(tensors[0][key], tensors[1][key]) for key in policy)
    assert facts[0]["counters"] == facts[1]["counters"]
    logged = lines(runs / "staged")
    assert [line["stage"] for line in logged][:3] == ["1v1", "2v2", "2v2"]
    assert logged[-1]["stage"] == "1v2"
    # Two processes: 4 games of 1 row; 1 of 4 rows and 1 of 2; 2 of 3 rows, one of 1 and one of 2.
    steps = [line["env_steps"] for line in logged]
    assert [after - before for before, after in zip([0, *steps], steps, strict=False)] == [
        2 * STEPS * {"1v1": 4, "2v2": 6, "1v2": 9}[line["stage"]] for line in logged
    ]


def test_stages_go_on_exactly_on_several_processes(runs: Path) -> None:
    _, facts = noted(runs, "staged-stopped")
    assert [fact["counters"][1] for fact in facts] == [2, 2]
    one, other = runs / "staged", runs / "staged-stopped"
    for name in ("metrics.jsonl", "opponents.csv", "monitor.csv"):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    for path in (one / "checkpoints" / "final").iterdir():
        if path.name != "manifest.json":  # it counts saves
            assert path.read_bytes() == (other / "checkpoints" / "final" / path.name).read_bytes(), path.name


def test_an_error_on_one_process_ends_all(runs: Path) -> None:
    for name, failed, message in (("lost", 1, "the game broke"), ("told", 0, "the callback broke")):
        told = [json.loads((runs / f"{name}-{rank}.json").read_text()) for rank in range(2)]
        assert f"ValueError: {message}" in told[failed][0]
        assert told[1 - failed][0].startswith("RankError: process ")
        assert max(elapsed_s for _, elapsed_s in told) < 10.0
    assert told[0][0].startswith("CallbackError: callback Recorder failed: ValueError: the callback broke (")
    assert "process 0 of 2 failed, so all end: CallbackError: callback Recorder failed" in told[1][0]


def test_a_callback_that_saves_is_refused_instead_of_waiting_for_ever(runs: Path) -> None:
    kinds = [json.loads((runs / f"saving-{rank}.json").read_text()) for rank in range(2)]
    assert kinds == ["UnsupportedError", "RankError"]


def test_a_fault_on_one_process_takes_all_back(runs: Path) -> None:
    assert [line["rollbacks"] for line in lines(runs / "reward")] == [0, 1, 1, 1, 1, 1]
    assert lines(runs / "reward")[0] == lines(runs / "straight")[0]
    place = "NaN or Inf in iteration 2, first seen in the reward (weighted terms, first at step 3 of the rollout, row 0"
    assert (runs / "stderr").read_text().count(f"{place}, on process 1); back to iteration 1") == 2


def test_another_number_of_processes_is_refused(runs: Path) -> None:
    with pytest.raises(ConfigMismatchError, match=r"2 processes .*with 1"):
        train(make_config(), runs / "straight")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"world": {"name": "duel", "num_envs": 5}}, r"world.num_envs 5 cannot .* among 2 processes; .* 4 or 6"),
        ({"ppo": {"batch_size": 15}}, r"ppo.batch_size 15 cannot be divided evenly"),
        ({"world": {"name": "duel", "device": "cuda:1"}}, r"names one device for 2 processes; use 'cuda'"),
    ],
)
def test_what_cannot_be_divided_is_refused_before_anyone_waits(
    changes: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}  # nobody is there
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=message):
        Trainer(make_config(**changes), tmp_path)


def test_places() -> None:
    meet = {"MASTER_ADDR": "a", "MASTER_PORT": "1"}
    assert Process.read({}) == Process.read({"RANK": "0", "WORLD_SIZE": "1"}) == Process(0, 1, 0)
    assert Process.read({"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1"} | meet) == Process(3, 4, 1)
    assert Process(3, 4, 1).share(make_config(world={"name": "duel", "device": "cuda"})).world.device == "cuda:1"
    for wrong, message in (
        ({"RANK": "x", "WORLD_SIZE": "2"}, "RANK is 'x'; it must be a whole number"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK must be 0 to 1"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, "MASTER_ADDR, MASTER_PORT not set"),
    ):
        with pytest.raises(ConfigError, match=message):
            Process.read(wrong)
    assert Process(0, 4, 0).seed(7) == 7
    assert len({Process(rank, 4, 0).seed(seed) for rank in range(4) for seed in range(4)}) == 16


def test_the_parts_together_are_the_games_of_one_process() -> None:
    config = make_config()
    with (
        Components(config) as whole,
        Components(resolve(config, Process(0, 2, 0))) as first,
        Components(resolve(config, Process(1, 2, 1))) as second,
    ):
        alone, *parts = (components.state().tensors for components in (whole, first, second))
        for group in ("games", "opponents"):
            for name, tensor in alone[group].items():
                if tensor.dim() and tensor.shape[0] == GAMES:
                    assert torch.equal(tensor, torch.cat([part[group][name] for part in parts])), name
        assert whole.opponents is not None
        assert first.opponents is not None
        assert second.opponents is not None
        assert torch.equal(whole.opponents.learner, torch.cat((first.opponents.learner, second.opponents.learner)))
        for part in parts:
            assert all(torch.equal(tensor, part["policy"][name]) for name, tensor in alone["policy"].items())


if __name__ == "__main__":
    _play_all(Path(sys.argv[1]), sys.argv[2:])
