"""`ludus.train` and `ludus.resume`: whole runs for programs and notebooks, as the command line does them."""

import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray
from torch import nn

from ludus.config import Document, as_document, short
from ludus.core.errors import ConfigError
from ludus.core.tables import read_table
from ludus.envs.bots import PythonBot, as_bot, register_bot
from ludus.envs.own_games import env_name
from ludus.envs.registry import check_name_from_file
from ludus.evaluation.evaluate import Evaluation, evaluate
from ludus.evaluation.players import Contender, load_agent
from ludus.policies.agent import Agent
from ludus.policies.user_module import register_network
from ludus.training.agent_opponents import name_agent
from ludus.training.callbacks import BaseCallback, Iteration
from ludus.training.config import TrainConfig
from ludus.training.destinations import remember, withhold
from ludus.training.loggers.csv_logger import METRICS
from ludus.training.loggers.run_log import held_warnings
from ludus.training.preflight import verify
from ludus.training.presets import load_run_config, run_title, world_of_file, world_of_settings
from ludus.training.resolve import resolve
from ludus.training.run_folder import changed_config, new_run_folder, read_run_config
from ludus.training.session import Received, ended_by_signals, extend, read_progress, run_training

_FILE_ENDINGS = (".yaml", ".yml")

Opponent: TypeAlias = str | Path | Agent | PythonBot | Callable[..., Any]
Callbacks: TypeAlias = BaseCallback | Sequence[BaseCallback]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TrainedRun:
    """A run that has ended.

    Attributes:
        folder: Its run folder, which is an agent for `ludus.evaluate` and all commands.
        config: Its settings.
        env_steps: How far it got.
        stop_reason: Why it ended before its budget; empty if it did not.
        callbacks: The callbacks it was trained with, which `learn` uses again.
    """

    folder: Path
    config: TrainConfig
    env_steps: int
    stop_reason: str
    callbacks: tuple[BaseCallback, ...] = field(default=(), repr=False)

    def agent(self) -> Agent:
        """Load its best agent, or the last one where nothing was evaluated."""
        return load_agent(self.folder, limits=None)  # of this program's own run

    def learn(
        self, more_env_steps: int, *, callbacks: Callbacks | None = None, overrides: Sequence[str] = ()
    ) -> "TrainedRun":
        """Train for more env steps in the same folder, and return the run as it is then.

        A finished run gets a larger budget, along which its schedules stretch, as by `ludus resume` with
        `total_env_steps=N`. A run that was stopped continues towards its budget and stops again after so many steps.

        Args:
            more_env_steps: At least so many; iterations are whole.
            callbacks: Instead of those of the last call.
            overrides: Settings that do not decide the course of learning, as `key=value`.

        Raises:
            ConfigError: The number is not positive, or a setting is wrong.
            ConfigMismatchError: An override would change the course of learning.
        """
        if isinstance(more_env_steps, bool) or not isinstance(more_env_steps, int) or more_env_steps < 1:
            raise ConfigError(f"more_env_steps must be a whole number of at least 1, got {more_env_steps!r}")
        began = read_run_config(self.folder)
        target = read_progress(began, self.folder).env_steps + more_env_steps
        used = self.callbacks if callbacks is None else _checked_callbacks(callbacks)
        words, stops = list(overrides), list[BaseCallback]()
        if target > began.total_env_steps:
            words.append(f"total_env_steps={target}")
        else:
            stops.append(_StopAt(target, f"learn({more_env_steps}) is done"))
        config = _extended(self.folder, words)
        return _run(config, self.folder, self.folder.resolve().name, used, stops)

    def evaluate(
        self,
        opponents: Sequence[Contender] | Contender | None = None,
        *,
        scenarios: Sequence[str] | None = None,
        modes: Mapping[str, Mapping[str, Any]] | None = None,
        matches: int = 400,
        seed: int = 0,
        device: str | None = None,
        config: Mapping[str, Any] | None = None,
        deterministic: bool = False,
    ) -> Evaluation:
        """Evaluate its best agent; see `ludus.evaluate`."""
        return evaluate(
            self.folder, opponents, scenarios=scenarios, modes=modes, matches=matches, seed=seed,
            device=device, config=config, deterministic=deterministic,
        )  # fmt: skip

    def metrics(self) -> dict[str, NDArray[np.float64] | NDArray[np.str_]]:
        """Return `metrics.jsonl` as a table: one `(iterations,)` array per column, NaN where there is no number.

        `pandas.DataFrame(run.metrics())` makes a data frame of it. The phase of a curriculum, `stage`, is text.
        """
        table = read_table(self.folder / METRICS)
        return {name: table.texts(name) if name == "stage" else table.numbers(name) for name in table.names}


