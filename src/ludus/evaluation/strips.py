"""Matches as plain numbers, frame by frame, small enough to be drawn by a page without any simulator.

A strip is JSON: columns of whole numbers, each the difference to the frame before, in hundredths of the world's unit.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import mujoco
import numpy as np
from numpy.typing import NDArray

from ludus.core.files import JSON
from ludus.envs.base import BatchedEnv
from ludus.envs.brawl.env import BrawlEnv
from ludus.envs.brawl.view import PlayerView
from ludus.envs.mimic.env import MimicEnv
from ludus.envs.mimic.joints import SIDES
from ludus.envs.replay import Replay, replay_env, resimulate
from ludus.envs.rocket.env import RocketEnv
from ludus.envs.rocket.layout import BIG_PADS, PADS
from ludus.envs.rocket.view import CarView
from ludus.evaluation.exhibition import Exhibition
from ludus.evaluation.pace import steps_a_picture

SCALE = 100
MOST_STEPS = 20_000


class Tape(Protocol):
    """Writes down the first game of one world.

    Attributes:
        world: Name of what draws it.
    """

    world: str

    def take(self) -> None:
        """Writes down the game as it stands."""

    def content(self) -> dict[str, JSON]:
        """Returns everything that was taken."""


class BrawlTape:
    """Fighters, platform, weapons that lie about, and capsules that hit."""

    world = "brawl"

    def __init__(self, env: BrawlEnv) -> None:
        self._env = env
        self._rows: list[list[float]] = []
        self._hits: dict[str, JSON] = {}
        self._items: dict[str, JSON] = {}
        self._lying: list[JSON] = []

    def take(self) -> None:
        """See `Tape`."""
        view = self._env.view(0)
        frame = len(self._rows)
        weapons = self._env.table.names
        self._rows.append(
            [
                *(number for player in view.players for number in self._player(player)),
                *(SCALE * number for number in view.platform),
            ]
        )
        hits: list[JSON] = [
            [seat, *(_whole(number) for number in (*hit.start, *hit.end, hit.radius))]
            for seat, player in enumerate(view.players)
            for hit in player.hits
        ]
        if hits:
            self._hits[str(frame)] = hits
        lying: list[JSON] = [[_whole(item.x), _whole(item.y), weapons.index(item.weapon)] for item in view.items]
        if lying != self._lying:
            self._items[str(frame)] = self._lying = lying

    def _player(self, player: PlayerView) -> list[float]:
        weapon = self._env.table.names.index(player.weapon)
        return [
            SCALE * player.x, SCALE * player.y, player.facing, int(player.state), player.damage, player.stocks, weapon,
            int(player.invincible > 0),
        ]  # fmt: skip

    def content(self) -> dict[str, JSON]:
        """See `Tape`."""
        view, names = self._env.view(0), ("x", "y", "facing", "state", "damage", "stocks", "weapon", "safe")
        columns = [f"{name}{seat}" for seat in (0, 1) for name in names] + ["platform_x", "platform_y"]
        return {
            "columns": _deltas(columns, self._rows),
            "hits": self._hits,
            "items": self._items,
            "weapons": list(self._env.table.names),
            "mirrored": view.mirrored,
        }


class WalkerTape:
    """A walker as a stick figure seen from its right, and the one that it imitates beside it."""

    world = "mimic"

    def __init__(self, env: MimicEnv) -> None:
        self._env, self._model = env, env.walker.model
        self._data = mujoco.MjData(self._model)
        self._rows: list[list[float]] = []
        bodies = ["root", *(f"{side}_{part}" for side in SIDES for part in ("thigh", "shank", "foot"))]
        self._bodies = [self._model.body(name).id for name in bodies]
        self._sites = [self._model.site(f"{side}_{point}").id for side in SIDES for point in ("heel", "ball")]
        self._neck = np.array((0.0, 0.0, 0.75 * env.walker.body.trunk.length_m))
        self._head = np.array((0.02, 0.0, 0.85 * env.walker.body.trunk.length_m))

    def take(self) -> None:
        """See `Tape`."""
        view = self._env.view(0)
        walker = self._points(view.positions)
        ghost = self._points(view.ghost) if view.ghost is not None else walker
        # The reference is at no place of its own: it walks where the walker's hips are.
        ghost = ghost + np.array((walker[0, 0] - ghost[0, 0], 0.0))
        self._rows.append([*(SCALE * walker).flatten(), *(SCALE * ghost).flatten(), SCALE * view.desired_m_s])

    def _points(self, positions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns `(points, 2)` forward and up: hips, neck, head, then thigh, knee, ankle of both sides, then soles."""
        self._data.qpos[:] = positions
        mujoco.mj_kinematics(self._model, self._data)
        root = self._bodies[0]
        turned = self._data.xmat[root].reshape(3, 3)
        upper = [self._data.xpos[root] + turned @ place for place in (self._neck, self._head)]
        bodies = [self._data.xpos[body] for body in self._bodies]
        points = np.array([bodies[0], *upper, *bodies[1:], *(self._data.site_xpos[site] for site in self._sites)])
        return points[:, (0, 2)]

    def content(self) -> dict[str, JSON]:
        """See `Tape`."""
        points = ["hip", "neck", "head"]
        points += [f"{side}_{part}" for side in SIDES for part in ("thigh", "knee", "ankle")]
        points += [f"{side}_{point}" for side in SIDES for point in ("heel", "ball")]
        columns = [f"{who}{point}_{axis}" for who in ("", "ghost_") for point in points for axis in "xz"]
        return {"columns": _deltas([*columns, "desired"], self._rows), "height": _whole(self._env.walker.body.height_m)}


