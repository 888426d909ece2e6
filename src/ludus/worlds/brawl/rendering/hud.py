"""The head-up display: names, damage, stocks and weapon of both fighters, and the clock; and the debug layer."""

from ludus.envs.colors import Color, mixed
from ludus.envs.pygame_tools import Lettering, new_surface, pygame
from ludus.worlds.brawl.moves import MoveTable
from ludus.worlds.brawl.rendering import sketch as palette
from ludus.worlds.brawl.rendering.poses import move_of
from ludus.worlds.brawl.rendering.sketch import INK, TEAMS, WHITE, Camera, Point, damage_color, draw_bar
from ludus.worlds.brawl.rules import HURT_HALF_LENGTH, HURT_RADIUS, KILL_X, KILL_Y, RATE_HZ, State
from ludus.worlds.brawl.view import MatchView, PlayerView

_PANEL_SIZE = (216, 92)  # pixels at 720 lines
_MOST_PIPS = 6  # more stocks are written as a number


class Hud(Lettering):
    """Paints the display for pictures of one size."""

    def __init__(self, size: tuple[int, int]) -> None:
        super().__init__(size, INK)
        self.size = size
        self._panels = tuple(self._paint_panel(seat) for seat in (0, 1))

    def paint(self, target: pygame.Surface, view: MatchView, names: tuple[str, str], table: MoveTable) -> None:
        """Paint panels and clock."""
        for seat, player in enumerate(view.players):
            self._paint_player(target, seat, player, names[seat], table)
        self._paint_clock(target, view)

    def _paint_player(self, target: pygame.Surface, seat: int, player: PlayerView, name: str, table: MoveTable) -> None:
        unit, team = self.unit, TEAMS[seat]
        left, top = self._panel_place(seat)
        target.blit(self._panels[seat], (left, top))
        self.text(target, name[:18], (left + 16 * unit, top + 8 * unit), 20, team.light)
        weapon = table.weapons[player.weapon]
        self.text(target, player.weapon, (left + 16 * unit, top + 36 * unit), 18, mixed(weapon.color, WHITE, 0.2))
        color = damage_color(player.damage)
        self.text(target, f"{player.damage:.0f}", (left + 204 * unit, top + 56 * unit), 56, color, "midright")
        self._paint_stocks(target, seat, player.stocks, (left + 24 * unit, top + 74 * unit))

    def _paint_stocks(self, target: pygame.Surface, seat: int, stocks: int, place: tuple[float, float]) -> None:
        unit, team = self.unit, TEAMS[seat]
        if stocks > _MOST_PIPS:
            self.text(target, f"x {stocks}", place, 20, team.light, "midleft")
            return
        for index in range(stocks):
            center = (round(place[0] + 22 * unit * index), round(place[1]))
            pygame.draw.aacircle(target, INK, center, 9 * unit)
            pygame.draw.aacircle(target, team.base, center, 7 * unit)

    def _paint_clock(self, target: pygame.Surface, view: MatchView) -> None:
        left = max(view.step_limit - view.frame, 0)
        seconds = -(-left // RATE_HZ)
        hurry = left < 10 * RATE_HZ and left % RATE_HZ > RATE_HZ // 2
        place = (self.size[0] / 2, 34 * self.unit)
        self.text(
            target, f"{seconds // 60}:{seconds % 60:02d}", place, 44, palette.DANGER if hurry else WHITE, "center"
        )

    def _panel_place(self, seat: int) -> tuple[int, int]:
        offset = (-1, 1)[seat] * 203 * self.unit
        left = self.size[0] / 2 + offset - _PANEL_SIZE[0] * self.unit / 2
        return round(left), round(self.size[1] - (_PANEL_SIZE[1] + 10) * self.unit)

    def _paint_panel(self, seat: int) -> pygame.Surface:
        unit, team = self.unit, TEAMS[seat]
        panel = new_surface((round(_PANEL_SIZE[0] * unit), round(_PANEL_SIZE[1] * unit)), alpha=True)
        box = panel.get_rect()
        pygame.draw.rect(panel, (*palette.PANEL, 200), box, border_radius=round(14 * unit))
        edge = pygame.Rect(0, 0, round(6 * unit), box.height - round(28 * unit))
        edge.midleft = (round(2 * unit), box.centery)
        pygame.draw.rect(panel, (*team.base, 255), edge, border_radius=round(3 * unit))
        return panel


def paint_debug(target: pygame.Surface, camera: Camera, hud: Hud, view: MatchView, table: MoveTable) -> None:
    """Paint capsules, kill box and words over a finished picture."""
    left, top = camera.point(-KILL_X, -KILL_Y)
    right, bottom = camera.point(KILL_X, KILL_Y)
    pygame.draw.rect(target, palette.DEBUG_HIT, (left, top, right - left, bottom - top), 1)
    hud.text(target, f"frame {view.frame}", (8, 8), 20, WHITE)
    for player in view.players:
        if player.state != State.KO:
            ends = (player.x, player.y - HURT_HALF_LENGTH), (player.x, player.y + HURT_HALF_LENGTH)
            _paint_capsule(target, camera, *ends, HURT_RADIUS, palette.DEBUG_HURT)
            for hit in player.hits:
                _paint_capsule(target, camera, hit.start, hit.end, hit.radius, palette.DEBUG_HIT)
        x, y = camera.point(player.x, player.y - 1.15)
        for index, line in enumerate(reversed(describe(player, table))):
            hud.text(target, line, (x, y - 16 * index), 18, WHITE, "midbottom")


def describe(player: PlayerView, table: MoveTable) -> tuple[str, ...]:
    """Describe what a fighter is doing."""
    lines = [f"{player.state.name.lower()} {player.timer}" if player.timer else player.state.name.lower()]
    move = move_of(player, table)
    if move is not None:
        lines.append(f"{move.name} {player.move_frame}/{move.total}" + f" charge {player.charge}" * (player.charge > 0))
    if player.invincible:
        lines.append(f"invincible {player.invincible}")
    lines.append(f"v {player.vx:+.1f} {player.vy:+.1f}  jumps {player.air_jumps}  dodge {player.dodge_cooldown}")
    return tuple(lines)


def _paint_capsule(
    target: pygame.Surface, camera: Camera, start: Point, end: Point, radius: float, color: Color
) -> None:
    """A see-through capsule with its exact outline."""
    scale = camera.scale
    a, b = camera.point(*start), camera.point(*end)
    reach = radius * scale
    left, top = min(a[0], b[0]) - reach - 2, min(a[1], b[1]) - reach - 2
    size = (int(abs(a[0] - b[0]) + 2 * reach + 5), int(abs(a[1] - b[1]) + 2 * reach + 5))
    first, second = (a[0] - left, a[1] - top), (b[0] - left, b[1] - top)
    layer = new_surface(size, alpha=True)
    for shade, grow in (((*color, 230), 0.0), ((*color, 60), -1.5)):
        draw_bar(layer, shade, first, second, reach + grow, reach + grow)
    target.blit(layer, (left, top))
