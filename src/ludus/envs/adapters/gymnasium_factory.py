"""Any Gymnasium environment as a batched environment: its spaces, the factory, and the batch in our own process."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, EnvFaultError, LudusError, MissingDependencyError, UnsupportedError
from ludus.core.faults import let_pass
from ludus.core.text import blame, plain_text, user_place
from ludus.envs.adapters import gymnasium_worker
from ludus.envs.adapters.gymnasium_batch import GymnasiumBatch, GymnasiumSettings, WorkerBatch
from ludus.envs.adapters.gymnasium_worker import ContractError, Entry, Games, GameSlice, Maker, Plan, Source
from ludus.envs.base import EnvRequest, EnvSpec
from ludus.envs.registry import imported_module
from ludus.envs.settings import MOST_WORKERS, read_settings
from ludus.envs.spaces import ActionKinds, choice_faults
from ludus.envs.world import GYMNASIUM_PREFIX
from ludus.rewards.plugins import load_plugin

_MASK = "action_mask"  # as many libraries call that entry of a Dict observation

SettingsT = TypeVar("SettingsT", bound=GymnasiumSettings)

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
    """Return our spec of an environment of Gymnasium's registry."""
    name, version = env_id, 0
    if env.spec is not None:
        name = env.spec.name if env.spec.namespace is None else f"{env.spec.namespace}/{env.spec.name}"
        version = env.spec.version or 0
    return single_spec(env, f"{GYMNASIUM_PREFIX}{name}", version)


def single_spec(env: Any, name: str, version: int) -> EnvSpec:  # noqa: ANN401 - a gymnasium.Env, or a VectorEnv
    """Return the spec of games of one seat: those of a Gymnasium environment, or of a vector of them."""
    is_vector = isinstance(env, gym.vector.VectorEnv)
    seen, played = (
        (env.single_observation_space, env.single_action_space)
        if is_vector
        else (env.observation_space, env.action_space)
    )
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
        snapshots=not is_vector,  # a vector environment cannot be reset to one seed per game
        actions=ActionKinds(mask=_mask_entry(observations, actions)),
    )


def _mask_entry(observations: spaces.Dict, actions: spaces.Space[Any]) -> str | None:
    """Return the entry of an observation that is by its name and size a mask of allowed actions."""
    is_mask = _MASK in observations.spaces and not list(choice_faults(observations, actions, ActionKinds(mask=_MASK)))
    return _MASK if is_mask else None


class InProcessBatch(GymnasiumBatch):
    """Games that are played one after another in our own process; best for small environments."""

    def __init__(
        self, spec: EnvSpec, plan: Plan, request: EnvRequest, settings: GymnasiumSettings, hosted: "Hosted"
    ) -> None:
        views = {name: np.zeros(shape, dtype) for name, (shape, dtype) in plan.fields().items()}
        super().__init__(spec, plan, views, request, settings)
        with naming_faults(spec.id):
            self._games = hosted.kind(plan, self._block, 0, self.num_envs, hosted.make)

    def _start_marked(self) -> None:
        try:
            self._games.reset(0)
        except BaseException as error:
            raise self._fault(error) from error
        self._begin(np.flatnonzero(self._block.resets).tolist())

    def _play(self) -> None:
        try:
            ended = self._games.step(0)
        except BaseException as error:
            raise self._fault(error) from error
        if ended:
            self._begin(ended)

    def _replay_marked(self) -> None:
        try:
            self._games.replay(0)
        except BaseException as error:
            raise self._fault(error) from error

    def _fault(self, error: BaseException) -> EnvFaultError:
        """Return the typed error for whatever a game raised or returned, with what brings it back."""
        let_pass(error)
        game, calling = self._games.current, self._games.calling
        seed = self._block.next_seeds[game] if calling == "reset" else self._running_seeds[game]
        if isinstance(error, ContractError):
            what = str(error)
        elif user_place(error):
            what = f"{calling}() raised {blame(error)}"
        else:  # a wrapper of the library's, or NumPy, could not do anything with it
            where = self._games.definition()
            what = f"{calling}() returned something else than {self._games.forms[calling]}: {blame(error)} ({where})"
        place = f"game {self.first_game + game}, after env.reset(seed={seed})"
        return EnvFaultError(plain_text(f"{self.spec.id}: {what}; {place}; fix the environment"))

    def render(self, game: int = 0) -> NDArray[np.uint8]:
        """Draw one game, if it was made with `env_kwargs={"render_mode": "rgb_array"}`."""
        env = self._games.envs[game]
        mode = render_mode_of(env)
        if mode != "rgb_array":
            raise UnsupportedError(
                f"{self.spec.id} was made with render_mode {mode!r}; to draw it, use "
                "config={'env_kwargs': {'render_mode': 'rgb_array'}}, which the environment's constructor must take"
            )
        try:
            picture = env.render()
        except BaseException as error:
            let_pass(error)
            raise EnvFaultError(f"{self.spec.id}: render() raised {blame(error)}; fix the environment") from error
        return check_picture(picture, self.spec.id)

    def close(self) -> None:
        """Close all games; one that fails to close is only reported."""
        for env in self._games.envs:
            close_game(env, self.spec.id)


