"""The registry: versioned world names and `make_env`, the one way to get a batched environment."""

import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from ludus.config.layers import as_model, child_annotation
from ludus.core.errors import ConfigError, DeviceError, MissingDependencyError, UnknownNameError
from ludus.envs.families import family_of
from ludus.envs.own_games import env_name as env_name  # the registry's users find them here too
from ludus.envs.own_games import register_env as register_env
from ludus.envs.own_games import register_world as register_world
from ludus.envs.settings import EnvSettings, MatchSettings
from ludus.envs.world import (
    find_world,
    known_world,
    registered_envs,
    resolve,
)

if TYPE_CHECKING:
    import torch

    from ludus.envs.base import BatchedEnv

AUTO = "auto"  # in the place of a device: a GPU if there is one

logger = logging.getLogger(__name__)


def make_env(
    name: str,
    num_envs: int = 1,
    device: "str | torch.device" = "cpu",
    *,
    seed: int = 0,
    first_game: int = 0,
    config: Mapping[str, Any] | None = None,
    games_device: "str | torch.device | None" = None,
) -> "BatchedEnv":
    """Make a batch of games, and log its warnings, each once per process.

    A world that cannot live on a CUDA device is played on the CPU, and its tensors are copied.

    Args:
        name: A world (`brawl`, its newest version; `brawl-v1`, that version) or `gym:ID` for any Gymnasium
            environment; `gym:module:ID` imports the module that registers it.
        num_envs: Games in the batch.
        device: Device that all tensors live on.
        seed: Seed of all random streams.
        first_game: Index of the first game, to make parts of a larger batch.
        config: The world's own settings.
        games_device: Device that the games are played on; by default `device`, or the CPU where the world cannot live
            there.

    Raises:
        UnknownNameError: No such world.
        ConfigError: A setting is wrong.
        DeviceError: A device is not here, or not for this world.
    """
    if not isinstance(name, str):
        raise ConfigError(
            f"a world is named by text such as 'brawl', got {name!r}; valid: {', '.join(registered_envs())}"
        )
    if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
        raise ConfigError(f"num_envs must be a whole number of at least 1, got {num_envs!r}")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise ConfigError(f"seed must be a whole number from 0 to 2**64 - 1, got {seed!r}")
    if isinstance(first_game, bool) or not isinstance(first_game, int) or not 0 <= first_game < 2**31 - num_envs:
        raise ConfigError(f"first_game must be a whole number from 0 to 2**31 - num_envs - 1, got {first_game!r}")
    if config is not None and not isinstance(config, Mapping):
        raise ConfigError(f"config must be a mapping of the world's settings, got {type(config).__name__}")
    from ludus.envs.base import EnvRequest  # imports torch, which worker processes that register worlds do without

    request = EnvRequest(num_envs, device if games_device is None else games_device, seed, first_game, config)
    make = resolve(find_world(name).env)
    try:
        made = make(request)
    except DeviceError:
        if games_device is not None or not _is_cuda_here(device):
            raise
        made = make(replace(request, device="cpu"))
    made = _on_device(_in_sets(made, name, config or {}), device)
    for text in made.warnings:
        _warn_once(text)
    return made


def _is_cuda_here(device: "str | torch.device") -> bool:
    import torch

    return str(device).partition(":")[0] == "cuda" and torch.cuda.is_available()


def _in_sets(env: "BatchedEnv", name: str, config: Mapping[str, Any]) -> "BatchedEnv":
    """Return the games with as many matches in an episode as the settings say, in worlds that have this setting."""
    matches = config.get("matches_per_episode", 1)
    model = settings_model(name) if matches != 1 else None
    if model is None or not issubclass(model, MatchSettings):
        return env
    from ludus.envs.match_set import MatchSetEnv

    try:
        return MatchSetEnv(env, matches)
    except BaseException:
        env.close()
        raise


def _on_device(env: "BatchedEnv", device: "str | torch.device") -> "BatchedEnv":
    """Return the games with their tensors on a device."""
    import torch

    asked = torch.device(device)
    if asked.type == env.device.type and asked.index in (None, env.device.index):
        return env
    from ludus.envs.device_bridge import DeviceBridge

    try:
        return DeviceBridge(env, device)
    except BaseException:
        env.close()
        raise


@cache
def _warn_once(text: str) -> None:
    logger.warning("[WARN] %s", text)


def place_for(device: str, name: str, config: Mapping[str, Any] | None = None) -> str:
    """Return the device that is meant: for `auto` a GPU if there is one and the world can live on it.

    Raise DeviceError if the device that was asked for is not here.
    """
    import torch

    if device != AUTO:
        from ludus.envs.base import resolve_device

        resolve_device(device, name, ("cpu", "cuda"))
        return device
    try:
        return "cuda" if torch.cuda.is_available() and can_live_on("cuda", name, config) else "cpu"
    except MissingDependencyError as error:
        _warn_once(f"{name} is played on the CPU: {error}")  # and what its games on a GPU need
        return "cpu"


def can_live_on(device: str, name: str, config: Mapping[str, Any] | None = None) -> bool:
    """Return whether a world's games can be played on a device; one is made there to find out.

    Raises:
        MissingDependencyError: They could, with a library that is not installed.
    """
    try:
        make_env(name, 1, device, config=config, games_device=device).close()
    except DeviceError:
        return False
    return True


def imported_module(name: str) -> str:
    """Return the module that making `gym:module:ID` or `pettingzoo:sisl.multiwalker_v9` imports; empty for others."""
    family = family_of(name)
    if family is None:
        return ""
    module_of: Callable[[str], str] = resolve(family.module)
    return module_of(name)


def check_name_from_file(name: str, owner: str) -> None:
    """Raise ConfigError if making a world named by a file of `owner` would import a module that is not imported yet."""
    module = imported_module(name)
    if module and module not in sys.modules:
        raise ConfigError(
            f"{owner} {name!r} imports the module {module!r}, which no file may ask for; if you trust it, name it "
            f"yourself: --plugin {module} on the command line, import {module} in Python"
        )


def is_registered(name: str) -> bool:
    """Return whether a world or a Gymnasium environment can be made by this name without importing a module."""
    family = family_of(name)
    if family is None:
        return known_world(name) is not None
    is_known: Callable[[str], bool] = resolve(family.is_registered)
    return is_known(name)


def world_id(name: str) -> str:
    """Return the versioned name of a world, by default its newest version; `gym:ID` stays as it is."""
    return find_world(name).id


def settings_model(name: str) -> type[EnvSettings] | None:
    """Return the model of a world's own settings, or None; raise UnknownNameError if there is no such world."""
    config = find_world(name).config
    return None if config is None else resolve(config)


def with_overrides(world: str, settings: Mapping[str, Any], *overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return a world's settings with overrides, the last word counting; without a model, all mappings are merged."""
    from ludus.envs.world_parts import merge_settings  # imports torch, too

    merged = dict(settings)
    for override in overrides:
        if override:
            model = _model(world)
            merged = merge_settings(merged, override) if model is None else _replaced(model, merged, override)
    return merged


def _replaced(annotation: Any, lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    merged = dict(lower)
    for name, value in upper.items():
        inner, before = child_annotation(annotation, name), merged.get(name)
        is_part = as_model(inner) is not None and isinstance(before, Mapping) and isinstance(value, Mapping)
        merged[name] = _replaced(inner, before or {}, value) if is_part else value
    return merged


def _model(world: str) -> Any:  # noqa: ANN401 - a model, as an annotation
    try:
        return settings_model(world)
    except UnknownNameError:
        return None