def train(
    world_or_env: Any = None,  # noqa: ANN401 - a world, a file, settings, or an environment of the user's own
    *,
    preset: str | None = None,
    env: Any = None,  # noqa: ANN401
    callbacks: Callbacks = (),
    seed: int | None = None,
    device: str | None = None,
    policy: Mapping[str, Any] | type[nn.Module] | None = None,
    opponents: str | Mapping[Any, float] | None = None,
    total_env_steps: int | None = None,
    overrides: Sequence[str] = (),
    folder: str | Path | None = None,
    **sections: Any,  # noqa: ANN401 - settings of any form
) -> TrainedRun:
    """Train an agent until the budget of its settings, and return the run.

    Later settings win over earlier ones: the preset, the file or the mapping; the keyword arguments; the overrides.
    Sections merge with those below them; mappings with keys of your own, such as `opponents`, replace them.

    The settings are checked for real before anything else: a run that cannot work makes no folder. The first SIGTERM or
    Ctrl-C saves `interrupted` and returns, if this is the main thread.

    Args:
        world_or_env: A world such as `brawl` or `gym:CartPole-v1`; the path of a YAML file that names its world; the
            settings as a mapping of the same form or as a `TrainConfig`; or an environment, see `env`.
        preset: Preset of the world; its default one if None. Files and mappings extend presets themselves.
        env: An environment of your own: a class or factory of `gymnasium.Env`, a vector environment, or a PettingZoo
            environment.
        callbacks: Objects of `ludus.BaseCallback`.
        seed: Seed of everything random.
        device: Device of the games, such as `cpu`, `cuda` or `auto`.
        policy: Settings of the network, or a class of `torch.nn.Module` that is the network, or settings that have
            such a class as `module`.
        opponents: Name or mapping of opponents to weights, which replaces the mix of the preset. An opponent is the
            name of a bot, `self`, `mirror`, the path of an agent, an agent, or a function or class that is a bot.
        total_env_steps: Budget in env steps.
        overrides: Settings as `key=value` that override all others.
        folder: Run folder; a new one under `runs/` if None. An unfinished run in it with the same settings is resumed.
        sections: Any section of a configuration file, such as `ppo={"n_steps": 64}` or `evaluation=None`.

    Raises:
        ConfigError: A setting is wrong; all faults are listed, each with its key and where it comes from.
        UnknownNameError: There is no such world or preset.
        VerificationError: The run would fail.
        ConfigMismatchError: The run in the folder began with other settings.
        RunLockedError: Another process is training in the folder.
        CallbackError: A callback raised an exception; the run is saved.
    """
    used = _checked_callbacks(callbacks)
    if env is not None:
        if world_or_env is not None:
            raise ConfigError(f"both {short(world_or_env)} and env={short(env)} are given; choose one")
        world_or_env = env
    source = world_or_env if _is_settings(world_or_env) else env_name(world_or_env)
    given = {"seed": seed, "total_env_steps": total_env_steps, "policy": _policy_section(policy)}
    given = {name: value for name, value in given.items() if value is not None} | sections
    layers = [_section(name, (name,), value) for name, value in given.items()]
    if isinstance(world_or_env, VectorEnv):  # below the sections, which may ask for another number
        layers.insert(0, _section("env", ("world", "num_envs"), world_or_env.num_envs))
    if device is not None:
        layers.append(_section("device", ("world", "device"), device))
    settings = _read(source, preset, overrides, layers, opponents)
    return _run(settings, None if folder is None else Path(folder), _title(settings, source, preset), used)


def resume(folder: str | Path, *, callbacks: Callbacks = (), overrides: Sequence[str] = ()) -> TrainedRun:
    """Resume a run that was cut off, with the same schedules; or extend it, see `ludus.training.session`.

    Args:
        folder: The run folder.
        callbacks: Objects of `ludus.BaseCallback`.
        overrides: Settings that do not decide the course of learning, as `key=value`, such as `monitoring.console=off`;
            and `total_env_steps=N` for a larger budget.

    Raises:
        ConfigError: The folder holds no run, or the larger budget is used up already.
        ConfigMismatchError: An override would change the course of learning.
        RunLockedError: Another process is training in the folder.
        CallbackError: A callback raised an exception; the run is saved.
    """
    folder = Path(folder)
    return _run(_extended(folder, overrides), folder, folder.resolve().name, _checked_callbacks(callbacks))


class _StopAt(BaseCallback):
    """Stop a run after an iteration that reaches a number of env steps."""

    def __init__(self, env_steps: int, reason: str) -> None:
        self._env_steps, self._reason = env_steps, reason

    def on_iteration(self, iteration: Iteration) -> None:
        """Ask for the stop."""
        if iteration.counters.env_steps >= self._env_steps:
            self.trainer.stop(self._reason)


def _title(
    settings: TrainConfig, source: str | Path | Mapping[str, Any] | TrainConfig | None, preset: str | None
) -> str:
    """Return the title of a run; settings given in Python as a whole have no preset to name."""
    world = settings.world.name
    if isinstance(source, Mapping | TrainConfig):
        return run_title(world, "run")
    return run_title(world, preset, Path(str(source)) if _is_file(source) else None)


