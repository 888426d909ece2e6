"""A Gymnasium environment that dies, raises or hangs on command; made by the id `faulty_games:Faulty-v0`."""

import ctypes
import os
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

FINE, EXIT, RAISE, HANG, CRASH = range(5)


def fall_asleep_for_ever() -> None:
    """Hangs; the name is looked for in the traceback."""
    while True:
        time.sleep(60)


class FaultyEnv(gym.Env[Any, Any]):
    """Shows its step and its seed; an action other than 0 is a fault.

    Args:
        broken_if: While this file exists, every new environment raises.
        dies_on_reset_if: While this file exists, every reset ends the process.
    """

    def __init__(self, broken_if: str = "", dies_on_reset_if: str = "") -> None:
        if broken_if and Path(broken_if).exists():
            raise OSError("the licence server is gone")
        self.action_space = spaces.Discrete(5)
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self._dies_on_reset_if = dies_on_reset_if
        self._step, self._seed = 0, 0

    def _observation(self) -> Any:
        return np.array([self._step, self._seed], dtype=np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        if self._dies_on_reset_if and Path(self._dies_on_reset_if).exists():
            os._exit(7)
        self._step, self._seed = 0, (seed or 0) % 100_000
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._step += 1
        if action == EXIT:
            os._exit(3)
        if action == RAISE:
            raise ValueError("the pole has snapped \u2620")
        if action == HANG:
            fall_asleep_for_ever()
        if action == CRASH:
            ctypes.string_at(0)
        return self._observation(), 1.0, False, False, {}


gym.register("Faulty-v0", entry_point="faulty_games:FaultyEnv")
