"""What a picture needs of those before it: how the ball has turned, where cars left trails, who scored just now.

It follows the time of the game, not that of the pictures; a new match, a kickoff or a leap in time begins it anew.
"""

import math
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from ludus.envs.rocket.rendering.camera import Floats
from ludus.envs.rocket.rendering.cars import rotation_matrix
from ludus.envs.rocket.view import CarView, MatchView, Vector

TRAIL_S = 0.55
GOAL_S = 2.2
_LEAP_S = 0.5
_TAIL = np.array((-50.0, 0.0, 14.0))  # where boost comes out of a car


@dataclass(frozen=True, slots=True)
class Puff:
    """A piece of a trail: when and where it was left."""

    time_s: float
    place: Vector


@dataclass(slots=True)
class History:
    """Follows one game.

    Attributes:
        elapsed_s: Game time since the picture before; 0 after a cut.
        is_cut: Whether the game before has nothing to do with this one: cameras jump instead of turning.
        ball_turn: `(3, 3)` how the ball is turned.
        trails: Pieces of each seat's trail, oldest first.
        scorer: Team that scored last, -1 if that is long ago.
        goal_age_s: Game time since then.
    """

    elapsed_s: float = 0.0
    is_cut: bool = True
    ball_turn: Floats = field(default_factory=lambda: np.eye(3))
    trails: list[deque[Puff]] = field(default_factory=list)
    scorer: int = -1
    goal_age_s: float = 0.0
    _last: MatchView | None = None

    def note(self, view: MatchView) -> None:
        """Takes what is seen now."""
        last, self._last = self._last, view
        elapsed = -1.0 if last is None or last.episode != view.episode else view.time_s - last.time_s
        goes_on = 0.0 <= elapsed <= _LEAP_S and last is not None and len(last.cars) == len(view.cars)
        self._note_goal(last if goes_on else None, view, elapsed)
        self.is_cut = not goes_on or (last is not None and view.since_kickoff_s < last.since_kickoff_s)
        self.elapsed_s = 0.0 if self.is_cut else elapsed
        if self.is_cut:
            self.ball_turn, self.trails = np.eye(3), [deque() for _ in view.cars]
        if self.elapsed_s > 0.0:
            self.ball_turn = turned(self.ball_turn, view.ball.spin, self.elapsed_s)
        for car, trail in zip(view.cars, self.trails, strict=True):
            while trail and view.time_s - trail[0].time_s > TRAIL_S:
                trail.popleft()
            if (car.boosting or car.supersonic) and car.demolished_s <= 0.0 and self.elapsed_s > 0.0:
                trail.append(Puff(view.time_s, tail_of(car)))

    def _note_goal(self, last: MatchView | None, view: MatchView, elapsed: float) -> None:
        if last is None:
            self.scorer = -1
            return
        self.goal_age_s += elapsed
        if self.goal_age_s > GOAL_S:
            self.scorer = -1
        for team in (0, 1):
            if view.goals[team] > last.goals[team]:
                self.scorer, self.goal_age_s = team, 0.0


def tail_of(car: CarView, size: float = 1.0) -> Vector:
    """Returns where boost comes out of a car that is painted so many times its size."""
    x, y, z = (size * (rotation_matrix(car.rotation) @ _TAIL)).tolist()
    return car.position[0] + x, car.position[1] + y, car.position[2] + z


def turned(turn: Floats, spin: Vector, time_s: float) -> Floats:
    """Returns a rotation `(3, 3)` after it has gone on with an angular velocity (rad/s, world axes) for a time."""
    speed = math.sqrt(spin[0] ** 2 + spin[1] ** 2 + spin[2] ** 2)
    if speed < 1e-6:
        return turn
    x, y, z = (part / speed for part in spin)
    cross = np.array(((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)))
    angle = speed * time_s
    step: Floats = np.eye(3) + math.sin(angle) * cross + (1.0 - math.cos(angle)) * (cross @ cross)
    return step @ turn
