"""The settings of monitoring, the loggers they make, and the guard around each."""

import io
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ludus.core.errors import MissingDependencyError
from ludus.training.callbacks import BaseCallback, Counters, Evaluated, Iteration
from ludus.training.loggers import Guarded, MonitoringConfig, make_loggers


def make(config: dict[str, Any], folder: Path, stream: io.StringIO | None = None) -> list[Guarded]:
    loggers = make_loggers(
        MonitoringConfig.model_validate(config), folder, total_env_steps=10_000, title="duel", stream=stream
    )
    assert all(isinstance(logger, Guarded) for logger in loggers)
    return [logger for logger in loggers if isinstance(logger, Guarded)]


def test_the_usual_sinks(tmp_path: Path) -> None:
    names = [type(logger.logger).__name__ for logger in make({}, tmp_path, io.StringIO())]
    assert names == ["PlainConsole", "TensorBoardLogger", "ResourcesLogger", "CurvesLogger"]
    silent = {"console": "off", "tensorboard": False, "resources": False, "curves": False}
    assert make(silent, tmp_path) == []


def test_all_sinks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUDUS_WEBHOOK", "http://127.0.0.1:9/x")
    names = [type(logger.logger).__name__ for logger in make({"console": "rich", "wandb": {}, "webhook": {}}, tmp_path)]
    assert names == [
        "LiveConsole",
        "TensorBoardLogger",
        "WandbLogger",
        "WebhookLogger",
        "ResourcesLogger",
        "CurvesLogger",
    ]


def test_without_tensorboard_a_run_goes_on_unless_it_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in [name for name in sys.modules if name.startswith("tensorboard.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "ludus.training.loggers.tensorboard", raising=False)
    monkeypatch.setitem(sys.modules, "tensorboard", None)  # Python's own mark of a module that cannot be imported
    quiet = {"console": "off", "resources": False, "curves": False}
    with caplog.at_level(logging.INFO, "ludus"):
        assert make(quiet, tmp_path) == []
    [told] = [record.getMessage() for record in caplog.records]
    assert told.startswith("[OK] no curves for TensorBoard")
    assert '[tensorboard]"' in told
    with pytest.raises(MissingDependencyError, match=r"monitoring\.tensorboard needs tensorboard; .*\[tensorboard\]"):
        make(quiet | {"tensorboard": True}, tmp_path)


@pytest.mark.parametrize(
    "config",
    [{"console": "loud"}, {"wandb": {"mode": "sometimes"}}, {"webhook": {"address": "http://x"}}, {"tensorbord": True},
     {"tensorboard": "maybe"},
     {"webhook": {"timeout_s": 0}}, {"wandb": {"project": ""}}],
)  # fmt: skip
def test_settings_that_are_none_are_refused(config: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        MonitoringConfig.model_validate(config)


def test_an_address_in_the_place_of_the_variable_is_refused_and_not_repeated() -> None:
    with pytest.raises(ValidationError) as refused:
        MonitoringConfig.model_validate({"webhook": {"address_env": "https://chat.example/s3cr3t"}})
    assert "address_env" in str(refused.value)
    assert "s3cr3t" not in str(refused.value)


def test_settings_can_be_stored_and_do_not_change() -> None:
    config = MonitoringConfig.model_validate({"wandb": {"mode": "online"}, "webhook": {}})
    assert MonitoringConfig.model_validate(config.model_dump(mode="json")) == config
    with pytest.raises(ValidationError):
        config.console = "off"


class Faulty(BaseCallback):
    """Raises when it is told of an iteration, and remembers what it was told."""

    def __init__(self, error: BaseException) -> None:
        self._error = error
        self.told: list[str] = []

    def on_training_start(self, counters: Counters) -> None:
        self.told.append(f"start {counters.env_steps}")

    def on_iteration(self, iteration: Iteration) -> None:
        self.told.append(f"iteration {iteration.counters.env_steps}")
        raise self._error

    def on_evaluation(self, evaluated: Evaluated) -> None:
        self.told.append(f"evaluation {evaluated.score}")

    def on_checkpoint(self, folder: Path, counters: Counters) -> None:
        self.told.append(f"checkpoint {folder}")

    def on_message(self, level: str, text: str, counters: Counters) -> None:
        self.told.append(f"{level} {text}")

    def on_training_end(self, counters: Counters) -> None:
        self.told.append(f"end {counters.env_steps}")
        raise self._error


def test_a_sink_that_raises_is_closed_switched_off_and_warned_of_once(
    caplog: pytest.LogCaptureFixture,
    make_iteration: Callable[..., Iteration],
    make_evaluated: Callable[..., Evaluated],
) -> None:
    faulty = Faulty(OSError("no space\nleft \u2713"))
    logger = Guarded(faulty)
    logger.on_training_start(Counters(5))
    logger.on_evaluation(make_evaluated(1, 0.5))
    logger.on_checkpoint(Path("step-1"), Counters(5))
    logger.on_message("alarm", "x", Counters(5))
    for number in (1, 2):
        logger.on_iteration(make_iteration(number))
    logger.on_evaluation(make_evaluated(1, 0.9))
    logger.on_checkpoint(Path("step-2"), Counters(9))
    logger.on_message("alarm", "y", Counters(9))
    logger.on_training_end(Counters(9))
    assert faulty.told == ["start 5", "evaluation 0.5", "checkpoint step-1", "alarm x", "iteration 1000", "end 1000"]
    line = next(n for n, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "raise self._error" in text)
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        f"[WARN] Faulty is switched off, training continues: OSError: no space left \\u2713 ({__file__}:{line})"
    ]


def test_an_end_that_raises_is_only_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    faulty = Faulty(ValueError("x"))
    logger = Guarded(faulty)
    logger.on_training_end(Counters(9))
    assert faulty.told == ["end 9"]
    assert "Faulty is switched off" in caplog.text


def test_a_request_to_stop_passes(make_iteration: Callable[..., Iteration]) -> None:
    logger = Guarded(Faulty(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        logger.on_iteration(make_iteration(1))
