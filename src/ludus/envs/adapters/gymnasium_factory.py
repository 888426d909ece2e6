"""Any Gymnasium environment as a batched environment: its spaces, the factory, and the batch in our own process."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, EnvFaultError, LudusError, UnsupportedError
from ludus.core.text import blame, plain_text, user_place
from ludus.envs.adapters.gymnasium_batch import GymnasiumBatch, GymnasiumSettings, WorkerBatch
from ludus.envs.adapters.gymnasium_worker import FORMS, ContractError, Entry, Games, Plan
from ludus.envs.base import EnvRequest, EnvSpec
from ludus.envs.registry import gymnasium_module
from ludus.envs.settings import MOST_WORKERS, read_settings
from ludus.envs.spaces import choice_faults
from ludus.envs.world import GYMNASIUM_PREFIX
from ludus.rewards.plugins import load_plugin

_MASK = "action_mask"  # as many libraries call that entry of a Dict observation

_LOGGER = logging.getLogger(__name__)
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
    """Return our spec of a Gymnasium environment."""
    name, version = env_id, 0
    limit: int | None = None
    if env.spec is not None:
        name = env.spec.name if env.spec.namespace is None else f"{env.spec.namespace}/{env.spec.name}"
        version, limit = env.spec.version or 0, env.spec.max_episode_steps
    metadata: Mapping[str, Any] = env.metadata or {}
    observations, actions = observation_entries(env.observation_space)[0], action_form(env.action_space)[0]
    return EnvSpec(
        name=f"gym:{name}",
        version=version,
        teams=(0,),
        observation_space=observations,
        action_space=actions,
        rate_hz=float(metadata.get("render_fps") or 30.0),
        step_limit=limit,
        events=("reward",),
        device_types=("cpu",),
        snapshots=False,
        action_mask=_mask_entry(observations, actions),
    )


def _mask_entry(observations: spaces.Dict, actions: spaces.Space[Any]) -> str | None:
    """Return the entry of an observation that is by its name and size a mask of allowed actions."""
    is_mask = _MASK in observations.spaces and not list(choice_faults(observations, actions, _MASK, (), ()))
    return _MASK if is_mask else None


class InProcessBatch(GymnasiumBatch):
    """Games that are played one after another in our own process; best for small environments."""

    def __init__(self, spec: EnvSpec, plan: Plan, request: EnvRequest) -> None:
        views = {name: np.zeros(shape, dtype) for name, (shape, dtype) in plan.fields().items()}
        super().__init__(spec, plan, views, request)
        with _naming_faults(spec.id):
            self._games = Games(plan, self._block, 0, self.num_envs)

    def _start_marked(self) -> None:
        try:
            self._games.reset(0)
        except Exception as error:
            raise self._fault(error) from error
        self._begin(np.flatnonzero(self._block.resets).tolist())

    def _play(self) -> None:
        try:
            ended = self._games.step(0)
        except Exception as error:
            raise self._fault(error) from error
        if ended:
            self._begin(ended)

    def _fault(self, error: Exception) -> EnvFaultError:
        """Return the typed error for whatever a game raised or returned, with what brings it back."""
        game, calling = self._games.current, self._games.calling
        seed = self._block.next_seeds[game] if calling == "reset" else self._running_seeds[game]
        if isinstance(error, ContractError):
            what = str(error)
        elif user_place(error):
            what = f"{calling}() raised {blame(error)}"
        else:  # a wrapper of Gymnasium's, or NumPy, could not do anything with it
            where = self._games.definition()
            what = f"{calling}() returned something else than {FORMS[calling]}: {blame(error)} ({where})"
        place = f"game {self.first_game + game}, after env.reset(seed={seed})"
        return EnvFaultError(plain_text(f"{self.spec.id}: {what}; {place}; fix the environment"))

    def render(self, game: int = 0) -> NDArray[np.uint8]:
        """Draw one game, if it was made with `env_kwargs={"render_mode": "rgb_array"}`."""
        env = self._games.envs[game]
        if env.render_mode != "rgb_array":
            raise UnsupportedError(
                f"{self.spec.id} was made with render_mode {env.render_mode!r}; "
                "to draw it, use config={'env_kwargs': {'render_mode': 'rgb_array'}}"
            )
        try:
            picture = np.asarray(env.render())
        except Exception as error:
            raise EnvFaultError(f"{self.spec.id}: render() raised {blame(error)}; fix the environment") from error
        if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
            raise EnvFaultError(
                f"{self.spec.id}: render() returned an array of shape {picture.shape} of {picture.dtype}, expected "
                "(height, width, 3) of uint8; fix the environment"
            )
        return picture

    def close(self) -> None:
        """Close all games; one that fails to close is only reported."""
        for env in self._games.envs:
            try:
                env.close()
            except Exception as error:
                _LOGGER.warning("[WARN] %s: close() raised %s", self.spec.id, blame(error))


def make(name: str, request: EnvRequest) -> GymnasiumBatch:
    """Make a batch of `gym:ID`, or of `gym:module:ID`, for which the module is imported.

    Raises:
        ConfigError: The id or the module is unknown, or a setting (`GymnasiumSettings`) is wrong.
        EnvFaultError: The environment cannot be constructed.
        UnsupportedError: The environment has a space of a kind that we do not know.
        WorkerError: The workers cannot be started.
    """
    settings = read_settings(GymnasiumSettings, request.config, name)
    # With the settings of a large batch a small one is made too, to look at the world or to evaluate an agent.
    settings = settings.model_copy(update={"workers": min(settings.workers, request.num_envs, MOST_WORKERS)})
    module = gymnasium_module(name)
    if module:
        load_plugin(module)
    gym_id = _registered_id(name.removeprefix(GYMNASIUM_PREFIX).rpartition(":")[2])
    with _naming_faults(name), gym.make(gym_id, disable_env_checker=True, **settings.env_kwargs) as env:
        spec = batched_spec(env, gym_id)
        entries = observation_entries(env.observation_space)[1]
        space, dtype = action_form(env.action_space)
    slots = _WORKER_SLOTS if settings.workers else 1
    plan = Plan(gym_id, settings.env_kwargs, request.num_envs, slots, entries, tuple(space.shape or ()), dtype)
    if settings.workers:
        return WorkerBatch(spec, plan, request, settings)
    return InProcessBatch(spec, plan, request)


def is_registered(name: str) -> bool:
    """Return whether Gymnasium knows the environment of `gym:ID`."""
    return _registered_id(name.removeprefix(GYMNASIUM_PREFIX)) in gym.registry


def _registered_id(gym_id: str) -> str:
    """Return the id as Gymnasium knows it: our specs have a version, 0 for an environment that has none."""
    plain = gym_id.removesuffix("-v0")
    return plain if gym_id not in gym.registry and plain in gym.registry else gym_id


@contextmanager
def _naming_faults(name: str) -> Iterator[None]:
    """Turn whatever making an environment raises into a typed error that names it."""
    try:
        yield
    except LudusError:
        raise
    except gym.error.UnregisteredEnv as error:
        raise ConfigError(
            f"{name!r} cannot be made: {plain_text(str(error))}; if a file or module of yours registers it, name that "
            "with --plugin, or as gym:MODULE:ID"
        ) from error
    except (gym.error.Error, ImportError, TypeError) as error:
        raise ConfigError(f"{name!r} cannot be made: {blame(error)}; check its id and env_kwargs") from error
    except Exception as error:
        raise EnvFaultError(f"{name!r} cannot be made: {blame(error)}; fix the environment") from error
