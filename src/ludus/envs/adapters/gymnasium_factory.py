"""Any Gymnasium environment as a batched environment: its spaces, its spec, and the batch in its right kind."""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from ludus.core.errors import ConfigError, EnvFaultError, LudusError, MissingDependencyError, UnsupportedError
from ludus.core.faults import let_pass
from ludus.core.text import blame
from ludus.envs.adapters.game_batch import Driver, GameBatch, GymnasiumSettings, LocalBatch, close_game
from ludus.envs.adapters.games import Block, Entry, Games, GymnasiumGames, Maker, Plan, Source
from ludus.envs.adapters.names import GYMNASIUM_PREFIX, gymnasium_module
from ludus.envs.adapters.worker_batch import WorkerBatch
from ludus.envs.base import EnvRequest, EnvSpec
from ludus.envs.settings import MOST_WORKERS, read_settings
from ludus.envs.spaces import ActionKinds, choice_faults
from ludus.rewards.plugins import load_plugin

_MASK = "action_mask"  # as many libraries call that entry of a Dict observation

SettingsT = TypeVar("SettingsT", bound=GymnasiumSettings)

_WORKER_SLOTS = 2  # a worker writes into one set of observations while the last one stays whole


def observation_entries(space: spaces.Space[Any]) -> tuple[spaces.Dict, tuple[Entry, ...]]:
    """Return our observation space and how its entries are filled; raise UnsupportedError for spaces of other kinds.

    A Box becomes the entry `pixels` if it is a picture of uint8, else `vector` in float32; Discrete becomes one-hot;
    a Dict of these keeps its names.
    """
    if isinstance(space, spaces.Dict):
        parts = {name: _entry(name, name, part) for name, part in space.spaces.items()}
    else:
        picture = isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) == 3
        name = "pixels" if picture else "vector"
        parts = {name: _entry(name, None, space)}
    boxes = spaces.Dict({name: box for name, (box, _) in parts.items()})
    return boxes, tuple(entry for _, entry in parts.values())


def _entry(name: str, key: str | None, space: spaces.Space[Any]) -> tuple[spaces.Box, Entry]:
    if isinstance(space, spaces.Discrete):
        shape = (int(space.n),)
        return spaces.Box(0.0, 1.0, shape, np.float32), Entry(name, key, shape, "float32", int(space.start))
    if isinstance(space, spaces.MultiBinary):
        return spaces.Box(0.0, 1.0, space.shape, np.float32), Entry(name, key, space.shape, "float32")
    if isinstance(space, spaces.Box):
        if space.dtype == np.uint8:
            return space, Entry(name, key, space.shape, "uint8")
        low, high = space.low.astype(np.float32), space.high.astype(np.float32)
        return spaces.Box(low, high, dtype=np.float32), Entry(name, key, space.shape, "float32")
    raise UnsupportedError(
        f"observation space {space} is not supported; valid: Box, Discrete, MultiBinary or a Dict of these; "
        "wrap the environment with gymnasium.wrappers.FlattenObservation"
    )


def action_form(space: spaces.Space[Any]) -> tuple[spaces.Space[Any], str]:
    """Return our action space, counted from 0, and its storage type; raise UnsupportedError for other kinds."""
    if isinstance(space, spaces.Discrete):
        return spaces.Discrete(int(space.n)), "int64"
    if isinstance(space, spaces.MultiDiscrete):
        return spaces.MultiDiscrete(space.nvec), "int64"
    if isinstance(space, spaces.MultiBinary):
        return space, "int8"
    if isinstance(space, spaces.Box):
        low, high = space.low.astype(np.float32), space.high.astype(np.float32)
        return spaces.Box(low, high, dtype=np.float32), "float32"
    raise UnsupportedError(f"action space {space} is not supported; valid: Discrete, MultiDiscrete, MultiBinary, Box")


def batched_spec(env: gym.Env[Any, Any], env_id: str) -> EnvSpec:
    """Return our spec of an environment of Gymnasium's registry."""
    name, version = env_id, 0
    if env.spec is not None:
        name = env.spec.name if env.spec.namespace is None else f"{env.spec.namespace}/{env.spec.name}"
        version = env.spec.version or 0
    return single_spec(env, f"{GYMNASIUM_PREFIX}{name}", version)


def single_spec(env: Any, name: str, version: int) -> EnvSpec:  # noqa: ANN401 - a gymnasium.Env, or a VectorEnv
    """Return the spec of games of one seat: those of a Gymnasium environment, or of a vector of them."""
    seen, played = _single_spaces(env)
    metadata: Mapping[str, Any] = env.metadata or {}
    observations, actions = observation_entries(seen)[0], action_form(played)[0]
    return EnvSpec(
        name=name,
        version=version,
        teams=(0,),
        observation_space=observations,
        action_space=actions,
        rate_hz=float(metadata.get("render_fps") or 30.0),
        step_limit=None if env.spec is None else env.spec.max_episode_steps,
        events=("reward",),
        device_types=("cpu",),
        snapshots=not isinstance(env, gym.vector.VectorEnv),  # which cannot be reset to one seed per game
        actions=ActionKinds(mask=_mask_entry(observations, actions)),
    )


