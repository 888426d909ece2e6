"""Games of the user's own: Gymnasium and PettingZoo classes, factories and vector environments as worlds.

`register_env` and `env_name` put them into the ordinary registry, so that runs, evaluations, tournaments and reports know
them like any other world.
"""

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

import gymnasium as gym

from ludus.core.errors import ConfigError, UnsupportedError
from ludus.envs.adapters import gymnasium_worker
from ludus.envs.adapters.gymnasium_batch import GymnasiumBatch
from ludus.envs.adapters.gymnasium_factory import (
    Hosted,
    batch_settings,
    make_batch,
    naming_faults,
    single_plan,
    single_spec,
)
from ludus.envs.adapters.gymnasium_worker import Games, Maker, Source
from ludus.envs.adapters.pettingzoo_factory import (
    OwnGameSettings,
    is_parallel,
    is_turn_based,
    make_parallel,
    teams_of,
)
from ludus.envs.adapters.vector_batch import VectorBatch, vector_maker
from ludus.envs.base import BatchedEnv, EnvRequest
from ludus.envs.world import PETTINGZOO_PREFIX, EnvFactory, World, known_worlds, pettingzoo_module
from ludus.rewards.plugins import load_plugin, plugin_of

Game: TypeAlias = "Maker | gym.vector.VectorEnv[Any, Any, Any] | ModuleType"  # what may be registered

_PARALLEL = "parallel_env"  # the function of a module of PettingZoo that makes a game
_KINDS = (
    "a gymnasium.Env, a gymnasium.vector.VectorEnv or a PettingZoo ParallelEnv (a class of these, or a function that "
    "makes one), or a function of an EnvRequest that makes a BatchedEnv"
)


def takes_request(factory: object) -> bool:
    """Return whether a factory is one of the contract's own, a function of an `EnvRequest`.

    A class is what its bases say. A function is one if it has exactly one argument without default.
    """
    if isinstance(factory, type):
        if issubclass(factory, gym.Env | gym.vector.VectorEnv) or _is_pettingzoo(factory):
            return False
        if issubclass(factory, BatchedEnv):
            return True
    if isinstance(factory, gym.vector.VectorEnv | ModuleType) or not callable(factory):
        return False
    return len(_required(factory)) == 1


def _is_pettingzoo(cls: type) -> bool:
    return any(base.__module__.partition(".")[0] == "pettingzoo" for base in cls.__mro__)


def _parameters(factory: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(factory).parameters
    except (TypeError, ValueError):  # some functions of C have none
        return {}


def _required(factory: Callable[..., Any]) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [name for name, each in _parameters(factory).items() if each.default is each.empty and each.kind in kinds]


def _takes(factory: Callable[..., Any], name: str) -> bool:
    parameters = _parameters(factory)
    return name in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())


@dataclass(frozen=True, slots=True)
class OwnGame:
    """What makes the batches of a world of the user's own."""

    env_id: str  # versioned name of the world
    factory: Maker  # class or function that makes an environment

    def __call__(self, request: EnvRequest) -> BatchedEnv:
        """Make a batch; what kind of environment it is of, one of them tells."""
        settings = batch_settings(OwnGameSettings, self.env_id, request)
        kwargs = dict(settings.env_kwargs)
        if not _takes(self.factory, "render_mode"):
            kwargs.pop("render_mode", None)  # it is asked for to draw the game, which then says that it cannot
        settings = settings.model_copy(update={"env_kwargs": kwargs})
        counted = {"num_envs": request.num_envs} if "num_envs" in _parameters(self.factory) else {}
        with naming_faults(self.env_id):
            env = self.factory(**counted, **kwargs)
        if isinstance(env, gym.vector.VectorEnv):
            return VectorBatch(self._spec_name(), env, request, settings, is_sized=bool(counted))
        try:
            with naming_faults(self.env_id):
                return self._batch(env, request, settings)
        finally:
            env.close()

    def default_preset(self) -> str:
        """Return `self-play` for a game of several sides, `default` for others, and where none can be made to ask."""
        try:
            env = self.factory()
            try:
                is_match = is_parallel(env) and len({*teams_of(env, [*map(str, env.possible_agents)], {}, "")}) > 1
            finally:
                env.close()
        except Exception:  # whatever it is, making the games of the run says it better
            return "default"
        return "self-play" if is_match else "default"

    def _spec_name(self) -> tuple[str, int]:
        name, _, version = self.env_id.rpartition("-v")
        return name, int(version)

    def _batch(self, env: Any, request: EnvRequest, settings: OwnGameSettings) -> GymnasiumBatch:  # noqa: ANN401
        name, version = self._spec_name()
        if is_turn_based(env):
            raise UnsupportedError(
                f"{self.env_id}: {type(env).__name__} is a turn-based (AEC) game; where all agents can act at once, wrap "
                "it: pettingzoo.utils.conversions.aec_to_parallel(env)"
            )
        source = source_of(self.env_id, self.factory) if settings.workers else Source()
        if isinstance(env, gym.Env):
            spec, plan = single_spec(env, name, version), single_plan(env, source, settings, request)
            return make_batch(spec, plan, request, settings, Hosted(self.factory, Games, gymnasium_worker.FILE))
        if is_parallel(env):
            return make_parallel(env, name, version, source, settings, request, self.factory)
        raise ConfigError(f"{self.env_id}: {_described(self.factory)} made {type(env).__name__}; expected {_KINDS}")


