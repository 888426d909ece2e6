"""Callbacks: what the training loop reports while it works, the base class, and the list that the loop notifies."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from torch import Tensor

from ludus.core.errors import CallbackError, ConfigError, LudusError, did_you_mean
from ludus.core.faults import let_pass
from ludus.core.text import blame
from ludus.envs.base import BatchedEnv, StepResult
from ludus.rewards.plugins import load_module
from ludus.rollout.episodes import NO_EPISODES, Episodes
from ludus.training.components import Components
from ludus.training.config import TrainConfig

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Counters:
    """How far a run is; three numbers that are never mixed up.

    Attributes:
        env_steps: Steps of learner seats.
        iterations: Rollouts that were collected and learned from.
        updates: Steps of the optimiser.
    """

    env_steps: int = 0
    iterations: int = 0
    updates: int = 0


@dataclass(frozen=True, slots=True)
class Iteration:
    """One finished iteration.

    Attributes:
        counters: After it.
        metrics: What `metrics.jsonl` gets beside the counters; None where there is nothing to average.
        elapsed_s: Time it took, without logging and checkpoints.
        episodes: What ended in it.
        rewards: For each reward term, its sum over all steps of the rollout; they add up to the rollout's reward.
        times_s: Where the time went: `simulation`, `inference`, `opponents`, `update`, `other`.
        phase: Name of the curriculum's phase that it belonged to; empty without a curriculum.
    """

    counters: Counters
    metrics: Mapping[str, float | None]
    elapsed_s: float
    episodes: Episodes = NO_EPISODES
    rewards: Mapping[str, float] = field(default_factory=lambda: _NOTHING)
    times_s: Mapping[str, float] = field(default_factory=lambda: _NOTHING)
    phase: str = ""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One evaluation during training, on its own games with fixed seeds.

    Attributes:
        counters: When it was.
        rows: For each opponent, its name and the numbers: `opponent`, `matches`, `win_rate`, `win_rate_low`,
            `win_rate_high`, `damage_ratio` and the world's other episode metrics. In a world with scenarios, for each
            `trial` likewise; where there are modes also the `mode`, and where teams are unequal the `side`.
        score: By which the best agent is kept.
        is_best: Whether the agent is kept: no earlier score was higher by more than `evaluation.tolerance`.
        judged_by: The number of the rows that the score is made of.
        milestones: Env steps at which something was reached first, by name; None where it was not yet.
        messages: Messages about it for people, beside the numbers.
        seconds: Time it took.
        every_env_steps: Env steps between evaluations from now on; 0 if unknown.
    """

    counters: Counters
    rows: tuple[Mapping[str, Any], ...]
    score: float
    is_best: bool
    judged_by: str = "win_rate"
    milestones: Mapping[str, int | None] = field(default_factory=lambda: _NOTHING)
    messages: tuple[str, ...] = ()
    seconds: float = 0.0
    every_env_steps: int = 0


class RunningTrainer(Protocol):
    """The trainer as callbacks see it; see `ludus.training.Trainer` for all that it can do."""

    config: TrainConfig
    components: Components
    counters: Counters
    training_s: float

    @property
    def num_timesteps(self) -> int:
        """Env steps so far, those of the rollout that is being collected included."""

    def stop(self, reason: str = ...) -> None:
        """Ask the run to end after the present iteration."""

    def assign_opponents(
        self, snapshots: Mapping[str, tuple[int, Mapping[str, Tensor]]], chances: Mapping[str, float]
    ) -> bool:
        """Let snapshots of other runs play."""


