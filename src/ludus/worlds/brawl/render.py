"""The renderer of Brawl: one match at one moment becomes a picture, without a window."""

import math

from ludus.envs.colors import Team
from ludus.envs.pygame_tools import CanvasRenderer, pygame
from ludus.worlds.brawl.moves import MoveTable
from ludus.worlds.brawl.rendering import effects
from ludus.worlds.brawl.rendering.figure import Frame, draw_figure, draw_front, draw_weapon, paint_item
from ludus.worlds.brawl.rendering.hud import Hud, paint_debug
from ludus.worlds.brawl.rendering.poses import pose_of
from ludus.worlds.brawl.rendering.scenery import paint_platform, paint_scenery
from ludus.worlds.brawl.rendering.sketch import TEAMS, Camera, Point, Sketch
from ludus.worlds.brawl.rules import RATE_HZ, State
from ludus.worlds.brawl.view import MatchView, PlayerView

_OUTLINE = 0.04  # units; 2 pixels at 720 lines


class Renderer(CanvasRenderer[MatchView]):
    """Draws matches; never opens a window. `names` stand over the damage of each seat.

    A picture shows what its view says. One thing is remembered between pictures of one match: where a fighter was last
    seen, because a view of a knocked-out fighter no longer says where it left the stage. With `debug`, hurt and hit
    capsules, state names and frames are drawn.
    """

    def __init__(
        self,
        table: MoveTable,
        size: tuple[int, int] = (1280, 720),
        debug: bool = False,
        names: tuple[str, str] | None = None,
    ) -> None:
        super().__init__(size)
        self.table, self.debug = table, debug
        self.names = names or (TEAMS[0].name, TEAMS[1].name)
        self.hud = Hud(size)
        self._camera = Camera(size)
        self._scenery: dict[bool, pygame.Surface] = {}
        self._last_seen: list[Point | None] = [None, None]
        self._last_frame = -1

    def _paint(self, view: MatchView) -> None:
        canvas, camera = self._canvas, self._camera
        if view.mirrored not in self._scenery:
            self._scenery[view.mirrored] = paint_scenery(camera, mirrored=view.mirrored)
        canvas.blit(self._scenery[view.mirrored], (0, 0))
        self._remember(view)
        for player in view.players:
            if player.state != State.KO:
                effects.paint_shadow(canvas, camera, view, player)
        paint_platform(canvas, camera, *view.platform)
        for item in view.items:
            paint_item(canvas, camera, item, self.table.weapons[item.weapon], view.frame)
        for seat, player in enumerate(view.players):
            if player.state == State.KO:
                self._paint_absent(player, seat)
            else:
                self._paint_fighter(player, TEAMS[seat], view.frame)
        first, second = view.players
        effects.paint_impact(canvas, camera, first, second)
        effects.paint_impact(canvas, camera, second, first)
        effects.paint_clash(canvas, camera, view)
        self.hud.paint(canvas, view, self.names, self.table)
        if self.debug:
            paint_debug(canvas, camera, self.hud, view, self.table)

    def _remember(self, view: MatchView) -> None:
        if not 0 <= view.frame - self._last_frame <= 30:  # another match, or a jump within this one
            self._last_seen = [None, None]
        self._last_frame = view.frame
        for seat, player in enumerate(view.players):
            if player.state != State.KO:
                self._last_seen[seat] = (player.x, player.y)

    def _paint_absent(self, player: PlayerView, seat: int) -> None:
        place = self._last_seen[seat]
        if place is not None:
            effects.paint_knockout(self._canvas, self._camera, player, place, TEAMS[seat])
        if player.stocks > 0:
            effects.paint_return(self._canvas, self._camera, player, TEAMS[seat])
            seconds = math.ceil(player.timer / RATE_HZ)
            center = self._camera.point(player.x, player.y)
            self.hud.text(self._canvas, str(seconds), center, 26, TEAMS[seat].light, "center")

    def _paint_fighter(self, player: PlayerView, team: Team, frame: int) -> None:
        canvas, camera = self._canvas, self._camera
        effects.paint_streaks(canvas, camera, player, team)
        effects.paint_charge(canvas, camera, player, self.table, frame)
        if player.invincible > 0:
            effects.paint_shimmer(canvas, camera, player, frame)
        opacity = 255
        if player.state == State.DODGE:
            opacity = 120
            for offset, ghost in ((-0.34, 45), (0.34, 45)):
                self._figure(player, team, frame, offset).paint(canvas, camera, ghost)
        elif player.invincible > 0 and frame % 6 < 2:
            opacity = 150
        effects.paint_strikes(canvas, camera, player, self.table.weapons[player.weapon].color)
        self._figure(player, team, frame, 0.0).paint(canvas, camera, opacity)
        if player.state == State.STUN:
            effects.paint_dizziness(canvas, camera, player, frame)

    def _figure(self, player: PlayerView, team: Team, frame: int, offset: float) -> Sketch:
        pose = pose_of(player, self.table, frame)
        place = Frame(player.x + offset, player.y, player.facing, pose.spin)
        sketch = Sketch(outline=_OUTLINE)
        wave = 0.06 * math.sin(frame * 0.35)
        wind = (-0.30 * player.facing - 0.03 * player.vx, 0.10 + wave - 0.025 * player.vy)
        joints = draw_figure(sketch, pose, place, team, wind)
        angle = pose.weapon_angle + pose.spin
        tip = (player.facing * math.cos(angle), math.sin(angle))
        draw_weapon(sketch, self.table.weapons[player.weapon], joints.front_hand, tip)
        draw_front(sketch, pose, joints, team)
        return sketch
