"""`ludus.train` and `ludus.resume`: whole runs for programs and notebooks, as the command line does them."""

import logging
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ludus.config import dump_yaml
from ludus.core.errors import ConfigError
from ludus.core.files import temporary_folder, write_text_atomic
from ludus.envs.registry import check_name_from_file
from ludus.evaluation.players import load_agent
from ludus.policies.agent import Agent
from ludus.training.config import TrainConfig
from ludus.training.preflight import verify
from ludus.training.presets import load_run_config, world_of_file
from ludus.training.resolve import resolve
from ludus.training.run_folder import changed_config, new_run_folder, read_run_config
from ludus.training.session import Received, ended_by_signals, extend, read_progress, run_training

_FILE_ENDINGS = (".yaml", ".yml")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TrainedRun:
    """A run that has ended.

    Attributes:
        folder: Its run folder, which is an agent for `ludus.evaluate` and all commands.
        config: Its settings.
        env_steps: How far it got.
        stop_reason: Why it ended before its budget; empty if it did not.
    """

    folder: Path
    config: TrainConfig
    env_steps: int
    stop_reason: str

    def agent(self) -> Agent:
        """Load its best agent, or the last one where nothing was evaluated."""
        return load_agent(self.folder)


def train(
    config: str | Path | Mapping[str, Any] | TrainConfig,
    *,
    preset: str | None = None,
    overrides: Sequence[str] = (),
    folder: str | Path | None = None,
) -> TrainedRun:
    """Train an agent until the budget of its settings, and return the run.

    The settings are checked for real before anything else: a run that cannot work makes no folder. The first SIGTERM or
    Ctrl-C saves `interrupted` and returns, if this is the main thread.

    Args:
        config: A world such as `brawl` or `gym:CartPole-v1`; or the path of a YAML file that names its world; or the
            settings as a mapping of the same form.
        preset: Preset of the world, if `config` is a world; its first one if None.
        overrides: Settings as `key=value` that override all others.
        folder: Run folder; a new one under `runs/` if None. An unfinished run in it with the same settings is resumed.

    Raises:
        ConfigError: A setting is wrong; all faults are listed.
        UnknownNameError: There is no such world or preset.
        VerificationError: The run would fail.
        ConfigMismatchError: The run in the folder began with other settings.
        RunLockedError: Another process is training in the folder.
    """
    settings = _read(config, preset, overrides)
    title = f"{settings.world.name.replace(':', '-')}-{preset or 'run'}"
    return _run(settings, None if folder is None else Path(folder), title)


def resume(folder: str | Path, *, overrides: Sequence[str] = ()) -> TrainedRun:
    """Resume a run that was cut off, with the same schedules; or extend it, see `ludus.training.session`.

    Args:
        folder: The run folder.
        overrides: Settings that do not decide the course of learning, as `key=value`, such as `monitoring.console=off`;
            and `total_env_steps=N` for a larger budget.

    Raises:
        ConfigError: The folder holds no run, or the larger budget is used up already.
        ConfigMismatchError: An override would change the course of learning.
        RunLockedError: Another process is training in the folder.
    """
    folder = Path(folder)
    began = read_run_config(folder)
    config = extend(began, changed_config(began, overrides), read_progress(began, folder).env_steps)
    return _run(config, folder, folder.resolve().name)


def _read(
    config: str | Path | Mapping[str, Any] | TrainConfig, preset: str | None, overrides: Sequence[str]
) -> TrainConfig:
    is_world = isinstance(config, str) and not config.endswith(_FILE_ENDINGS)
    if preset is not None and not is_world:
        raise ConfigError(f"preset {preset!r} needs a world given by name; let the settings extend {preset} instead")
    if isinstance(config, TrainConfig):
        return changed_config(config, overrides)
    if isinstance(config, Mapping):
        with temporary_folder("ludus-") as place:  # a mapping can do what a file can, also extend
            file = place / "settings.yaml"
            write_text_atomic(file, dump_yaml(_plain(config)))
            return load_run_config(world_of_file(file), None, file, overrides)
    if is_world:
        return load_run_config(str(config), preset, None, overrides)
    file = Path(config)
    world = world_of_file(file)
    check_name_from_file(world, f"{file}: world.name")
    return load_run_config(world, None, file, overrides)


def _plain(value: Any) -> Any:  # noqa: ANN401 - settings of any depth
    """Return settings as YAML can hold them: mappings and sequences of any kind become plain ones."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, Path):
        return str(value)
    return value


def _run(config: TrainConfig, folder: Path | None, title: str) -> TrainedRun:
    progress = read_progress(config, folder)
    if folder is not None and progress.is_finished:
        logger.info("[OK] %s is finished at %d env steps; nothing is left to do", folder, progress.env_steps)
        return TrainedRun(folder, config, progress.env_steps, "")
    run = resolve(config)
    for line in verify(run, progress.env_steps, folder):
        logger.info("[OK] %s", line)
    chosen = new_run_folder(Path("runs"), title) if folder is None else folder
    with _signals() as received:
        outcome = run_training(run, chosen, received, title=title)
    return TrainedRun(chosen, config, outcome.counters.env_steps, outcome.stop_reason)


def _signals() -> AbstractContextManager[Received]:
    """Return the answer to signals; Python lets the main thread alone change it."""
    if threading.current_thread() is threading.main_thread():
        return ended_by_signals()
    return nullcontext(Received())
