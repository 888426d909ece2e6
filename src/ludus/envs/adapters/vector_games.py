"""A Gymnasium vector environment as the games of a batch: it steps them all at once, wherever they are played.

Our batches restart games within the step in which they end. Vector environments do it in one of three ways:

- `SAME_STEP` does the same; `infos["final_obs"]` holds the last observations.
- `DISABLED` waits for `reset(options={"reset_mask": ...})`, which we call within the step.
- `NEXT_STEP` restarts a game in the next step, whose action it ignores. Gymnasium's own `SyncVectorEnv` and
  `AsyncVectorEnv` take the mask in every mode, so they restart within the step too. In others a game begins with one
  step in which nothing happens: it sees the last observation once more, its action is ignored, its reward is 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, UnsupportedError
from ludus.envs.adapters.games import Block, ContractError, Entry, Games, Maker, Plan, decode_rows


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
        return Loan(self)


class Loan(VectorWrapper):  # type: ignore[misc,type-arg,unused-ignore]  # Gymnasium leaves its parameters open
    """A vector environment that stays open when it is given back."""

    def __init__(self, lender: _Lender) -> None:
        super().__init__(lender.original)
        self._lender = lender

    def close(self, **kwargs: Any) -> None:  # noqa: ANN401 - as Gymnasium has it
        """Give it back."""
        del kwargs
        self._lender.is_lent = False


class VectorGames(Games):
    """The first games of a vector environment; the rest of them, if there are more, play by themselves."""

    forms: ClassVar[Mapping[str, str]] = {
        "step": "(observations, rewards, terminations, truncations, infos)",
        "reset": "(observations, infos)",
    }

    def __init__(self, plan: Plan, block: Block, first: int, last: int, make: Maker) -> None:
        super().__init__(plan, block, first, last)
        self.current, self._count = None, last - first
        self._env: VectorEnv[Any, Any, Any] = make()
        self.envs = [self._env]
        mode = self._env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self._mode = mode if isinstance(mode, AutoresetMode) else AutoresetMode(mode)
        self._takes_seeds = isinstance(self._env.unwrapped, SyncVectorEnv | AsyncVectorEnv)
        self._takes_mask = self._takes_seeds or self._mode is AutoresetMode.DISABLED

    def env_of(self, game: int) -> Any:  # noqa: ANN401 - of any library
        """Return the vector environment, which plays all games."""
        del game
        return self._env

    def render(self, game: int) -> object:
        """Return a picture of a game of the batch."""
        pictures: Any = self._env.render()
        return None if pictures is None else pictures[game]

    def reset(self, slot: int) -> None:
        """Start the games that are marked; see `Games.reset`."""
        marked = self._resets
        if not marked.any():
            return
        if marked.all():
            self.calling = "reset"
            seed: Any = self._all_seeds() if self._takes_seeds else int(self._seeds[0])
            self._write(slot, self._env.reset(seed=seed)[0], slice(None))
        elif self._takes_mask:
            self._restart(slot, marked)
        else:
            raise UnsupportedError(
                f"this vector environment cannot restart some of its games (autoreset mode {self._mode.value}); reset "
                "all of them"
            )

    def step(self, slot: int) -> list[int]:
        """Play the block's actions in all games; see `Games.step`."""
        self.calling = "step"
        actions = np.zeros((self._env.num_envs, *self._actions.shape[2:]), self._actions.dtype)
        actions[: self._count] = self._actions[:, 0]
        played = decode_rows(self._env.single_action_space, actions)
        seen, rewards, terminated, truncated, infos = self._env.step(played)
        games = slice(0, self._count)
        self._events["reward"][:, 0] = np.asarray(rewards)[games]
        self._terminated[:] = np.asarray(terminated)[games]
        # Ended by its own rules counts, if both are said.
        self._truncated[:] = np.asarray(truncated)[games] & ~self._terminated
        if not np.isfinite(self._events["reward"]).all():
            raise self._wrong("NaN or Inf as a reward, expected finite numbers")
        ended = self._terminated | self._truncated
        self._write(slot, seen, slice(None))
        if ended.any():
            self._end(slot, infos, ended)
        return np.flatnonzero(ended).tolist()

    def _end(self, slot: int, infos: Mapping[str, Any], ended: NDArray[np.bool_]) -> None:
        """Write the last observations of the games that ended and, where they are known, the first ones."""
        if self._mode is AutoresetMode.SAME_STEP:
            if "final_obs" not in infos:
                raise self._wrong("no infos['final_obs'], which the autoreset mode SAME_STEP demands")
            for game in np.flatnonzero(ended).tolist():
                self._write_final(infos["final_obs"], game)
        else:
            for name, values in self._final.items():
                values[ended] = self._seen[slot][name][ended]
        if self._takes_mask and not (self._mode is AutoresetMode.SAME_STEP and not self._takes_seeds):
            self._restart(slot, ended)

    def _restart(self, slot: int, marked: NDArray[np.bool_]) -> None:
        """Start the marked games, with their next seeds where the environment takes seeds for each."""
        self.calling = "reset"
        mask = np.zeros(self._env.num_envs, np.bool_)
        mask[: self._count] = marked
        seeds: Any = self._all_seeds() if self._takes_seeds else None
        self._write(slot, self._env.reset(seed=seeds, options={"reset_mask": mask})[0], marked)

    def _all_seeds(self) -> list[int]:
        return [*self._seeds.tolist(), *range(self._env.num_envs - self._count)]

    def _write_final(self, final: Any, game: int) -> None:  # noqa: ANN401 - of any space
        last = {key: values[game] for key, values in final.items()} if isinstance(final, Mapping) else final[game]
        for entry in self._entries:
            value = np.asarray(last if entry.key is None else last[entry.key])
            self._final[entry.name][game, 0] = self._values(entry, value[None])[0]

    def _write(self, slot: int, seen: Any, games: "slice | NDArray[np.bool_]") -> None:  # noqa: ANN401 - of any space
        for entry in self._entries:
            values = np.asarray(seen if entry.key is None else seen[entry.key])[: self._count]
            self._seen[slot][entry.name][games, 0] = self._values(entry, values)[games]

    def _values(self, entry: Entry, values: NDArray[Any]) -> NDArray[Any]:
        """Return the observations of an entry `(games, ...)`, or raise ContractError."""
        if entry.one_hot_start is not None:
            return np.eye(entry.shape[0], dtype=np.float32)[values.astype(np.int64) - entry.one_hot_start]
        if values.shape[1:] != entry.shape:
            shape = ("games", *entry.shape)
            raise self._wrong(f"observations of shape {values.shape}, expected ({', '.join(map(str, shape))})")
        if entry.dtype == "float32" and not np.isfinite(values).all():
            raise self._wrong("NaN or Inf as an observation, expected finite numbers")
        return values

    def _wrong(self, what: str) -> ContractError:
        return ContractError(f"{self.calling}() returned {what} ({self.definition()})")
