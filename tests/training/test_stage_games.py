"""Phases with games of their own: what is made anew, what goes on, and exact resume after every iteration."""

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.envs.base import EnvRequest, StepResult
from ludus.envs.registry import register_env
from ludus.envs.settings import EnvSettings
from ludus.envs.tiny.two_player import TugEnv
from ludus.policies.agent import Agent
from ludus.store import load_checkpoint
from ludus.training import BaseCallback, Counters, Iteration, TrainConfig, Trainer
from ludus.training.callbacks import RunningTrainer
from ludus.training.distributed import Process
from ludus.training.preflight import verify
from ludus.training.summary import summarise

STEPS = 6
# Rows of the phases: 2 mirrored games of 2 seats and 4 others; 2 of 3 seats, and 1 + 2; 1 of 4 seats and 2.
ROWS = {"1v1": 8, "1v2": 9, "2v2": 6}
ITERATIONS = {"1v1": 3, "1v2": 3, "2v2": 3}
LENGTHS = {name: ITERATIONS[name] * STEPS * rows for name, rows in ROWS.items()}
CURRICULUM: list[dict[str, Any]] = [
    {"name": "1v1", "opponents": {"mirror": 1, "random": 2}, "promotion": {"after_env_steps": LENGTHS["1v1"]}},
    {
        "name": "1v2",
        "opponents": {"mirror": 1, "self": 1},
        "world": {"num_envs": 4, "settings": {"orange": 2}},
        "rewards": {"weights": {"pulls": 1.0}, "glide_env_steps": 60},
        "promotion": {"after_env_steps": LENGTHS["1v2"]},
    },
    {
        "name": "2v2",
        "opponents": {"mirror": 1, "self": 1, "idle": 1},
        "world": {"num_envs": 2, "settings": {"blue": 2, "orange": 2, "rounds": 4}},
        "rewards": {"weights": {"reward": 1.0}, "team_spirit": 0.5},
    },
]


class WideTug(TugEnv):
    """A tug of war that says it shows one number more to larger teams, as no phase may do; a fault can be put in."""

    fault: Callable[[StepResult], None] | None = None

    def __init__(self, request: EnvRequest) -> None:
        super().__init__(request)
        wide = spaces.Dict({"vector": spaces.Box(0.0, 1.0, (9,), np.float32)})
        seen = wide if self.spec.seats > 3 else self.spec.observation_space
        self.spec = replace(self.spec, name="wide", observation_space=seen, fields={})

    def step(self, actions: Tensor) -> StepResult:
        result = super().step(actions)
        if WideTug.fault is not None:
            WideTug.fault(result)
        return result


class WideSettings(EnvSettings):
    """Any settings of the tug of war."""

    blue: int = 1
    orange: int = 1
    rounds: int = 10


register_env("wide-v1", WideTug, WideSettings)


def make_config(**changes: Any) -> TrainConfig:
    return TrainConfig.model_validate(
        {
            "world": {"name": "tug", "num_envs": 6, "settings": {"rounds": 3}},
            "total_env_steps": sum(LENGTHS.values()),
            "policy": {
                "recurrent": {"size": 4},
                "net_arch": {"pi": [4], "vf": [4]},
                "normalize": {"observations": True, "returns": True},
            },
            "ppo": {
                "n_steps": STEPS,
                "sequence_length": 3,
                "n_minibatches": 2,
                "n_epochs": 1,
                "learning_rate": {"kind": "kl_adaptive", "start": 1e-3, "target": 0.001},
            },
            "curriculum": CURRICULUM,
            "league": {"snapshot_every_env_steps": 2 * STEPS * 8, "keep": 3, "sampler": "pfsp"},
            "evaluation": {"every_env_steps": 90, "matches": 2},
            "checkpoints": {"every_iterations": 2, "keep": 1},
            **changes,
        }
    )


class Watcher(BaseCallback):
    """Keeps what it is told; stops the run after an iteration."""

    def __init__(
        self, stop_after: int = 0, then: Callable[[RunningTrainer, int], None] = lambda _trainer, _number: None
    ) -> None:
        self.iterations: list[Iteration] = []
        self.messages: list[str] = []
        self._stop_after, self._then = stop_after, then

    def on_iteration(self, iteration: Iteration) -> None:
        self.iterations.append(iteration)
        self._then(self.trainer, iteration.counters.iterations)
        if iteration.counters.iterations == self._stop_after:
            self.trainer.stop()

    def on_message(self, level: str, text: str, counters: Counters) -> None:
        self.messages.append(f"{level} {counters.iterations}: {text}")


