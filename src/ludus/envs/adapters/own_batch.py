"""Make batches of games of the user's own; what they are of, one game that is made tells. See `envs/own_games.py`."""

import inspect
import sys
from dataclasses import replace
from typing import Any

import gymnasium as gym

from ludus.core.errors import ConfigError, UnsupportedError
from ludus.core.faults import let_pass
from ludus.envs.adapters.game_batch import GameBatch, close_game
from ludus.envs.adapters.games import GymnasiumGames, Source
from ludus.envs.adapters.gymnasium_factory import (
    batch_settings,
    make_batch,
    naming_faults,
    single_plan,
    single_spec,
)
from ludus.envs.adapters.pettingzoo_factory import OwnGameSettings, is_parallel, is_turn_based, make_parallel, teams_of
from ludus.envs.adapters.vector_games import Loan, VectorGames
from ludus.envs.base import EnvRequest
from ludus.envs.own_games import KINDS, PARALLEL, Maker, ModuleGame, OwnGame, described, home_of, parameters
from ludus.rewards.plugins import plugin_of


def make(game: OwnGame, request: EnvRequest) -> GameBatch:
    """Make a batch of a game of the user's own.

    Raises:
        ConfigError: A setting (`OwnGameSettings`) is wrong, or workers cannot find the game.
        EnvFaultError: The game cannot be constructed.
        UnsupportedError: It is of a kind, or has spaces, that we do not know.
    """
    settings = batch_settings(OwnGameSettings, game.env_id, request)
    kwargs = dict(settings.env_kwargs)
    if not _takes(game.factory, "render_mode"):
        kwargs.pop("render_mode", None)  # it is asked for to draw the game, which then says that it cannot
    settings = settings.model_copy(update={"env_kwargs": kwargs})
    counted = {"num_envs": request.num_envs} if "num_envs" in parameters(game.factory) else {}
    with naming_faults(game.env_id):
        env = game.factory(**counted, **kwargs)
    if isinstance(env, gym.vector.VectorEnv):
        return _vector_batch(game, env, request, settings, is_sized=bool(counted))
    try:
        with naming_faults(game.env_id):
            return _batch(game, env, request, settings)
    finally:
        close_game(env, game.env_id)


def _vector_batch(
    game: OwnGame,
    env: "gym.vector.VectorEnv[Any, Any, Any]",
    request: EnvRequest,
    settings: OwnGameSettings,
    *,
    is_sized: bool,
) -> GameBatch:
    """Make a batch that takes over a vector environment; `is_sized` if it was made for the games asked for."""
    name, _, version = game.env_id.rpartition("-v")
    try:
        _check_vector(name, env, request, settings)
        spec = replace(single_spec(env, name, int(version)), max_envs=None if is_sized else env.num_envs)
        plan = single_plan(env, Source(), settings, request)
        batch = make_batch(spec, plan, request, settings, VectorGames, lambda: env)
    except BaseException:
        close_game(env, name)
        raise
    if isinstance(env, Loan):
        batch.warnings = (
            f"{spec.id} is one vector environment, so it cannot be evaluated while it trains: use evaluation=null, or "
            "register a function of num_envs",
        )
    return batch


def _check_vector(
    name: str, env: "gym.vector.VectorEnv[Any, Any, Any]", request: EnvRequest, settings: OwnGameSettings
) -> None:
    if settings.workers:
        raise ConfigError(
            f"{name} is a vector environment, which has its own processes; use workers=0, or AsyncVectorEnv"
        )
    if env.num_envs < request.num_envs:
        raise ConfigError(
            f"{name} is a vector environment of {env.num_envs} games, {request.num_envs} were asked for; use "
            f"world.num_envs={env.num_envs}, or register a function of num_envs"
        )


def _batch(game: OwnGame, env: Any, request: EnvRequest, settings: OwnGameSettings) -> GameBatch:  # noqa: ANN401
    name, version = game.env_id.rpartition("-v")[::2]
    if is_turn_based(env):
        raise UnsupportedError(
            f"{game.env_id}: {type(env).__name__} is a turn-based (AEC) game; where all agents can act at once, wrap "
            "it: pettingzoo.utils.conversions.aec_to_parallel(env)"
        )
    source = source_of(game.env_id, game.factory) if settings.workers else Source()
    if isinstance(env, gym.Env):
        spec, plan = single_spec(env, name, int(version)), single_plan(env, source, settings, request)
        return make_batch(spec, plan, request, settings, GymnasiumGames, game.factory)
    if is_parallel(env):
        return make_parallel(env, (name, int(version)), source, settings, request, game.factory)
    raise ConfigError(f"{game.env_id}: {described(game.factory)} made {type(env).__name__}; expected {KINDS}")


def _takes(factory: Maker, name: str) -> bool:
    known = parameters(factory)
    return name in known or any(each.kind is inspect.Parameter.VAR_KEYWORD for each in known.values())


def default_preset(game: OwnGame) -> str:
    """Return `self-play` for a game of several sides, `default` for others, and where none can be made to ask."""
    try:
        env = game.factory()
        try:
            is_match = is_parallel(env) and len({*teams_of(env, [*map(str, env.possible_agents)], {}, "")}) > 1
        finally:
            env.close()
    except BaseException as error:  # whatever it is, making the games of the run says it better
        let_pass(error)
        return "default"
    return "self-play" if is_match else "default"


def source_of(env_id: str, factory: Maker) -> Source:
    """Return where a worker process finds a factory; raise ConfigError if it cannot."""
    if isinstance(factory, ModuleGame):
        return Source(module=factory.module, name=PARALLEL)
    module, name = getattr(factory, "__module__", "") or "", getattr(factory, "__qualname__", "") or ""
    plugin = plugin_of(module)
    if module != "__main__" and _find(module, name) is factory:
        return Source(module=module, name=name, plugin=plugin)
    home = home_of(factory)
    if home:
        return Source(module=home, name=PARALLEL, plugin=plugin_of(home))
    if plugin:
        return Source(world=env_id)
    raise ConfigError(
        f"{env_id}: {described(factory)} cannot be found by worker processes; put it into a file as a class or "
        "function of its own and load that with --plugin FILE, or import it in Python; or use world.settings.workers=0"
    )


def _find(module: str, name: str) -> object:
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
