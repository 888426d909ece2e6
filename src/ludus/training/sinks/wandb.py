"""Reporting to Weights & Biases, online or into the run folder; the library is imported only when switched on."""

import os
import re
import secrets
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ludus.core.errors import MissingDependencyError
from ludus.core.files import write_text_atomic
from ludus.training.callbacks import Counters, Evaluated, Iteration, QuietCallback
from ludus.training.sinks.config import WandbConfig
from ludus.training.sinks.scalars import ScalarNames

if TYPE_CHECKING:
    import wandb

_FOLDER = "wandb"
_ID_FILE = "ludus-run-id"
_ID = re.compile(r"[0-9a-f]{16}")
_FINISH_TIMEOUT_S = 60.0


class WandbSink(QuietCallback):
    """Logs every number at the env steps to which it belongs; a run that goes on keeps its W&B run."""

    def __init__(
        self, config: WandbConfig, run_folder: Path, *, title: str, settings: Mapping[str, Any] | None = None
    ) -> None:
        """Takes where to report to, and the run's settings to be shown there.

        Raises:
            MissingDependencyError: The library is not installed.
        """
        if find_spec("wandb") is None:
            raise MissingDependencyError("wandb", "wandb", "monitoring.wandb")
        self._config, self._run_folder, self._title = config, run_folder, title
        self._settings = dict(settings or {})
        self._names = ScalarNames()
        self._run: wandb.Run | None = None

    def on_start(self, counters: Counters) -> None:
        """Opens the W&B run."""
        # Its reports of own faults would use the network even in offline mode; it reads this when it is imported.
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        import wandb

        self._names.start(counters.env_steps)
        config = self._config
        # What is logged is what the loop tells: no console output, code, git remotes or package lists, which may
        # hold secrets, and no machine statistics, for which it asks cloud addresses.
        quiet = wandb.Settings(
            console="off", silent=True, disable_git=True, disable_code=True, disable_job_creation=True,
            x_disable_stats=True, x_disable_meta=True, x_disable_machine_info=True, x_save_requirements=False,
            finish_timeout=_FINISH_TIMEOUT_S,
        )  # fmt: skip
        self._run = wandb.init(
            project=config.project, entity=config.entity, tags=config.tags, name=self._title, mode=_mode(config),
            dir=str(self._run_folder), id=_run_id(self._run_folder / _FOLDER), resume="allow", reinit="create_new",
            config=self._settings, settings=quiet,
        )  # fmt: skip

    def on_iteration(self, iteration: Iteration) -> None:
        """Logs the iteration's numbers."""
        self._log(self._names.of_iteration(iteration), iteration.counters)

    def on_evaluation(self, evaluated: Evaluated) -> None:
        """Logs the evaluation's numbers."""
        self._log(self._names.of_evaluation(evaluated), evaluated.counters)

    def on_message(self, level: str, text: str, counters: Counters) -> None:  # noqa: ARG002
        """Passes alarms on to those who watch the W&B run."""
        if self._run is not None and level == "alarm":
            self._run.alert(title=f"{self._title}: alarm", text=text)

    def on_end(self, counters: Counters) -> None:  # noqa: ARG002
        """Closes the W&B run."""
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
    """Returns the W&B run of this run folder, so that a run that goes on goes on there too."""
    path = folder / _ID_FILE
    known = path.read_text("ascii", errors="replace").strip() if path.is_file() else ""
    if _ID.fullmatch(known):
        return known
    folder.mkdir(parents=True, exist_ok=True)
    fresh = secrets.token_hex(8)
    write_text_atomic(path, fresh + "\n")
    return fresh
