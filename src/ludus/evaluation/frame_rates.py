"""Frame rates of games that are shown: steps per frame, frames per step, and pacing in a window; nothing is drawn."""

import math

from ludus.envs.base import BatchedEnv
from ludus.envs.display import display_of

MAX_FRAME_RATE_HZ = 30.0  # worlds with a higher step rate are drawn every few steps
SMOOTH_HZ = 60.0  # of a window, for worlds that can be drawn between steps
_SLOWEST = 4  # at most this many times the usual steps per frame where drawing is slow
_SMOOTHING = 0.2  # weight of the newest frame in the moving average of the drawing time


def steps_per_frame(rate_hz: float, fps: float = MAX_FRAME_RATE_HZ) -> int:
    """Return the steps per frame of a world of this rate, in real time."""
    return max(1, math.ceil(rate_hz / fps - 1e-9))


def frames_per_step(rate_hz: float, fps: float) -> int:
    """Return the frames per step of a world of this rate, in real time."""
    return max(1, math.floor(fps / rate_hz + 1e-9))


def display_hz(env: BatchedEnv) -> float:
    """Return the steps of a world that are shown per second."""
    step_s = display_of(env.spec.id).step_s
    return env.spec.rate_hz if step_s is None else 1.0 / step_s


def frame_schedule(env: BatchedEnv, fps: float) -> tuple[int, int]:
    """Return steps per frame and frames per step of a world; one of them is 1."""
    rate_hz = display_hz(env)
    parts = frames_per_step(rate_hz, fps) if display_of(env.spec.id).is_smooth else 1
    return steps_per_frame(rate_hz, fps), parts


class FramePacer:
    """Steps per frame, or frames per step, so that a game runs in real time in a window.

    One step per frame stays so: a person must not miss a frame. Several steps per frame become more if drawing is slow;
    several frames per step become fewer.

    Attributes:
        steps: Steps until the next frame.
        frame_rate_hz: Frames per second, if drawing is fast enough.
    """

    def __init__(self, rate_hz: float, *, is_smooth: bool = False) -> None:
        """Start with a frame of the first state.

        Args:
            rate_hz: Steps per second.
            is_smooth: Whether the world can be drawn between steps.
        """
        self._rate_hz, self._fewest = rate_hz, steps_per_frame(rate_hz)
        self._most_parts = frames_per_step(rate_hz, SMOOTH_HZ) if is_smooth else 1
        self.steps, self._parts, self._wanted_parts = self._fewest, self._most_parts, self._most_parts
        self._part = self._length = self._parts  # frames shown of the current step, and how many it has
        self._busy_s = 0.0

    @property
    def frame_rate_hz(self) -> float:
        """Frames per second."""
        return self._rate_hz / self._fewest * self._parts

    def restart(self) -> None:
        """Start over with a frame of the first state."""
        self._part = self._length

    def is_due(self) -> bool:
        """Return whether the next frame needs new steps, and start counting their frames."""
        if self._part < self._length:
            return False
        self._part, self._parts = 0, self._wanted_parts
        self._length = self._parts
        return True

    def stretch(self, times: float) -> None:
        """Show the last steps this many times as long as usual."""
        self._length = max(round(self._parts * times), 1)

    def share(self) -> float:
        """Return the position of the next frame between the previous step (0) and the last one (1)."""
        self._part = min(self._part + 1, self._length)
        return self._part / self._length

    def note(self, passed_s: float, busy_s: float = 0.0) -> None:
        """Record the time of the last frame, with and without waiting."""
        if self._fewest > 1:
            self.steps = min(max(round(passed_s * self._rate_hz), self._fewest), _SLOWEST * self._fewest)
        self._busy_s += _SMOOTHING * (busy_s - self._busy_s)
        fit = int(1.0 / self._rate_hz / max(self._busy_s, 1e-6))
        self._wanted_parts = min(max(fit, 1), self._most_parts)


def make_pacer(env: BatchedEnv) -> FramePacer:
    """Return the pacer of a world in a window."""
    return FramePacer(display_hz(env), is_smooth=display_of(env.spec.id).is_smooth)
