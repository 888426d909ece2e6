"""A user's plugin that makes a run slow or lets it fail at the place that the variable FAULT names."""

import os
import sys
import time
from collections.abc import Callable
from typing import Any

KEPT: list[bytes] = []
FAULT = os.environ.get("FAULT", "")


def fall_asleep() -> None:
    sys.stdout.write("asleep\n")
    sys.stdout.flush()
    for _ in range(6000):  # not in one go: a signal that comes just before a long call is answered only after it
        time.sleep(0.1)


def fail() -> None:
    raise RuntimeError("the floor gave way")


def take_memory() -> None:
    KEPT.append(b"x" * (1 << 30))


def before(owner: Any, name: str, act: Callable[[], None], is_time: Callable[..., bool]) -> None:
    """Lets something happen before each call for which it is time."""
    original = getattr(owner, name)

    def wrapper(*arguments: Any, **options: Any) -> Any:
        if is_time(*arguments):
            act()
        return original(*arguments, **options)

    setattr(owner, name, wrapper)


def is_third(learner: Any, *_: Any) -> bool:
    return bool(learner.iterations == 2)


def arm() -> None:
    from ludus.algorithms.ppo.learner import PpoLearner
    from ludus.training import evaluation_callback, loop
    from ludus.training.checkpointing import Checkpoints

    if FAULT == "start":
        before(loop, "CurriculumCallback", fall_asleep, lambda *_: True)
    elif FAULT == "iteration":
        before(PpoLearner, "update", fall_asleep, is_third)
    elif FAULT == "evaluation":
        before(evaluation_callback, "evaluate", fall_asleep, lambda *_: True)
    elif FAULT == "save":
        before(Checkpoints, "save", fall_asleep, lambda _, name, *__: name == "interrupted")
    elif FAULT == "memory":
        before(PpoLearner, "update", take_memory, is_third)
    elif FAULT == "error":
        before(PpoLearner, "update", fail, is_third)
    elif FAULT == "error in evaluation":
        before(evaluation_callback, "evaluate", fail, lambda *_: True)


if "ludus.training" in sys.modules:  # a worker loads plugins too, and would import all of this for nothing
    arm()