def close_game(env: Any, owner: str) -> None:  # noqa: ANN401 - an environment of any library
    """Close an environment; one that fails to close is only reported."""
    try:
        if hasattr(env, "close"):
            env.close()
    except BaseException as error:
        let_pass(error)
        _LOGGER.warning("[WARN] %s: close() raised %s", owner, blame(error))


def check_picture(picture: object, owner: str) -> NDArray[np.uint8]:
    """Return what an environment has drawn; raise EnvFaultError if it is no RGB picture."""
    array = np.asarray(picture)
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3:
        raise EnvFaultError(
            f"{owner}: render() returned an array of shape {array.shape} of {array.dtype}, expected "
            "(height, width, 3) of uint8; fix the environment"
        )
    return array


def render_mode_of(env: Any) -> str | None:  # noqa: ANN401 - an environment of any library
    """Return the render mode that an environment was made with; PettingZoo's wrappers do not say it themselves."""
    mode: str | None = getattr(env, "render_mode", None) or getattr(getattr(env, "unwrapped", env), "render_mode", None)
    return mode


def make(name: str, request: EnvRequest) -> GymnasiumBatch:
    """Make a batch of `gym:ID`, or of `gym:module:ID`, for which the module is imported.

    Raises:
        ConfigError: The id or the module is unknown, or a setting (`GymnasiumSettings`) is wrong.
        EnvFaultError: The environment cannot be constructed.
        UnsupportedError: The environment has a space of a kind that we do not know.
        WorkerError: The workers cannot be started.
    """
    settings = batch_settings(GymnasiumSettings, name, request)
    module = imported_module(name)
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
    return make_batch(spec, plan, request, settings, Hosted(maker, Games, gymnasium_worker.FILE))


def batch_settings(model: type[SettingsT], name: str, request: EnvRequest) -> SettingsT:
    """Return the checked settings of a batch, with no more workers than it can use.

    With the settings of a large batch a small one is made too, to look at the world or to evaluate an agent.
    """
    settings = read_settings(model, request.config, name)
    return settings.model_copy(update={"workers": min(settings.workers, request.num_envs, MOST_WORKERS)})


def single_plan(env: gym.Env[Any, Any], source: Source, settings: GymnasiumSettings, request: EnvRequest) -> Plan:
    """Return the plan of a batch of environments of one seat that are like this one."""
    space, dtype = action_form(env.action_space)
    return Plan(
        source=source,
        env_kwargs=settings.env_kwargs,
        num_envs=request.num_envs,
        slots=memory_slots(settings),
        entries=observation_entries(env.observation_space)[1],
        action_shape=tuple(space.shape or ()),
        action_dtype=dtype,
    )


def memory_slots(settings: GymnasiumSettings) -> int:
    """Return how many sets of observations a batch needs."""
    return _WORKER_SLOTS if settings.workers else 1


class Hosted(NamedTuple):
    """Who plays a batch: what makes an environment, the class that plays a slice of them, and the class's file."""

    make: Maker
    kind: type[GameSlice]
    file: Path


def make_batch(
    spec: EnvSpec, plan: Plan, request: EnvRequest, settings: GymnasiumSettings, hosted: Hosted
) -> GymnasiumBatch:
    """Make the games of a plan, in this process or in workers."""
    if settings.workers:
        return WorkerBatch(spec, plan, request, settings, hosted.file)
    return InProcessBatch(spec, plan, request, settings, hosted)


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
