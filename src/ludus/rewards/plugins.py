"""Loads a user's own file of reward terms, and only one that the user has named."""

import importlib.util
import sys
from pathlib import Path

from ludus.core.errors import ConfigError


def load_plugin(file: Path) -> None:
    """Runs a Python file, whose decorated functions become reward terms (and whatever else it registers).

    This executes the file: it is called only for what the user names on the command line, never for a path that a
    config, a checkpoint or a run folder holds. A file that was loaded already is left alone.

    Raises:
        ConfigError: There is no such Python file, or running it failed.
    """
    path = file.resolve()
    name = f"ludus_plugin_{path.stem}_{abs(hash(str(path))):x}"
    if name in sys.modules:
        return
    if path.suffix != ".py" or not path.is_file():
        raise ConfigError(f"plugin {str(file)!r} is not a Python file; pass the path of an existing .py file")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"plugin {str(file)!r} cannot be loaded; check that it is a readable .py file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ConfigError(f"plugin {file} failed: {type(error).__name__}: {error}; mend the file") from error
