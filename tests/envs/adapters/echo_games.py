"""Gymnasium environments with spaces of all kinds that show what they were given; made by the id `echo_games:...`."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

ACTION_SPACES: dict[str, spaces.Space[Any]] = {
    "discrete": spaces.Discrete(3, start=5),
    "multi_discrete": spaces.MultiDiscrete([2, 3]),
    "multi_binary": spaces.MultiBinary(2),
    "box": spaces.Box(-2.0, 2.0, (2,), np.float64),
    "text": spaces.Text(3),
}


class EchoEnv(gym.Env[Any, Any]):
    """Shows the step, the seed and the last action; ends or is cut off after a given number of steps."""

    def __init__(self, action: str = "discrete", ends_after: int = 10**9, cut_after: int = 10**9) -> None:
        self.action_space = ACTION_SPACES[action]
        self.observation_space = spaces.Dict(
            {
                "numbers": spaces.Box(-np.inf, np.inf, (4,), np.float64),
                "choice": spaces.Discrete(3, start=-1),
                "picture": spaces.Box(0, 255, (2, 2, 1), np.uint8),
            }
        )
        self._ends_after, self._cut_after = ends_after, cut_after
        self._step, self._seed = 0, 0
        self._last: list[float] = [0.0, 0.0]

    def _observation(self) -> dict[str, Any]:
        return {
            "numbers": np.array([self._step, self._seed, *self._last]),
            "choice": np.int64(self._step % 3 - 1),
            "picture": np.full((2, 2, 1), self._step, dtype=np.uint8),
        }

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self._step, self._seed, self._last = 0, (seed or 0) % 1000, [0.0, 0.0]
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), f"{action!r} is not in {self.action_space}"
        self._step += 1
        values = np.atleast_1d(np.asarray(action, dtype=np.float64))
        self._last = [float(values[0]), float(values[-1])]
        ended, cut = self._step >= self._ends_after, self._step >= self._cut_after
        return self._observation(), 0.5 * self._step, ended, cut, {}


class TupleEnv(EchoEnv):
    """Has an observation space that we do not know."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Tuple([spaces.Discrete(2)])


class Drift(gym.Env[Any, Any]):
    """Counts the steps of all its episodes, which no seed brings back."""

    observation_space = spaces.Box(0.0, 1e6, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self.count = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return np.array([self.count], np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.count += 1
        return np.array([self.count], np.float32), 1.0, False, False, {}


gym.register("Echo-v2", entry_point="echo_games:EchoEnv")
gym.register("Tuple-v0", entry_point="echo_games:TupleEnv")
gym.register("Drift-v0", entry_point="echo_games:Drift")
