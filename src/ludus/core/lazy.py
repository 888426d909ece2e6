"""Names of a package that are imported on first use, so that importing the package costs nothing."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Returns a `__getattr__` for a package.

    Args:
        package: Name of the package, for the error.
        homes: Public name -> module that defines it.
    """

    def resolve(name: str) -> Any:  # noqa: ANN401 - the type depends on the name
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return resolve
