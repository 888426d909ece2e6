"""How Mimic is shown: a walker in a page, which `player.js` draws, and the reference motion in `ludus demo`."""

from collections.abc import Generator, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from ludus.core.errors import UnsupportedError
from ludus.core.files import JSON
from ludus.envs.base import BatchedEnv
from ludus.envs.display import SCALE, Display, ReplayView, encode_columns, scaled
from ludus.worlds.mimic.env import MimicEnv
from ludus.worlds.mimic.rendering.figure import StickFigure, WalkerView, reference_positions
from ludus.worlds.mimic.rendering.painter import WalkerPainter


class WalkerLog:
    """A walker as a stick figure seen from its right, and the one that it imitates beside it."""

    def __init__(self, env: MimicEnv) -> None:
        self._env, self._figure = env, StickFigure(env.walker)
        self._rows: list[list[float]] = []

    def record(self) -> None:
        """Record the current state; see `TrajectoryLog`."""
        view = self._env.view(0)
        walker = self._figure.points(view.positions)[:, (0, 2)]
        ghost = self._figure.points(view.ghost)[:, (0, 2)] if view.ghost is not None else walker
        # The reference is at no place of its own: it walks where the walker's hips are.
        ghost = ghost + np.array((walker[0, 0] - ghost[0, 0], 0.0))
        self._rows.append([*(SCALE * walker).flatten(), *(SCALE * ghost).flatten(), SCALE * view.desired_m_s])

    def content(self) -> dict[str, JSON]:
        """Return what was recorded; see `TrajectoryLog`."""
        columns = [f"{who}{point}_{axis}" for who in ("", "ghost_") for point in StickFigure.names for axis in "xz"]
        return {
            "columns": encode_columns([*columns, "desired"], self._rows),
            "height": scaled(self._env.walker.height_m),
        }


def to_mimic(env: BatchedEnv) -> MimicEnv:
    """Return the environment as one of this world; raise UnsupportedError for another."""
    if not isinstance(env, MimicEnv):
        raise UnsupportedError(f"this is the display of mimic, not of {env.spec.id}")
    return env


def pictures(env: BatchedEnv, rate_hz: float) -> Generator[NDArray[np.uint8], None, None]:
    """Yield frames of the reference for the length of an episode, `rate_hz` per second, at the set or middle speed."""
    mimic = to_mimic(env)
    config, step_s = mimic.config, 1.0 / rate_hz
    speed = sum(config.speed_range) / 2.0 if config.speed is None else config.speed
    phase, place = 0.0, np.zeros(2)
    with WalkerPainter(mimic.walker) as painter:
        for number in range(round(config.episode_s * rate_hz)):
            frame = mimic.reference.at(torch.tensor([speed]), torch.tensor([phase]))
            positions = reference_positions(frame, 0)
            positions[:2] = place
            yield painter.paint(WalkerView(positions, None, number * step_s, speed))
            place += step_s * frame.root_velocity[0, :2].double().numpy()
            phase = (phase + step_s / float(frame.period_s)) % 1.0


def play(*, seed: int, overrides: Sequence[str], frames: int | None, options: Mapping[str, object]) -> None:
    """Steer a walker in a browser; see `ludus.envs.display.Play`."""
    from ludus.worlds.mimic.play import play_in_browser  # agents and a web server, which drawing does without

    play_in_browser(seed=seed, overrides=overrides, frames=frames, options=options)


DISPLAY = Display(pictures=pictures, play=play)
REPLAY_VIEW = ReplayView(lambda env: WalkerLog(to_mimic(env)), "ludus.worlds.mimic:player.js")
