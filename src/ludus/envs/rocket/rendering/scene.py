"""The scene: a match at one moment through one camera, without the head-up display."""

from collections.abc import Sequence

import numpy as np

from ludus.envs.pygame_tools import new_surface, pygame
from ludus.envs.rocket.rendering.ball import BallPainter, paint_ball_shadow
from ludus.envs.rocket.rendering.camera import Camera
from ludus.envs.rocket.rendering.cars import CarPainter, paint_shadow
from ludus.envs.rocket.rendering.effects import paint_explosion, paint_flame, paint_goal, paint_trails
from ludus.envs.rocket.rendering.history import History
from ludus.envs.rocket.rendering.hud import Hud
from ludus.envs.rocket.rendering.pads import PadPainter
from ludus.envs.rocket.rendering.palette import TEAMS
from ludus.envs.rocket.rendering.stadium import Stadium
from ludus.envs.rocket.view import CarView, MatchView

_TOP_CAR, _TOP_BALL = 2.1, 1.35  # from far above, cars and ball are painted so many times their size
_TAG_Z = 95.0  # uu from a car up to its name


class Scene:
    """Paints matches for pictures of one size."""

    def __init__(self, size: tuple[int, int]) -> None:
        self._size = size
        self._stadium = Stadium(size)
        self._cars, self._ball, self._pads = CarPainter(), BallPainter(), PadPainter()
        self._from_above: pygame.Surface | None = None

    def paint(self, target: pygame.Surface, camera: Camera, view: MatchView, history: History) -> None:
        """Paints everything but names and display."""
        car_size, ball_size = (_TOP_CAR, _TOP_BALL) if camera.looks_down else (1.0, 1.0)
        if camera.looks_down:
            target.blit(self._stadium_from_above(camera), (0, 0))
        else:
            self._stadium.paint(target, camera)
        self._pads.paint(target, camera, view.pads)
        driving = [car for car in view.cars if car.demolished_s <= 0.0]
        for car in driving:
            paint_shadow(target, camera, car, car_size)
        paint_ball_shadow(target, camera, view.ball.position, ball_size)
        paint_trails(target, camera, view, history)
        things: list[tuple[float, CarView | None]] = [(_distance(camera, car.position), car) for car in driving]
        things.append((_distance(camera, view.ball.position), None))
        for _, car_or_ball in sorted(things, key=lambda thing: -thing[0]):
            if car_or_ball is None:
                self._ball.paint(target, camera, view.ball.position, history.ball_turn, ball_size)
            else:
                self._paint_car(target, camera, car_or_ball, view.time_s, car_size)
        for seat, car in enumerate(view.cars):
            if car.demolished_s > 0.0:
                paint_explosion(target, camera, car, seat)
        paint_goal(target, camera, history)

    def paint_names(
        self, target: pygame.Surface, camera: Camera, hud: Hud, view: MatchView, names: Sequence[str], but: int
    ) -> None:
        """Paints names above the cars but that of one seat."""
        for seat, car in enumerate(view.cars):
            spot = None if seat == but or car.demolished_s > 0.0 else camera.pixel(_above(car))
            if spot is not None:
                hud.text(target, names[seat][:15], spot[:2], 17, TEAMS[car.team].light, "midbottom")

    def _paint_car(self, target: pygame.Surface, camera: Camera, car: CarView, time_s: float, size: float) -> None:
        ahead = np.array(car.position) - camera.eye
        flame_first = float(ahead @ np.array(car.velocity)) < 0.0  # it comes nearer: its tail is behind it
        if car.boosting and flame_first:
            paint_flame(target, camera, car, time_s, size)
        self._cars.paint(target, camera, car, size)
        if car.boosting and not flame_first:
            paint_flame(target, camera, car, time_s, size)

    def _stadium_from_above(self, camera: Camera) -> pygame.Surface:
        """Returns what never moves as the fixed camera above sees it, painted once with smooth edges."""
        if self._from_above is None:
            width, height = 2 * self._size[0], 2 * self._size[1]
            large = camera.resized((width, height))
            surface = new_surface((width, height))
            Stadium((width, height)).paint(surface, large)
            self._from_above = pygame.transform.smoothscale(surface, self._size)
        return self._from_above


def _above(car: CarView) -> tuple[float, float, float]:
    return car.position[0], car.position[1], car.position[2] + _TAG_Z


def _distance(camera: Camera, place: Sequence[float]) -> float:
    away = np.asarray(place) - camera.eye
    return float(away @ away)
