"""Load the user's own Python files and modules, and only those that the user has named."""

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

from ludus.core.errors import ConfigError
from ludus.core.faults import let_pass
from ludus.core.text import blame

_LOADED: dict[str, str] = {}  # name in sys.modules -> absolute path of the file, or the name itself
_OTHERS: dict[str, str] = {}  # likewise for what is no plugin: neither workers nor agents need it
_WORLDS: set[str] = set()  # worlds that are not the package's own


def load_plugin(plugin: str | Path) -> None:
    """Run a Python file or import a module, which registers reward terms, bots, networks or worlds.

    This executes code. Call it only for what the user has typed, never for a name that a config, a checkpoint or a run
    folder holds. A plugin that is loaded already is left alone.

    Args:
        plugin: Path of a `.py` file, or name of a module.

    Raises:
        ConfigError: There is no such file or module, or running it failed.
    """
    name, source = _load(plugin)
    _OTHERS.pop(name, None)
    _LOADED[name] = source


def load_module(plugin: str | Path) -> ModuleType:
    """Load a file or module like `load_plugin`, but not as a plugin, and return it: for what this process alone uses.

    Raises:
        ConfigError: There is no such file or module, or running it failed.
    """
    name, source = _load(plugin)
    if name not in _LOADED:
        _OTHERS[name] = source
    return sys.modules[name]


def _load(plugin: str | Path) -> tuple[str, str]:
    """Run a file or import a module, unless that was done, and return its name in `sys.modules` and where it is."""
    if not (isinstance(plugin, Path) or plugin.endswith(".py") or os.sep in plugin):
        if plugin not in _LOADED:
            _import_module(plugin)
        return plugin, plugin
    path = Path(plugin).resolve()
    known = next((name for name, file in (_LOADED | _OTHERS).items() if file == str(path)), None)
    return known or _run_file(path, str(plugin)), str(path)


def loaded_plugins() -> tuple[str, ...]:
    """Return the plugins that were loaded, in order: absolute paths of files, and names of modules."""
    return tuple(_LOADED.values())


def plugin_modules(name: str) -> dict[str, ModuleType]:
    """Return the loaded plugins of a name, the name of a file without its folder or that of a module, by their path."""
    loaded = ((key, plugin) for key, plugin in _LOADED.items() if name in (plugin, Path(plugin).name))
    return {plugin: sys.modules[key] for key, plugin in loaded if key in sys.modules}


def plugin_of(module: str) -> str:
    """Return the file of a module that was loaded as a plugin by its path; empty for all others."""
    plugin = _LOADED.get(module, "")
    return plugin if plugin != module else ""


def plugin_module(plugin: str) -> ModuleType:
    """Return the module of a plugin that was loaded by its path."""
    return sys.modules[next(name for name, file in _LOADED.items() if file == plugin)]


def note_world(world: str) -> None:
    """Remember that a world was registered from outside the package, so that its agents need what registers it."""
    _WORLDS.add(world)


def plugins_needed(world: str) -> tuple[str, ...]:
    """Return the loaded plugins that an agent of `world` needs, as its file records them: without folders.

    A world of the package needs none, and neither does an environment of Gymnasium's own: plugins with reward terms
    matter to a run, not to its agent.
    """
    import gymnasium  # a command that only loads plugins does without

    gym_id = world.removeprefix("gym:")
    if gym_id == world:
        is_foreign = world in _WORLDS or world.startswith("pettingzoo:")
    else:
        spec = gymnasium.registry.get(gym_id)
        is_foreign = spec is None or not str(spec.entry_point).startswith("gymnasium.")
    return tuple(Path(plugin).name for plugin in loaded_plugins()) if is_foreign else ()


def _import_module(name: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise ConfigError(f"module {name!r} failed: {blame(error)}; install what it imports") from error
        raise ConfigError(
            f"there is no module {name!r}; valid: an installed module, a module in the current folder, or the path of "
            "a .py file with --plugin"
        ) from error
    except BaseException as error:
        let_pass(error)
        raise ConfigError(f"module {name!r} failed: {blame(error)}; fix it and try again") from error


def _run_file(path: Path, plugin: str) -> str:
    """Run a file as a module, and return the name that it got."""
    if path.suffix != ".py" or not path.is_file():
        raise ConfigError(f"plugin {plugin!r} is not a Python file; pass the path of an existing .py file")
    name = path.stem if _is_free(path.stem, path) else f"ludus_plugin_{path.stem}_{len(_LOADED) + len(_OTHERS)}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"plugin {plugin!r} cannot be loaded; check that it is a readable .py file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        let_pass(error)
        del sys.modules[name]
        raise ConfigError(f"plugin {plugin!r} failed: {blame(error)}; fix the file") from error
    return name


def _is_free(stem: str, path: Path) -> bool:
    """Say whether a file can have its own name as a module, so that `entry_point="stem:Class"` finds it."""
    if stem in sys.modules or not stem.isidentifier():
        return False
    other = importlib.util.find_spec(stem)
    return other is None or (other.origin is not None and Path(other.origin).resolve() == path)
