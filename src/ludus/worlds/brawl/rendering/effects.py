"""What surrounds fighters: strikes, sparks, charge, shimmer, streaks, shadows, knockout bursts."""

import math

from ludus.envs.colors import Color, Team, mixed
from ludus.envs.pygame_tools import pygame
from ludus.worlds.brawl import rules
from ludus.worlds.brawl.moves import MoveTable
from ludus.worlds.brawl.rendering.poses import move_of
from ludus.worlds.brawl.rendering.sketch import INK, WHITE, Camera, Point, Sketch
from ludus.worlds.brawl.rules import State
from ludus.worlds.brawl.view import HitView, MatchView, PlayerView

BURST_FRAMES = 24  # how long a knockout bursts
_STREAK_SPEED = 8.5  # units/s from which a body leaves streaks


def paint_shadow(target: pygame.Surface, camera: Camera, view: MatchView, player: PlayerView) -> None:
    """Paint a shadow on what lies below a fighter; the smaller, the higher it is."""
    floor = _floor_below(view, player)
    if floor is None:
        return
    size = max(0.16, 0.42 - 0.05 * (floor - player.y))
    sketch = Sketch()
    sketch.capsule((player.x - size, floor + 0.045), (player.x + size, floor + 0.045), 0.045, INK)
    sketch.paint(target, camera, 120)


def paint_streaks(target: pygame.Surface, camera: Camera, player: PlayerView, team: Team) -> None:
    """Paint lines behind a fast body."""
    speed = math.hypot(player.vx, player.vy)
    if speed < _STREAK_SPEED and player.state != State.DASH:
        return
    ux, uy = player.vx / max(speed, 1e-6), player.vy / max(speed, 1e-6)
    length = min(0.09 * speed, 2.4)
    color = WHITE if player.state == State.STUN else team.light
    sketch = Sketch()
    for offset, share in ((-0.30, 0.7), (-0.08, 1.0), (0.14, 0.85), (0.34, 0.6)):
        start = (player.x - 0.35 * ux - uy * offset, player.y - 0.35 * uy + ux * offset)
        end = (start[0] - ux * length * share, start[1] - uy * length * share)
        sketch.capsule(start, end, 0.035, color, end_radius=0.005)
    sketch.paint(target, camera, 150)


def paint_strikes(target: pygame.Surface, camera: Camera, player: PlayerView, color: Color) -> None:
    """Paint the active capsules as bright sweeps: what is drawn is what hits."""
    for hit in player.hits:
        sweep = Sketch()
        sweep.capsule(hit.start, hit.end, hit.radius, mixed(color, WHITE, 0.25))
        sweep.paint(target, camera, 95)
        core = Sketch()
        core.capsule(hit.start, hit.end, hit.radius * 0.25, mixed(color, WHITE, 0.75), end_radius=hit.radius * 0.6)
        core.paint(target, camera, 150)


def paint_charge(target: pygame.Surface, camera: Camera, player: PlayerView, table: MoveTable, frame: int) -> None:
    """Paint the glow of a held heavy move; it grows until the charge is full, then pulses white."""
    move = move_of(player, table)
    if player.charge == 0 or move is None or move.charge is None or player.move_frame > move.charge.frame:
        return
    share = player.charge / move.charge.max_frames
    color = mixed(table.weapons[player.weapon].color, WHITE, 0.7 * (frame % 4 < 2) if share >= 1.0 else 0.0)
    for radius, opacity in ((0.55 + 0.45 * share, 50), (0.40 + 0.30 * share, 70)):
        glow = Sketch()
        glow.circle((player.x, player.y), radius, color)
        glow.paint(target, camera, opacity)
    sparks = Sketch()
    for index in range(6):
        angle = index * math.pi / 3.0 + frame * 0.25
        distance = 1.05 - 0.06 * ((frame * 2 + index * 5) % 12)
        sparks.circle((player.x + distance * math.cos(angle), player.y + distance * math.sin(angle)), 0.05, WHITE)
    sparks.paint(target, camera, 120 + round(135 * share))


def paint_shimmer(target: pygame.Surface, camera: Camera, player: PlayerView, frame: int) -> None:
    """Paint the shell of an invincible fighter."""
    for radius, opacity in ((0.74, 60 + 25 * (frame % 6 < 3)), (0.62, 45)):
        shell = Sketch()
        shell.capsule((player.x, player.y - 0.08), (player.x, player.y + 0.02), radius, (190, 240, 255))
        shell.paint(target, camera, opacity)
    stars = Sketch()
    for index in range(5):
        angle = index * 2.0 * math.pi / 5.0 - frame * 0.12
        stars.circle((player.x + 0.74 * math.cos(angle), player.y - 0.03 + 0.80 * math.sin(angle)), 0.055, WHITE)
    stars.paint(target, camera, 230)


def paint_dizziness(target: pygame.Surface, camera: Camera, player: PlayerView, frame: int) -> None:
    """Paint stars that circle a stunned fighter."""
    sketch = Sketch(outline=0.025)
    for index in range(3):
        angle = frame * 0.45 + index * 2.0 * math.pi / 3.0
        x, y = player.x + 0.42 * math.cos(angle), player.y - 0.62 + 0.12 * math.sin(angle)
        sketch.polygon(_star((x, y), 0.11, angle), (255, 226, 110))
    sketch.paint(target, camera)


