"""Playing a recorded game again, on the CPU, and proving that it went the same way."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from ludus.core.errors import ReplayDivergedError, ReplayError
from ludus.core.files import JSON, sha256_file
from ludus.envs.base import BatchedEnv, StepResult, action_dtypes
from ludus.envs.registry import make_env, registered_envs
from ludus.envs.replay.file import Replay
from ludus.envs.replay.recorder import StepDigest
from ludus.store.documents import brief

# Settings of any world that name a file. A replay never says where a file is: a stranger's could name a device, a
# pipe or somebody's secrets.
FILE_SETTINGS = ("move_table",)


def replay_env(replay: Replay, files: Mapping[str, Path] | None = None) -> BatchedEnv:
    """Makes a batch of one game that stands at the first frame of a recorded one.

    Args:
        replay: The recorded game.
        files: For every setting that names a file (`replay.files`), where it is here.

    Raises:
        ReplayError: The world is unknown, of another version, or a file is missing or another one; or the actions
            are none of that world.
    """
    _check_world(replay)
    _check_settings(replay.config)
    config: dict[str, JSON | Path] = {**replay.config, **_found_files(replay, files or {})}
    try:
        env = make_env(replay.world_id, seed=replay.seed, first_game=replay.game, config=config)
    except ValueError as error:  # what its settings say is wrong here
        raise ReplayError(f"the settings in the replay do not fit {replay.world_id}: {error}") from error
    try:
        _check_actions(replay, env)
        env.reset(seed=replay.seed)
        for _ in range(replay.episode):
            env.reset()
    except BaseException:
        env.close()
        raise
    return env


def resimulate(replay: Replay, env: BatchedEnv) -> Iterator[StepResult]:
    """Plays a recorded game on an environment from `replay_env`; gives the result of every step.

    Raises:
        ReplayDivergedError: After the last step, if the game did not go as recorded; or as soon as it ends too early.
    """
    digest = StepDigest()
    for step, actions in enumerate(replay.actions, start=1):
        result = env.step(actions.unsqueeze(0))
        if digest.add(result, 0) and step < replay.steps:
            raise ReplayDivergedError(
                f"the replayed game of {replay.world_id} ended at step {step}; {replay.steps} steps were recorded"
            )
        yield result
    if digest.hexdigest() != replay.checksum:
        raise ReplayDivergedError(
            f"the replayed game of {replay.world_id} went another way than the recorded one within its "
            f"{replay.steps} steps; it was recorded by other code or with other settings"
        )


def verify_replay(replay: Replay, files: Mapping[str, Path] | None = None) -> None:
    """Plays a recorded game again without showing it; raises ReplayDivergedError unless it goes as recorded."""
    with replay_env(replay, files) as env:
        for _ in resimulate(replay, env):
            pass


def _check_world(replay: Replay) -> None:
    known = registered_envs()
    if replay.world_id in known:
        return
    here = [name for name in known if name.rpartition("-v")[0] == replay.world]
    if here:
        raise ReplayError(f"the replay is of {replay.world_id}; this Ludus plays {', '.join(here)}")
    raise ReplayError(f"the replay is of the unknown world {replay.world_id!r}; valid: {', '.join(known)}")


def _check_settings(config: Mapping[str, JSON]) -> None:
    for name, value in config.items():
        if name in FILE_SETTINGS or _names_a_place(value):
            raise ReplayError(f"the replay's setting {brief(name)} names a place on this machine, {brief(value)}")


def _names_a_place(value: JSON) -> bool:
    if isinstance(value, dict):
        return any(_names_a_place(inner) for inner in (*value.keys(), *value.values()))
    if isinstance(value, list):
        return any(_names_a_place(inner) for inner in value)
    return isinstance(value, str) and any(mark in value for mark in ("/", "\\", "\0", "~"))


def _found_files(replay: Replay, files: Mapping[str, Path]) -> dict[str, Path]:
    for name in files:
        if name not in replay.files:
            raise ReplayError(f"the replay uses no file {name!r}; it uses: {', '.join(replay.files) or 'none'}")
    for name, digest in replay.files.items():
        if name not in files:
            raise ReplayError(f"the replay was recorded with a {name} of the user's own; say where it is")
        try:
            found = sha256_file(files[name])
        except OSError as error:
            raise ReplayError(f"{name} {files[name]} cannot be read: {error.strerror}") from error
        if found != digest:
            raise ReplayError(f"{files[name]} is not the {name} that the replay was recorded with (SHA-256 {digest})")
    return dict(files)


def _check_actions(replay: Replay, env: BatchedEnv) -> None:
    space, actions = env.spec.action_space, replay.actions
    expected = (env.spec.seats, *(space.shape or ()))
    if tuple(actions.shape[1:]) != expected or actions.dtype != action_dtypes(space)[0]:
        raise ReplayError(
            f"the replay's actions are {tuple(actions.shape[1:])} {actions.dtype}; "
            f"{replay.world_id} takes {expected} {action_dtypes(space)[0]}"
        )
    low, high = _bounds(space)
    if not bool(((actions >= low) & (actions <= high)).all()):
        raise ReplayError(f"the replay holds actions that {replay.world_id} does not have; its action space is {space}")


def _bounds(space: spaces.Space[object]) -> tuple[Tensor, Tensor]:
    """Least and greatest valid action; NaN is never between them."""
    if isinstance(space, spaces.Box):
        return torch.as_tensor(space.low), torch.as_tensor(space.high)
    if isinstance(space, spaces.Discrete):
        return torch.as_tensor(int(space.start)), torch.as_tensor(int(space.start + space.n - 1))
    if isinstance(space, spaces.MultiDiscrete):
        return torch.as_tensor(space.start), torch.as_tensor(space.start + space.nvec - 1)
    return torch.tensor(0), torch.tensor(np.int64(1))
