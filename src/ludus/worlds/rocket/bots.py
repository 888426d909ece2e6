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
from ludus.envs.bots import bot_settings, number_setting, whole_setting
from ludus.envs.kernel_env import Arena, KernelBots
from ludus.envs.warp_tools import Launcher, Prepared, load_kernels, pack_struct, struct_array
from ludus.worlds.rocket.actions import AXES, BUTTONS, action_table
from ludus.worlds.rocket.config import RocketConfig
from ludus.worlds.rocket.kernels import bots as kernels
from ludus.worlds.rocket.kernels.structs import ControlRow
from ludus.worlds.rocket.rules import CONTROLS, Control

BOT_NAMES = tuple(bot.name for bot in kernels.BOTS)
SEATS_PER_THREAD = 256  # a seat takes about a tenth of the time of a game's step


@dataclass(frozen=True, slots=True)
class BotSpec:
    """A style with its settings, as written in a bot's name."""

    style: int  # its place among the bots
    delay: int  # decisions between seeing and acting, 0 to 31
    noise: float  # share of the time, 0 to 1, in which it holds random controls


def parse_bot(name: str) -> BotSpec:
    """Read `STYLE` or `STYLE:delay=2,noise=0.1`; raise UnknownNameError or ConfigError if it is none."""
    style_name, _, settings = name.partition(":")
    if style_name not in BOT_NAMES:
        raise UnknownNameError("rocket bot", style_name, BOT_NAMES)
    style = BOT_NAMES.index(style_name)
    values = bot_settings(name, settings, {"delay": "DECISIONS", "noise": "SHARE"})
    usual = kernels.BOTS[style]
    delay = whole_setting(name, "delay", values.get("delay", str(usual.delay)), kernels.MAX_DELAY - 1, "decisions")
    return BotSpec(style, delay, number_setting(name, "noise", values.get("noise", str(usual.noise)), 0, 1))


def nearest_actions() -> NDArray[np.int64]:
    """Return the row of the table of actions that does most nearly the same, `(2, 1944)`: in the air, on the ground.

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
    """What bots need of the environment that they play in."""

    config: RocketConfig
    tables: object  # `structs.Tables` on the device
    bot_delayed: Tensor  # `(games, seats, MAX_DELAY)` int32, what bots decided in the last decisions
    launcher: Launcher

    def state_arrays(self) -> list[object]:
        """Return cars, balls, matches and pads as Warp arrays."""


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
        self._roster = pack_struct(kernels.BotSettings, rows).to(env.device)
        self._controls = torch.zeros((env.num_envs, env.spec.seats, CONTROLS), device=env.device)
        self._nearest = torch.from_numpy(nearest_actions()).to(env.device)
        load_kernels(kernels, env.device)

    def _prepare(self) -> Prepared:
        env = self._env
        state = env.state_arrays()
        assignment = wp.from_torch(self._assignment)
        controls = wp.from_torch(self._controls, dtype=ControlRow)
        decide = [
            *state,
            env.tables,
            env.rules,
            struct_array(self._roster, kernels.BotSettings),
            assignment,
            wp.from_torch(env.bot_delayed),
            controls,
        ]
        played: list[object] = [env.rules, assignment, len(self.names)]
        write: tuple[object, list[object]]
        if env.config.actions == "table":
            write = (
                kernels.table_actions_kernel,
                [state[0], controls, wp.from_torch(self._nearest), *played, wp.from_torch(self._actions)],
            )
        else:
            write = (
                kernels.continuous_actions_kernel,
                [controls, *played, wp.from_torch(self._actions, dtype=ControlRow)],
            )
        seats = env.num_envs * env.spec.seats
        return env.launcher.prepare(seats, (kernels.bot_kernel, decide), write, min_slice=SEATS_PER_THREAD)
