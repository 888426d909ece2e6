"""Core: errors, random streams, atomic files, schedules, running statistics; imports nothing of Ludus."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package; `homes` maps public names to the modules that define them."""

    def resolve(name: str) -> Any:  # noqa: ANN401 - the type depends on the name
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return resolve
