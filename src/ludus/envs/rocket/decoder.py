"""Controls of one action, by the very kernels that decode the actions of agents in training."""

from typing import Any, NamedTuple

import numpy as np
import torch
import warp as wp

from ludus.core.errors import ActionError
from ludus.envs.base import action_dtypes
from ludus.envs.rocket.actions import action_space
from ludus.envs.rocket.config import RocketConfig
from ludus.envs.rocket.kernels import controls as control_kernels
from ludus.envs.rocket.kernels.structs import Rules
from ludus.envs.rocket.kernels.tables import BinRow, ControlRow, make_tables
from ludus.envs.rocket.rules import CONTROLS
from ludus.envs.warp_tools import fill_struct, load_kernels


class Controls(NamedTuple):
    """What a driver holds, in the order of `rules.Control`: five axes from -1 to 1, three buttons."""

    throttle: float = 0.0
    steer: float = 0.0
    pitch: float = 0.0
    yaw: float = 0.0
    roll: float = 0.0
    jump: bool = False
    boost: bool = False
    handbrake: bool = False


REST = Controls()


class Decoder:
    """Turns actions of the action space that the settings name into controls."""

    def __init__(self, config: RocketConfig) -> None:
        self._space = action_space(config)
        self._action = torch.zeros((1, 1, *(self._space.shape or ())), dtype=action_dtypes(self._space)[0])
        self._controls = torch.zeros((1, 1, CONTROLS))
        rules = Rules()
        fill_struct(rules, {"blue": 1, "orange": 0, "bins": config.bins, "per_bin": 2.0 / (config.bins - 1)})
        controls = wp.from_torch(self._controls, dtype=ControlRow)
        if config.actions == "table":
            tables = make_tables(self._action.device, config.setters)
            self._kernel, inputs = control_kernels.table_kernel, [wp.from_torch(self._action), tables, rules, controls]
        elif config.actions == "bins":
            actions = wp.from_torch(self._action, dtype=BinRow)
            self._kernel, inputs = control_kernels.bins_kernel, [actions, rules, controls]
        else:
            actions = wp.from_torch(self._action, dtype=ControlRow)
            self._kernel, inputs = control_kernels.continuous_kernel, [actions, rules, controls]
        self._inputs = [*inputs, 0]
        load_kernels(control_kernels, self._action.device)

    def decode(self, action: Any) -> Controls:  # noqa: ANN401 - a number, or an array of them
        """Returns the controls of one action.

        Raises:
            ActionError: It has the wrong shape.
        """
        given = torch.as_tensor(np.asarray(action))
        if given.shape != self._action.shape[2:]:
            raise ActionError(f"an action is one of {self._space}, got an array of shape {tuple(given.shape)}")
        self._action[0, 0] = given
        wp.launch(self._kernel, 1, inputs=self._inputs, device="cpu")
        throttle, steer, pitch, yaw, roll, *buttons = self._controls[0, 0].tolist()
        jump, boost, handbrake = (button > 0.0 for button in buttons)
        return Controls(throttle, steer, pitch, yaw, roll, jump, boost, handbrake)