def own_world(env_id: str, game: Game) -> World:
    """Return the world of a game of the user's own.

    Raises:
        ConfigError: It is nothing that games can be made of.
    """
    return _world(env_id, OwnGame(env_id, as_maker(game)))


def _world(name: str, game: OwnGame) -> World:
    return World(
        id=name,
        env=game,
        config="ludus.envs.adapters.pettingzoo_factory:OwnGameSettings",
        package="ludus.envs.adapters",
        default_preset=game.default_preset,
        display="ludus.envs.display:GYMNASIUM_DISPLAY",
    )


def as_maker(game: object) -> Maker:
    """Return what makes environments, or raise ConfigError."""
    if isinstance(game, ModuleType):
        return _module_maker(game)
    if isinstance(game, gym.vector.VectorEnv):
        return vector_maker(game)
    if isinstance(game, gym.Env) or (not isinstance(game, type) and (is_parallel(game) or is_turn_based(game))):
        raise ConfigError(
            f"an object of {type(game).__name__} is one game, and a batch needs many: pass the class, "
            f"{type(game).__name__}, or a function that makes one"
        )
    if not callable(game):
        raise ConfigError(f"an environment is {_KINDS}; got {type(game).__name__}")
    return game


def _module_maker(module: ModuleType) -> Maker:
    maker: Maker | None = getattr(module, _PARALLEL, None)
    if maker is None:
        hint = (
            "pettingzoo.utils.conversions.aec_to_parallel(env) in a function of your own, if its agents can act at once"
        )
        has_turns = hasattr(module, "env") or hasattr(module, "raw_env")
        what = f"only turn-based (AEC) games; use {hint}" if has_turns else f"no function {_PARALLEL}"
        raise UnsupportedError(f"the module {module.__name__} has {what}")
    return maker


def factory_of(env_id: str) -> Maker:
    """Return what makes environments of a registered world of the user's own; a worker asks after loading plugins."""
    world = known_worlds().get(env_id)
    if world is None or not isinstance(world.env, OwnGame):
        raise ConfigError(f"no plugin registers {env_id!r}; call ludus.register_env in the file, outside any function")
    return world.env.factory


def source_of(env_id: str, factory: Maker) -> Source:
    """Return where a worker process finds a factory; raise ConfigError if it cannot."""
    if isinstance(factory, _ModuleGame):
        return Source(module=factory.module, name=_PARALLEL)
    module, name = getattr(factory, "__module__", "") or "", getattr(factory, "__qualname__", "") or ""
    plugin = plugin_of(module)
    if module != "__main__" and _find(module, name) is factory:
        return Source(module=module, name=name, plugin=plugin)
    home = _home(factory)
    if home:
        return Source(module=home, name=_PARALLEL, plugin=plugin_of(home))
    if plugin:
        return Source(world=env_id)
    raise ConfigError(
        f"{env_id}: {_described(factory)} cannot be found by worker processes; put it into a file as a class or function "
        "of its own and load that with --plugin FILE, or import it in Python; or use world.settings.workers=0"
    )


