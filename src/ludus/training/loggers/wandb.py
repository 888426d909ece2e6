"""Reporting to Weights & Biases, online or into the run folder; the library is imported only when switched on."""

import os
import re
import secrets
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ludus.core.errors import MissingDependencyError
from ludus.core.files import read_if_possible, write_text_atomic
from ludus.training.callbacks import BaseCallback, Counters, Evaluated, Iteration
from ludus.training.config import WandbConfig
from ludus.training.loggers.progress import ScalarNames

if TYPE_CHECKING:
    import wandb

_FOLDER = "wandb"
_ID_FILE = "ludus-run-id"
_MAX_ID_BYTES = 1000
_ID = re.compile(r"[0-9a-f]{16}")
_FINISH_TIMEOUT_S = 60.0


class WandbLogger(BaseCallback):
    """Logs every number at the env steps to which it belongs; a resumed run keeps its W&B run."""

    def __init__(
        self, config: WandbConfig, run_folder: Path, *, title: str, settings: Mapping[str, Any] | None = None
    ) -> None:
        """Store where to report to, and the run's settings to show there.

        Raises:
            MissingDependencyError: The library is not installed.
        """
        if find_spec("wandb") is None:
            raise MissingDependencyError("wandb", "wandb", "monitoring.wandb")
        self._config, self._run_folder, self._title = config, run_folder, title
        self._settings = dict(settings or {})
        self._names = ScalarNames()
        self._run: wandb.Run | None = None

    def on_training_start(self, counters: Counters) -> None:
        """Open the W&B run."""
        config, mode = self._config, _mode(self._config)
        # W&B posts its own telemetry (`/sdk/otel/v1/metrics`, at exit and every minute) unless these variables say
        # otherwise: `mode="offline"` of `wandb.init` does not reach it.
        os.environ["WANDB_ERROR_REPORTING"] = "false"
        if mode != "online":
            os.environ["WANDB_MODE"] = mode
        import wandb

        self._names.start(counters.env_steps)
        # What is logged is what the loop tells: no console output, code, git remotes or package lists, which may
        # hold secrets, and no machine statistics, for which it asks cloud addresses.
        quiet = wandb.Settings(
            console="off", silent=True, disable_git=True, disable_code=True, disable_job_creation=True,
            x_disable_stats=True, x_disable_meta=True, x_disable_machine_info=True, x_save_requirements=False,
            finish_timeout=_FINISH_TIMEOUT_S,
        )  # fmt: skip
        self._run = wandb.init(
            project=config.project, entity=config.entity, tags=config.tags, name=self._title, mode=mode,
            dir=str(self._run_folder), id=_run_id(self._run_folder / _FOLDER), resume="allow", reinit="create_new",
            config=self._settings, settings=quiet,
        )  # fmt: skip

    def on_iteration(self, iteration: Iteration) -> None:
        """Log the iteration's numbers."""
        self._log(self._names.of_iteration(iteration), iteration.counters)

    def on_evaluation(self, evaluated: Evaluated) -> None:
        """Log the evaluation's numbers."""
        self._log(self._names.of_evaluation(evaluated), evaluated.counters)

    def on_message(self, level: str, text: str, counters: Counters) -> None:
        """Send alarms as W&B alerts."""
        if self._run is not None and level == "alarm":
            self._run.alert(title=f"{self._title}: alarm", text=text)

    def on_training_end(self, counters: Counters) -> None:
        """Close the W&B run."""
        if self._run is not None:
            run, self._run = self._run, None
            run.finish()

    def _log(self, scalars: dict[str, float], counters: Counters) -> None:
        if self._run is not None:
            self._run.log(scalars, step=counters.env_steps)


def _mode(config: WandbConfig) -> Literal["online", "offline", "disabled"]:
    asked = os.environ.get("WANDB_MODE")
    if asked == "disabled":
        return "disabled"
    return "offline" if asked == "offline" else config.mode


def _run_id(folder: Path) -> str:
    """Return the W&B run of this run folder, so that a resumed run continues there too."""
    path = folder / _ID_FILE
    known = (read_if_possible(path, limit=_MAX_ID_BYTES) or b"").decode("ascii", errors="replace").strip()
    if _ID.fullmatch(known):
        return known
    fresh = secrets.token_hex(8)
    write_text_atomic(path, fresh + "\n")
    return fresh
