"""Register the worlds with Gymnasium as `ludus/Name-v1`; this alone imports no world, no torch and no Gymnasium."""

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_NAMESPACE = "ludus"


def register_gymnasium() -> None:
    """Register all worlds with Gymnasium; may be called again."""
    import gymnasium as gym

    from ludus.envs.world import registered_worlds

    for world in registered_worlds():
        env_id = f"{_NAMESPACE}/{world.id[0].upper()}{world.id[1:]}"
        if env_id not in gym.registry:
            gym.register(
                id=env_id,
                entry_point="ludus.envs.adapters.gymnasium_env:LudusEnv",
                vector_entry_point="ludus.envs.adapters.gymnasium_env:LudusVectorEnv",
                kwargs={"world": world.id, "opponent": world.default_opponent},
            )


def register_when_gymnasium_loads() -> None:
    """Register all worlds as soon as Gymnasium is imported, which takes longer than all that `ludus --help` needs."""
    if "gymnasium" in sys.modules:
        register_gymnasium()
    else:
        sys.meta_path.insert(0, _GymnasiumWatch())


class _GymnasiumWatch(MetaPathFinder):
    """Waits for the import of Gymnasium, once."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find Gymnasium the usual way and have the worlds registered after it has run."""
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
        """Leave it to the other loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, then registers the worlds."""
        self._loader.exec_module(module)
        register_gymnasium()
