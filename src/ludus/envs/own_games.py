"""Register worlds while the program runs: batched worlds, and games of the user's own of other libraries.

This module imports no torch: worker processes load the user's files, which call `register_env`, and start in a fraction
of a second. What makes the batches is `ludus.envs.adapters.own_batch`.
"""

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import gymnasium as gym

from ludus.core.errors import ConfigError, UnsupportedError
from ludus.core.faults import let_pass
from ludus.core.text import blame
from ludus.envs.adapters.names import PETTINGZOO_PREFIX, pettingzoo_module
from ludus.envs.adapters.vector_games import vector_maker
from ludus.envs.world import (
    EnvFactory,
    Lazy,
    UnknownKind,
    World,
    find_world,
    known_world,
    known_worlds,
    resolve,
)
from ludus.rewards.plugins import load_plugin, note_world

if TYPE_CHECKING:
    from ludus.envs.base import BatchedEnv, EnvRequest
    from ludus.envs.settings import EnvSettings

Maker: TypeAlias = Callable[..., Any]  # a class or function that makes an environment from `env_kwargs`
Game: TypeAlias = "Maker | gym.vector.VectorEnv[Any, Any, Any] | ModuleType"  # what may be registered

_VERSION = r"_v\d+$"  # at the end of the name of a module of PettingZoo
PARALLEL = "parallel_env"  # the function of a module of PettingZoo that makes a game
KINDS = (
    "a gymnasium.Env, a gymnasium.vector.VectorEnv or a PettingZoo ParallelEnv (a class of these, or a function that "
    "makes one), or a function of an EnvRequest that makes a BatchedEnv"
)


def register_env(
    env_id: str, factory: "Lazy[EnvFactory] | Game", settings: "Lazy[type[EnvSettings]] | None" = None
) -> None:
    """Add a world under a versioned name such as `mygame-v1`; see `register_world` for one with more parts.

    Args:
        env_id: Name with version.
        factory: A `gymnasium.Env` or PettingZoo `ParallelEnv` class, or a function that makes one from `env_kwargs`; a
            `gymnasium.vector.VectorEnv` or a function that makes one; a module of PettingZoo. Or a world of the batched
            contract: a function of an `EnvRequest`. A function with exactly one argument without a default, other than
            `num_envs`, is taken for a function of an `EnvRequest`. Any of them may be named as `package.module:name`,
            which is imported on first use.
        settings: The model of such a world's settings, or `package.module:Model`; with it, a configuration file that
            has a wrong setting is refused with its line. Without it, the factory alone checks them.

    Raises:
        ConfigError: The name is taken, or games cannot be made of the factory.
    """
    if isinstance(factory, str):
        if not all(factory.partition(":")):
            raise ConfigError(f"{env_id}: a game is named as 'package.module:MyGame', got {factory!r}")
        if settings is None:  # then it may be a game of any kind
            register_world(World(id=env_id, env=NamedGame(env_id, factory)))
            return
    if isinstance(factory, str) or takes_request(factory):
        register_world(World(id=env_id, env=factory, config=settings))  # type: ignore[arg-type]
        return
    if settings is not None:
        raise ConfigError(f"{env_id}: settings are for worlds of the batched contract; others have env_kwargs")
    register_world(own_world(env_id, factory))


def env_name(env: "str | EnvFactory | Game", name: str | None = None) -> str:
    """Register a game unless it is registered already, and return the name of its world.

    Args:
        env: What `register_env` takes; the name of a world is returned as it is.
        name: Name of the world, with or without a version; by default that of the class, function or module: `MyGame`
            becomes `my-game-v1`.

    Raises:
        ConfigError: Games cannot be made of it, or the name is taken by another game.
    """
    if isinstance(env, str):
        return env
    factory = env if takes_request(env) else as_maker(env)
    if name is None:
        known = next((world.id for world in known_worlds().values() if _is_same(_made_by(world), factory)), None)
        if known is not None:
            return known
        found = _pettingzoo_name(env.__name__ if isinstance(env, ModuleType) else home_of(factory))
        if found:
            return found
    env_id = _versioned(name or _derived_name(env, factory))
    before = known_worlds().get(env_id)
    if before is None:
        register_env(env_id, factory)
    elif not _is_same(_made_by(before), factory):
        if not _is_redefined(_made_by(before), factory):
            raise ConfigError(
                f"the world {env_id} is registered already, with {described(_made_by(before))}; give this one another "
                "name: ludus.register_env('another-name-v1', ...)"
            )
        del known_worlds()[env_id]  # a cell of a notebook that was run again
        register_world(own_world(env_id, factory))
    return env_id


