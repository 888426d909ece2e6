"""Scripted players by name: those that are kernels, and those that OpenSpiel plays."""

from collections.abc import Sequence
from typing import Protocol

import torch
import warp as wp
from torch import Tensor

from ludus.core.errors import UnknownNameError
from ludus.envs.base import Bots
from ludus.envs.bots import bot_settings, number_setting
from ludus.envs.kernel_env import Arena, KernelBots
from ludus.envs.warp_tools import Launcher, Prepared, load_kernels, pack_struct, struct_array
from ludus.worlds.roshambo.kernels import bots as bot_kernels
from ludus.worlds.roshambo.kernels.bots import BOTS, BotSettings, bot_kernel
from ludus.worlds.roshambo.kernels.structs import Memo
from ludus.worlds.roshambo.openspiel import FAMILY, OpenSpielBots, OpenSpielProcesses
from ludus.worlds.roshambo.rules import SEATS

BOT_NAMES = tuple(bot.name for bot in BOTS)
_DRAWN = -1.0  # a share of random throws that is drawn for every match
_SEATS_PER_THREAD = 256


class RoshamboArena(Arena, Protocol):
    """What bots need of the environment that they play in."""

    bot_memory: Tensor
    launcher: Launcher
    openspiel: OpenSpielProcesses

    def state_arrays(self) -> list[object]:
        """Return matches and history as Warp arrays."""


def parse_bot(name: str) -> dict[str, float]:
    """Read a bot's name, `STYLE` or `STYLE:noise=0.1`, as a row of `BotSettings`.

    Raises UnknownNameError if there is no such style, ConfigError if a setting is unknown or out of range.
    """
    style_name, _, settings = name.partition(":")
    if style_name not in BOT_NAMES:
        raise UnknownNameError("roshambo bot", style_name, (*BOT_NAMES, f"{FAMILY}:NAME"))
    place = BOT_NAMES.index(style_name)
    values = bot_settings(name, settings, {"noise": "SHARE"})
    noise = _DRAWN if BOTS[place].is_noisy else 0.0
    if "noise" in values:
        noise = number_setting(name, "noise", values["noise"], 0, 1)
    return {"style": place, "noise": noise, "gives_up": int(BOTS[place].gives_up)}


def make_bots(env: RoshamboArena, names: Sequence[str]) -> Bots:
    """Make a roster of bots; see `ludus.envs.base.BatchedEnv.bots`."""
    is_theirs = [name.partition(":")[0] == FAMILY for name in names]
    if not any(is_theirs):
        return RoshamboBots(env, names)
    theirs = OpenSpielBots(env.openspiel, [name for name, other in zip(names, is_theirs, strict=True) if other])
    return theirs if all(is_theirs) else _BothBots(env, names, is_theirs, theirs)


class RoshamboBots(KernelBots):
    """A roster of scripted players that are kernels; see `ludus.envs.base.Bots`."""

    def __init__(self, env: RoshamboArena, names: Sequence[str]) -> None:
        super().__init__(env, names)
        self._env = env
        self._roster = pack_struct(BotSettings, [parse_bot(name) for name in self.names]).to(env.device)
        load_kernels(bot_kernels, env.device)

    def _prepare(self) -> Prepared:
        env = self._env
        inputs = [
            *env.state_arrays(),
            env.rules,
            struct_array(self._roster, BotSettings),
            struct_array(env.bot_memory, Memo),
            wp.from_torch(self._assignment),
            wp.from_torch(self._actions),
        ]
        return env.launcher.prepare(env.num_envs * SEATS, (bot_kernel, inputs), min_slice=_SEATS_PER_THREAD)


class _BothBots:
    """A roster of both kinds."""

    def __init__(self, env: RoshamboArena, names: Sequence[str], is_theirs: Sequence[bool], theirs: Bots) -> None:
        self.names = tuple(names)
        self._rosters: list[tuple[Bots, Tensor]] = []
        own = RoshamboBots(env, [name for name, other in zip(names, is_theirs, strict=True) if not other])
        for roster, chosen in ((own, False), (theirs, True)):
            numbers = iter(range(len(roster.names)))
            # By index into `names`; the last entry is that of -1, a seat without a bot.
            places = [next(numbers) if other is chosen else -1 for other in is_theirs]
            self._rosters.append((roster, torch.tensor([*places, -1], dtype=torch.int32, device=env.device)))

    def act(self, assignment: Tensor, actions: Tensor) -> None:
        """Write the bots' actions; see `ludus.envs.base.Bots.act`."""
        for roster, places in self._rosters:
            roster.act(places[assignment.long()], actions)
