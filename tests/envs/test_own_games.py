"""Games of the user's own in the registry: names, what may be registered, and how workers find them."""

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest
import torch

from ludus.core.errors import ConfigError, EnvFaultError, UnsupportedError
from ludus.envs import BatchedEnv, EnvRequest, env_name, make_env, register_env, registered_envs
from ludus.envs import world as world_module
from ludus.envs.adapters.worker_batch import WorkerBatch
from ludus.envs.own_games import takes_request
from ludus.envs.registry import check_name_from_file, imported_module, is_registered
from ludus.envs.tiny.two_player import DuelEnv
from ludus.envs.world import find_world
from ludus.rewards import plugins
from ludus.rewards.plugins import load_plugin, plugins_needed

pytestmark = pytest.mark.train


class MyGame(gym.Env[Any, Any]):
    """Rewards 2 for action 1; ends after `length` steps."""

    metadata: ClassVar[dict[str, Any]] = {"render_fps": 12}  # type: ignore[misc]
    observation_space = gym.spaces.Box(0.0, 9.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, length: int = 3) -> None:
        self.length, self.count = length, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.count = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.count += 1
        return np.array([self.count], np.float32), 2.0 * action, self.count >= self.length, False, {}


def make_game(length: int = 2) -> MyGame:
    return MyGame(length)


GAME_FILE = """
import gymnasium as gym
import numpy as np
import ludus

class Walk(gym.Env):
    observation_space = gym.spaces.Box(0, 9, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.ones(1, np.float32), float(action), False, False, {}

ludus.register_env("walk-v1", Walk)
ludus.register_env("nameless-v1", lambda: Walk())
"""


@pytest.fixture(autouse=True)
def _own_worlds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(world_module, "_WORLDS", dict(world_module.known_worlds()))
    monkeypatch.setattr(plugins, "_LOADED", {})
    yield
    sys.modules.pop("walk_file", None)


def test_a_class_becomes_a_world() -> None:
    register_env("mine-v3", MyGame)
    with make_env("mine", 2, config={"env_kwargs": {"length": 1}}) as env:
        assert (env.spec.id, env.spec.rate_hz, env.spec.teams) == ("mine-v3", 12.0, (0,))
        env.reset()
        result = env.step(torch.tensor([[1], [0]]))
    assert result.events["reward"].tolist() == [[2.0], [0.0]]
    assert result.terminated.tolist() == [True, True]
    assert result.final_observations["vector"].flatten().tolist() == [1.0, 1.0]
    with pytest.raises(ConfigError, match="did you mean 'workers'"):
        make_env("mine", config={"worker": 2})
    with pytest.raises(ConfigError, match="unexpected keyword argument 'size'"):
        make_env("mine", config={"env_kwargs": {"size": 2}})


@pytest.mark.parametrize(
    ("env", "name", "expected"),
    [
        (MyGame, None, "my-game-v1"),
        (make_game, None, "game-v1"),
        (MyGame, "arena", "arena-v1"),
        (MyGame, "Arena_v4", "arena-v4"),
        (type("HTTPPongEnv", (MyGame,), {}), None, "http-pong-v1"),
        (DuelEnv, "other-duel", "other-duel-v1"),
        ("brawl", None, "brawl"),
        ("gym:CartPole-v1", None, "gym:CartPole-v1"),
    ],
)
def test_names_are_derived_and_versioned(env: Any, name: str | None, expected: str) -> None:
    assert env_name(env, name) == expected
    assert env_name(env, name) == expected  # is registered already
    if expected.endswith(("-v1", "-v4")) and ":" not in expected:
        assert expected in registered_envs()
        make_env(expected).close()