def register_world(world: World) -> None:
    """Add a world while the program runs; installed packages use entry points. Raise ConfigError if the id is taken."""
    if world.id in known_worlds():
        raise ConfigError(f"world {world.id!r} is registered already; raise the version or choose another name")
    known_worlds()[world.id] = world
    note_world(world.id)


def takes_request(factory: object) -> bool:
    """Return whether a factory is one of the contract's own, a function of an `EnvRequest`.

    A class is what its bases say. A function is one if it has exactly one argument without a default, other than the
    `num_envs` of a function that makes a vector environment.
    """
    if isinstance(factory, type):
        if issubclass(factory, gym.Env | gym.vector.VectorEnv) or _is_pettingzoo(factory):
            return False
        if any((base.__module__, base.__qualname__) == ("ludus.envs.base", "BatchedEnv") for base in factory.__mro__):
            return True
    if isinstance(factory, gym.vector.VectorEnv | ModuleType) or not callable(factory):
        return False
    required = _required(factory)
    return len(required) == 1 and required != ["num_envs"]


def _is_pettingzoo(cls: type) -> bool:
    return any(base.__module__.partition(".")[0] == "pettingzoo" for base in cls.__mro__)


def parameters(factory: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return the arguments of a class or function by name; none where they are not known."""
    try:
        return inspect.signature(factory).parameters
    except (TypeError, ValueError):  # some functions of C have none
        return {}


def _required(factory: Callable[..., Any]) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [name for name, each in parameters(factory).items() if each.default is each.empty and each.kind in kinds]


@dataclass(frozen=True, slots=True)
class OwnGame:
    """What makes the batches of a world of the user's own."""

    env_id: str  # versioned name of the world
    factory: Maker  # class or function that makes an environment

    def __call__(self, request: "EnvRequest") -> "BatchedEnv":
        """Make a batch; what kind of environment it is of, one of them tells."""
        make: Callable[[OwnGame, EnvRequest], BatchedEnv] = resolve("ludus.envs.adapters.own_batch:make")
        return make(self, request)

    def default_preset(self) -> str:
        """Return `self-play` for a game of several sides, `default` for others."""
        choose: Callable[[OwnGame], str] = resolve("ludus.envs.adapters.own_batch:default_preset")
        return choose(self)


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
        package="ludus.envs",
        default_preset=game.default_preset,
        display="ludus.envs.display:GYMNASIUM_DISPLAY",
    )


@dataclass(frozen=True, slots=True)
class NamedGame(UnknownKind):
    """A game that was registered by its name, which is imported on first use."""

    env_id: str  # versioned name of the world
    name: str  # `package.module:name`

    def __call__(self, request: "EnvRequest") -> "BatchedEnv":
        """Make a batch of what is named."""
        return resolve(find_world(self.env_id).env)(request)

    def found(self) -> World:
        """Import the game and return the record that it would have by itself.

        Raises:
            ConfigError: It cannot be imported, or is nothing that games can be made of.
        """
        try:
            found: Any = resolve(self.name)
        except BaseException as error:  # the user's module can raise anything
            let_pass(error)
            raise ConfigError(f"{self.env_id}: {self.name!r} cannot be imported: {blame(error)}") from error
        if takes_request(found):
            return World(id=self.env_id, env=found, package=self.name.partition(":")[0].rpartition(".")[0])
        return own_world(self.env_id, found)


def as_maker(game: object) -> Maker:
    """Return what makes environments, or raise ConfigError."""
    if isinstance(game, ModuleType):
        return _module_maker(game)
    if isinstance(game, gym.vector.VectorEnv):
        return vector_maker(game)
    if isinstance(game, gym.Env) or (not isinstance(game, type) and hasattr(game, "possible_agents")):
        raise ConfigError(
            f"an object of {type(game).__name__} is one game, and a batch needs many: pass the class, "
            f"{type(game).__name__}, or a function that makes one"
        )
    if not callable(game):
        raise ConfigError(f"an environment is {KINDS}; got {type(game).__name__}")
    return game


