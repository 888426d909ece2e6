"""The head-up display: score and clock, who plays with how much boost, and in a car its gauge and a map."""

import math
from collections.abc import Sequence

import numpy as np

from ludus.envs.colors import mixed
from ludus.envs.pygame_tools import Lettering, new_surface, pygame
from ludus.worlds.rocket.rendering.director import GOAL_S, History
from ludus.worlds.rocket.rendering.palette import DANGER, FLAME, GRASS, INK, LINE, MUTED, PAD, PANEL, TEAMS, WHITE
from ludus.worlds.rocket.rules import BACK_Y, BOOST_MAX, CAR_MAX_SPEED, CORNER_SUM, GOAL_HALF_WIDTH, SIDE_X
from ludus.worlds.rocket.view import CarView, MatchView

_BOARD = (286, 54)  # pixels at 720 lines, as everything below
_ROW_HEIGHT, _ROW_WIDTH, _BAR_WIDTH = 30, 236, 84
_LOW_BOOST = 20.0
_GAUGE_RADIUS = 62
_MAP_SCALE = 0.0165  # pixels per uu


class Hud(Lettering):
    """Paints the display for pictures of one size."""

    def __init__(self, size: tuple[int, int]) -> None:
        super().__init__(size, INK)
        self.size = size
        self._board = self._painted_board()
        self._row = self._painted_panel(_ROW_WIDTH, _ROW_HEIGHT - 4, 165)
        self._map = self._painted_map()
        self._gauge = self._painted_gauge()

    def paint(self, target: pygame.Surface, view: MatchView, names: Sequence[str], history: History) -> None:
        """Paint score, clock and players, and who has just scored."""
        self._paint_board(target, view)
        rows = [0, 0]
        for name, car in zip(names, view.cars, strict=True):
            self._paint_row(target, car, name, rows[car.team])
            rows[car.team] += 1
        if history.scorer >= 0:
            self._paint_goal(target, history)

    def paint_driver(self, target: pygame.Surface, view: MatchView, seat: int) -> None:
        """Paint the driver's instruments: boost, speed and a map."""
        self._paint_gauge(target, view.cars[seat])
        self._paint_map(target, view, seat)

    def _paint_board(self, target: pygame.Surface, view: MatchView) -> None:
        unit, middle = self.unit, self.size[0] / 2.0
        target.blit(self._board, (round(middle - _BOARD[0] * unit / 2.0), round(8 * unit)))
        row = (8 + _BOARD[1] / 2.0 + 1) * unit
        for team, side in ((0, -1.0), (1, 1.0)):
            self.text(target, str(view.goals[team]), (middle + side * 108 * unit, row), 46, WHITE, "center")
        clock, is_late = _clock(view)
        self.text(target, clock, (middle, row), 42, DANGER if is_late else WHITE, "center")
        if view.clock_s is not None and view.clock_s < 0.0:
            self.text(target, "OVERTIME", (middle, (8 + _BOARD[1] + 12) * unit), 22, DANGER, "center")

    def _paint_row(self, target: pygame.Surface, car: CarView, name: str, number: int) -> None:
        unit, team = self.unit, TEAMS[car.team]
        left = (14 if car.team == 0 else self.size[0] / unit - 14 - _ROW_WIDTH) * unit
        top = (12 + _ROW_HEIGHT * number) * unit
        target.blit(self._row, (round(left), round(top)))
        middle = top + (_ROW_HEIGHT - 4) / 2.0 * unit
        pygame.draw.rect(target, team.base, (round(left), round(top), round(5 * unit), round((_ROW_HEIGHT - 4) * unit)))
        self.text(target, name[:15], (left + 13 * unit, middle), 20, team.light, "midleft")
        if car.demolished_s > 0.0:
            back = f"back in {math.ceil(car.demolished_s)}"
            self.text(target, back, (left + (_ROW_WIDTH - 10) * unit, middle), 18, DANGER, "midright")
            return
        bar = pygame.Rect(0, 0, round(_BAR_WIDTH * unit), round(9 * unit))
        bar.midright = (round(left + (_ROW_WIDTH - 10) * unit), round(middle))
        pygame.draw.rect(target, mixed(PANEL, MUTED, 0.25), bar, border_radius=round(4 * unit))
        full = bar.copy()
        full.width = round(bar.width * min(car.boost / BOOST_MAX, 1.0))
        if full.width > 0:
            pygame.draw.rect(target, FLAME if car.boosting else PAD, full, border_radius=round(4 * unit))

    def _paint_goal(self, target: pygame.Surface, history: History) -> None:
        team, unit = TEAMS[history.scorer], self.unit
        grow = min(history.goal_age_s / 0.18, 1.0)
        if history.goal_age_s > GOAL_S - 0.2:
            return
        place = (self.size[0] / 2.0, 186 * unit)
        self.text(target, "GOAL", place, 60 + 12 * round(5 * grow), WHITE, "center")
        self.text(target, f"{team.name} scores", (place[0], place[1] + 62 * unit), 34, team.light, "center")

    def _paint_gauge(self, target: pygame.Surface, car: CarView) -> None:
        unit = self.unit
        center = (self.size[0] - 92 * unit, self.size[1] - 92 * unit)
        target.blit(self._gauge, self._gauge.get_rect(center=(round(center[0]), round(center[1]))))
        color = FLAME if car.boosting else (DANGER if car.boost < _LOW_BOOST else PAD)
        _paint_arc(target, color, center, _GAUGE_RADIUS * unit, 11 * unit, car.boost / BOOST_MAX)
        self.text(target, f"{car.boost:.0f}", (center[0], center[1] - 6 * unit), 52, WHITE, "center")
        speed = math.sqrt(sum(part * part for part in car.velocity))
        words = "SUPERSONIC" if car.supersonic else f"{speed:.0f} uu/s"
        self.text(target, words, (center[0], center[1] + 26 * unit), 17, WHITE if car.supersonic else MUTED, "center")
        inner = TEAMS[car.team].light if car.supersonic else TEAMS[car.team].base
        _paint_arc(target, inner, center, (_GAUGE_RADIUS - 15) * unit, 4 * unit, speed / CAR_MAX_SPEED)

    def _paint_map(self, target: pygame.Surface, view: MatchView, seat: int) -> None:
        unit, scale = self.unit, _MAP_SCALE * self.unit
        own = view.cars[seat].team
        chart = self._map[own]
        box = chart.get_rect(bottomleft=(round(16 * unit), round(self.size[1] - 14 * unit)))
        target.blit(chart, box)
        way = 1.0 if own == 0 else -1.0  # the own goal is below
        for number, car in enumerate(view.cars):
            if car.demolished_s > 0.0:
                continue
            place = (box.centerx + way * car.position[0] * scale, box.centery - way * car.position[1] * scale)
            if number == seat:
                pygame.draw.circle(target, WHITE, place, 6 * unit)
            pygame.draw.circle(target, TEAMS[car.team].base, place, 4.5 * unit)
        x, y, _ = view.ball.position
        pygame.draw.circle(target, INK, (box.centerx + way * x * scale, box.centery - way * y * scale), 5 * unit)
        pygame.draw.circle(target, WHITE, (box.centerx + way * x * scale, box.centery - way * y * scale), 3.6 * unit)

    def _painted_panel(self, width: float, height: float, opacity: int) -> pygame.Surface:
        panel = new_surface((round(width * self.unit), round(height * self.unit)), alpha=True)
        pygame.draw.rect(panel, (*PANEL, opacity), panel.get_rect(), border_radius=round(5 * self.unit))
        return panel

    def _painted_board(self) -> pygame.Surface:
        unit = self.unit
        board = self._painted_panel(*_BOARD, 220)
        for team, left in ((0, 0), (1, _BOARD[0] - 70)):
            box = pygame.Rect(round(left * unit), 0, round(70 * unit), board.get_height())
            pygame.draw.rect(board, (*mixed(TEAMS[team].base, INK, 0.12), 255), box, border_radius=round(9 * unit))
        return board

    def _painted_gauge(self) -> pygame.Surface:
        unit, radius = self.unit, _GAUGE_RADIUS
        gauge = new_surface((round((2 * radius + 36) * unit),) * 2, alpha=True)
        center = (gauge.get_width() / 2.0, gauge.get_height() / 2.0)
        pygame.draw.circle(gauge, (*PANEL, 190), center, (radius + 14) * unit)
        _paint_arc(gauge, mixed(PANEL, MUTED, 0.3), center, radius * unit, 11 * unit, 1.0)
        return gauge

    def _painted_map(self) -> tuple[pygame.Surface, pygame.Surface]:
        """Return small maps of the field with blue's goal below, and with orange's."""
        large = 3.0  # painted larger and scaled down, for smooth edges
        scale = large * _MAP_SCALE * self.unit
        width, height = round(2 * SIDE_X * scale + 16 * large), round(2 * (BACK_Y + 500.0) * scale + 8 * large)
        chart = new_surface((width, height), alpha=True)
        cut = CORNER_SUM - SIDE_X
        corners = [(SIDE_X, cut), (CORNER_SUM - BACK_Y, BACK_Y)]
        outline = [*corners, *((-x, y) for x, y in reversed(corners))]
        outline += [(-x, -y) for x, y in outline]
        points = [(width / 2.0 + x * scale, height / 2.0 - y * scale) for x, y in outline]
        pygame.draw.polygon(chart, (*mixed(GRASS[0], INK, 0.45), 205), points)
        pygame.draw.polygon(chart, (*mixed(LINE, INK, 0.2), 255), points, round(1.4 * large))
        middle = height / 2.0
        line = round(large)
        pygame.draw.line(chart, (*LINE, 130), (points[0][0], middle), (width - points[0][0], middle), line)
        pygame.draw.circle(chart, (*LINE, 130), (width / 2.0, middle), 1020.0 * scale, line)
        for team, side in ((0, 1.0), (1, -1.0)):
            y = middle + side * BACK_Y * scale
            half = GOAL_HALF_WIDTH * scale
            pygame.draw.line(
                chart, TEAMS[team].base, (width / 2.0 - half, y), (width / 2.0 + half, y), round(4 * large)
            )
        small = pygame.transform.smoothscale(chart, (round(width / large), round(height / large)))
        return small, pygame.transform.rotate(small, 180.0)


