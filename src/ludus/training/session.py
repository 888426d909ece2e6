"""A run as the command line starts it: lock, run folder, sinks, signals, and the loop in the middle."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ludus.training.callbacks import Counters
from ludus.training.config import TrainConfig
from ludus.training.devices import choose_device, set_up_device
from ludus.training.lock import RunLock
from ludus.training.loop import Trainer
from ludus.training.ranks import find_place
from ludus.training.run_folder import describe_end, describe_run
from ludus.training.signals import Received
from ludus.training.sinks import make_sinks

EXIT_STOPPED = 3  # a guard ended the run before its budget


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.

    Attributes:
        counters: How far it got.
        stop_reason: Why it ended before its budget; empty if it did not.
        exit_code: What the process shall return.
    """

    counters: Counters
    stop_reason: str
    exit_code: int


def run_training(config: TrainConfig, folder: Path, received: Received, *, title: str, user: str = "") -> Outcome:
    """Trains in a run folder, or goes on in it, until the budget, a signal or a guard ends it.

    Under `torchrun` every process calls this; the first one alone writes and shows anything.

    Args:
        config: The settings; those of an earlier call on the same folder must have been the same.
        folder: The run folder.
        received: Of `ended_by_signals`, whose signals end the run from now on.
        title: What is trained, for people.
        user: Who trains.

    Raises:
        RunLockedError: Another process is training in the folder.
        ConfigMismatchError: The run in this folder began with other settings.
        LudusError: Whatever else ends a run; `interrupted` is saved before.
    """
    with ExitStack() as stack:
        is_writer = find_place().rank == 0
        here = choose_device(config)
        set_up_device(here.world.device)
        sinks = []
        if is_writer:
            stack.enter_context(RunLock(folder))
            settings = config.to_json()
            sinks = make_sinks(
                config.monitoring,
                folder,
                total_env_steps=config.total_env_steps,
                title=title,
                device=here.world.device,
                settings=settings if isinstance(settings, dict) else {},
            )
        trainer = stack.enter_context(Trainer(config, folder, sinks))
        if is_writer:
            describe_run(folder, config, user=user)
        received.concern(trainer)
        try:
            counters = trainer.run()
        finally:
            if is_writer:
                describe_end(folder, trainer.counters, trainer.training_s, trainer.evaluator.milestones)
    reason = "" if trainer.is_finished else trainer.stop_reason
    return Outcome(counters, reason, received.exit_code or (EXIT_STOPPED if reason else 0))
