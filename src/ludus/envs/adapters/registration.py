"""Makes the worlds known to Gymnasium as `ludus/Name-v1`; this alone imports no world, no torch and no Gymnasium."""

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

# Gymnasium name -> world, and the opponent unless the caller names another. None: a world of one seat.
_WORLDS: dict[str, tuple[str, str | None]] = {
    "Brawl-v1": ("brawl-v1", "based"),
    "City-v1": ("city-v1", None),
    "Dig-v1": ("dig-v1", None),
    "Duel-v1": ("duel-v1", "random"),
    "Endless-v1": ("endless-v1", None),
    "Identity-v1": ("identity-v1", None),
    "Mimic-v1": ("mimic-v1", None),
    "Point-v1": ("point-v1", None),
    "Recall-v1": ("recall-v1", None),
    "Rocket-v1": ("rocket-v1", "chaser"),
    "Rps-v1": ("rps-v1", None),
}
_NAMESPACE = "ludus"


def register_gymnasium() -> None:
    """Registers all worlds with Gymnasium; may be called again."""
    import gymnasium as gym

    for name, (world, opponent) in _WORLDS.items():
        env_id = f"{_NAMESPACE}/{name}"
        if env_id not in gym.registry:
            gym.register(
                id=env_id,
                entry_point="ludus.envs.adapters.gymnasium_env:LudusEnv",
                vector_entry_point="ludus.envs.adapters.gymnasium_vector:LudusVectorEnv",
                kwargs={"world": world, "opponent": opponent},
            )


def register_when_gymnasium_loads() -> None:
    """Registers all worlds now if Gymnasium has been imported, else as soon as it is.

    Importing Gymnasium takes longer than everything that `ludus --help` needs.
    """
    if "gymnasium" in sys.modules:
        register_gymnasium()
    else:
        sys.meta_path.insert(0, _GymnasiumWatch())


class _GymnasiumWatch(MetaPathFinder):
    """Waits for the import of Gymnasium, once."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Finds Gymnasium the usual way and has the worlds registered after it has run."""
        del path, target
        if fullname != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _RegisteringLoader(spec.loader)
        return spec


class _RegisteringLoader(Loader):
    """Loads as another loader does, then registers the worlds."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leaves it to the other loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Runs the module, then registers the worlds."""
        self._loader.exec_module(module)
        register_gymnasium()
