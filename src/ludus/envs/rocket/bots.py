"""Scripted players: their names, their settings and the roster that plays any number of them at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol

import numpy as np
import torch
import warp as wp
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import UnknownNameError
from ludus.envs.bot_tools import Arena, KernelBots, bot_settings, number_setting, whole_setting
from ludus.envs.rocket.actions import AXES, BUTTONS, action_table
from ludus.envs.rocket.config import RocketConfig
from ludus.envs.rocket.kernels import bots as bot_kernels
from ludus.envs.rocket.kernels.bots import (
    MAX_DELAY,
    BotSettings,
    Style,
    bin_actions_kernel,
    bot_kernel,
    continuous_actions_kernel,
    table_actions_kernel,
)
from ludus.envs.rocket.kernels.tables import BinRow, ControlRow
from ludus.envs.rocket.rules import CONTROLS, Control
from ludus.envs.warp_tools import Launcher, Prepared, load_kernels, pack_struct, struct_array

BOT_NAMES = tuple(style.name.lower() for style in Style)
SEATS_A_THREAD = 256  # a seat takes about a tenth of the time of a game's step

# Delay (decisions) and share of noise unless the name says otherwise. Without noise two equal bots that start in places
# that mirror each other would meet in the middle for ever.
_DEFAULTS = {Style.IDLE: (0, 0.0), Style.RANDOM: (0, 0.0)}
_OTHERS = (1, 0.02)


@dataclass(frozen=True, slots=True)
class BotSpec:
    """A style with its settings, as written in a bot's name.

    Attributes:
        style: How it decides.
        delay: Decisions between seeing and acting, 0 to 31.
        noise: Share of the time, 0 to 1, in which it holds random controls.
    """

    style: Style
    delay: int
    noise: float


def parse_bot(name: str) -> BotSpec:
    """Reads a bot's name: `STYLE` or `STYLE:delay=2,noise=0.1`.

    Raises:
        UnknownNameError: No such style.
        ConfigError: A setting is unknown or out of range.
    """
    style_name, _, settings = name.partition(":")
    if style_name not in BOT_NAMES:
        raise UnknownNameError("rocket bot", style_name, BOT_NAMES)
    style = Style(BOT_NAMES.index(style_name))
    values = bot_settings(name, settings, {"delay": "DECISIONS", "noise": "SHARE"})
    usual_delay, usual_noise = _DEFAULTS.get(style, _OTHERS)
    delay = whole_setting(name, "delay", values.get("delay", str(usual_delay)), MAX_DELAY - 1, "decisions")
    return BotSpec(style, delay, number_setting(name, "noise", values.get("noise", str(usual_noise)), 0, 1))


def nearest_actions() -> NDArray[np.int64]:
    """Returns the row of the table of actions that does most nearly the same, `(2, 1944)`: in the air, on the ground.

    Columns are all controls with every axis at -1, 0 or 1 and every button up or down, the last control the fastest. On
    the ground pitch, yaw and roll do nothing unless the car jumps; in the air throttle and steering do next to nothing.
    """
    wanted = np.array(list(product(*((-1.0, 0.0, 1.0),) * AXES, *((0.0, 1.0),) * BUTTONS)), np.float32)
    off = (wanted[:, None, :] - action_table()[None, :, :]) ** 2
    weights = np.ones((2, len(wanted), CONTROLS), np.float32)
    weights[..., Control.BOOST], weights[..., Control.JUMP] = 2.0, 20.0
    weights[0][:, [Control.THROTTLE, Control.STEER, Control.HANDBRAKE]] = 0.05
    stays = wanted[:, Control.JUMP] == 0
    weights[1][np.ix_(stays, [Control.PITCH, Control.YAW, Control.ROLL])] = 0.05
    return np.stack([(off * each[:, None, :]).sum(-1).argmin(-1) for each in weights])


class RocketArena(Arena, Protocol):
    """What bots need of the environment that they play in.

    Attributes:
        tables: `kernels.tables.Tables` on the device.
        bot_delayed: `(games, seats, MAX_DELAY)` int32, what bots decided in the last decisions.
    """

    config: RocketConfig
    tables: object
    bot_delayed: Tensor
    launcher: Launcher

    def state_arrays(self) -> list[object]:
        """Gives cars, balls, matches and pads as Warp arrays."""


class RocketBots(KernelBots):
    """A roster of scripted players for one environment; see `ludus.envs.base.Bots`.

    They decide controls, which are then written as actions of whatever action space the environment has. All that a bot
    remembers is what it decided lately, for its delay; that lives in the environment, so that snapshots hold it.
    """

    def __init__(self, env: RocketArena, names: Sequence[str]) -> None:
        super().__init__(env, names)
        specs = [parse_bot(name) for name in self.names]
        rows: list[dict[str, float]] = [
            {"style": spec.style, "delay": spec.delay, "noise": spec.noise} for spec in specs
        ]
        self._env = env
        self._roster = pack_struct(BotSettings, rows).to(env.device)
        self._controls = torch.zeros((env.num_games, env.spec.seats, CONTROLS), device=env.device)
        self._nearest = torch.from_numpy(nearest_actions()).to(env.device)
        load_kernels(bot_kernels, env.device)

    def _prepare(self) -> Prepared:
        env = self._env
        state = env.state_arrays()
        assignment = wp.from_torch(self._assignment)
        controls = wp.from_torch(self._controls, dtype=ControlRow)
        decide = [
            *state,
            env.tables,
            env.rules,
            struct_array(self._roster, BotSettings),
            assignment,
            wp.from_torch(env.bot_delayed),
            controls,
        ]
        played: list[object] = [env.rules, assignment, len(self.names)]
        write: tuple[object, list[object]]
        if env.config.actions == "table":
            write = (
                table_actions_kernel,
                [state[0], controls, wp.from_torch(self._nearest), *played, wp.from_torch(self._actions)],
            )
        elif env.config.actions == "bins":
            write = bin_actions_kernel, [controls, *played, wp.from_torch(self._actions, dtype=BinRow)]
        else:
            write = continuous_actions_kernel, [controls, *played, wp.from_torch(self._actions, dtype=ControlRow)]
        seats = env.num_games * env.spec.seats
        return env.launcher.prepare(seats, (bot_kernel, decide), write, min_slice=SEATS_A_THREAD)
