"""A run as the command line starts it: lock, run folder, loggers, signals, and the loop in the middle.

A run is extended by resuming it with a larger budget. Schedules of the learning rate, clipping, entropy and exploration
go over the share of the budget that is done. With a larger budget that share is smaller, so they step back along their
way and reach their end at the new budget. Weights of rewards and the curriculum go by env steps and stay as they are.
Everything before the extension stays as it was.
"""

import logging
import os
import signal
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from pydantic import BaseModel

from ludus.algorithms.algorithm import algorithms
from ludus.core.errors import ConfigError
from ludus.core.schedules import CosineSchedule, ExponentialSchedule, LinearSchedule
from ludus.core.text import blame
from ludus.training.callbacks import BaseCallback, Counters
from ludus.training.checkpointing import Checkpoints
from ludus.training.config import TrainConfig
from ludus.training.loggers import Guarded, make_loggers
from ludus.training.loggers.run_log import RunLog
from ludus.training.loop import Trainer
from ludus.training.resolve import ResolvedRun, resolve, set_up_device
from ludus.training.run_folder import RunLock, describe_end, describe_run, has_ended

logger = logging.getLogger(__name__)

EXIT_STOPPED = 3  # a guard ended the run before its budget
SIGNALS = (signal.SIGTERM, signal.SIGINT)
_SHOW_CURSOR = b"\x1b[?25h\n"

Ramp = LinearSchedule | ExponentialSchedule | CosineSchedule


class Received:
    """Which signal came, and which run it stops; `number` is that of the signal, 0 if none came."""

    def __init__(self) -> None:
        self.number = 0
        self._trainers: list[Trainer] = []

    @property
    def exit_code(self) -> int:
        """What a process that a signal ended returns: 128 and the signal's number; 0 without a signal."""
        return 128 + self.number if self.number else 0

    def concern(self, trainer: Trainer) -> None:
        """From now on a signal ends this trainer's run; before, there was nothing to save, and it ended the process."""
        self._trainers.append(trainer)
        if self.number:  # a signal that the run caught, which did not end the process
            trainer.stop(self.reason)

    def release(self, trainer: Trainer) -> None:
        """From now on signals do not concern this trainer any more: its run has ended."""
        self._trainers.remove(trainer)

    def handle(self, number: int, _: FrameType | None) -> None:
        """Handle a signal."""
        if self.number:
            _end_at_once(128 + number)
        self.number = number
        if not self._trainers:
            sys.exit(self.exit_code)
        if len(self._trainers) == 1:
            self._trainers[0].interrupt(self.reason)
            return
        for trainer in self._trainers:  # of several, each ends its own iteration in its turn
            trainer.stop(self.reason)

    @property
    def reason(self) -> str:
        """Which signal came, in words."""
        return f"{signal.Signals(self.number).name} came"


@contextmanager
def ended_by_signals() -> Iterator[Received]:
    """Let the first signal save `interrupted` and end the run, and the second one end the process at once.

    For the main thread. The handlers that were there before come back afterwards.
    """
    received = Received()
    before = {each: signal.signal(each, received.handle) for each in SIGNALS}
    try:
        yield received
    except SystemExit:
        if received.number:
            logger.warning("[WARN] %s before the run began", received.reason)
        raise
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _end_at_once(code: int) -> None:
    """End the process without any clean-up, except that the cursor hidden by a live view is shown again."""
    for descriptor in (1, 2):
        if os.isatty(descriptor):
            os.write(descriptor, _SHOW_CURSOR)
            break
    os._exit(code)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    counters: Counters  # how far it got
    stop_reason: str  # why it ended before its budget; empty if it did not
    exit_code: int  # what the process shall return


class Progress(NamedTuple):
    """How far a run is.

    A run that was killed after its final checkpoint is not finished: its session has yet to be closed.
    """

    env_steps: int = 0  # of its newest checkpoint
    is_finished: bool = False  # whether nothing is left to do


def read_progress(config: TrainConfig, folder: Path | None) -> Progress:
    """Return how far the run in a folder is; None is a folder that is yet to be made.

    Raises:
        ConfigMismatchError: The run in this folder is finished, and began with other settings.
    """
    if folder is None:
        return Progress()
    checkpoints = Checkpoints(folder, config)
    finished = checkpoints.finished() if has_ended(folder) else None
    return Progress(checkpoints.reached(), False) if finished is None else Progress(finished.env_steps, True)


