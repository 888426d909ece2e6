"""The registry: versioned world names and `make_env`, the one way to get a batched environment."""

import importlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ludus.core.errors import ConfigError, DeviceError, UnknownNameError
from ludus.envs.base import BatchedEnv, EnvRequest
from ludus.envs.settings import EnvSettings

EnvFactory = Callable[[EnvRequest], BatchedEnv]

# Name -> "module:function". Strings, so that listing the worlds imports none of them.
_FACTORIES: dict[str, str | EnvFactory] = {
    "brawl-v1": "ludus.envs.brawl.env:make",
    "city-v1": "ludus.envs.city.env:make",
    "dig-v1": "ludus.envs.tiny.dig:make",
    "duel-v1": "ludus.envs.tiny.duel:make",
    "endless-v1": "ludus.envs.tiny.endless:make",
    "identity-v1": "ludus.envs.tiny.identity:make",
    "mimic-v1": "ludus.envs.mimic.env:make",
    "point-v1": "ludus.envs.tiny.point:make",
    "recall-v1": "ludus.envs.tiny.recall:make",
    "rocket-v1": "ludus.envs.rocket.env:make",
    "rps-v1": "ludus.envs.tiny.rps:make",
    "tug-v1": "ludus.envs.tiny.tug:make",
}
# Name -> "module:class" of the model that checks the world's own settings.
_SETTINGS: dict[str, str | type[EnvSettings]] = {
    "brawl-v1": "ludus.envs.brawl.config:BrawlConfig",
    "city-v1": "ludus.envs.city.config:CityConfig",
    "dig-v1": "ludus.envs.tiny.dig:DigSettings",
    "duel-v1": "ludus.envs.tiny.duel:DuelSettings",
    "endless-v1": "ludus.envs.tiny.endless:EndlessSettings",
    "identity-v1": "ludus.envs.tiny.identity:IdentitySettings",
    "mimic-v1": "ludus.envs.mimic.config:MimicConfig",
    "point-v1": "ludus.envs.tiny.point:PointSettings",
    "recall-v1": "ludus.envs.tiny.recall:RecallSettings",
    "rocket-v1": "ludus.envs.rocket.config:RocketConfig",
    "rps-v1": "ludus.envs.tiny.rps:RpsSettings",
    "tug-v1": "ludus.envs.tiny.tug:TugSettings",
}
GYMNASIUM_PREFIX = "gym:"  # before the id of any Gymnasium environment
AUTO = "auto"  # in the place of a device: a GPU if there is one
_GYMNASIUM_PACKAGE = "ludus.envs.adapters"
_GYMNASIUM_SETTINGS = "ludus.envs.adapters.gymnasium_games:GymnasiumSettings"


