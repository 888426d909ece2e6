"""Where the camera is, and what a frame remembers of earlier ones: ball rotation, trails, and who scored.

`History` follows game time, not frame time; a new match, a kickoff or a jump in time resets it.
"""

import math
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from ludus.core.errors import UnknownNameError
from ludus.worlds.rocket.rendering.camera import Camera, Floats, rotation_matrix
from ludus.worlds.rocket.rules import BACK_Y, GOAL_DEPTH, GOAL_HALF_WIDTH, GOAL_HEIGHT, SIDE_X
from ludus.worlds.rocket.view import CarView, MatchView, Vector

TRAIL_S = 0.55
GOAL_S = 2.2
_LEAP_S = 0.5
_TAIL = np.array((-50.0, 0.0, 14.0))  # where boost comes out of a car

VIEWS = ("top", "side", "chase", "ball")
FOLLOWING = ("chase", "ball")  # behind a car; `chase-2` is behind that of the second seat

_TOP_EYE = (-330.0, 0.0, 26000.0)
_TOP_WIDTH_DEG = 36.6
_SIDE_EYE_X, _SIDE_EYE_Z, _SIDE_WIDTH_DEG = 6900.0, 2700.0, 47.0
_CHASE_WIDTH_DEG = 92.0
_BEHIND, _ABOVE = 290.0, 118.0  # uu from the car to the eye
_AHEAD = 520.0  # uu from the car to what is in the middle of the picture
_TURN_HZ, _PAN_HZ = 7.0, 3.2  # how quickly the camera follows
_CLOSE = 260.0  # uu; of a ball that is nearer than this, the way to it says nothing
_MARGIN = 90.0  # uu that the eye stays away from the walls


@dataclass(frozen=True, slots=True)
class Puff:
    """A piece of a trail: when and where it was left."""

    time_s: float
    place: Vector


@dataclass(slots=True)
class History:
    """Follows one game."""

    elapsed_s: float = 0.0  # game time since the picture before; 0 after a cut
    is_cut: bool = True  # whether the game before has nothing to do with this one: cameras jump instead of turning
    ball_turn: Floats = field(default_factory=lambda: np.eye(3))  # `(3, 3)` how the ball is turned
    trails: list[deque[Puff]] = field(default_factory=list)  # pieces of each seat's trail, oldest first
    scorer: int = -1  # team that scored last, -1 if that is long ago
    goal_age_s: float = 0.0  # game time since then
    _last: MatchView | None = None

    def note(self, view: MatchView) -> None:
        """Update with the current view."""
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
    """Return the exhaust position of a car scaled by `size`."""
    x, y, z = (size * (rotation_matrix(car.rotation) @ _TAIL)).tolist()
    return car.position[0] + x, car.position[1] + y, car.position[2] + z


def turned(turn: Floats, spin: Vector, time_s: float) -> Floats:
    """Return a rotation `(3, 3)` after it has gone on with an angular velocity (rad/s, world axes) for a time."""
    speed = math.sqrt(spin[0] ** 2 + spin[1] ** 2 + spin[2] ** 2)
    if speed < 1e-6:
        return turn
    x, y, z = (part / speed for part in spin)
    cross = np.array(((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)))
    angle = speed * time_s
    step: Floats = np.eye(3) + math.sin(angle) * cross + (1.0 - math.cos(angle)) * (cross @ cross)
    return step @ turn


def views_of(seats: int) -> tuple[str, ...]:
    """Return the names of the views of a game with `seats` seats."""
    return (*VIEWS, *(f"{kind}-{seat}" for kind in FOLLOWING for seat in range(2, seats + 1)))


def split_view(name: str, seats: int) -> tuple[str, int]:
    """Return what a view of this name is and of which seat; raise UnknownNameError if there is none."""
    kind, _, number = name.partition("-")
    if kind in VIEWS and not number:
        return kind, 0
    if kind in FOLLOWING and number.isdecimal() and 1 <= int(number) <= seats:
        return kind, int(number) - 1
    raise UnknownNameError("view", name, views_of(seats))