class RocketTape:
    """Ball and cars with their rotation, boost and what they do, goals and clock; lengths in whole uu."""

    world = "rocket"

    def __init__(self, env: RocketEnv) -> None:
        self._env = env
        self._rows: list[list[float]] = []

    def take(self) -> None:
        """See `Tape`."""
        view = self._env.view(0)
        clock = view.time_s if view.clock_s is None else view.clock_s
        cars = (number for car in view.cars for number in self._car(car))
        self._rows.append([*view.ball.position, *view.goals, 10.0 * clock, *cars])

    def _car(self, car: CarView) -> list[float]:
        doing = car.boosting + 2 * car.supersonic + 4 * (car.demolished_s > 0.0)
        return [*car.position, *(SCALE * number for number in car.rotation), car.boost, doing]

    def content(self) -> dict[str, JSON]:
        """See `Tape`."""
        names = ("x", "y", "z", "qx", "qy", "qz", "qw", "boost", "doing")
        columns = ["ball_x", "ball_y", "ball_z", "blue", "orange", "clock"]
        columns += [f"{name}{seat}" for seat in range(self._env.spec.seats) for name in names]
        return {
            "columns": _deltas(columns, self._rows),
            "teams": list(self._env.spec.teams),
            "pads": [[x, y, int(number in BIG_PADS)] for number, (x, y) in enumerate(PADS)],
        }


def make_tape(env: BatchedEnv) -> Tape | None:
    """Returns a tape for a batch of one game; None for worlds that no page can draw."""
    if isinstance(env, BrawlEnv):
        return BrawlTape(env)
    if isinstance(env, RocketEnv):
        return RocketTape(env)
    return WalkerTape(env) if isinstance(env, MimicEnv) else None


def match_strip(exhibition: Exhibition, title: str) -> dict[str, JSON] | None:
    """Plays a match to its end and returns it as a strip; None for worlds that no page can draw."""
    env = exhibition.env
    tape = make_tape(env)
    if tape is None:
        return None
    every = steps_a_picture(env.spec.rate_hz)
    tape.take()
    outcome = None
    while outcome is None and exhibition.steps < MOST_STEPS:
        outcome = exhibition.step()
        if outcome is None and exhibition.steps % every == 0:  # a match that ended has begun anew
            tape.take()
    said = "it was not over" if outcome is None else outcome.describe(exhibition.sides)
    return _strip(tape, env, exhibition.names, title, said)


def replay_strip(file: Path) -> dict[str, JSON] | None:
    """Plays a recorded game again and returns it as a strip; None for worlds that no page can draw.

    Raises:
        ReplayError: The file cannot be used, or the game does not go as recorded.
    """
    replay = Replay.load(file)
    with replay_env(replay) as env:
        tape = make_tape(env)
        if tape is None:
            return None
        every = steps_a_picture(env.spec.rate_hz)
        tape.take()
        for step, result in enumerate(resimulate(replay, env), 1):
            if step % every == 0 and not bool(result.ended[0]):
                tape.take()
        return _strip(tape, env, replay.players, file.name, f"{replay.steps} steps")


def _strip(tape: Tape, env: BatchedEnv, players: Sequence[str], title: str, said: str) -> dict[str, JSON]:
    return {
        "world": tape.world,
        "title": title,
        "result": said,
        "players": list(players),
        "rate_hz": env.spec.rate_hz / steps_a_picture(env.spec.rate_hz),
        "scale": SCALE,
        **tape.content(),
    }


def _deltas(names: Sequence[str], rows: Sequence[Sequence[float]]) -> dict[str, JSON]:
    """Returns columns of `rows` `(frames, columns)` in whole numbers, each less the one before it."""
    table = np.round(np.array(rows, dtype=np.float64)).astype(np.int64)
    steps = np.diff(table, axis=0, prepend=np.zeros((1, table.shape[1]), np.int64))
    return {name: steps[:, place].tolist() for place, name in enumerate(names)}


def _whole(value: float) -> int:
    return round(SCALE * value)