def register_env(env_id: str, factory: str | EnvFactory, settings: str | type[EnvSettings] | None = None) -> None:
    """Adds a world under a versioned name such as `mygame-v1`.

    Args:
        env_id: Name with version.
        factory: A function of an `EnvRequest`, or `package.module:function`, imported on first use.
        settings: The model of the world's settings, or `package.module:Model`; with it, a configuration file that
            has a wrong setting is refused with its line. Without it, the factory alone checks them.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_-]*-v\d+", env_id):
        raise ConfigError(f"world name {env_id!r} must look like 'name-v1': lower case, ending in its version")
    if env_id in _FACTORIES:
        raise ConfigError(f"world {env_id!r} is registered already; raise the version or choose another name")
    _FACTORIES[env_id] = factory
    if settings is not None:
        _SETTINGS[env_id] = settings


def registered_envs() -> tuple[str, ...]:
    """Returns the versioned names of all worlds."""
    return tuple(sorted(_FACTORIES))


def make_env(
    name: str,
    num_games: int = 1,
    device: str | torch.device = "cpu",
    *,
    seed: int = 0,
    first_game: int = 0,
    config: Mapping[str, Any] | None = None,
) -> BatchedEnv:
    """Makes a batch of games.

    Args:
        name: A world (`brawl`, its newest version; `brawl-v1`, that version) or `gym:ID` for any Gymnasium
            environment.
        num_games: Games in the batch.
        device: Device that all tensors live on.
        seed: Seed of all random streams.
        first_game: Index of the first game, to make parts of a larger batch.
        config: The world's own settings.

    Raises:
        UnknownNameError: No such world.
        ConfigError: A setting is wrong.
        DeviceError: The device is not here, or not for this world.
    """
    if isinstance(num_games, bool) or not isinstance(num_games, int) or num_games < 1:
        raise ConfigError(f"num_games must be a whole number of at least 1, got {num_games!r}")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise ConfigError(f"seed must be a whole number from 0 to 2**64 - 1, got {seed!r}")
    if isinstance(first_game, bool) or not isinstance(first_game, int) or not 0 <= first_game < 2**31 - num_games:
        raise ConfigError(f"first_game must be a whole number from 0 to 2**31 - num_games - 1, got {first_game!r}")
    if config is not None and not isinstance(config, Mapping):
        raise ConfigError(f"config must be a mapping of the world's settings, got {type(config).__name__}")
    request = EnvRequest(num_games, device, seed, first_game, config)
    if name.startswith(GYMNASIUM_PREFIX):
        gymnasium_batch = importlib.import_module("ludus.envs.adapters.gymnasium_batch")
        env: BatchedEnv = gymnasium_batch.make(name.removeprefix(GYMNASIUM_PREFIX), request)
        return env
    return _factory(name)(request)


def place_for(device: str, name: str, config: Mapping[str, Any] | None = None) -> str:
    """Returns the device that is meant: for `auto` a GPU if there is one and the world can live on it.

    Where it is not the CPU, on which every world can live, one game is made there to find out.

    Args:
        device: `auto`, or a device.
        name: The world.
        config: The world's own settings.

    Raises:
        DeviceError: The device that was asked for is not here, or not for this world.
    """
    if device == AUTO and not torch.cuda.is_available():
        return "cpu"
    place = "cuda" if device == AUTO else device
    if place != "cpu":
        try:
            make_env(name, 1, place, config=config).close()
        except DeviceError:
            if device != AUTO:
                raise
            return "cpu"
    return place


def world_package(name: str) -> str:
    """Returns the package that a world lives in, without importing it; empty if it lives in none.

    Raises:
        UnknownNameError: No such world.
    """
    if name.startswith(GYMNASIUM_PREFIX):
        return ""
    entry = _entry(name)
    module = entry.partition(":")[0] if isinstance(entry, str) else getattr(entry, "__module__", "")
    return module.rpartition(".")[0]


def preset_package(name: str) -> str:
    """Returns the package whose folder `presets` holds a world's presets; `gym:ID` have theirs in common.

    Raises:
        UnknownNameError: No such world.
    """
    return _GYMNASIUM_PACKAGE if name.startswith(GYMNASIUM_PREFIX) else world_package(name)


def world_id(name: str) -> str:
    """Returns the versioned name of a world: `brawl-v1` for `brawl`; `gym:ID` stays as it is.

    Raises:
        UnknownNameError: No such world.
    """
    if name.startswith(GYMNASIUM_PREFIX):
        return name
    _entry(name)
    return name if name in _FACTORIES else _newest(name)


def settings_model(name: str) -> type[EnvSettings] | None:
    """Returns the model that checks a world's own settings, or None if the world was registered without one.

    Raises:
        UnknownNameError: No such world.
    """
    is_gymnasium = name.startswith(GYMNASIUM_PREFIX)
    entry = _GYMNASIUM_SETTINGS if is_gymnasium else _SETTINGS.get(world_id(name))
    if isinstance(entry, str):
        module, _, model = entry.partition(":")
        found: type[EnvSettings] = getattr(importlib.import_module(module), model)
        return found
    return entry


def _entry(name: str) -> str | EnvFactory:
    entry = _FACTORIES.get(name) or _FACTORIES.get(_newest(name))
    if entry is None:
        raise UnknownNameError("world", name, registered_envs())
    return entry


def _factory(name: str) -> EnvFactory:
    entry = _entry(name)
    if isinstance(entry, str):
        module, _, function = entry.partition(":")
        factory: EnvFactory = getattr(importlib.import_module(module), function)
        return factory
    return entry


def _newest(name: str) -> str:
    versions = [int(env_id.rpartition("-v")[2]) for env_id in _FACTORIES if env_id.rpartition("-v")[0] == name]
    return f"{name}-v{max(versions)}" if versions else name
