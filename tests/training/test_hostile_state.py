"""Checkpoints that are whole but were edited: every edit is refused by an error that names what is wrong.

Each case changes one value of a real checkpoint and writes a manifest with the right hashes, as an attacker would.
"""

import copy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from tests.commands import Commands
from torch import Tensor

from ludus.core.errors import CheckpointError, LudusError, StateError
from ludus.store import Checkpoint, load_checkpoint, read_manifest, save_checkpoint
from ludus.training import Counters, TrainConfig, Trainer, train
from ludus.training.run_folder import describe_run

pytestmark = pytest.mark.fault

STRATEGY = {"layers": 1, "heads": 2, "width": 8, "feedforward": 8, "window": 5, "latent": 4, "pooling": 4}
PER_ITERATION = 8 * 8
LEAGUE = {
    "world": {"name": "duel", "num_envs": 8, "settings": {"rounds": 3}},
    "total_env_steps": 8 * PER_ITERATION,
    "policy": {"net_arch": {"pi": [4], "vf": [4]}, "strategy": STRATEGY, "normalize": {"observations": True}},
    "ppo": {
        "n_steps": 8,
        "sequence_length": 4,
        "batch_size": 32,
        "n_epochs": 1,
        "learning_rate": {"kind": "kl_adaptive", "start": 0.001},
    },
    "league": {"snapshot_every_env_steps": PER_ITERATION, "keep": 3},
    "curriculum": [
        {"name": "bots", "opponents": {"rock": 1}, "promotion": {"after_env_steps": PER_ITERATION}},
        {"name": "all", "opponents": {"rock": 1, "self": 3}},
    ],
    "evaluation": {"every_env_steps": 2 * PER_ITERATION, "opponents": ["rock"], "matches": 2},
    "checkpoints": {"every_iterations": 4, "keep": 1},
    "monitoring": {"strategy_every_iterations": 1},
}
OFF_POLICY = {
    "world": {"name": "point", "num_envs": 4},
    "total_env_steps": 64,
    "algorithm": "sac",
    "policy": {"net_arch": {"pi": [4], "vf": [4]}},
    "sac": {
        "train_freq": 2,
        "buffer_size": 32,
        "learning_starts": 8,
        "batch_size": 4,
        "checkpoint_buffer": True,
    },
}
MISSING = object()
HUGE = 2**200
REPEATED = {"name": "self-0001", "env_steps": 0, "slot": 0}


class Run(NamedTuple):
    """A run that was trained once.

    Attributes:
        config: Its settings.
        folder: Its folder.
        checkpoint: What its last checkpoint holds.
    """

    config: TrainConfig
    folder: Path
    checkpoint: Checkpoint

    def edited(self, folder: Path, edit: Callable[[Any, Any], None]) -> Path:
        """Copies the run and lets `edit` change documents and tensors of its last checkpoint."""
        shutil.copytree(self.folder, folder)
        final = folder / "checkpoints" / "final"
        documents = copy.deepcopy(dict(self.checkpoint.documents))
        tensors = {group: dict(part) for group, part in self.checkpoint.tensors.items()}
        edit(documents, tensors)
        sequence = read_manifest(final).sequence
        save_checkpoint(final, Checkpoint(tensors, documents), step=1, sequence=sequence)
        return folder


def make_run(folder: Path, settings: dict[str, Any]) -> Run:
    config = TrainConfig.model_validate(settings)
    describe_run(folder, config, Counters())
    train(config, folder)
    return Run(config, folder, load_checkpoint(folder / "checkpoints" / "final"))


@pytest.fixture(scope="module")
def league(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("hostile") / "league", LEAGUE)


@pytest.fixture(scope="module")
def off_policy(tmp_path_factory: pytest.TempPathFactory) -> Run:
    pytest.importorskip("stable_baselines3")
    return make_run(tmp_path_factory.mktemp("hostile") / "off-policy", OFF_POLICY)


def put(document: Any, path: str, value: object) -> None:
    last: Any
    *parents, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    for part in parents:
        document = document[part]
    assert isinstance(document, list) or last in document, f"{path} is not in the checkpoint"
    if value is MISSING:
        del document[last]
    else:
        document[last] = value


