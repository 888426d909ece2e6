"""Loggers: what a run shows and where it reports to: console, log, CSV, TensorBoard, W&B, webhook, curves.

A logger that fails warns and stays silent, the run continues.
"""

import contextlib
import logging
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

from ludus.core.distribution import install_command
from ludus.core.faults import let_pass
from ludus.core.text import blame
from ludus.training.callbacks import BaseCallback, Counters, Evaluated, Iteration
from ludus.training.config import MonitoringConfig
from ludus.training.loggers.progress import plain

__all__ = ["Guarded", "MonitoringConfig", "make_loggers"]

logger = logging.getLogger(__name__)


class Guarded(BaseCallback):
    """Passes everything on to a logger until that raises; what asks the run itself to stop still does."""

    def __init__(self, logger: BaseCallback) -> None:
        self.logger, self.is_on = logger, True

    def on_training_start(self, counters: Counters) -> None:
        """See `BaseCallback`."""
        self._tell(lambda: self.logger.on_training_start(counters), counters)

    def on_iteration(self, iteration: Iteration) -> None:
        """See `BaseCallback`."""
        self._tell(lambda: self.logger.on_iteration(iteration), iteration.counters)

    def on_evaluation(self, evaluated: Evaluated) -> None:
        """See `BaseCallback`."""
        self._tell(lambda: self.logger.on_evaluation(evaluated), evaluated.counters)

    def on_activity(self, text: str, share: float | None, counters: Counters) -> None:
        """See `BaseCallback`."""
        self._tell(lambda: self.logger.on_activity(text, share, counters), counters)

    def on_checkpoint(self, folder: Path, counters: Counters) -> None:
        """See `BaseCallback`."""
        self._tell(lambda: self.logger.on_checkpoint(folder, counters), counters)

    def on_message(self, level: str, text: str, counters: Counters) -> None:
        """See `BaseCallback`."""
        self._tell(lambda: self.logger.on_message(level, text, counters), counters)

    def on_training_end(self, counters: Counters) -> None:
        """See `BaseCallback`."""
        self._tell(lambda: self.logger.on_training_end(counters), counters, ends=True)

    def _tell(self, what: Callable[[], None], counters: Counters, *, ends: bool = False) -> None:
        if not self.is_on:
            return
        try:
            what()
        except BaseException as error:  # whatever a logger or its library raises, the run continues
            let_pass(error)
            self.is_on = False
            fault = plain(blame(error))
            logger.warning("[WARN] %s is switched off, training continues: %s", type(self.logger).__name__, fault)
            if not ends:
                with contextlib.suppress(Exception):  # a chance to close files and to give the terminal back
                    self.logger.on_training_end(counters)


def make_loggers(
    config: MonitoringConfig,
    run_folder: Path,
    *,
    total_env_steps: int,
    title: str,
    device: str = "cpu",
    settings: Mapping[str, Any] | None = None,
    stream: TextIO | None = None,
) -> list[BaseCallback]:
    """Make the loggers, each behind a guard: from here on none of them can stop the run.

    The use and memory of `device` are shown if it is a GPU, `settings` in W&B. The console writes to `stream`, or to
    the standard output.

    Raises:
        ConfigError: The webhook is switched on and the environment holds no address for it.
        MissingDependencyError: W&B or TensorBoard is switched on and not installed.
    """
    # Each import only for who asked for it: TensorBoard and rich cost a start tenths of a second each.
    loggers: list[BaseCallback] = []
    if config.console != "off":
        from ludus.training.loggers.console import make_console

        loggers.append(
            make_console(config.console, title=title, total_env_steps=total_env_steps, device=device, stream=stream)
        )
    if config.tensorboard is True or (config.tensorboard == "auto" and _has_tensorboard()):
        from ludus.training.loggers.resources import open_gpu
        from ludus.training.loggers.tensorboard import TensorBoardLogger

        loggers.append(TensorBoardLogger(run_folder, open_gpu(device)))
    if config.wandb is not None:
        from ludus.training.loggers.wandb import WandbLogger

        loggers.append(WandbLogger(config.wandb, run_folder, title=title, settings=settings))
    if config.webhook is not None:
        from ludus.training.loggers.webhook import WebhookLogger

        loggers.append(WebhookLogger.from_environment(config.webhook, title=title, total_env_steps=total_env_steps))
    if config.resources:
        from ludus.training.loggers.resources import ResourcesLogger

        loggers.append(ResourcesLogger(run_folder, device))
    if config.curves:
        from ludus.training.loggers.curves import CurvesLogger

        loggers.append(CurvesLogger(run_folder))
    return [Guarded(logger) for logger in loggers]


def _has_tensorboard() -> bool:
    """Return whether TensorBoard is installed; if not, say how to get its curves."""
    if find_spec("tensorboard") is not None:
        return True
    logger.info("[OK] no curves for TensorBoard, which is not installed; use: %s", install_command("tensorboard"))
    return False
