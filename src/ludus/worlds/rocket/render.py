"""The renderer of Rocket: one match at one moment becomes a picture, without a window."""

from collections.abc import Sequence

from ludus.envs.pygame_tools import CanvasRenderer
from ludus.worlds.rocket.rendering.director import FOLLOWING, VIEWS, Director, History, split_view, views_of
from ludus.worlds.rocket.rendering.hud import Hud
from ludus.worlds.rocket.rendering.palette import TEAMS
from ludus.worlds.rocket.rendering.scene import Scene
from ludus.worlds.rocket.rules import MAX_CARS
from ludus.worlds.rocket.view import MatchView

__all__ = ["Renderer", "views_of"]


class Renderer(CanvasRenderer[MatchView]):
    """Draws matches; never opens a window. `names` is written for the seats; by team and number if empty.

    A picture shows what its view says. Remembered between pictures of one match are trails, how the ball has turned,
    who scored last and where the camera was, all by the time of the game.
    """

    def __init__(self, size: tuple[int, int] = (1280, 720), names: Sequence[str] = (), view: str = "top") -> None:
        """Make a renderer; raise UnknownNameError if there is no such view.

        `view` is `top`, `side`, `chase` or `ball`; the last two are behind a car, `chase-2` behind the second seat's.
        """
        super().__init__(size)
        self.names = tuple(names)
        self._director = Director(*split_view(view, len(names) or MAX_CARS), size)
        self._scene, self._hud = Scene(size), Hud(size)
        self._history = History()

    def look(self, view: str, seats: int = MAX_CARS) -> None:
        """Switch to another view of a game with `seats` seats; raise UnknownNameError if there is no such view."""
        self._director = Director(*split_view(view, seats), self.size)

    def turn(self) -> None:
        """Switch to the next view: top, side, chase, ball."""
        kind = VIEWS[(VIEWS.index(self._director.kind) + 1) % len(VIEWS)]
        self._director = Director(kind, self._director.seat, self.size)

    def _paint(self, view: MatchView) -> None:
        director, canvas = self._director, self._canvas
        self._history.note(view)
        camera = director.camera(view, self._history)
        self._scene.paint(canvas, camera, view, self._history)
        names = self.names if len(self.names) == len(view.cars) else _default_names(view)
        follows = director.kind in FOLLOWING
        self._scene.paint_names(canvas, camera, self._hud, view, names, director.seat if follows else -1)
        self._hud.paint(canvas, view, names, self._history)
        if follows:
            self._hud.paint_driver(canvas, view, director.seat)


def _default_names(view: MatchView) -> list[str]:
    numbers = [0, 0]
    names = []
    for car in view.cars:
        numbers[car.team] += 1
        names.append(f"{TEAMS[car.team].name} {numbers[car.team]}")
    return names
