"""A Gymnasium vector environment as a batch: it is the batch, whoever plays its games and wherever.

Our batches restart games within the step in which they end. Vector environments do it in one of three ways:

- `SAME_STEP` does the same; `infos["final_obs"]` holds the last observations.
- `DISABLED` waits for `reset(options={"reset_mask": ...})`, which we call within the step.
- `NEXT_STEP` restarts a game in the next step, whose action it ignores. Gymnasium's own `SyncVectorEnv` and
  `AsyncVectorEnv` take the mask in every mode, so they restart within the step too. In others a game begins with one
  step in which nothing happens: it sees the last observation once more, its action is ignored, its reward is 0.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, EnvFaultError, LudusError, UnsupportedError
from ludus.core.faults import let_pass
from ludus.core.text import blame, plain_text
from ludus.envs.adapters.gymnasium_batch import GymnasiumBatch, GymnasiumSettings
from ludus.envs.adapters.gymnasium_factory import (
    action_form,
    check_picture,
    close_game,
    observation_entries,
    single_spec,
)
from ludus.envs.adapters.gymnasium_worker import Entry, Maker, Plan, Source
from ludus.envs.base import EnvRequest


def vector_maker(env: "VectorEnv[Any, Any, Any]") -> Maker:
    """Return what makes batches of a vector environment that exists.

    One of `SyncVectorEnv` or `AsyncVectorEnv` is made again from its functions, of any size. Any other is lent: one
    batch at a time can use it, and it stays open when the batch is closed.
    """
    if isinstance(env, SyncVectorEnv | AsyncVectorEnv):
        return _Copies(env)
    return _Lender(env)


@dataclass(frozen=True, slots=True)
class _Copies:
    original: SyncVectorEnv | AsyncVectorEnv

    def __call__(self, num_envs: int) -> "VectorEnv[Any, Any, Any]":
        functions = list(self.original.env_fns)
        chosen = [functions[game % len(functions)] for game in range(num_envs)]
        return type(self.original)(chosen, autoreset_mode=self.original.metadata["autoreset_mode"])


@dataclass(slots=True)
class _Lender:
    original: "VectorEnv[Any, Any, Any]"
    is_lent: bool = field(default=False)

    def __call__(self) -> "VectorEnv[Any, Any, Any]":
        if self.is_lent:
            raise ConfigError(
                f"{type(self.original.unwrapped).__name__} is one object, and a batch uses it already; pass a function "
                "of num_envs that makes one, or evaluate after training (evaluation=null)"
            )
        self.is_lent = True
        return _Loan(self)


class _Loan(VectorWrapper):  # type: ignore[misc,type-arg,unused-ignore]  # Gymnasium leaves its parameters open
    """A vector environment that stays open when it is given back."""

    def __init__(self, lender: _Lender) -> None:
        super().__init__(lender.original)
        self._lender = lender

    def close(self, **kwargs: Any) -> None:  # noqa: ANN401 - as Gymnasium has it
        """Give it back."""
        del kwargs
        self._lender.is_lent = False


class VectorBatch(GymnasiumBatch):
    """The first `num_envs` games of a vector environment; the rest of them, if there are more, play by themselves."""

    def __init__(
        self,
        name: tuple[str, int],
        env: "VectorEnv[Any, Any, Any]",
        request: EnvRequest,
        settings: GymnasiumSettings,
        *,
        is_sized: bool,
    ) -> None:
        """Take over a vector environment.

        Args:
            name: Name and version of the world.
            env: The vector environment; it is closed with the batch.
            request: What was asked for.
            settings: Settings of the world.
            is_sized: Whether the environment was made for the number of games that was asked for.

        Raises:
            ConfigError: It has too few games, or workers are asked for.
            UnsupportedError: It has a space of a kind that we do not know.
        """
        self._env, self._is_open, self._calling = env, True, "reset"
        try:
            self._check(name[0], request, settings)
            spec = single_spec(env, *name)
            spec = spec if is_sized else replace(spec, max_envs=env.num_envs)
            space, dtype = action_form(env.single_action_space)
            self._entries = observation_entries(env.single_observation_space)[1]
            shape = tuple(space.shape or ())
            plan = Plan(Source(), settings.env_kwargs, request.num_envs, 1, self._entries, shape, dtype)
            views = {field: np.zeros(shape, dtype) for field, (shape, dtype) in plan.fields().items()}
            super().__init__(spec, plan, views, request, settings)
        except BaseException:
            close_game(env, name[0])
            raise
        if isinstance(env, _Loan):
            self.warnings = (
                f"{spec.id} is one vector environment, so it cannot be evaluated while it trains: use evaluation=null, "
                "or register a function of num_envs",
            )
        mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self._mode = mode if isinstance(mode, AutoresetMode) else AutoresetMode(mode)
        base = env.unwrapped
        self._takes_seeds = isinstance(base, SyncVectorEnv | AsyncVectorEnv)
        self._takes_mask = self._takes_seeds or self._mode is AutoresetMode.DISABLED

    def _check(self, name: str, request: EnvRequest, settings: GymnasiumSettings) -> None:
        if settings.workers:
            raise ConfigError(
                f"{name} is a vector environment, which has its own processes; use workers=0, or AsyncVectorEnv"
            )
        if self._env.num_envs < request.num_envs:
            raise ConfigError(
                f"{name} is a vector environment of {self._env.num_envs} games, {request.num_envs} were asked for; use "
                f"world.num_envs={self._env.num_envs}, or register a function of num_envs"
            )

    def _start_marked(self) -> None:
        marked = self._block.resets
        if not marked.any():
            return
        if marked.all():
            seed: Any = self._seeds() if self._takes_seeds else int(self._block.next_seeds[0])
            with self._naming("reset"):
                self._write(self._env.reset(seed=seed)[0], slice(None))
        elif self._takes_mask:
            self._restart(marked)
        else:
            raise UnsupportedError(
                f"{self.spec.id}: this vector environment cannot restart some of its games (autoreset mode "
                f"{self._mode.value}); reset all of them"
            )
        self._begin(np.flatnonzero(marked).tolist())

    def _restart(self, marked: NDArray[np.bool_]) -> None:
        """Start the marked games, with their next seeds where the environment takes seeds for each."""
        mask = np.zeros(self._env.num_envs, np.bool_)
        mask[: self.num_envs] = marked
        with self._naming("reset"):
            seeds: Any = self._seeds() if self._takes_seeds else None
            self._write(self._env.reset(seed=seeds, options={"reset_mask": mask})[0], marked)

    def _seeds(self) -> list[int]:
        return [*self._block.next_seeds.tolist(), *range(self._env.num_envs - self.num_envs)]

    def _play(self) -> None:
        block, games = self._block, slice(0, self.num_envs)
        with self._naming("step"):
            seen, rewards, terminated, truncated, infos = self._env.step(self._decoded())
            block.events["reward"][:, 0] = np.asarray(rewards)[games]
            block.terminated[:] = np.asarray(terminated)[games]
            # Ended by its own rules counts, if both are said.
            block.truncated[:] = np.asarray(truncated)[games] & ~block.terminated
            if not np.isfinite(block.events["reward"]).all():
                raise self._broken("NaN or Inf as a reward, expected finite numbers")
            ended = block.terminated | block.truncated
            if not ended.any():
                self._write(seen, slice(None))
                return
            self._write_ends(seen, infos, ended)
        self._begin(np.flatnonzero(ended).tolist())

    def _write_ends(self, seen: Any, infos: Mapping[str, Any], ended: NDArray[np.bool_]) -> None:  # noqa: ANN401
        """Write last observations and, where they are known, first ones of the games that ended."""
        if self._mode is AutoresetMode.SAME_STEP:
            if "final_obs" not in infos:
                raise self._broken("no infos['final_obs'], which the autoreset mode SAME_STEP demands")
            self._write(seen, slice(None))
            for game in np.flatnonzero(ended).tolist():
                self._write_final(infos["final_obs"], game)
        else:
            self._write(seen, slice(None))
            for name, values in self._block.final.items():
                values[ended] = self._block.slots[0][name][ended]
        if self._takes_mask and not (self._mode is AutoresetMode.SAME_STEP and not self._takes_seeds):
            self._restart(ended)

    def _write_final(self, final: Any, game: int) -> None:  # noqa: ANN401 - of any space
        last = {key: values[game] for key, values in final.items()} if isinstance(final, Mapping) else final[game]
        for entry in self._entries:
            value = np.asarray(last if entry.key is None else last[entry.key])
            self._block.final[entry.name][game, 0] = self._values(entry, value[None])[0]

    def _write(self, seen: Any, games: "slice | NDArray[np.bool_]") -> None:  # noqa: ANN401 - of any space
        for entry in self._entries:
            values = np.asarray(seen if entry.key is None else seen[entry.key])[: self.num_envs]
            self._block.slots[0][entry.name][games, 0] = self._values(entry, values)[games]

    def _values(self, entry: Entry, values: NDArray[Any]) -> NDArray[Any]:
        """Return the observations of an entry `(games, ...)`, or raise EnvFaultError."""
        if entry.one_hot_start is not None:
            return np.eye(entry.shape[0], dtype=np.float32)[values.astype(np.int64) - entry.one_hot_start]
        if values.shape[1:] != entry.shape:
            shape = ("games", *entry.shape)
            raise self._broken(f"observations of shape {values.shape}, expected ({', '.join(map(str, shape))})")
        if entry.dtype == "float32" and not np.isfinite(values).all():
            raise self._broken("NaN or Inf as an observation, expected finite numbers")
        return values

    def _decoded(self) -> NDArray[Any]:
        """Return the actions of all games in the form that the environment expects."""
        space = self._env.single_action_space
        actions = np.zeros((self._env.num_envs, *self._actions.shape[2:]), self._actions.dtype)
        actions[: self.num_envs] = self._actions[:, 0]
        if isinstance(space, spaces.Box):
            return np.clip(actions, space.low, space.high).astype(space.dtype)
        if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
            actions = actions + space.start
        return actions.astype(space.dtype)

    def _broken(self, what: str) -> EnvFaultError:
        method = self._calling
        code = getattr(getattr(type(self._env.unwrapped), method, None), "__code__", None)
        where = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
        return EnvFaultError(plain_text(f"{self.spec.id}: {method}() returned {what}{where}; fix the environment"))

    @contextmanager
    def _naming(self, method: str) -> Iterator[None]:
        """Turn whatever the environment raises, or what its results lead to, into a typed error."""
        self._calling = method
        try:
            yield
        except LudusError:
            raise
        except BaseException as error:
            let_pass(error)
            raise EnvFaultError(f"{self.spec.id}: {method}() raised {blame(error)}; fix the environment") from error

    def render(self, game: int = 0) -> NDArray[np.uint8]:
        """Draw one game, if the environment was made with the render mode `rgb_array`."""
        if self._env.render_mode != "rgb_array":
            raise UnsupportedError(
                f"{self.spec.id} was made with render_mode {self._env.render_mode!r}; make it with 'rgb_array'"
            )
        with self._naming("render"):
            pictures = self._env.render()
        return check_picture(None if pictures is None else pictures[game], self.spec.id)

    def close(self) -> None:
        """Close the vector environment, unless it was lent."""
        if self._is_open:
            self._is_open = False
            close_game(self._env, self.spec.id)
