"""How many pictures a game gets: after every few steps of a fast one, several between two steps of a slow one."""

import math

from ludus.envs.base import BatchedEnv
from ludus.evaluation.stage import stage_of

MOST_PICTURES_HZ = 30.0  # worlds that decide more often are drawn after every few steps
SMOOTH_HZ = 60.0  # of a window, where a world can be drawn between its steps
_SLOWEST = 4  # times as many steps between two pictures are taken at most where drawing is slow
_FORGET = 0.2  # share of the newest picture in what drawing is said to take


def steps_a_picture(rate_hz: float, wish_hz: float = MOST_PICTURES_HZ) -> int:
    """Returns after how many steps a world of this rate is drawn, for pictures in real time."""
    return max(1, math.ceil(rate_hz / wish_hz - 1e-9))


def pictures_a_step(rate_hz: float, wish_hz: float) -> int:
    """Returns how often a world of this rate is drawn in each step, for pictures in real time."""
    return max(1, math.floor(wish_hz / rate_hz + 1e-9))


def shown_hz(env: BatchedEnv) -> float:
    """Returns how many steps of a world people are shown in a second."""
    step_s = stage_of(env.spec.id).step_s
    return env.spec.rate_hz if step_s is None else 1.0 / step_s


def picture_steps(env: BatchedEnv, wish_hz: float) -> tuple[int, int]:
    """Returns after how many steps of a world it is drawn, and how often then: one of both is 1."""
    rate_hz = shown_hz(env)
    parts = pictures_a_step(rate_hz, wish_hz) if stage_of(env.spec.id).is_smooth else 1
    return steps_a_picture(rate_hz, wish_hz), parts


class Pace:
    """How many steps lie between two pictures of a window, or how many pictures in a step: a game runs in real time.

    Where one step is drawn at a time it stays so: nobody who plays may miss a frame. Where several are, there may be
    more if drawing is slow; where there are several pictures of a step, there may be fewer.

    Attributes:
        steps: Until the next picture.
        pictures_hz: Pictures a second, if drawing is fast enough.
    """

    def __init__(self, rate_hz: float, *, is_smooth: bool = False) -> None:
        """Begins with a picture of the first state.

        Args:
            rate_hz: Steps a second.
            is_smooth: Whether moments between two steps can be drawn.
        """
        self._rate_hz, self._fewest = rate_hz, steps_a_picture(rate_hz)
        self._most_parts = pictures_a_step(rate_hz, SMOOTH_HZ) if is_smooth else 1
        self.steps, self._parts, self._wanted_parts = self._fewest, self._most_parts, self._most_parts
        self._part = self._length = self._parts  # shown pictures of the step, and how many it has
        self._busy_s = 0.0

    @property
    def pictures_hz(self) -> float:
        """See the class."""
        return self._rate_hz / self._fewest * self._parts

    def restart(self) -> None:
        """Begins anew with a picture of the first state."""
        self._part = self._length

    def is_due(self) -> bool:
        """Says whether steps are to be made before the next picture, which is then the first one of them."""
        if self._part < self._length:
            return False
        self._part, self._parts = 0, self._wanted_parts
        self._length = self._parts
        return True

    def stretch(self, times: float) -> None:
        """Shows the steps that were just made so many times as long as usual."""
        self._length = max(round(self._parts * times), 1)

    def share(self) -> float:
        """Returns how far the next picture is from the last step but one (0) to the last (1)."""
        self._part = min(self._part + 1, self._length)
        return self._part / self._length

    def note(self, passed_s: float, busy_s: float = 0.0) -> None:
        """Takes the time that the last picture took, with waiting and without."""
        if self._fewest > 1:
            self.steps = min(max(round(passed_s * self._rate_hz), self._fewest), _SLOWEST * self._fewest)
        self._busy_s += _FORGET * (busy_s - self._busy_s)
        fit = int(1.0 / self._rate_hz / max(self._busy_s, 1e-6))
        self._wanted_parts = min(max(fit, 1), self._most_parts)


def pace_of(env: BatchedEnv) -> Pace:
    """Returns the pace of a world in a window."""
    return Pace(shown_hz(env), is_smooth=stage_of(env.spec.id).is_smooth)
