"""Checkpoints that are whole but changed anywhere: a typed error, or a run that goes on; never a traceback, never slow.

Every value of the documents and every tensor is replaced by wrong types, absurd numbers, NaN, other sizes, copies and
nothing, as by somebody who can make valid hashes. A few of the cases are tried always, all of them as a slow test.
"""

import copy
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
import torch
from tests.training.test_hostile_state import LEAGUE, OFF_POLICY, PER_ITERATION
from torch import Tensor

from ludus.core.errors import FormatError, LudusError
from ludus.store import Checkpoint, load_checkpoint, read_manifest, save_checkpoint
from ludus.training import Counters, TrainConfig, Trainer
from ludus.training.callbacks import BaseCallback, Iteration
from ludus.training.run_folder import describe_run

pytestmark = pytest.mark.fault

FEW = 12  # cases of each run that are always tried
MOST_CPU_S, MOST_BYTES = 5.0, 512 << 20
MISSING = object()
NAME = "interrupted"
QUIET = {"console": "off", "curves": False, "tensorboard": False, "strategy_every_iterations": 1}
RUNS: dict[str, tuple[dict[str, Any], int]] = {
    "league": (LEAGUE | {"total_env_steps": 20 * PER_ITERATION}, 8),
    "off-policy": (OFF_POLICY | {"total_env_steps": 128}, 6),
    "gymnasium": (
        {
            "world": {"name": "gym:CartPole-v1", "num_envs": 2},
            "total_env_steps": 256,
            "policy": {"net_arch": {"pi": [4], "vf": [4]}, "normalize": {"observations": True}},
            "ppo": {"n_steps": 8, "batch_size": 16, "n_epochs": 1},
            "evaluation": None,
        },
        3,
    ),
}


class StopAfter(BaseCallback):
    def __init__(self, iterations: int) -> None:
        self._left = iterations

    def on_iteration(self, iteration: Iteration) -> None:
        self._left -= 1
        if not self._left:
            self.trainer.stop("enough")


class Case(NamedTuple):
    """A change: `apply` takes the documents and the tensors of a checkpoint."""

    name: str
    apply: Callable[[dict[str, Any], dict[str, dict[str, Tensor]]], None]


def documents_cases(documents: dict[str, Any]) -> Iterator[Case]:
    def walk(node: object, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], object]]:
        yield path, node
        inner = node.items() if isinstance(node, dict) else enumerate(node[:3]) if isinstance(node, list) else ()
        for key, value in inner:
            yield from walk(value, (*path, key))

    for path, value in walk(documents["training"], ("training",)):
        for number, changed in enumerate(other_values(value)):
            yield Case(f"{'/'.join(map(str, path))} {number}", put(path, changed))


def other_values(value: object) -> list[object]:
    """Returns what stands in the place of a value of a document."""
    others: list[object] = [
        None,
        True,
        -1,
        0,
        1,
        2**62,
        2**200,
        1.5,
        -1e308,
        "",
        "x" * 100_000,
        [],
        {},
        [None],
        MISSING,
    ]
    if isinstance(value, list):
        others += [(value or [1]) * 2000, value[::-1], value[:-1], value + value]
    elif isinstance(value, dict):
        others += [value | {"y" * 100_000: 1}, value | {f"k{number}": number for number in range(5000)}]
    elif isinstance(value, int | float):
        others += [value + 1, -value, value * 1_000_000]
    return others


def put(path: tuple[Any, ...], value: object) -> Callable[[dict[str, Any], Any], None]:
    def apply(documents: dict[str, Any], _: object) -> None:
        node: Any = documents
        for key in path[:-1]:
            node = node[key]
        if value is MISSING:
            del node[path[-1]]
        else:
            node[path[-1]] = copy.deepcopy(value)

    return apply


def tensor_cases(tensors: dict[str, dict[str, Tensor]]) -> Iterator[Case]:
    def swap(group: str, changed: dict[str, Tensor] | None) -> Callable[[Any, dict[str, Any]], None]:
        def apply(_: object, tensors: dict[str, Any]) -> None:
            del tensors[group]
            if changed is not None:
                tensors[group] = changed

        return apply

    for group, part in tensors.items():
        for name, tensor in part.items():
            for number, other in enumerate(other_tensors(tensor)):
                yield Case(f"{group}/{name} {number}", swap(group, part | {name: other}))
            yield Case(f"{group}/{name} missing", swap(group, {key: part[key] for key in part if key != name}))
        floats = {
            name: torch.full_like(tensor, torch.nan) for name, tensor in part.items() if tensor.is_floating_point()
        }
        yield Case(f"{group} of NaN", swap(group, part | floats))
        yield Case(f"{group} gone", swap(group, None))
        yield Case(f"{group} empty", swap(group, {}))
        yield Case(f"{group} with another", swap(group, part | {"another": torch.zeros(3)}))