WRONG_COUNTS: tuple[object, ...] = (-1, "7", 1.5, None, [], True, HUGE, MISSING)
DOCUMENTS: dict[str, tuple[object, ...]] = {
    "format": (1, "2", None, MISSING),
    "counters": (None, [], 3, MISSING),
    "counters/env_steps": WRONG_COUNTS,
    "counters/updates": ("many",),
    "rollbacks": WRONG_COUNTS,
    "offsets": (None, [], "metrics.jsonl", MISSING),
    "offsets/metrics.jsonl": WRONG_COUNTS[:-1],
    "learner": (None, [], {}, MISSING),
    "learner/iterations": WRONG_COUNTS,
    "learner/env_steps": ("400",),
    "learner/adaptive_rate": ("fast", -1.0, 1e9, [0.1]),
    "course": (None, [], {}, "course", MISSING),
    "course/rewards": (None, {}, MISSING),
    "course/rewards/stage": (2, -1, "0", None),
    "course/rewards/since": WRONG_COUNTS,
    "course/rewards/from": (None, [], {}, {"reward": "1"}, {"reward": 1.0, "other": 1.0}),
    "course/snapshots": WRONG_COUNTS,
    "course/games": (None, [], {"stage": "1"}),
    "course/games/stage": (2, -1, HUGE, 0.0),
    "course/curriculum": (None, {}, [], MISSING),
    "course/curriculum/index": (2, -1, "1", None, HUGE),
    "course/curriculum/results": ({}, [2], "www", None),
    "course/league": (None, {}, [], MISSING),
    "course/league/snapshots": (
        None,
        {},
        [1],
        ["self-0001"],
        [{}],
        [{"name": "self-0001", "env_steps": 0, "slot": 0}] * 2000,
    ),
    "course/league/snapshots/0/slot": (3, -1, "0", None, HUGE),
    "course/league/snapshots/0/name": ("", 1, None),
    "course/evaluation": (None, {}, MISSING),
    "course/evaluation/best": ("good", [], {}),
    "course/evaluation/every_env_steps": (0, -1, "100", 0.5, HUGE),
    "course/evaluation/since_best": WRONG_COUNTS,
    "course/evaluation/is_due": (1, "yes", None),
    "course/strategy": (None, {}, MISSING),
    "course/strategy/means": (None, [], {"rock": "four"}, {"rock": [1.0]}, {"rock": [None] * 4}),
}
EDITS = [(path, value) for path, values in DOCUMENTS.items() for value in values]


def name_of(value: object) -> str:
    return "missing" if value is MISSING else str(value)[:30]


@pytest.mark.parametrize(("path", "value"), EDITS, ids=[f"{path} {name_of(value)}" for path, value in EDITS])
def test_an_edited_document_is_refused_and_named(league: Run, tmp_path: Path, path: str, value: object) -> None:
    folder = league.edited(tmp_path / "run", lambda documents, _: put(documents["training"], path, value))
    before = (folder / "metrics.jsonl").read_bytes()
    with pytest.raises(LudusError) as caught:
        Trainer(league.config, folder)
    message, keys = str(caught.value), [part for part in path.split("/") if not part.isdigit()]
    assert any(key in message for key in (keys[-1], *(value if isinstance(value, dict) else ()))), message
    assert message.isascii()
    assert len(message) < 1000
    assert (folder / "metrics.jsonl").read_bytes() == before, "nothing is cut off before the state was accepted"


def resized(tensor: Tensor) -> Tensor:
    return torch.cat((tensor.reshape(-1), tensor.new_zeros(1)))


def retyped(tensor: Tensor) -> Tensor:
    return tensor.to(torch.int32 if tensor.is_floating_point() else torch.float64)


def filled(number: float) -> Callable[[Tensor], Tensor]:
    return lambda tensor: torch.full_like(tensor, number)


TENSORS: dict[str, tuple[Callable[[Tensor], Tensor], ...]] = {
    "random/learner": (resized, retyped, filled(0), lambda tensor: tensor[:0], lambda tensor: tensor.reshape(2, -1)),
    "collector/rows": (resized, retyped, filled(-1), filled(16), filled(2**62)),
    "collector/starts": (resized, retyped),
    "collector/running": (resized, retyped),
    "collector/memory.strategy.position": (resized, retyped, filled(-1), filled(2**63 - 1)),
    "collector/memory.strategy.seen": (filled(-1),),
    "collector/memory.strategy.keys0": (resized, retyped),
    "opponents/opponents": (resized, retyped, filled(-2), filled(4), filled(2**62)),
    "opponents/episodes": (resized, filled(-1), filled(2**63 - 1)),
    "opponents/mix.shares": (resized, filled(0), filled(-1), filled(float("nan")), filled(float("inf"))),
    "opponents/mix.chances": (filled(-1), filled(float("nan")), filled(2)),
    "opponents/selves.random": (filled(0), lambda tensor: tensor[:0]),
    "opponents/selves.memory.strategy.position": (filled(-1),),
    "optimiser/exp_avg": (resized, retyped),
    "policy/parameter.value_head.bias": (resized, retyped),
    "trace/lengths": (resized, filled(-1)),
    "trace/running": (resized, retyped, filled(float("nan")), filled(float("inf")), filled(-float("inf"))),
    "games/duel-v1/episode": (resized, retyped),
}
CHANGES = [(place, number) for place, changes in TENSORS.items() for number in range(len(changes))]


