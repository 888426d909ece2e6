"""The debug layer: what the simulator really tests (hurt and hit capsules, kill box) and the state in words."""

from ludus.envs.brawl.moves import MoveTable
from ludus.envs.brawl.rendering.camera import Camera
from ludus.envs.brawl.rendering.hud import Hud
from ludus.envs.brawl.rendering.palette import DEBUG_HIT, DEBUG_HURT, WHITE
from ludus.envs.brawl.rendering.poses import move_of
from ludus.envs.brawl.rendering.sketch import Point
from ludus.envs.brawl.rules import HURT_HALF_LENGTH, HURT_RADIUS, KILL_X, KILL_Y, State
from ludus.envs.brawl.view import MatchView, PlayerView
from ludus.envs.colors import Color
from ludus.envs.pygame_tools import new_surface, pygame


def paint_debug(target: pygame.Surface, camera: Camera, hud: Hud, view: MatchView, table: MoveTable) -> None:
    """Paints capsules, kill box and words over a finished picture."""
    left, top = camera.point(-KILL_X, -KILL_Y)
    right, bottom = camera.point(KILL_X, KILL_Y)
    pygame.draw.rect(target, DEBUG_HIT, (left, top, right - left, bottom - top), 1)
    hud.text(target, f"frame {view.frame}", (8, 8), 20, WHITE)
    for player in view.players:
        if player.state != State.KO:
            ends = (player.x, player.y - HURT_HALF_LENGTH), (player.x, player.y + HURT_HALF_LENGTH)
            _paint_capsule(target, camera, *ends, HURT_RADIUS, DEBUG_HURT)
            for hit in player.hits:
                _paint_capsule(target, camera, hit.start, hit.end, hit.radius, DEBUG_HIT)
        x, y = camera.point(player.x, player.y - 1.15)
        for index, line in enumerate(reversed(describe(player, table))):
            hud.text(target, line, (x, y - 16 * index), 18, WHITE, "midbottom")


def describe(player: PlayerView, table: MoveTable) -> tuple[str, ...]:
    """Says in words what a fighter is doing."""
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
        _fill(layer, shade, first, second, reach + grow)
    target.blit(layer, (left, top))


def _fill(layer: pygame.Surface, shade: tuple[int, int, int, int], a: Point, b: Point, reach: float) -> None:
    dx, dy = b[0] - a[0], b[1] - a[1]
    length = (dx * dx + dy * dy) ** 0.5
    if length > 0.0:
        nx, ny = -dy / length * reach, dx / length * reach
        corners = ((a[0] + nx, a[1] + ny), (b[0] + nx, b[1] + ny), (b[0] - nx, b[1] - ny), (a[0] - nx, a[1] - ny))
        pygame.draw.polygon(layer, shade, corners)
    pygame.draw.circle(layer, shade, a, reach)
    pygame.draw.circle(layer, shade, b, reach)
