"""The registry on where a world lives: its package of presets, its versioned name and the model of its settings."""

from functools import partial

import pytest

from ludus.core.errors import UnknownNameError
from ludus.envs import registry
from ludus.envs.adapters.gymnasium_games import GymnasiumSettings
from ludus.envs.base import BatchedEnv, EnvRequest
from ludus.envs.brawl.config import BrawlConfig
from ludus.envs.registry import (
    preset_package,
    register_env,
    registered_envs,
    settings_model,
    world_id,
    world_package,
)
from ludus.envs.settings import EnvSettings
from ludus.envs.tiny.duel import make


class OwnSettings(EnvSettings):
    """Settings of a world that a test registers."""


def own_world(request: EnvRequest) -> BatchedEnv:
    return make(request)


@pytest.fixture(autouse=True)
def own_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a test register worlds that are gone afterwards."""
    for name in ("_FACTORIES", "_SETTINGS"):
        monkeypatch.setattr(registry, name, dict(getattr(registry, name)))


def test_packages_of_presets() -> None:
    assert preset_package("brawl") == preset_package("brawl-v1") == "ludus.envs.brawl"
    assert preset_package("rps") == "ludus.envs.tiny"
    assert preset_package("gym:Anything-v3") == "ludus.envs.adapters"
    register_env("copy-v1", make)
    register_env("text-v1", "game.of.mine:make")
    register_env("top-v1", "toplevel:make")
    register_env("partial-v1", partial(own_world))
    packages = [preset_package(name) for name in ("copy", "text", "top", "partial")]
    assert packages == ["ludus.envs.tiny", "game.of", "", ""]
    with pytest.raises(UnknownNameError, match="unknown world 'chess'"):
        preset_package("chess")


def test_versioned_names() -> None:
    register_env("brawl-v12", "a.b:make")
    assert [world_id(name) for name in ("brawl", "brawl-v1", "gym:X-v0")] == ["brawl-v12", "brawl-v1", "gym:X-v0"]
    with pytest.raises(UnknownNameError, match="did you mean 'brawl-v1'"):
        world_id("brwal")


def test_models_of_settings() -> None:
    assert settings_model("brawl") is BrawlConfig
    assert settings_model("gym:X-v0") is GymnasiumSettings
    shipped = [name for name in registered_envs() if world_package(name).startswith("ludus.")]
    assert "brawl-v1" in shipped
    for name in shipped:
        model = settings_model(name)
        assert model is not None
        assert issubclass(model, EnvSettings)
    register_env("plain-v1", own_world)
    register_env("own-v1", own_world, OwnSettings)
    assert settings_model("plain") is None
    assert settings_model("own") is OwnSettings
