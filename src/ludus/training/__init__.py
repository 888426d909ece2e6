"""Training: the loop, its settings, callbacks, checkpoints and guards."""

from ludus.training.callbacks import BaseCallback, Counters, Iteration
from ludus.training.config import TrainConfig
from ludus.training.loop import Trainer, train

__all__ = ["BaseCallback", "Counters", "Iteration", "TrainConfig", "Trainer", "train"]
