"""The registry on where a world lives: its package of presets, its versioned name and the model of its settings."""

from functools import partial

import pytest

from ludus.core.errors import UnknownNameError
from ludus.envs import world
from ludus.envs.adapters.game_batch import GymnasiumSettings
from ludus.envs.base import BatchedEnv, EnvRequest
from ludus.envs.registry import register_env, settings_model, world_id
from ludus.envs.settings import EnvSettings
from ludus.envs.tiny.two_player import DuelEnv
from ludus.envs.world import find_world, registered_worlds
from ludus.worlds.brawl.config import BrawlConfig


class OwnSettings(EnvSettings):
    """Settings of a world that a test registers."""


def own_world(request: EnvRequest) -> BatchedEnv:
    return DuelEnv(request)


@pytest.fixture(autouse=True)
def own_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a test register worlds that are gone afterwards."""
    monkeypatch.setattr(world, "_WORLDS", dict(world.known_worlds()))


def test_packages_of_presets() -> None:
    assert find_world("brawl").package == find_world("brawl-v1").package == "ludus.worlds.brawl"
    assert find_world("rps").package == "ludus.envs.tiny"
    assert find_world("gym:Anything-v3").package == "ludus.envs.adapters"
    register_env("copy-v1", DuelEnv)
    register_env("text-v1", "game.of.mine:make", OwnSettings)
    register_env("top-v1", "toplevel:make", OwnSettings)
    register_env("partial-v1", partial(own_world))
    packages = [find_world(name).package for name in ("copy", "text", "top", "partial")]
    assert packages == ["ludus.envs.tiny", "game.of", "", ""]
    with pytest.raises(UnknownNameError, match="unknown world 'chess'"):
        find_world("chess")


def test_versioned_names() -> None:
    register_env("brawl-v12", "a.b:make", OwnSettings)
    assert [world_id(name) for name in ("brawl", "brawl-v1", "gym:X-v0")] == ["brawl-v12", "brawl-v1", "gym:X-v0"]
    with pytest.raises(UnknownNameError, match="did you mean 'brawl-v1'"):
        world_id("brwal")


def test_models_of_settings() -> None:
    assert settings_model("brawl") is BrawlConfig
    assert settings_model("gym:X-v0") is GymnasiumSettings
    shipped = [world.id for world in registered_worlds() if world.package.startswith("ludus.")]
    assert "brawl-v1" in shipped
    for name in shipped:
        model = settings_model(name)
        assert model is not None
        assert issubclass(model, EnvSettings)
    register_env("plain-v1", own_world)
    register_env("own-v1", own_world, OwnSettings)
    assert settings_model("plain") is None
    assert settings_model("own") is OwnSettings