class BaseCallback:
    """Base class of callbacks: override the hooks that you need, the others do nothing.

    The loop calls the hooks on its own thread and waits for them. Of several processes, only the first has callbacks.
    An exception in a hook ends the run with a `CallbackError`; the last finished state is saved as `interrupted`.

    Attributes:
        trainer: The running `Trainer`, set before the first hook: `trainer.config`, `trainer.counters`,
            `trainer.components.policy`, `trainer.components.learner.rollout` (the last one), `trainer.stop(reason)`.
    """

    trainer: RunningTrainer

    @property
    def num_timesteps(self) -> int:
        """Env steps so far, those of the rollout that is being collected included."""
        return self.trainer.num_timesteps

    @property
    def training_env(self) -> BatchedEnv:
        """The batch of games that is trained in."""
        return self.trainer.components.env

    def on_training_start(self, counters: Counters) -> None:
        """Handle the start of training, or its continuation from these counters."""

    def on_rollout_start(self, counters: Counters) -> None:
        """Handle the start of a rollout."""

    def on_step(self, step: StepResult) -> bool | None:
        """Handle one step of all games; return False to stop the run.

        The loop calls this only if a callback overrides it. On a GPU the step may still be running: reading one of its
        tensors waits for it, which can make training several times slower. Do not change the tensors.

        A run that is stopped here drops the unfinished rollout, saves `interrupted` and can be resumed. One of several
        processes finishes the iteration first.
        """

    def on_rollout_end(self, counters: Counters) -> None:
        """Handle a complete rollout, before the update; `trainer.components.learner.rollout` holds it."""

    def on_iteration(self, iteration: Iteration) -> None:
        """Handle an iteration that is done and logged."""

    def on_evaluation(self, evaluated: Evaluated) -> None:
        """Handle an evaluation of the agent."""

    def on_activity(self, text: str, share: float | None, counters: Counters) -> None:
        """Handle the start or progress of something other than an iteration that may take long, such as an evaluation.

        It is over when the next iteration, evaluation or checkpoint is reported. `share` is how much of it is done,
        0 to 1; None if that is not known.
        """

    def on_checkpoint(self, folder: Path, counters: Counters) -> None:
        """Handle a checkpoint that is safe on the disk."""

    def on_message(self, level: str, text: str, counters: Counters) -> None:
        """Handle a message for people; `level` is `info`, `warning` or `alarm`."""

    def on_training_end(self, counters: Counters) -> None:
        """Handle the end of training, by its budget, a request to stop or an error."""


def make_callback(name: str) -> BaseCallback:
    """Load the file or module of `my_file.py:MyCallback`, and make an object of the class.

    This executes code. Call it only for what the user has typed.

    Raises:
        ConfigError: The file cannot be loaded, there is no such class in it, it is no callback, or it cannot be made
            without arguments.
    """
    source, _, class_name = name.rpartition(":")
    if not source or not class_name.isidentifier():
        raise ConfigError(f"callback {name!r}: name the file and the class, such as my_file.py:MyCallback")
    module = load_module(source)
    found = vars(module).get(class_name)
    if not isinstance(found, type) or not issubclass(found, BaseCallback) or found is BaseCallback:
        classes = {key: value for key, value in vars(module).items() if isinstance(value, type)}
        own = [key for key, value in classes.items() if issubclass(value, BaseCallback)]
        place = f" ({_place_of(found)})" if isinstance(found, type) else ""
        raise ConfigError(
            f"callback {name!r}: {class_name!r}{place} is no class of {module.__file__} that is derived from "
            f"ludus.BaseCallback{did_you_mean(class_name, own)}; it has {', '.join(own) or 'none'}"
        )
    try:
        return found()
    except BaseException as error:
        let_pass(error)
        raise ConfigError(
            f"callback {name!r} ({_place_of(found)}) cannot be made: {blame(error)}; give every argument of its "
            "__init__ a default"
        ) from error


def _place_of(cls: type) -> str:
    """Return file and line of a class, or its module where the source is not known."""
    try:
        return f"{inspect.getsourcefile(cls)}:{inspect.getsourcelines(cls)[1]}"
    except (OSError, TypeError):
        return cls.__module__


class CallbackList:
    """The callbacks of a run, notified in order; empty in all processes but the first.

    Attributes:
        is_listening: Whether callbacks are being notified at the moment.
    """

    def __init__(self, callbacks: Sequence[BaseCallback]) -> None:
        self._callbacks, self.is_listening = tuple(callbacks), False

    def attach(self, trainer: RunningTrainer) -> None:
        """Set the trainer of all callbacks."""
        for callback in self._callbacks:
            callback.trainer = trainer

    @property
    def wants_steps(self) -> bool:
        """Whether a callback overrides `on_step`."""
        return any(type(callback).on_step is not BaseCallback.on_step for callback in self._callbacks)

    def notify(self, what: Callable[[BaseCallback], object]) -> list[str]:
        """Notify each callback, and return the class names of those whose hook returned False.

        Raises:
            CallbackError: A callback raised an exception of its own; it is not notified again.
        """
        refusing = []
        self.is_listening = True
        try:
            for callback in self._callbacks:
                try:
                    if what(callback) is False:
                        refusing.append(type(callback).__name__)
                except LudusError:
                    raise
                except BaseException as error:
                    let_pass(error)
                    self._callbacks = tuple(each for each in self._callbacks if each is not callback)
                    raise CallbackError(f"callback {type(callback).__name__} failed: {blame(error)}") from error
        finally:
            self.is_listening = False
        return refusing

    def message(self, level: str, text: str, counters: Counters) -> None:
        """Send each callback a message; see `BaseCallback.on_message`."""
        self.notify(lambda callback: callback.on_message(level, text, counters))
