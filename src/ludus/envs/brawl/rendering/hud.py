"""The head-up display: names, damage, stocks and weapon of both fighters, and the clock."""

from ludus.envs.brawl.moves import MoveTable
from ludus.envs.brawl.rendering.palette import DANGER, INK, PANEL, TEAMS, WHITE, damage_color
from ludus.envs.brawl.rules import RATE_HZ
from ludus.envs.brawl.view import MatchView, PlayerView
from ludus.envs.colors import mixed
from ludus.envs.lettering import Lettering
from ludus.envs.pygame_tools import new_surface, pygame

_PANEL_SIZE = (216, 92)  # pixels at 720 lines
_MOST_PIPS = 6  # more stocks are written as a number


class Hud(Lettering):
    """Paints the display for pictures of one size."""

    def __init__(self, size: tuple[int, int]) -> None:
        super().__init__(size, INK)
        self.size = size
        self._panels = tuple(self._paint_panel(seat) for seat in (0, 1))

    def paint(self, target: pygame.Surface, view: MatchView, names: tuple[str, str], table: MoveTable) -> None:
        """Paints panels and clock."""
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
        self.text(target, f"{seconds // 60}:{seconds % 60:02d}", place, 44, DANGER if hurry else WHITE, "center")

    def _panel_place(self, seat: int) -> tuple[int, int]:
        offset = (-1, 1)[seat] * 203 * self.unit
        left = self.size[0] / 2 + offset - _PANEL_SIZE[0] * self.unit / 2
        return round(left), round(self.size[1] - (_PANEL_SIZE[1] + 10) * self.unit)

    def _paint_panel(self, seat: int) -> pygame.Surface:
        unit, team = self.unit, TEAMS[seat]
        panel = new_surface((round(_PANEL_SIZE[0] * unit), round(_PANEL_SIZE[1] * unit)), alpha=True)
        box = panel.get_rect()
        pygame.draw.rect(panel, (*PANEL, 200), box, border_radius=round(14 * unit))
        edge = pygame.Rect(0, 0, round(6 * unit), box.height - round(28 * unit))
        edge.midleft = (round(2 * unit), box.centery)
        pygame.draw.rect(panel, (*team.base, 255), edge, border_radius=round(3 * unit))
        return panel
