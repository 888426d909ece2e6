"""W&B: offline it works without a network, in the run folder; a run keeps its identity; a missing library is told."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.commands import Commands

from ludus.core.errors import MissingDependencyError
from ludus.training.callbacks import Counters, Evaluated, Iteration
from ludus.training.config import WandbConfig
from ludus.training.loggers import wandb as module
from ludus.training.loggers.wandb import WandbLogger

KEY = "0123456789abcdef" * 2 + "01234567"  # as long as a real one


@pytest.fixture
def quiet_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Keeps what the library writes outside the run folder in the test's own folder."""
    for name in ("WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    yield tmp_path / "run"
    if "wandb" in sys.modules:
        sys.modules["wandb"].teardown()


def test_offline_it_writes_into_the_run_folder_and_goes_on_as_the_same_run(
    quiet_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    make_iteration: Callable[..., Iteration],
    make_evaluated: Callable[..., Evaluated],
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    quiet_home.mkdir()
    for first in (0, 2):
        logger = WandbLogger(WandbConfig(project="test"), quiet_home, title="duel", settings={"seed": 3})
        logger.on_training_start(Counters(first * 1000, first, 0))
        for number in (first + 1, first + 2):
            logger.on_iteration(make_iteration(number))
        logger.on_evaluation(make_evaluated(first + 2, 0.8))
        logger.on_message("alarm", "no progress", Counters(first * 1000))
        logger.on_training_end(Counters((first + 2) * 1000, first + 2, 0))
    files = sorted(path for path in (quiet_home / "wandb").glob("offline-run-*/*.wandb"))
    identity = (quiet_home / "wandb" / "ludus-run-id").read_text().strip()
    assert {path.name for path in files} == {f"run-{identity}.wandb"}
    stored = b"".join(path.read_bytes() for path in files)
    for name in (b"evaluation/win_rate/based", b"train/entropy", b"win_rate/random", b"seed"):
        assert name in stored
    for path in quiet_home.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path


def test_a_missing_library_is_told_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)  # noqa: ARG005
    with pytest.raises(MissingDependencyError, match=r'monitoring.wandb needs wandb; .*pip install -e ".*\[wandb\]"'):
        WandbLogger(WandbConfig(), tmp_path, title="duel")


@pytest.mark.parametrize(
    ("configured", "environment", "mode"),
    [
        ("offline", None, "offline"), ("online", None, "online"), ("online", "offline", "offline"),
        ("online", "disabled", "disabled"), ("offline", "online", "offline"),
    ],
)  # fmt: skip
def test_the_environment_can_only_make_it_quieter(
    configured: Any, environment: str | None, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    if environment is not None:
        monkeypatch.setenv("WANDB_MODE", environment)
    assert module._mode(WandbConfig(mode=configured)) == mode


def test_an_identity_that_is_damaged_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "wandb"
    first = module._run_id(folder)
    assert module._run_id(folder) == first
    (folder / "ludus-run-id").write_bytes(b"../../\xff")
    second = module._run_id(folder)
    assert second != first
    assert module._run_id(folder) == second


def test_nothing_is_imported_before_it_starts(tmp_path: Path, commands: Commands) -> None:
    program = tmp_path / "program.py"
    program.write_text("import ludus.training.loggers.wandb, sys; print('wandb' in sys.modules)")
    assert commands.run(program) == (0, "False\n")