def _module_maker(module: ModuleType) -> Maker:
    maker: Maker | None = getattr(module, PARALLEL, None)
    if maker is None:
        hint = (
            "pettingzoo.utils.conversions.aec_to_parallel(env) in a function of your own, if its agents can act at once"
        )
        has_turns = hasattr(module, "env") or hasattr(module, "raw_env")
        what = f"only turn-based (AEC) games; use {hint}" if has_turns else f"no function {PARALLEL}"
        raise UnsupportedError(f"the module {module.__name__} has {what}")
    return maker


def factory_of(env_id: str) -> Maker:
    """Return what makes environments of a registered world of the user's own; a worker asks after loading plugins."""
    world = known_world(env_id)
    if world is None or not isinstance(world.env, OwnGame):
        raise ConfigError(f"no plugin registers {env_id!r}; call ludus.register_env in the file, outside any function")
    return world.env.factory


def home_of(factory: object) -> str:
    """Return the module whose `parallel_env` something is; PettingZoo makes such functions without own names."""
    homes = [
        name
        for name, module in list(sys.modules.items())
        if name != "__main__" and isinstance(module, ModuleType) and vars(module).get(PARALLEL) is factory
    ]
    return min(homes, key=lambda name: (re.search(_VERSION, name) is None, len(name)), default="")


def described(factory: object) -> str:
    """Return the name of a class or function and where it is defined."""
    module, name = getattr(factory, "__module__", ""), getattr(factory, "__qualname__", type(factory).__name__)
    code = getattr(factory, "__code__", None)
    place = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    return f"{name} of {module}{place}" if module else f"{name}{place}"


def _pettingzoo_name(module: str) -> str:
    """Return the name of a game in PettingZoo's own packages; empty for any other module."""
    package, _, path = module.partition(".")
    if package not in ("pettingzoo", "mpe2"):
        return ""
    family = "mpe" if package == "mpe2" else path.partition(".")[0]
    # Only the versioned modules are for users: `pettingzoo.sisl.multiwalker_v9`, not `...multiwalker.multiwalker`.
    inner = getattr(getattr(sys.modules.get(module), "raw_env", None), "metadata", {})
    last = module.rpartition(".")[2]
    return f"{PETTINGZOO_PREFIX}{family}.{last if re.search(_VERSION, last) else inner.get('name', last)}"


def _made_by(world: World) -> object:
    if isinstance(world.env, NamedGame):
        module, _, name = world.env.name.partition(":")
        found = getattr(sys.modules.get(module), name, None)  # what is not imported yet is no game of this program
        return world.env if found is None else found
    return world.env.factory if isinstance(world.env, OwnGame) else world.env


def _is_same(left: object, right: object) -> bool:
    """Return whether two makers are one, or make copies of the same vector environment."""
    original = getattr(left, "original", None)
    return left is right or (original is not None and getattr(right, "original", None) is original)


def _is_redefined(before: object, now: object) -> bool:
    """Return whether two things were defined under the same name at the same place."""
    names = [(getattr(each, "__module__", None), getattr(each, "__qualname__", "<lambda>")) for each in (before, now)]
    return names[0] == names[1] and "<" not in names[0][1]


def _derived_name(env: object, factory: object) -> str:
    home = env.__name__ if isinstance(env, ModuleType) else home_of(factory)
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
    """Return the world of `pettingzoo:sisl.multiwalker_v9`, also by its versioned name `...multiwalker-v9`."""
    module = pettingzoo_module(name)
    path, version = re.fullmatch(r"(.*?)(?:[_-]v(\d+))?", name).groups()  # type: ignore[union-attr]
    return _world(name, OwnGame(f"{path}-v{version or 0}", ModuleGame(module)))


@dataclass(frozen=True, slots=True)
class ModuleGame:
    """Makes games of a module, which is imported when the first is made."""

    module: str

    def __call__(self, **kwargs: Any) -> Any:  # noqa: ANN401 - a game of others
        """Make a game."""
        load_plugin(self.module)  # which the user has typed, see `ludus.envs.registry.check_name_from_file`
        return _module_maker(sys.modules[self.module])(**kwargs)