class Director:
    """Moves the camera of one picture after the other: of one of `VIEWS`, following a seat where it does."""

    def __init__(self, kind: str, seat: int, size: tuple[int, int]) -> None:
        self.kind, self.seat, self._size = kind, seat, size
        self._way = np.array((0.0, 1.0, 0.0))  # in which the camera looks from behind a car
        self._watched = np.zeros(3)  # what it looks at from the side
        self._is_new = True

    def camera(self, view: MatchView, history: History) -> Camera:
        """Return the camera for a picture."""
        jumps, self._is_new = history.is_cut or self._is_new, False
        if self.kind == "top":
            x, y, _ = _TOP_EYE
            return Camera(_TOP_EYE, (x, y, 0.0), self._size, _TOP_WIDTH_DEG)
        if self.kind == "side":
            return self._beside(view, history.elapsed_s, jumps=jumps)
        return self._behind(view, history.elapsed_s, jumps=jumps)

    def _beside(self, view: MatchView, elapsed_s: float, *, jumps: bool) -> Camera:
        aim = np.array(view.ball.position) * (0.45, 0.78, 0.45)
        share = 1.0 if jumps else 1.0 - math.exp(-_PAN_HZ * elapsed_s)
        self._watched = self._watched + share * (aim - self._watched)
        x, y, z = self._watched.tolist()
        return Camera((_SIDE_EYE_X, 0.62 * y, _SIDE_EYE_Z), (x, y, z + 60.0), self._size, _SIDE_WIDTH_DEG)

    def _behind(self, view: MatchView, elapsed_s: float, *, jumps: bool) -> Camera:
        car = view.cars[self.seat]
        place = np.array(car.position)
        to_ball = np.array(view.ball.position) - place
        wish = self._heading(car) if self.kind == "chase" else self._ball_way(to_ball)
        share = 1.0 if jumps else 1.0 - math.exp(-_TURN_HZ * elapsed_s)
        way = self._way + share * (wish - self._way)
        length = math.sqrt(float(way @ way))
        if length > 1e-3:  # opposite ways: stay a moment longer
            self._way = way / length
        eye = _inside(place - _BEHIND * self._way + (0.0, 0.0, _ABOVE))
        return Camera(eye, place + _AHEAD * self._way + (0.0, 0.0, 40.0), self._size, _CHASE_WIDTH_DEG)

    def _heading(self, car: CarView) -> Floats:
        """Return the way that a car goes over the ground, or that the camera looks already if it goes up or down."""
        way = rotation_matrix(car.rotation)[:, 0].copy() if car.on_ground else np.array(car.velocity)
        way[2] = 0.0
        length = math.hypot(float(way[0]), float(way[1]))
        least = 0.3 if car.on_ground else 300.0
        return way / length if length > least else self._way * (1.0, 1.0, 0.0)

    def _ball_way(self, to_ball: Floats) -> Floats:
        """Return the way to the ball, not too steep."""
        level = math.hypot(float(to_ball[0]), float(to_ball[1]))
        if level < _CLOSE:
            return self._way
        steepness = min(max(float(to_ball[2]) / level, -0.25), 0.55)
        way = np.array((to_ball[0] / level, to_ball[1] / level, steepness))
        return way / math.sqrt(float(way @ way))


def _inside(eye: Floats) -> Floats:
    """Return the nearest place for an eye within the arena or a goal."""
    x, y, z = eye.tolist()
    in_goal = abs(x) < GOAL_HALF_WIDTH - _MARGIN and z < GOAL_HEIGHT - _MARGIN
    far = BACK_Y + (GOAL_DEPTH if in_goal else 0.0) - _MARGIN
    side = SIDE_X - _MARGIN
    return np.array((min(max(x, -side), side), min(max(y, -far), far), min(max(z, 45.0), 1900.0)))
