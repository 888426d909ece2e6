"""Games of every kind that end the process, or try to, at a place of one's choice; workers import this file."""

import sys
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

SEEN, CHOICES = spaces.Box(-1.0, 1.0, (2,), np.float32), spaces.Discrete(2)


class GiveUp(BaseException):
    """Caught by no `except Exception`."""


def stop() -> None:
    raise GiveUp("enough")


WAYS: dict[str, Any] = {
    "sys.exit(0)": lambda: sys.exit(0),
    "sys.exit(3)": lambda: sys.exit(3),
    "sys.exit()": lambda: sys.exit(),
    "exits with a text": lambda: sys.exit("x" * 5_000_000),
    "BaseException": stop,
    "KeyboardInterrupt": lambda: (_ for _ in ()).throw(KeyboardInterrupt),
}


class Leaving(gym.Env[Any, Any]):
    """Leaves in the method `at`."""

    observation_space, action_space = SEEN, CHOICES

    def __init__(self, at: str, way: str, render_mode: str | None = None) -> None:
        self.at, self.way, self.render_mode = at, way, render_mode
        self.pass_by("__init__")

    def pass_by(self, place: str) -> None:
        if place == self.at:
            WAYS[self.way]()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.pass_by("reset")
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.pass_by("step")
        return np.zeros(2, np.float32), 0.0, False, False, {}

    def close(self) -> None:
        self.pass_by("close")


class LeavingVector(gym.vector.VectorEnv):  # type: ignore[misc,type-arg,unused-ignore]  # Gymnasium leaves them open
    """A vector of two such games."""

    single_observation_space, single_action_space, num_envs = SEEN, CHOICES, 2
    metadata = {"autoreset_mode": gym.vector.AutoresetMode.DISABLED}  # noqa: RUF012 - as Gymnasium has it

    def __init__(self, num_envs: int, at: str, way: str) -> None:
        self.one = Leaving(at, way)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.one.pass_by("reset")
        return np.zeros((2, 2), np.float32), {}

    def step(self, actions: Any) -> Any:
        self.one.pass_by("step")
        return np.zeros((2, 2), np.float32), np.zeros(2), np.zeros(2, bool), np.zeros(2, bool), {}

    def close(self, **kwargs: Any) -> None:
        self.one.pass_by("close")


class LeavingPair:
    """The same in PettingZoo's parallel API, for two players."""

    metadata: dict[str, Any] = {}  # noqa: RUF012 - as PettingZoo has it

    def __init__(self, at: str, way: str, render_mode: str | None = None) -> None:
        self.possible_agents = self.agents = ["player_0", "player_1"]
        self.one = Leaving(at, way)

    def observation_space(self, agent: str) -> Any:
        return SEEN

    def action_space(self, agent: str) -> Any:
        return CHOICES

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.one.pass_by("reset")
        return self._all(np.zeros(2, np.float32)), self._all({})

    def step(self, actions: Any) -> Any:
        self.one.pass_by("step")
        return (*map(self._all, (np.zeros(2, np.float32), 0.0, False, False)), self._all({}))

    def close(self) -> None:
        self.one.pass_by("close")

    def _all(self, value: Any) -> dict[str, Any]:
        return dict.fromkeys(self.agents, value)


gym.register("Leaving-v0", entry_point="leaving_games:Leaving")
