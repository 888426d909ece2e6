"""`torch.compile` that survives what an interrupted run has left in the compiler's cache."""

import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")
_TORN = re.compile(r"(\S+\.so): (?:file too short|invalid ELF header|cannot read file data|.*past end of file)")
_MOST_TORN = 100  # libraries of one function


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Returns the function as `torch.compile` makes it for tensors of fixed shapes, at the first call.

    The compiler takes a library that is in its cache for finished. A run that is killed while one is being written
    leaves a part of it, which no later run could load: such a part is removed, and the library made anew.
    """
    fast = torch.compile(function, dynamic=False)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for _ in range(_MOST_TORN):
            try:
                return fast(*args, **kwargs)
            except RuntimeError as error:
                torn = _TORN.search(str(error))
                if torn is None or not Path(torn[1]).is_file():
                    raise
                Path(torn[1]).unlink()
        return fast(*args, **kwargs)

    return call
