"""A Gymnasium environment that breaks the API in a way of one's choice; made by the id `hostile_games:Hostile-v0`."""

from collections.abc import Callable
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces

FINE = np.zeros(3, np.float32)


def fail() -> Any:
    """Raises with text that would rename the terminal."""
    raise RuntimeError("broken \x1b]0;owned\x07")


STEPS: dict[str, Callable[[], Any]] = {
    "raises": fail,
    "text as reward": lambda: (FINE, "1.0", False, False, {}),
    "no reward": lambda: (FINE, None, False, False, {}),
    "several rewards": lambda: (FINE, np.zeros(2), False, False, {}),
    "four values": lambda: (FINE, 0.0, False, {}),
    "nothing": lambda: None,
    "flag of text": lambda: (FINE, 0.0, "no", False, {}),
    "info in the place of a flag": lambda: (FINE, 0.0, False, {}, False),
    "wrong shape": lambda: (np.zeros(4, np.float32), 0.0, False, False, {}),
    "shape that would be repeated": lambda: (np.zeros(1, np.float32), 0.0, False, False, {}),
    "single number": lambda: (0.0, 0.0, False, False, {}),
    "text": lambda: (np.array(["a", "b", "c"]), 0.0, False, False, {}),
    "complex numbers": lambda: (np.zeros(3, np.complex64), 0.0, False, False, {}),
    "objects": lambda: (np.array([None, None, None]), 0.0, False, False, {}),
    "no observation": lambda: (None, 0.0, False, False, {}),
    "not a number": lambda: (np.full(3, np.nan, np.float32), 0.0, False, False, {}),
    "infinite": lambda: (np.full(3, np.inf), 0.0, False, False, {}),
    "reward that is no number": lambda: (FINE, float("nan"), False, False, {}),
    "ragged list": lambda: ([1.0, [2.0], 3.0], 0.0, False, False, {}),
    "wrong shape at the end": lambda: (np.zeros(1, np.float32), 0.0, True, False, {}),
}
RESETS: dict[str, Callable[[], Any]] = {
    "reset raises": fail,
    "reset returns nothing": lambda: None,
    "reset returns an observation alone": lambda: FINE,
    "reset returns a wrong shape": lambda: (np.zeros(2), {}),
}


class HostileEnv(gym.Env[Any, Any]):
    """Keeps to the API for `fine_steps` steps, then breaks it."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"]}  # type: ignore[misc]

    def __init__(self, fault: str, space: str = "box", fine_steps: int = 1, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        if fault == "cannot be made":
            fail()
        self.observation_space = spaces.Box(-1.0, 1.0, (3,), np.float32)
        if space == "picture":
            self.observation_space = spaces.Box(0, 255, (1, 1, 3), np.uint8)
        elif space == "choice":
            self.observation_space = spaces.Discrete(3, start=1)
        elif space == "dict":
            self.observation_space = spaces.Dict({"a": spaces.Box(-1.0, 1.0, (3,)), "b": spaces.Box(-1.0, 1.0, (3,))})
        self.action_space = spaces.Discrete(2)
        self._fault, self._left = fault, fine_steps
        self._fine = {"picture": np.zeros((1, 1, 3), np.uint8), "choice": 1, "dict": {"a": FINE, "b": FINE}}.get(
            space, FINE
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        wrong: Any = RESETS[self._fault]() if self._fault in RESETS else (self._fine, {})
        return wrong  # type: ignore[no-any-return]

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        del action
        self._left -= 1
        if self._left >= 0:
            return self._fine, 0.0, False, False, {}
        if self._fault == "lists":
            return [0, 1, 2], np.array([2.0]), 0, np.array(1), {}  # type: ignore[return-value]
        if self._fault in STEPS:
            wrong: Any = STEPS[self._fault]()
            return wrong  # type: ignore[no-any-return]
        seen: Any = {"float picture": np.zeros((1, 1, 3)), "0": 0, "4": 4, "2.5": 2.5, "a alone": {"a": FINE}}
        return seen.get(self._fault, FINE), 0.0, False, False, {}

    def render(self) -> Any:
        return fail() if self._fault == "render raises" else None

    def close(self) -> None:
        if self._fault == "close raises":
            fail()


gym.register("Hostile-v0", entry_point="hostile_games:HostileEnv")
gym.register("Limited-v0", entry_point="hostile_games:HostileEnv", max_episode_steps=50)  # gymnasium unpacks the step
gym.register("Unversioned", entry_point="hostile_games:HostileEnv", kwargs={"fault": ""})