def other_tensors(tensor: Tensor) -> list[Tensor]:
    """Returns what stands in the place of a tensor."""
    if tensor.is_floating_point():
        numbers: tuple[float, ...] = (torch.nan, torch.inf, -torch.inf, 3e38, -3e38, 0.0, -1.0)
    elif tensor.dtype in (torch.bool, torch.uint8, torch.int8):
        numbers = (0, 1)
    else:
        least, most = torch.iinfo(tensor.dtype).min, torch.iinfo(tensor.dtype).max
        numbers = (0, -1, 5, least, most, most // 2)
    longer = torch.cat((tensor.reshape(-1), tensor.new_zeros(1)))
    retyped = tensor.to(torch.int32 if tensor.is_floating_point() else torch.float64)
    filled = [torch.full_like(tensor, number) for number in numbers]
    return [*filled, longer, tensor.reshape(-1)[:-1].clone(), retyped, tensor.new_zeros(1_000_000)]


@pytest.fixture(scope="module", params=RUNS)
def stopped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainConfig, Path]:
    """A run that was stopped on its way, and its settings."""
    settings, iterations = RUNS[request.param]
    if settings.get("algorithm"):
        pytest.importorskip("stable_baselines3")
    config = TrainConfig.model_validate(settings | {"checkpoints": {"keep": 1}, "monitoring": QUIET})
    folder = tmp_path_factory.mktemp("resume") / "run"
    describe_run(folder, config, Counters())
    with Trainer(config, folder, [StopAfter(iterations)]) as trainer:
        trainer.run()
    return config, folder


def try_cases(config: TrainConfig, folder: Path, tmp_path: Path, share: Callable[[list[Case]], list[Case]]) -> None:
    original = load_checkpoint(folder / "checkpoints" / NAME)
    manifest = read_manifest(folder / "checkpoints" / NAME)
    tensors = {group: dict(part) for group, part in original.tensors.items()}
    cases = share([*documents_cases(dict(original.documents)), *tensor_cases(tensors)])
    before = psutil.Process().memory_info().rss
    for number, case in enumerate(cases):
        run = shutil.copytree(folder, tmp_path / str(number))
        documents, changed = (
            copy.deepcopy(dict(original.documents)),
            {group: dict(part) for group, part in tensors.items()},
        )
        case.apply(documents, changed)
        place = run / "checkpoints" / NAME
        try:
            save_checkpoint(place, Checkpoint(changed, documents), step=manifest.step, sequence=manifest.sequence)
        except FormatError:  # what no file can hold
            continue
        began_s, message = time.process_time(), ""
        try:
            with Trainer(config, run, [StopAfter(1)]) as trainer:
                trainer.run()
        except LudusError as error:
            message = str(error)
        except Exception as error:
            raise AssertionError(f"{case.name}: {type(error).__name__}: {error}") from error
        assert len(message) < 2000, case.name
        assert time.process_time() - began_s < MOST_CPU_S, case.name
        shutil.rmtree(run)
    assert psutil.Process().memory_info().rss - before < MOST_BYTES


def test_some_changes_of_a_checkpoint(stopped: tuple[TrainConfig, Path], tmp_path: Path) -> None:
    try_cases(*stopped, tmp_path, lambda cases: cases[:: len(cases) // FEW])


@pytest.mark.slow
def test_every_change_of_a_checkpoint(stopped: tuple[TrainConfig, Path], tmp_path: Path) -> None:
    try_cases(*stopped, tmp_path, lambda cases: cases)


def test_what_was_once_a_traceback_or_slow(stopped: tuple[TrainConfig, Path], tmp_path: Path) -> None:
    wanted = (
        *("trace/running 0", "trace of NaN", "training/course/league/snapshots 15"),
        "training/course/evaluation/is_due 1",  # in a run without evaluations
        *(f"optimiser/{name}step {number}" for name in ("", "entropy.0.") for number in range(7)),
    )
    try_cases(*stopped, tmp_path, lambda cases: [case for case in cases if case.name in wanted])