def run_training(
    run: TrainConfig | ResolvedRun,
    folder: Path,
    received: Received,
    *,
    title: str,
    user: str = "",
    callbacks: Sequence[BaseCallback] = (),
    warnings: Sequence[str] = (),
) -> Outcome:
    """Train or resume in a run folder until the budget, a signal or a guard ends it.

    Under `torchrun` every process calls this; the first one alone writes and shows anything. The signals of `received`,
    see `ended_by_signals`, end the run from now on. The callbacks are notified after the loggers. `run.log` gets
    the `warnings` of the checks that came before, see `held_warnings`.

    Raises:
        RunLockedError: Another process is training in the folder.
        ConfigMismatchError: The run in this folder began with other settings.
        LudusError: Whatever else ends a run; `interrupted` is saved before.
    """
    turns = training_turns(run, folder, received, title=title, user=user, callbacks=callbacks, warnings=warnings)
    try:
        while True:
            next(turns)
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome


def training_turns(
    run: TrainConfig | ResolvedRun,
    folder: Path,
    received: Received,
    *,
    title: str,
    user: str = "",
    callbacks: Sequence[BaseCallback] = (),
    warnings: Sequence[str] = (),
) -> Generator[None, None, Outcome]:
    """Do what `run_training` does in turns, so that several runs can share a process; see `Trainer.turns`."""
    with ExitStack() as stack:
        resolved = resolve(run)
        config, is_writer = resolved.config, resolved.is_writer
        set_up_device(resolved.device)
        loggers: list[BaseCallback] = []
        log: RunLog | None = None
        if is_writer:
            stack.enter_context(RunLock(folder))
            log = stack.enter_context(RunLog(folder))
            for warning in warnings:
                log.write(warning)
            budget, device, settings = config.total_env_steps, resolved.device, config.to_json()
            loggers = make_loggers(
                config.monitoring, folder, total_env_steps=budget, title=title, device=device, settings=settings
            )
            loggers.insert(0, Guarded(log))
        trainer = stack.enter_context(Trainer(resolved, folder, [*loggers, *callbacks]))
        if log is not None and describe_run(folder, resolved, trainer.counters, user=user):
            text = "the session before this one was cut off, by a kill or a loss of power"
            log.on_message("warning", text, trainer.counters)
        received.concern(trainer)
        error: BaseException | None = None
        try:
            for _ in trainer.turns():
                with log.paused() if log is not None else nullcontext():
                    yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            received.release(trainer)
            if log is not None:
                reason = _end_reason(trainer, error)
                log.end(reason, is_finished=error is None and trainer.is_finished)
                describe_end(folder, trainer, reason)
    reason = "" if trainer.is_finished else trainer.stop_reason
    return Outcome(trainer.counters, reason, received.exit_code or (EXIT_STOPPED if reason else 0))


def _end_reason(trainer: Trainer, error: BaseException | None) -> str:
    """Return why a session ended, in words."""
    if error is not None:
        return blame(error)
    if trainer.is_finished:
        return f"the budget of {trainer.config.total_env_steps:,} env steps is used up"
    return trainer.stop_reason


def extend(began: TrainConfig, asked: TrainConfig, env_steps: int) -> TrainConfig:
    """Return the settings that a run is resumed with; a larger budget makes them those of the same run, extended.

    `asked` are those that it began with, with changes; any other change is refused later, when the run is loaded.

    Raises:
        ConfigError: The budget is larger than before, but used up already.
    """
    total = asked.total_env_steps
    if total <= began.total_env_steps:
        return asked
    if total <= env_steps:
        raise ConfigError(f"total_env_steps={total}: the run is at {env_steps:,} env steps already; ask for more")
    return asked.model_copy(update={"extended_from": (*began.extended_from, began.total_env_steps)})


def describe_extension(config: TrainConfig, env_steps: int) -> Iterator[str]:
    """Say what the last extension of a run at `env_steps` changes, if it was not trained with before."""
    before, total = config.extended_from[-1], config.total_env_steps
    yield f"the run is extended from {before:,} to {total:,} env steps; it is at {env_steps:,}"
    for path, ramp in scheduled(config):
        then, now = (ramp.value(config.progress(env_steps, budget)) for budget in (before, total))
        ends, ended = (round(ramp.until * config.scheduled_env_steps(budget)) for budget in (total, before))
        yield (
            f"{path} is {ramp.kind} over the budget: {then:.4g} -> {now:.4g} from here, "
            f"{ramp.end:.4g} at {ends:,} env steps instead of {ended:,}"
        )


def scheduled(config: TrainConfig) -> Iterator[tuple[str, Ramp]]:
    """Yield every schedule over the budget that the run uses, with the path of its setting."""
    unused = tuple(f"{name}." for name in algorithms() if name != config.algorithm)
    return ((path, ramp) for path, ramp in _ramps(config, "") if not path.startswith(unused))


def _ramps(value: object, path: str) -> Iterator[tuple[str, Ramp]]:
    if isinstance(value, Ramp):
        if value.start != value.end:
            yield path, value
    elif isinstance(value, BaseModel):
        for name, inner in value:
            yield from _ramps(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, tuple):
        for index, inner in enumerate(value):
            yield from _ramps(inner, f"{path}[{index}]")
