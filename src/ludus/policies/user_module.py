"""Networks of the user's own by name: `my_file.py:MyNet` as the setting `policy.module`.

A name never loads anything. It is that of a class in a plugin that the user loaded, in a module of the user's own that
the program imported, or of one that `register_network` was given. `ludus.policies.network` runs them.
"""

import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from ludus.core.errors import ConfigError, did_you_mean
from ludus.core.text import is_own_file
from ludus.rewards.plugins import plugin_modules

MODULE_PATTERN = r"^.*[^:/\\]:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$"  # of the setting: file or module, and class

_REGISTERED: dict[str, type[nn.Module]] = {}


def register_network(network: type[nn.Module]) -> str:
    """Register a class as a network and return its name, for the setting `policy.module`.

    The name is that of the class and of the file that defines it, such as `train_mine.py:MyNet`, so that commands find
    it again with `--plugin train_mine.py`.

    Raises:
        ConfigError: It is no class of `torch.nn.Module`, is defined inside a function, or another file has registered
            one of this name.
    """
    if not isinstance(network, type) or not issubclass(network, nn.Module):
        raise ConfigError(f"a network must be a class derived from torch.nn.Module, got {network!r}")
    if "<locals>" in network.__qualname__:
        raise ConfigError(
            f"network {network.__qualname__!r} ({place_of(network)}) is defined inside a function, where no command "
            "could find it again; define it at the top level of its file"
        )
    file = file_of(network)
    name = f"{Path(file).name if file else network.__module__}:{network.__qualname__}"
    other = _REGISTERED.get(name)
    if other is not None and file_of(other) != file:
        raise ConfigError(
            f"two networks are called {name!r}: {place_of(other)} and {place_of(network)}; rename a file or a class"
        )
    _REGISTERED[name] = network  # the same file may define it again, as notebooks do
    return name


def find_network(name: str) -> type[nn.Module]:
    """Return the class of a name such as `my_file.py:MyNet` or `package.module:MyNet`.

    Raises:
        ConfigError: Nothing that is loaded has this name.
    """
    if name in _REGISTERED:
        return _REGISTERED[name]
    source, _, qualname = name.rpartition(":")
    modules = plugin_modules(source) or _imported(source)
    if not modules:
        raise ConfigError(
            f"network {name!r} is not loaded: pass --plugin {source}, or in Python import it and call "
            "ludus.register_network; a file never loads code by itself"
        )
    if len(modules) > 1:
        raise ConfigError(f"network {name!r} is in several files: {', '.join(modules)}; load one of them, or rename it")
    place, module = next(iter(modules.items()))
    found = _member(module, qualname)
    if not isinstance(found, type) or not issubclass(found, nn.Module):
        own = [key for key, value in vars(module).items() if isinstance(value, type) and issubclass(value, nn.Module)]
        raise ConfigError(
            f"network {name!r}: {place} has no class {qualname!r} derived from torch.nn.Module"
            f"{did_you_mean(qualname, own)}; it has {', '.join(own) or 'none'}"
        )
    return found


def file_of(network: type[nn.Module]) -> str:
    """Return the path of the file that defines a class; empty where there is none, as in a notebook."""
    code = _code(network)
    file = str(getattr(sys.modules.get(network.__module__), "__file__", "") if code is None else code.co_filename)
    return file if file.endswith(".py") and Path(file).is_file() else ""


def place_of(network: type[nn.Module], method: str = "forward") -> str:
    """Return file and line of a method of a class, or else of its `__init__`."""
    code = _code(network, method) or _code(network)
    return network.__module__ if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def _code(network: type[nn.Module], *methods: str) -> Any:  # noqa: ANN401 - a code object
    """Return the code of the first of its own methods, without decorators; Python keeps no place of a class itself."""
    for name in methods or ("forward", "__init__", *vars(network)):
        method = vars(network).get(name)
        code = getattr(inspect.unwrap(method) if callable(method) else None, "__code__", None)
        if code is not None:
            return code
    return None


def _imported(name: str) -> dict[str, ModuleType]:
    """Return a module that the program imported, by its name or that of its file, if it is the user's own code.

    Installed packages are left out: a setting from a file must not pick any class of any library.
    """
    known = {
        str(module.__file__): module
        for key, module in list(sys.modules.items())
        if isinstance(getattr(module, "__file__", None), str) and name in (key, Path(str(module.__file__)).name)
    }
    return {file: module for file, module in known.items() if is_own_file(file)}


def _member(module: ModuleType, qualname: str) -> object:
    found: object = module
    for part in qualname.split("."):
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    return found
