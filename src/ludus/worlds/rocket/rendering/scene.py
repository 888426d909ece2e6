"""One frame of a match through one camera: stadium, boost pads, cars, ball and effects; no head-up display."""

import math
from collections.abc import Sequence

import numpy as np

from ludus.envs.colors import mixed
from ludus.envs.pygame_tools import new_surface, pygame
from ludus.worlds.rocket.layout import BIG_PADS, PADS
from ludus.worlds.rocket.rendering import effects
from ludus.worlds.rocket.rendering.ball import BallPainter, paint_ball_shadow
from ludus.worlds.rocket.rendering.camera import Camera
from ludus.worlds.rocket.rendering.cars import CarPainter, paint_shadow
from ludus.worlds.rocket.rendering.director import History
from ludus.worlds.rocket.rendering.hud import Hud
from ludus.worlds.rocket.rendering.palette import PAD, PAD_AWAY, PAD_BASE, TEAMS, WHITE
from ludus.worlds.rocket.rendering.stadium import Stadium
from ludus.worlds.rocket.view import CarView, MatchView, PadView

_PARTS = 12
_BIG_RADIUS, _SMALL_RADIUS, _ORB_RADIUS, _ORB_Z = 118.0, 62.0, 46.0, 112.0
_FAR = 0.05  # pixels per uu; a pad that is farther away does not glow

_TOP_CAR, _TOP_BALL = 2.1, 1.35  # scale of cars and ball seen from far above
_TAG_Z = 95.0  # uu from a car up to its name


class PadPainter:
    """Paints all pads of the field."""

    def __init__(self) -> None:
        angles = np.linspace(0.0, 2.0 * math.pi, _PARTS, endpoint=False)
        circle = np.column_stack((np.cos(angles), np.sin(angles), np.zeros(_PARTS)))
        radii = np.array([_BIG_RADIUS if pad in BIG_PADS else _SMALL_RADIUS for pad in range(len(PADS))])
        middles = np.array([(x, y, 0.0) for x, y in PADS])
        self._plates = middles[:, None] + radii[:, None, None] * circle
        self._tops = middles[:, None] + 0.68 * radii[:, None, None] * circle

    def paint(self, target: pygame.Surface, camera: Camera, pads: tuple[PadView, ...]) -> None:
        """Paint plates, and orbs and light over those that have boost."""
        seen = camera.see(self._plates)
        shown = np.nonzero(camera.in_sight(seen))[0]
        plates, tops = camera.polygons(seen[shown]), camera.polygons(camera.see(self._tops[shown]))
        for number, plate, top in zip(shown.tolist(), plates, tops, strict=True):
            if not plate:
                continue
            pad = pads[number]
            is_there = pad.away_s <= 0.0
            pygame.draw.polygon(target, PAD_BASE if is_there else PAD_AWAY, plate)
            if top:
                pygame.draw.polygon(target, PAD if is_there else mixed(PAD_AWAY, PAD_BASE, 0.4), top)
            if is_there:
                self._paint_light(target, camera, pad)

    def _paint_light(self, target: pygame.Surface, camera: Camera, pad: PadView) -> None:
        spot = camera.pixel((pad.x, pad.y, _ORB_Z if pad.is_big else 12.0))
        if spot is None or spot[2] < _FAR:
            return
        place, scale = spot[:2], spot[2]
        if pad.is_big:
            effects.add_glow(target, place, 150.0 * scale, effects.faded(PAD, 0.5))
            pygame.draw.circle(target, PAD, place, _ORB_RADIUS * scale)
            shine = (place[0] - 12.0 * scale, place[1] - 14.0 * scale)
            pygame.draw.circle(target, mixed(PAD, WHITE, 0.65), shine, 17.0 * scale)
        else:
            effects.add_glow(target, place, 80.0 * scale, effects.faded(PAD, 0.3))


class Scene:
    """Paints matches for pictures of one size."""

    def __init__(self, size: tuple[int, int]) -> None:
        self._size = size
        self._stadium = Stadium(size)
        self._cars, self._ball, self._pads = CarPainter(), BallPainter(), PadPainter()
        self._from_above: pygame.Surface | None = None

    def paint(self, target: pygame.Surface, camera: Camera, view: MatchView, history: History) -> None:
        """Paint everything but names and display."""
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
        effects.paint_trails(target, camera, view, history)
        things: list[tuple[float, CarView | None]] = [(_distance(camera, car.position), car) for car in driving]
        things.append((_distance(camera, view.ball.position), None))
        for _, car_or_ball in sorted(things, key=lambda thing: -thing[0]):
            if car_or_ball is None:
                self._ball.paint(target, camera, view.ball.position, history.ball_turn, ball_size)
            else:
                self._paint_car(target, camera, car_or_ball, view.time_s, car_size)
        for seat, car in enumerate(view.cars):
            if car.demolished_s > 0.0:
                effects.paint_explosion(target, camera, car, seat)
        effects.paint_goal(target, camera, history)

    def paint_names(
        self, target: pygame.Surface, camera: Camera, hud: Hud, view: MatchView, names: Sequence[str], but: int
    ) -> None:
        """Paint names above the cars, except one seat's."""
        for seat, car in enumerate(view.cars):
            spot = None if seat == but or car.demolished_s > 0.0 else camera.pixel(_above(car))
            if spot is not None:
                hud.text(target, names[seat][:15], spot[:2], 17, TEAMS[car.team].light, "midbottom")

    def _paint_car(self, target: pygame.Surface, camera: Camera, car: CarView, time_s: float, size: float) -> None:
        ahead = np.array(car.position) - camera.eye
        flame_first = float(ahead @ np.array(car.velocity)) < 0.0  # it comes nearer: its tail is behind it
        if car.boosting and flame_first:
            effects.paint_flame(target, camera, car, time_s, size)
        self._cars.paint(target, camera, car, size)
        if car.boosting and not flame_first:
            effects.paint_flame(target, camera, car, time_s, size)

    def _stadium_from_above(self, camera: Camera) -> pygame.Surface:
        """Return the static stadium seen by the fixed camera above, painted once with smooth edges."""
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