def test_a_registered_game_keeps_its_name_and_a_redefined_one_replaces_it() -> None:
    register_env("mine-v3", MyGame)
    assert env_name(MyGame) == "mine-v3"
    assert env_name(make_game) == "game-v1"
    again = type("make_game", (MyGame,), {"__module__": make_game.__module__, "__qualname__": "make_game"})
    assert env_name(again) == "game-v1"
    with make_env("game-v1", config={"env_kwargs": {"length": 7}}) as env:
        assert type(env._games.envs[0]) is again  # type: ignore[attr-defined]
    other = type("Game", (MyGame,), {"__module__": "elsewhere"})
    with pytest.raises(ConfigError, match=r"game-v1 is registered already, with make_game of .*another name"):
        env_name(other)


def test_modules_of_pettingzoo_go_by_their_own_names() -> None:
    rps = pytest.importorskip("pettingzoo.classic.rps_v2")
    assert env_name(rps) == env_name(rps.parallel_env) == "pettingzoo:classic.rps_v2"
    del sys.modules["pettingzoo.classic.rps_v2"]  # PettingZoo itself may load the module without entering it there
    try:
        assert env_name(rps) == env_name(rps.parallel_env) == "pettingzoo:classic.rps_v2"
    finally:
        sys.modules["pettingzoo.classic.rps_v2"] = rps
    module = ModuleType("pong_v7")
    module.parallel_env = lambda: rps.parallel_env()  # type: ignore[attr-defined]
    sys.modules["pong_v7"] = module
    try:
        assert env_name(module) == "pong-v7"
        assert make_env("pong-v7").spec.teams == (0, 1)
    finally:
        del sys.modules["pong_v7"]
    turns = pytest.importorskip("pettingzoo.classic.tictactoe_v3")
    with pytest.raises(UnsupportedError, match=r"tictactoe_v3 has only turn-based .*aec_to_parallel"):
        env_name(turns)


@pytest.mark.parametrize(
    ("env", "said"),
    [
        (MyGame(), "an object of MyGame is one game, and a batch needs many: pass the class"),
        (5, "an environment is a gymnasium.Env, .*; got int"),
        (lambda: MyGame(), "a lambda has no name"),
    ],
)
def test_what_is_no_game_is_refused(env: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        env_name(env)


def test_settings_are_for_worlds_of_the_contract() -> None:
    with pytest.raises(ConfigError, match="others have env_kwargs"):
        register_env("mine-v1", MyGame, settings="some.module:Settings")


def batched(request: EnvRequest) -> BatchedEnv:
    return DuelEnv(request)


@pytest.mark.parametrize(
    ("factory", "expected"),
    [
        (DuelEnv, True),
        (batched, True),
        (lambda request: DuelEnv(request), True),
        (MyGame, False),
        (make_game, False),
        (lambda num_envs: num_envs, False),
        (lambda **_: None, False),
    ],
)
def test_factories_of_the_contract_are_told_from_others(factory: Callable[..., Any], expected: bool) -> None:
    assert takes_request(factory) is expected


def vectors(num_envs: int) -> gym.vector.VectorEnv[Any, Any, Any]:
    return gym.vector.SyncVectorEnv([MyGame] * num_envs)


def match() -> Any:
    return importlib.import_module("pettingzoo.classic.rps_v2").parallel_env(max_cycles=3)


@pytest.mark.parametrize("name", ["MyGame", "make_game", "vectors", "match", "batched", "DuelEnv"])
def test_a_name_is_taken_as_the_game_itself_would_be(name: str) -> None:
    factory = globals()[name]
    register_env("named-v1", f"{__name__}:{name}")
    register_env("object-v1", factory)
    named, itself = find_world("named"), find_world("object")
    assert (named.config, named.display, named.package) == (itself.config, itself.display, itself.package)
    with make_env("named", 2) as one, make_env("object", 2) as other:
        assert type(one) is type(other)
        assert (one.spec.teams, one.spec.action_space) == (other.spec.teams, other.spec.action_space)


def test_a_name_is_imported_on_first_use_and_found_by_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "walk_file.py").write_text(GAME_FILE.partition("ludus.register_env")[0])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    register_env("lazy-v1", "walk_file:Walk")
    assert "walk_file" not in sys.modules
    with make_env("lazy", 2, config={"workers": 1}) as env:
        assert isinstance(env, WorkerBatch)
        env.reset()
        assert env.step(torch.tensor([[1], [0]])).events["reward"].tolist() == [[1.0], [0.0]]
    assert env_name(sys.modules["walk_file"].Walk) == "lazy-v1"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere.at_all:Game", "ModuleNotFoundError"),
        (f"{__name__}:NoGame", "AttributeError"),
        (f"{__name__}:GAME_FILE", "an environment is a gymnasium.Env"),
    ],
)
def test_a_name_that_means_no_game_is_refused_on_first_use(name: str, said: str) -> None:
    register_env("bad-v1", name)
    with pytest.raises(ConfigError, match=said):
        make_env("bad-v1")
    with pytest.raises(ConfigError, match=r"named as 'package\.module:MyGame', got 'MyGame'"):
        register_env("worse-v1", "MyGame")