def paint_impact(target: pygame.Surface, camera: Camera, attacker: PlayerView, victim: PlayerView) -> None:
    """Paint a spark where a blow has just landed: an active capsule touches a stunned body."""
    if victim.state != State.STUN:
        return
    for hit in attacker.hits:
        place = _contact(hit, victim)
        if place is not None:
            sketch = Sketch(outline=0.03)
            sketch.polygon(_star(place, 0.52, 0.3, points=7, waist=0.36), (255, 236, 150))
            sketch.polygon(_star(place, 0.28, 0.7, points=7, waist=0.4), WHITE, outlined=False)
            sketch.paint(target, camera)
            return


def paint_clash(target: pygame.Surface, camera: Camera, view: MatchView) -> None:
    """Paint a flickering spark between two fighters in a clash, and rays that shrink as its time runs out."""
    first, second = view.players
    if first.state != State.CLASH or second.state != State.CLASH:
        return
    place = ((first.x + second.x) / 2.0, (first.y + second.y) / 2.0 - 0.15)
    rays = Sketch()
    for index in range(8):
        angle = index * math.pi / 4.0 + view.frame * 0.2
        ux, uy, near = math.cos(angle), math.sin(angle), 0.3 + 0.04 * first.timer
        start, end = (place[0] + near * ux, place[1] + near * uy), (place[0] + 0.28 * ux, place[1] + 0.28 * uy)
        rays.capsule(start, end, 0.03, WHITE, end_radius=0.005)
    rays.paint(target, camera, 170)
    star = Sketch(outline=0.03)
    star.polygon(_star(place, 0.30 + 0.06 * (view.frame % 3), view.frame * 0.4, points=7, waist=0.4), (255, 236, 150))
    star.polygon(_star(place, 0.18, view.frame * 0.7, points=7, waist=0.4), WHITE, outlined=False)
    star.paint(target, camera)


def paint_knockout(target: pygame.Surface, camera: Camera, player: PlayerView, exit_place: Point, team: Team) -> None:
    """Paint the burst where a fighter left the stage, for a short while."""
    age = rules.KO_FRAMES - player.timer
    if age >= BURST_FRAMES:
        return
    share = age / BURST_FRAMES
    inward = math.atan2(-exit_place[1], -exit_place[0])
    opacity = round(255 * (1.0 - share))
    rays = Sketch()
    for index in range(-4, 5):
        angle = inward + index * 0.15
        near, far = 0.4 + 3.0 * share, (2.6 + 3.2 * share) * (1.0 - 0.06 * abs(index))
        start = (exit_place[0] + near * math.cos(angle), exit_place[1] + near * math.sin(angle))
        end = (exit_place[0] + far * math.cos(angle), exit_place[1] + far * math.sin(angle))
        rays.capsule(start, end, 0.20, team.base if index % 2 else WHITE, end_radius=0.03)
    rays.circle(exit_place, 0.9 * (1.0 - share) + 0.1, WHITE)
    rays.paint(target, camera, opacity)


def paint_return(target: pygame.Surface, camera: Camera, player: PlayerView, team: Team) -> None:
    """Paint a closing ring where a fighter will come back."""
    share = player.timer / rules.KO_FRAMES
    ring = Sketch(outline=0.02)
    for index in range(24):
        if index / 24.0 <= share:
            angle = -math.pi / 2.0 - 2.0 * math.pi * index / 24.0
            ring.circle((player.x + 0.55 * math.cos(angle), player.y + 0.55 * math.sin(angle)), 0.05, team.base)
    ring.paint(target, camera, 210)


def _floor_below(view: MatchView, player: PlayerView) -> float | None:
    floors = []
    high_side = -1.0 if view.mirrored else 1.0
    if (
        abs(player.x) + rules.BODY_HALF_WIDTH > rules.GROUND_INNER
        and abs(player.x) - rules.BODY_HALF_WIDTH < rules.GROUND_OUTER
    ):
        floors.append(rules.HIGH_TOP if player.x * high_side > 0.0 else rules.LOW_TOP)
    if abs(player.x - view.platform[0]) < rules.PLATFORM_HALF_WIDTH:
        floors.append(view.platform[1])
    below = [floor for floor in floors if floor >= player.y]
    return min(below) if below else None


def _contact(hit: HitView, victim: PlayerView) -> Point | None:
    """Return where a capsule touches a body (nearest point of its axis), or None if it does not."""
    dx, dy = hit.end[0] - hit.start[0], hit.end[1] - hit.start[1]
    length_sq = dx * dx + dy * dy or 1e-9
    along = ((victim.x - hit.start[0]) * dx + (victim.y - hit.start[1]) * dy) / length_sq
    t = min(max(along, 0.0), 1.0)
    place = (hit.start[0] + t * dx, hit.start[1] + t * dy)
    near = math.dist(place, (victim.x, victim.y)) <= hit.radius + rules.HURT_RADIUS + rules.HURT_HALF_LENGTH
    return ((place[0] + victim.x) / 2.0, (place[1] + victim.y) / 2.0) if near else None


def _star(center: Point, radius: float, turn: float, *, points: int = 5, waist: float = 0.45) -> tuple[Point, ...]:
    corners = []
    for index in range(2 * points):
        reach = radius if index % 2 == 0 else radius * waist
        angle = turn + math.pi * index / points
        corners.append((center[0] + reach * math.cos(angle), center[1] + reach * math.sin(angle)))
    return tuple(corners)