def _is_file(source: object) -> bool:
    return isinstance(source, Path) or (isinstance(source, str) and source.endswith(_FILE_ENDINGS))


def _is_settings(source: object) -> bool:
    return source is None or isinstance(source, str | Path | Mapping | TrainConfig)


def _policy_section(policy: Mapping[str, Any] | type[nn.Module] | None) -> object:
    """Return the section `policy`; a network of the user's own is registered, and the section names it."""
    section = policy if isinstance(policy, Mapping) else {"module": policy}
    network = section.get("module")
    if isinstance(network, nn.Module):
        raise ConfigError(f"policy must be a class, so that every run makes its own: pass {type(network).__name__}")
    if isinstance(network, type) and issubclass(network, nn.Module):
        return {**section, "module": register_network(network)}
    return policy


def _section(keyword: str, path: tuple[str, ...], value: object) -> Document:
    return as_document(value, f"ludus.train({keyword}=...)", path)


def _read(
    source: str | Path | Mapping[str, Any] | TrainConfig | None,
    preset: str | None,
    overrides: Sequence[str],
    sections: Sequence[Document] = (),
    opponents: str | Mapping[Any, float] | None = None,
) -> TrainConfig:
    """Return the settings of a run from all layers."""
    is_file = _is_file(source)
    if preset is not None and (is_file or isinstance(source, Mapping | TrainConfig)):
        raise ConfigError(f"preset {preset!r} needs a world given by name; let the settings extend {preset} instead")
    mapping = as_document(source, "ludus.train({...})") if isinstance(source, Mapping) else None
    if isinstance(source, TrainConfig):
        world = source.world.name
    elif is_file:
        world = world_of_file(Path(str(source)))
        check_name_from_file(world, f"{source}: world.name")
    else:
        world = source if isinstance(source, str) else world_of_settings(mapping, sections)
    if opponents is not None:
        sections = [*sections, _section("opponents", ("opponents",), _mix(opponents, world))]
    if isinstance(source, TrainConfig):
        return changed_config(source, overrides, sections)
    return load_run_config(world, preset, Path(str(source)) if is_file else mapping, overrides, sections)


def _mix(opponents: str | Mapping[Any, float], world: str) -> object:
    if not isinstance(opponents, Mapping):
        return opponents
    return {_opponent_name(opponent, world): weight for opponent, weight in opponents.items()}


def _opponent_name(opponent: Opponent, world: str) -> str:
    """Return the name of an opponent in a mix; a bot of the user's own is registered by its own name in lower case."""
    if isinstance(opponent, str | Path):
        return str(opponent)
    if isinstance(opponent, Agent):
        return name_agent(opponent)
    bot = opponent if isinstance(opponent, PythonBot) else as_bot(opponent)
    name = re.sub(r"[^a-z0-9_-]+", "-", bot.name.lower()).strip("-_0123456789") or "bot"
    register_bot(world, name, delay=bot.delay, noise=bot.noise)(bot.code)
    return name


def _checked_callbacks(callbacks: Callbacks) -> tuple[BaseCallback, ...]:
    listed: tuple[object, ...] = (callbacks,) if isinstance(callbacks, BaseCallback) else tuple(callbacks)
    checked: list[BaseCallback] = []
    for callback in listed:
        if not isinstance(callback, BaseCallback):
            hint = "; pass an object instead of the class" if isinstance(callback, type) else ""
            raise ConfigError(f"callbacks must be objects of ludus.BaseCallback, got {callback!r}{hint}")
        checked.append(callback)
    return tuple(checked)


def _extended(folder: Path, overrides: Sequence[str]) -> TrainConfig:
    """Return the settings with which the run in a folder is resumed."""
    began = read_run_config(folder)
    return extend(began, changed_config(withhold(began), overrides), read_progress(began, folder).env_steps)


def _run(
    config: TrainConfig,
    folder: Path | None,
    title: str,
    callbacks: tuple[BaseCallback, ...],
    also: Sequence[BaseCallback] = (),
) -> TrainedRun:
    progress = read_progress(config, folder)
    if folder is not None and progress.is_finished:
        logger.info("[OK] %s is finished at %d env steps; nothing is left to do", folder, progress.env_steps)
        return TrainedRun(folder, config, progress.env_steps, "", callbacks)
    with held_warnings() as warnings:
        run = resolve(config)
        for line in verify(run, progress.env_steps, folder):
            logger.info("[OK] %s", line)
    remember(config.monitoring)
    chosen = new_run_folder(Path("runs"), title) if folder is None else folder
    with _signals() as received:
        outcome = run_training(run, chosen, received, title=title, callbacks=[*callbacks, *also], warnings=warnings)
    return TrainedRun(chosen, config, outcome.counters.env_steps, outcome.stop_reason, callbacks)


def _signals() -> AbstractContextManager[Received]:
    """Return the answer to signals; Python lets the main thread alone change it."""
    if threading.current_thread() is threading.main_thread():
        return ended_by_signals()
    return nullcontext(Received())