def _clock(view: MatchView) -> tuple[str, bool]:
    """Return the clock in words, and whether time is running out; without a clock the time that was played."""
    if view.clock_s is None:
        return _minutes(int(view.time_s)), False
    if view.clock_s < 0.0:
        return f"+{_minutes(int(-view.clock_s))}", True
    return _minutes(math.ceil(view.clock_s)), view.clock_s <= 10.0


def _minutes(seconds: int) -> str:
    return f"{seconds // 60}:{seconds % 60:02d}"


def _paint_arc(
    target: pygame.Surface,
    color: tuple[int, int, int],
    center: tuple[float, float],
    radius: float,
    width: float,
    share: float,
) -> None:
    """Paint a share of three quarters of a ring, open below."""
    share = min(max(share, 0.0), 1.0)
    if share < 0.01:
        return
    angles = np.linspace(0.75 * math.pi, (0.75 + 1.5 * share) * math.pi, max(round(30 * share), 2) + 1)
    way = np.column_stack((np.cos(angles), np.sin(angles)))
    outer, inner = way * (radius + width / 2.0) + center, way * (radius - width / 2.0) + center
    points = [*outer.tolist(), *inner[::-1].tolist()]
    pygame.draw.polygon(target, color, points)
    pygame.draw.aalines(target, color, True, points)
