"""Where the camera is: above the field, at its side, or behind a car, looking ahead or at the ball."""

import math

import numpy as np

from ludus.core.errors import UnknownNameError
from ludus.envs.rocket.rendering.camera import Camera, Floats
from ludus.envs.rocket.rendering.cars import rotation_matrix
from ludus.envs.rocket.rendering.history import History
from ludus.envs.rocket.rules import BACK_Y, GOAL_DEPTH, GOAL_HALF_WIDTH, GOAL_HEIGHT, SIDE_X
from ludus.envs.rocket.view import CarView, MatchView

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


def views_of(seats: int) -> tuple[str, ...]:
    """Returns the names of the views of a game with so many seats."""
    return (*VIEWS, *(f"{kind}-{seat}" for kind in FOLLOWING for seat in range(2, seats + 1)))


def split_view(name: str, seats: int) -> tuple[str, int]:
    """Reads the name of a view: what it is, and which seat it is of.

    Raises:
        UnknownNameError: There is no such view, or no such seat.
    """
    kind, _, number = name.partition("-")
    if kind in VIEWS and not number:
        return kind, 0
    if kind in FOLLOWING and number.isdecimal() and 1 <= int(number) <= seats:
        return kind, int(number) - 1
    raise UnknownNameError("view", name, views_of(seats))


class Director:
    """Moves the camera of one picture after the other.

    Attributes:
        kind: One of `VIEWS`.
        seat: Whom the camera follows where it does.
    """

    def __init__(self, kind: str, seat: int, size: tuple[int, int]) -> None:
        self.kind, self.seat, self._size = kind, seat, size
        self._way = np.array((0.0, 1.0, 0.0))  # in which the camera looks from behind a car
        self._watched = np.zeros(3)  # what it looks at from the side
        self._is_new = True

    def camera(self, view: MatchView, history: History) -> Camera:
        """Returns the camera for a picture."""
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
        """Returns the way that a car goes over the ground, or that the camera looks already if it goes up or down."""
        way = rotation_matrix(car.rotation)[:, 0].copy() if car.on_ground else np.array(car.velocity)
        way[2] = 0.0
        length = math.hypot(float(way[0]), float(way[1]))
        least = 0.3 if car.on_ground else 300.0
        return way / length if length > least else self._way * (1.0, 1.0, 0.0)

    def _ball_way(self, to_ball: Floats) -> Floats:
        """Returns the way to the ball, not too steep."""
        level = math.hypot(float(to_ball[0]), float(to_ball[1]))
        if level < _CLOSE:
            return self._way
        steepness = min(max(float(to_ball[2]) / level, -0.25), 0.55)
        way = np.array((to_ball[0] / level, to_ball[1] / level, steepness))
        return way / math.sqrt(float(way @ way))


def _inside(eye: Floats) -> Floats:
    """Returns the nearest place for an eye within the arena or a goal."""
    x, y, z = eye.tolist()
    in_goal = abs(x) < GOAL_HALF_WIDTH - _MARGIN and z < GOAL_HEIGHT - _MARGIN
    far = BACK_Y + (GOAL_DEPTH if in_goal else 0.0) - _MARGIN
    side = SIDE_X - _MARGIN
    return np.array((min(max(x, -side), side), min(max(y, -far), far), min(max(z, 45.0), 1900.0)))