def _single_spaces(env: Any) -> tuple[spaces.Space[Any], spaces.Space[Any]]:  # noqa: ANN401
    """Return what one game shows and takes."""
    if isinstance(env, gym.vector.VectorEnv):
        return env.single_observation_space, env.single_action_space
    return env.observation_space, env.action_space


def _mask_entry(observations: spaces.Dict, actions: spaces.Space[Any]) -> str | None:
    """Return the entry of an observation that is by its name and size a mask of allowed actions."""
    is_mask = _MASK in observations.spaces and not list(choice_faults(observations, actions, ActionKinds(mask=_MASK)))
    return _MASK if is_mask else None


def make(name: str, request: EnvRequest) -> GameBatch:
    """Make a batch of `gym:ID`, or of `gym:module:ID`, for which the module is imported.

    Raises:
        ConfigError: The id or the module is unknown, or a setting (`GymnasiumSettings`) is wrong.
        EnvFaultError: The environment cannot be constructed.
        UnsupportedError: The environment has a space of a kind that we do not know.
        WorkerError: The workers cannot be started.
    """
    settings = batch_settings(GymnasiumSettings, name, request)
    module = gymnasium_module(name)
    if module:
        load_plugin(module)
    gym_id = _registered_id(name.removeprefix(GYMNASIUM_PREFIX).rpartition(":")[2])
    source = Source(gym_id=gym_id)
    maker = source.load()
    with naming_faults(name):
        env = maker(**settings.env_kwargs)
        try:
            spec, plan = batched_spec(env, gym_id), single_plan(env, source, settings, request)
        finally:
            close_game(env, name)
    return make_batch(spec, plan, request, settings, GymnasiumGames, maker)


def batch_settings(model: type[SettingsT], name: str, request: EnvRequest) -> SettingsT:
    """Return the checked settings of a batch, with no more workers than it can use.

    With the settings of a large batch a small one is made too, to look at the world or to evaluate an agent.
    """
    settings = read_settings(model, request.config, name)
    return settings.model_copy(update={"workers": min(settings.workers, request.num_envs, MOST_WORKERS)})


def single_plan(env: Any, source: Source, settings: GymnasiumSettings, request: EnvRequest) -> Plan:  # noqa: ANN401
    """Return the plan of a batch of games of one seat that are like this environment, or this vector of them."""
    seen, played = _single_spaces(env)
    space, dtype = action_form(played)
    return Plan(
        source=source,
        env_kwargs=settings.env_kwargs,
        num_envs=request.num_envs,
        slots=memory_slots(settings),
        entries=observation_entries(seen)[1],
        action_shape=tuple(space.shape or ()),
        action_dtype=dtype,
    )


def memory_slots(settings: GymnasiumSettings) -> int:
    """Return how many sets of observations a batch needs."""
    return _WORKER_SLOTS if settings.workers else 1


def make_batch(
    spec: EnvSpec, plan: Plan, request: EnvRequest, settings: GymnasiumSettings, driver: Driver, make: Maker
) -> GameBatch:
    """Make the games of a plan, in this process or in workers.

    A worker loads the driver's file, whose function `host` makes the driver; what makes an environment it finds itself.
    """
    if settings.workers:
        return WorkerBatch(spec, plan, request, settings, Path(inspect.getfile(driver)))

    def host(block: Block) -> Games:
        with naming_faults(spec.id):
            return driver(plan, block, 0, plan.num_envs, make)

    return LocalBatch(spec, plan, request, settings, host)


def is_registered(name: str) -> bool:
    """Return whether Gymnasium knows the environment of `gym:ID`."""
    return _registered_id(name.removeprefix(GYMNASIUM_PREFIX)) in gym.registry


def _registered_id(gym_id: str) -> str:
    """Return the id as Gymnasium knows it: our specs have a version, 0 for an environment that has none."""
    plain = gym_id.removesuffix("-v0")
    return plain if gym_id not in gym.registry and plain in gym.registry else gym_id


@contextmanager
def naming_faults(name: str) -> Iterator[None]:
    """Turn whatever making an environment raises into a typed error that names it."""
    try:
        yield
    except LudusError:
        raise
    except gym.error.UnregisteredEnv as error:
        raise ConfigError(
            f"{name!r} cannot be made: {blame(error)}; if a file or module of yours registers it, name that "
            "with --plugin, or as gym:MODULE:ID"
        ) from error
    except (gym.error.Error, ImportError, TypeError) as error:
        if isinstance(error, ImportError) and error.name == "imageio":  # which Gymnasium's MuJoCo environments import
            raise MissingDependencyError("imageio", "gymnasium-mujoco", repr(name)) from error
        raise ConfigError(f"{name!r} cannot be made: {blame(error)}; check its id and env_kwargs") from error
    except BaseException as error:
        let_pass(error)
        raise EnvFaultError(f"{name!r} cannot be made: {blame(error)}; fix the environment") from error