def run(config: TrainConfig, folder: Path, watcher: Watcher | None = None) -> Watcher:
    watcher = watcher or Watcher()
    with Trainer(config, folder, [watcher]) as trainer:
        trainer.run()
    return watcher


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def content(folder: Path) -> dict[str, bytes]:
    """Returns tables, snapshots and the checkpoints of the end; manifests count saves, and there is one more."""
    kinds = ("*.jsonl", "*.csv", "snapshots/*/*", "checkpoints/best/*", "checkpoints/final/*")
    paths = [path for kind in kinds for path in folder.glob(kind) if path.name != "manifest.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Watcher]:
    folder = tmp_path_factory.mktemp("straight")
    return folder, run(make_config(), folder)


def test_every_stage_plays_its_own_games(straight: tuple[Path, Watcher]) -> None:
    folder, watcher = straight
    assert [text for text in watcher.messages if "phase" in text] == [
        "info 3: from phase '1v1' to '1v2': 144 env steps are over; 4 new games of 1v2",
        "info 6: from phase '1v2' to '2v2': 162 env steps are over; 2 new games of 2v2",
    ]
    phases = [iteration.phase for iteration in watcher.iterations]
    assert phases == [name for name, count in ITERATIONS.items() for _ in range(count)]
    steps = np.diff([0, *(iteration.counters.env_steps for iteration in watcher.iterations)])
    assert steps.tolist() == [STEPS * ROWS[phase] for phase in phases]
    table = rows(folder / "opponents.csv")
    assert list(dict.fromkeys(row["mode"] for row in table)) == ["1v1", "1v2", "2v2"]
    assert {row["side"] for row in table if row["mode"] == "1v2"} == {"1v2", "2v1"}
    assert {row["opponent"] for row in table if row["mode"] == "1v1"} == {"random"}
    met = {row["opponent"] for row in table if row["mode"] == "1v2"}
    assert "self-0001" in met, "a snapshot of the first phase plays on in the second"
    assert Agent.load(folder / "checkpoints" / "init").settings == {"rounds": 3}
    final = Agent.load(folder / "checkpoints" / "final")
    assert final.settings == {"rounds": 4, "blue": 2, "orange": 2}
    assert final.spec.mode == "2v2"
    assert Agent.load(folder / "snapshots" / "self-0003").settings["orange"] == 2


def test_a_run_goes_on_exactly_after_every_iteration(straight: tuple[Path, Watcher], tmp_path: Path) -> None:
    config = make_config()
    for stop_after in range(1, sum(ITERATIONS.values())):
        run(config, tmp_path, Watcher(stop_after))
    run(config, tmp_path)
    expected, got = content(straight[0]), content(tmp_path)
    assert set(expected) == set(got)
    assert [name for name in expected if expected[name] != got[name]] == []


def test_all_that_was_learned_goes_on_in_the_new_games(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []

    def note(trainer: RunningTrainer) -> None:
        components = trainer.components
        groups, counters = components.learner.state()
        learned = {f"{group}.{name}": tensor for group in groups if group != "collector"
                   for name, tensor in groups[group].items()}  # fmt: skip
        assert components.opponents is not None
        others = {"env": components.env, "pool": components.opponents.pool, "weights": dict(components.rewards.weights)}
        seen.append({"learned": learned, "counters": counters, "starts": groups["collector"]["starts"]} | others)

    def watch(trainer: RunningTrainer, number: int) -> None:
        if number == ITERATIONS["1v1"] - 1:
            begin = trainer.components.begin_phase

            def spied(phase: int, env_steps: int) -> None:
                note(trainer)
                begin(phase, env_steps)
                note(trainer)

            trainer.components.begin_phase = spied  # type: ignore[method-assign]

    run(make_config(), tmp_path, Watcher(ITERATIONS["1v1"], watch))
    before, after = seen
    assert after["learned"].keys() == before["learned"].keys()
    assert all(tensor.equal(before["learned"][name]) for name, tensor in after["learned"].items())
    assert after["learned"]["optimiser.step"].item() == ITERATIONS["1v1"] * 2
    assert after["counters"] == before["counters"]
    assert after["counters"]["adaptive_rate"] not in (None, 1e-3)
    assert after["weights"] == before["weights"] == {"reward": 1.0, "pulls": 0.0}, "they glide from what they were"
    assert after["pool"] is before["pool"]
    assert after["env"] is not before["env"]
    assert after["starts"].all()


def test_numbers_that_are_not_finite_are_rolled_back_within_a_later_stage(tmp_path: Path) -> None:
    calls = 0

    def break_once(result: StepResult) -> None:
        nonlocal calls
        calls += result.events["reward"].shape[1] == 3  # in 1v2
        if calls == STEPS + 2:
            calls += 1
            result.observations["vector"][0, 0, 0] = torch.nan

    WideTug.fault = break_once
    try:
        config = make_config(world={"name": "wide", "num_envs": 6, "settings": {"rounds": 3}}, evaluation=None,
                             curriculum=CURRICULUM[:2])  # fmt: skip
        watcher = run(config, tmp_path)
    finally:
        WideTug.fault = None
    rollbacks = [iteration.metrics["rollbacks"] for iteration in watcher.iterations]
    assert rollbacks[:4] == [0, 0, 0, 0]
    assert rollbacks[4:] == [1] * len(rollbacks[4:])
    assert watcher.iterations[-1].counters.env_steps >= config.total_env_steps


def test_a_stage_is_passed_by_rating(tmp_path: Path) -> None:
    phases = [
        {"name": "rated", "opponents": {"idle": 1}, "promotion": {"rating": 1100}},
        {"name": "end", "opponents": {"idle": 1}},
    ]
    watcher = run(make_config(curriculum=phases, evaluation=None, total_env_steps=400), tmp_path)
    ratings = [iteration.metrics["rating_elo"] or 0.0 for iteration in watcher.iterations]
    passed = [iteration.phase for iteration in watcher.iterations].index("end")
    assert max(ratings[: passed - 1], default=0.0) < 1100.0 <= ratings[passed - 1]
    assert any(f"is rated {ratings[passed - 1]:.0f}" in text for text in watcher.messages)


def test_the_best_score_counts_from_a_stage_with_new_games_on(straight: tuple[Path, Watcher]) -> None:
    document: Any = load_checkpoint(straight[0] / "checkpoints" / "final").documents["training"]
    table = rows(straight[0] / "evaluation_results.csv")
    assert {(row["mode"], row["side"]) for row in table} >= {
        ("1v1", "1v1"),
        ("1v2", "1v2"),
        ("1v2", "2v1"),
        ("2v2", "2v2"),
    }
    last = [float(row["score"]) for row in table if int(row["iteration"]) > 6]
    assert document["course"]["evaluation"]["best"] == max(last)


def test_a_stage_that_changes_what_is_seen_is_refused() -> None:
    world = {"name": "wide", "num_envs": 6}
    config = make_config(world=world, evaluation=None, curriculum=CURRICULUM)
    with pytest.raises(ConfigError, match=r"phase '2v2' .*observation 'vector' is Box\(.*\(9,\)"):
        list(verify(config))


def test_verification_plays_every_stage_and_the_summary_names_their_games() -> None:
    lines = list(verify(make_config()))
    batches = [line for line in lines if "batch:" in line]
    assert [line.partition("batch: ")[0] for line in batches] == ["", "phase '1v2': ", "phase '2v2': "]
    assert [f"x {rows} rows" in line for rows, line in zip(ROWS.values(), batches, strict=True)] == [True] * 3
    assert sum("memory: about" in line for line in lines) == 1
    told = list(summarise(make_config(), None, ""))
    assert "phase 2 1v2: mirror 50%, self 50%, 4 games of 1v2, the learner plays 9 seats" in told


def test_games_of_every_stage_are_divided_among_processes() -> None:
    config = make_config(
        world={"name": "tug", "num_envs": 6, "device": "cpu"}, ppo={"n_steps": 8, "n_minibatches": 2, "n_epochs": 1}
    )
    shared = Process(1, 2, 1).share(config)
    assert [shared.at_phase(phase).world.num_envs for phase in range(3)] == [3, 2, 1]
    with pytest.raises(ConfigError, match=r"curriculum\.1\.world\.num_envs 4 .*among 3"):
        Process(0, 3, 0).share(config)


def test_metrics_name_the_stage(straight: tuple[Path, Watcher]) -> None:
    lines = [json.loads(line) for line in (straight[0] / "metrics.jsonl").read_text().splitlines()]
    assert [line["stage"] for line in lines] == ["1v1"] * 3 + ["1v2"] * 3 + ["2v2"] * 3