def _find(module: str, name: str) -> object:
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _home(factory: object) -> str:
    """Return the module whose `parallel_env` something is; PettingZoo makes such functions without names of their own."""
    homes = [
        name
        for name, module in list(sys.modules.items())
        if name != "__main__" and isinstance(module, ModuleType) and vars(module).get(_PARALLEL) is factory
    ]
    return min(homes, key=lambda name: (re.search(r"_v\d+$", name) is None, len(name)), default="")


def _described(factory: object) -> str:
    module, name = getattr(factory, "__module__", ""), getattr(factory, "__qualname__", type(factory).__name__)
    code = getattr(factory, "__code__", None)
    place = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    return f"{name} of {module}{place}" if module else f"{name}{place}"


def named(env: "Game | EnvFactory", name: str | None = None) -> str:
    """Do the work of `ludus.envs.registry.env_name`."""
    from ludus.envs.registry import register_env, register_world

    factory = env if takes_request(env) else as_maker(env)
    if name is None:
        known = next((world.id for world in known_worlds().values() if _made_by(world) is factory), None)
        if known is not None:
            return known
        home = _home(factory)
        if home.partition(".")[0] in ("pettingzoo", "mpe2"):
            return PETTINGZOO_PREFIX + home.removeprefix("pettingzoo.").replace("mpe2.", "mpe.")
    env_id = _versioned(name or _derived_name(env, factory))
    before = known_worlds().get(env_id)
    if before is None:
        register_env(env_id, factory)
    elif _made_by(before) is not factory:
        if not _is_redefined(_made_by(before), factory):
            raise ConfigError(
                f"the world {env_id} is registered already, with {_described(_made_by(before))}; give this one another "
                "name: ludus.register_env('another-name-v1', ...)"
            )
        del known_worlds()[env_id]  # a cell of a notebook that was run again
        register_world(own_world(env_id, factory))
    return env_id


def _made_by(world: World) -> object:
    return world.env.factory if isinstance(world.env, OwnGame) else world.env


def _is_redefined(before: object, now: object) -> bool:
    """Return whether two things were defined under the same name at the same place."""
    names = [(getattr(each, "__module__", None), getattr(each, "__qualname__", "<lambda>")) for each in (before, now)]
    return names[0] == names[1] and "<" not in names[0][1]


def _derived_name(env: object, factory: object) -> str:
    home = _home(factory)
    if home:
        return home.rpartition(".")[2]
    if isinstance(env, gym.vector.VectorEnv):
        games = getattr(env.unwrapped, "envs", ())  # those of a SyncVectorEnv
        return str(getattr(env.spec, "name", "") or type((*games, env)[0].unwrapped).__name__)
    name = str(getattr(factory, "__qualname__", "")).rpartition(".")[2]
    if not name or name.startswith("<"):
        raise ConfigError(
            "a lambda has no name to register it under; define a function or class, or register it yourself: "
            "ludus.register_env('my-game-v1', lambda: ...)"
        )
    return name


def _versioned(name: str) -> str:
    """Return a versioned world name: `MyGame` becomes `my-game-v1`, `simple_tag_v3` becomes `simple-tag-v3`."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name)
    plain = re.sub(r"[^a-z0-9]+", "-", spaced.lower()).strip("-")
    base, version = re.fullmatch(r"(.*?)(?:-v(\d+))?", plain).groups()  # type: ignore[union-attr]
    base = base.removeprefix("make-").removesuffix("-env")
    return f"{base or 'game'}-v{version or 1}"


def pettingzoo_world(name: str) -> World:
    """Return the world of `pettingzoo:sisl.multiwalker_v9`, or of its versioned name `pettingzoo:sisl.multiwalker-v9`."""
    module = pettingzoo_module(name)
    path, version = re.fullmatch(r"(.*?)(?:[_-]v(\d+))?", name).groups()  # type: ignore[union-attr]
    return _world(name, OwnGame(f"{path}-v{version or 0}", _ModuleGame(module)))


@dataclass(frozen=True, slots=True)
class _ModuleGame:
    """Makes games of a module, which is imported when the first is made."""

    module: str

    def __call__(self, **kwargs: Any) -> Any:  # noqa: ANN401 - a game of others
        load_plugin(self.module)  # which the user has typed, see `ludus.envs.registry.check_name_from_file`
        return _module_maker(sys.modules[self.module])(**kwargs)