@pytest.mark.parametrize(("place", "number"), CHANGES, ids=[f"{place} {number}" for place, number in CHANGES])
def test_an_edited_tensor_is_refused_and_named(league: Run, tmp_path: Path, place: str, number: int) -> None:
    group, name = place.split("/", 1)

    def edit(_: Any, tensors: Any) -> None:
        tensors[group][name] = TENSORS[place][number](tensors[group][name]).contiguous()

    with pytest.raises(LudusError) as caught:
        Trainer(league.config, league.edited(tmp_path / "run", edit))
    assert name.rpartition(".")[2].removesuffix("learner") in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("group", ["policy", "optimiser", "collector", "random", "trace", "games", "opponents"])
def test_missing_groups_and_tensors_are_refused_and_named(league: Run, tmp_path: Path, group: str) -> None:
    name = next(iter(league.checkpoint.tensors[group]))

    def drop(_: Any, tensors: Any) -> None:
        del tensors[group][name]

    with pytest.raises(LudusError, match=name):
        Trainer(league.config, league.edited(tmp_path / "tensor", drop))
    with pytest.raises(LudusError, match=group):
        Trainer(league.config, league.edited(tmp_path / "group", lambda _, tensors: tensors.pop(group)))


def test_parts_of_ranks_that_do_not_exist_are_refused(league: Run, tmp_path: Path) -> None:
    def add(_: Any, tensors: Any) -> None:
        tensors["rank-7"] = {"a": torch.zeros(1)}

    with pytest.raises(CheckpointError, match="rank-7"):
        Trainer(league.config, league.edited(tmp_path / "run", add))


def test_the_checkpoint_itself_is_taken(league: Run, tmp_path: Path) -> None:
    with Trainer(league.config, league.edited(tmp_path / "run", lambda *_: None)) as trainer:
        assert trainer.counters.env_steps == LEAGUE["total_env_steps"]


def test_an_older_checkpoint_that_was_edited_does_not_stop_saving(league: Run, tmp_path: Path) -> None:
    config = league.config.model_copy(update={"total_env_steps": 4 * PER_ITERATION})
    train(config, tmp_path)
    place = tmp_path / "checkpoints" / "init"
    first = load_checkpoint(place)
    documents = copy.deepcopy(dict(first.documents))
    put(documents["training"], "course/league/snapshots", 5)
    save_checkpoint(place, Checkpoint(first.tensors, documents), step=0, sequence=1)
    with Trainer(config, tmp_path) as trainer:
        trainer.save("interrupted", must=True)


def test_a_snapshot_of_another_shape_is_skipped_and_reported(
    league: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = league.edited(tmp_path / "run", lambda *_: None)
    training: Any = league.checkpoint.documents["training"]
    place = folder / "snapshots" / training["course"]["league"]["snapshots"][0]["name"]
    stored = load_checkpoint(place)
    tensors = {
        group: {name: resized(tensor) for name, tensor in part.items()} for group, part in stored.tensors.items()
    }
    save_checkpoint(place, Checkpoint(tensors, stored.documents), step=1, sequence=1)
    Trainer(league.config, folder).close()
    assert f"snapshot {place.name} is skipped" in caplog.text


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *(("learner/replay_position", value) for value in (*WRONG_COUNTS, 32)),
        *(("learner/replay_count", value) for value in (33, -1, "1")),
        ("learner/updates", "many"),
    ],
)
def test_an_edited_off_policy_run_is_refused_and_named(
    off_policy: Run, tmp_path: Path, path: str, value: object
) -> None:
    folder = off_policy.edited(tmp_path / "run", lambda documents, _: put(documents["training"], path, value))
    with pytest.raises((CheckpointError, StateError), match=path.split("_")[-1].split("/")[-1]):
        Trainer(off_policy.config, folder)


def test_the_command_line_says_it_in_one_line_and_exits_with_2(league: Run, tmp_path: Path, commands: Commands) -> None:
    folder = league.edited(
        tmp_path / "run", lambda documents, _: put(documents["training"], "course/evaluation/best", "good")
    )
    code, said = commands.run("resume", folder)
    assert code == 2, said
    assert "course.evaluation.best is 'good'" in said
    assert "Traceback" not in said
