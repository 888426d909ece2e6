"""What `ludus demo mimic` shows without an agent: the reference motion itself, walking."""

from collections.abc import Generator

import numpy as np
import torch
from numpy.typing import NDArray

from ludus.core.errors import UnsupportedError
from ludus.envs.base import BatchedEnv
from ludus.envs.mimic.env import MimicEnv
from ludus.envs.mimic.rendering.painter import WalkerPainter
from ludus.envs.mimic.rendering.view import WalkerView, reference_positions


def pictures(env: BatchedEnv, rate_hz: float) -> Generator[NDArray[np.uint8], None, None]:
    """Gives pictures of the reference for an episode's time, `rate_hz` a second, at the set or the middle speed.

    Raises:
        UnsupportedError: It is another world.
    """
    if not isinstance(env, MimicEnv):
        raise UnsupportedError(f"the reference motion is that of mimic, not of {env.spec.id}")
    config, step_s = env.config, 1.0 / rate_hz
    speed = sum(config.speed_range) / 2.0 if config.speed is None else config.speed
    phase, place = 0.0, np.zeros(2)
    with WalkerPainter(env.walker) as painter:
        for number in range(round(config.episode_s * rate_hz)):
            frame = env.reference.at(torch.tensor([speed]), torch.tensor([phase]))
            positions = reference_positions(frame, 0)
            positions[:2] = place
            yield painter.paint(WalkerView(positions, None, number * step_s, speed))
            place += step_s * frame.root_velocity[0, :2].double().numpy()
            phase = (phase + step_s / float(frame.period_s)) % 1.0