def test_a_constructor_that_raises_is_named_with_its_line() -> None:
    def broken() -> MyGame:
        raise ValueError("no such level")

    register_env("broken-v1", broken)
    with pytest.raises(EnvFaultError, match=rf"'broken-v1' cannot be made: ValueError: no such level \({__file__}:"):
        make_env("broken-v1")


@pytest.mark.parametrize("name", ["walk-v1", "nameless-v1"])
def test_workers_load_the_file_that_was_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "walk_file.py").write_text(GAME_FILE)
    load_plugin(tmp_path / "walk_file.py")
    with make_env(name, 2, config={"workers": 2}) as env:
        assert isinstance(env, WorkerBatch)
        env.reset()
        assert env.step(torch.tensor([[1], [0]])).events["reward"].tolist() == [[1.0], [0.0]]
    assert plugins_needed(name) == ("walk_file.py",)


def test_workers_find_a_class_of_a_module_and_nothing_else() -> None:
    register_env("mine-v1", MyGame)
    with make_env("mine-v1", 1, config={"workers": 1}) as env:
        env.reset()
        assert env.step(torch.tensor([[1]])).events["reward"].tolist() == [[2.0]]
    hidden = type("MyGame", (MyGame,), {"__module__": "__main__"})
    factories: tuple[Callable[[], Any], ...] = (lambda: MyGame(), hidden)
    for number, factory in enumerate(factories):
        register_env(f"hidden{number}-v1", factory)
        make_env(f"hidden{number}-v1", 1).close()
        with pytest.raises(ConfigError, match=r"cannot be found by worker.*--plugin FILE.*workers=0"):
            make_env(f"hidden{number}-v1", 1, config={"workers": 1})


def test_names_of_pettingzoo_modules() -> None:
    assert imported_module("pettingzoo:sisl.multiwalker_v9") == "pettingzoo.sisl.multiwalker_v9"
    assert imported_module("pettingzoo:sisl.multiwalker-v9") == "pettingzoo.sisl.multiwalker_v9"
    assert imported_module("pettingzoo:mpe.simple_tag-v3") == "mpe2.simple_tag_v3"
    assert imported_module("pettingzoo:my_games.pong") == imported_module("pettingzoo:my_games.pong-v0")
    assert imported_module("pettingzoo:my_games.pong-v0") == "my_games.pong"
    assert not is_registered("pettingzoo:this-v0")
    with pytest.raises(ConfigError, match="--plugin this on the command line"):
        check_name_from_file("pettingzoo:this-v0", "the agent's world")  # importing `this` prints a poem
    with pytest.raises(ConfigError, match=r"there is no module 'nowhere\.at_all_v2'"):
        make_env("pettingzoo:nowhere.at_all_v2")


def test_games_of_several_sides_start_from_the_preset_for_self_play() -> None:
    rps = pytest.importorskip("pettingzoo.classic.rps_v2")
    register_env("mine-v1", MyGame)
    presets = [find_world(name).default_preset for name in ("mine-v1", env_name(rps))]
    assert [preset() if callable(preset) else preset for preset in presets] == ["default", "self-play"]
