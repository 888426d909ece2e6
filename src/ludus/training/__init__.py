"""Training: the loop, its settings, callbacks, checkpoints and guards."""

from ludus.training.callbacks import Callback, Counters, Iteration, QuietCallback
from ludus.training.config import TrainConfig
from ludus.training.loop import Trainer, train

__all__ = ["Callback", "Counters", "Iteration", "QuietCallback", "TrainConfig", "Trainer", "train"]
