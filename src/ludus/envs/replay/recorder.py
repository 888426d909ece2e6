"""Recording one game while its environment is stepped."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from pydantic import BaseModel
from torch import Tensor

from ludus.core.errors import ConfigError, ReplayError, UnsupportedError
from ludus.core.files import JSON, sha256_file
from ludus.envs.base import BatchedEnv, StepResult, action_dtypes
from ludus.envs.registry import registered_envs
from ludus.envs.replay.file import Replay


class StepDigest:
    """A running SHA-256 over what one game gave: observations, events, measures and whether it ended, step by step.

    It is made of the contract alone, so it works for every world, also where no snapshot can be taken.
    """

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, result: StepResult, game: int) -> bool:
        """Adds one step of one game and says whether the game ended in it."""
        ended = bool(result.ended[game])
        observations = result.final_observations if ended else result.observations
        for name in sorted(observations):
            self._add_tensor(observations[name][game])
        numbers = [rows[name][game] for rows in (result.events, result.measures) for name in sorted(rows)]
        if numbers:
            self._add_tensor(torch.stack(numbers))
        self._digest.update(b"\1" if ended else b"\0")
        return ended

    def hexdigest(self) -> str:
        """Returns the digest of all steps so far."""
        return self._digest.hexdigest()

    def _add_tensor(self, tensor: Tensor) -> None:
        if tensor.dtype.is_floating_point:
            tensor = tensor + 0.0  # devices may disagree about the sign of zero
        self._digest.update(tensor.contiguous().cpu().numpy().tobytes())


class ReplayRecorder:
    """Records one game of a batch, from its first step to its end or to any moment before.

    Give it every step: `recorder.record(actions, env.step(actions))`. Steps after the end of the game are ignored.
    """

    def __init__(
        self,
        env: BatchedEnv,
        game: int = 0,
        *,
        episode: int = 0,
        config: Mapping[str, Any] | None = None,
        players: Sequence[str] = (),
    ) -> None:
        """Begins a recording; the game must be at its first frame.

        Args:
            env: The environment, just reset.
            game: Place of the game in the batch.
            episode: Number of resets and restarts of this game since the seed was set: 0 after `reset(seed=...)`.
            config: The world's settings, if the environment does not keep them as a model in `env.config`.
            players: Who sits in each seat, for people.
        """
        if not 0 <= game < env.num_games:
            raise ConfigError(f"game {game} does not exist; valid: 0 to {env.num_games - 1}")
        if env.spec.id not in registered_envs():
            raise UnsupportedError(f"{env.spec.id} is not registered, so a replay of it could not be played again")
        self.ended = False
        self._env, self._game, self._episode = env, game, episode
        self._players = tuple(players)
        self._config, self._files = _portable(_settings_of(env) if config is None else config)
        self._seed = env.seed
        self._dtype = action_dtypes(env.spec.action_space)[0]
        self._actions: list[Tensor] = []
        self._digest = StepDigest()

    def record(self, actions: Tensor, result: StepResult) -> None:
        """Adds a step.

        Args:
            actions: `(games, seats, ...)`, what the environment was given.
            result: What it gave.
        """
        if self.ended:
            return
        self._actions.append(actions[self._game].to("cpu", self._dtype, copy=True))
        self.ended = self._digest.add(result, self._game)

    def replay(self) -> Replay:
        """Returns what was recorded so far.

        Raises:
            ReplayError: Nothing was.
        """
        if not self._actions:
            raise ReplayError("nothing was recorded; step the environment first")
        spec = self._env.spec
        return Replay(
            world=spec.name,
            world_version=spec.version,
            seed=self._seed,
            game=self._env.first_game + self._game,
            episode=self._episode,
            actions=torch.stack(self._actions),
            checksum=self._digest.hexdigest(),
            config=self._config,
            files=self._files,
            players=self._players,
        )


def _settings_of(env: BatchedEnv) -> Mapping[str, Any]:
    settings = getattr(env, "config", None)
    return settings.model_dump(exclude_defaults=True) if isinstance(settings, BaseModel) else {}


def _portable(config: Mapping[str, Any]) -> tuple[dict[str, JSON], dict[str, str]]:
    """Splits settings into plain values and files: of a file, its SHA-256 is what travels, never its path."""
    plain: dict[str, JSON] = {}
    files: dict[str, str] = {}
    for name, value in config.items():
        if isinstance(value, Path):
            files[name] = sha256_file(value)
        else:
            plain[name] = cast("JSON", list(value) if isinstance(value, tuple) else value)
    return plain, files
