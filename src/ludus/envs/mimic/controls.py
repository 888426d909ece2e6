"""What the actuators are told: torques, target angles or differences from the present angles."""

import numpy as np
import torch

from ludus.envs.mimic.config import MimicConfig
from ludus.envs.mimic.gait import NORMAL_SPEED_M_S, Floats
from ludus.envs.mimic.model import Walker
from ludus.envs.mimic.reference import PHASES, Reference


class Controls:
    """Turns actions into controls."""

    def __init__(self, walker: Walker, reference: Reference, config: MimicConfig) -> None:
        self._kind, self._delta = config.action, np.deg2rad(config.delta_deg)
        ranges = np.deg2rad([joint.range_deg for joint in walker.joints])
        self._low, self._high = ranges[:, 0], ranges[:, 1]
        phases = torch.arange(PHASES) / PHASES
        self._neutral = reference.at(torch.full_like(phases, NORMAL_SPEED_M_S), phases).angles.mean(0).double().numpy()

    def of(self, actions: Floats, angles: Floats) -> Floats:
        """Returns what the actuators are told, `(games, joints)`.

        Args:
            actions: `(games, joints)` in [-1, 1].
            angles: `(games, joints)` of the joints now, rad.
        """
        if self._kind == "torque":
            return actions
        if self._kind == "delta":
            return np.asarray(np.clip(angles + self._delta * actions, self._low, self._high))
        reach = np.where(actions > 0.0, self._high - self._neutral, self._neutral - self._low)
        return np.asarray(self._neutral + actions * reach)
