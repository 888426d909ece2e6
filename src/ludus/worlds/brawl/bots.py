"""Scripted players: their names, their settings and the roster that plays any number of them at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol

import torch
import warp as wp
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from torch import Tensor

from ludus.config import list_faults, read_yaml
from ludus.core.errors import ConfigError, UnknownNameError, did_you_mean
from ludus.envs.bots import bot_settings, number_setting, whole_setting
from ludus.envs.kernel_env import Arena, KernelBots
from ludus.envs.warp_tools import Launcher, Prepared, load_kernels, pack_struct, struct_array, struct_words
from ludus.worlds.brawl.kernels import bots as bot_kernels
from ludus.worlds.brawl.kernels.bot_styles import FAMILIES
from ludus.worlds.brawl.kernels.bots import BOTS, CLOCKWORK, DRAWN, HABITS, BotSettings, ScriptStep, bot_kernel
from ludus.worlds.brawl.kernels.match import KeyRow
from ludus.worlds.brawl.kernels.structs import Memo, Move
from ludus.worlds.brawl.moves import MoveTable
from ludus.worlds.brawl.rules import MAX_DELAY, SEATS, Key

BOT_NAMES = tuple(bot.name for bot in BOTS)
HABITS_NAME = "habits"  # not among all bots: what is not set is drawn for every match
DEFAULT_SCRIPT = Path(__file__).with_name("clockwork.yaml")
MEMO_WORDS = struct_words(Memo)
KEY_NAMES = tuple(key.name.lower() for key in Key)
MAX_SCRIPT_BYTES = 100_000
SEATS_PER_THREAD = 2048  # a seat takes a fifteenth of the time of a game's step


class ScriptStepModel(BaseModel):
    """One step of a clockwork script: hold these keys for this many frames."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    frames: Annotated[int, Field(ge=1, le=100_000)]
    keys: tuple[Annotated[str, Field(max_length=20)], ...] = ()


@dataclass(frozen=True, slots=True)
class BotSpec:
    """A style with its settings, as written in a bot's name."""

    style: int  # its place among the bots, or `HABITS`
    delay: int  # frames between seeing and acting, 0 to 31, or `DRAWN`
    noise: float  # share of the time, 0 to 1, in which it holds random keys, or `DRAWN`
    script: tuple[tuple[int, int], ...] = ()  # steps of a clockwork, as (frames, key mask)
    family: int = DRAWN  # of habits


def parse_bot(name: str) -> BotSpec:
    """Read a bot's name: `STYLE` or `STYLE:delay=8,noise=0.1`, `clockwork:script=FILE`, and `habits:family=3`.

    Raises UnknownNameError if there is no such style, ConfigError if a setting is unknown or out of range.
    """
    style_name, _, settings = name.partition(":")
    if style_name == HABITS_NAME:
        return _parse_habits(name, settings)
    if style_name not in BOT_NAMES:
        raise UnknownNameError("brawl bot", style_name, (*BOT_NAMES, HABITS_NAME))
    style = BOT_NAMES.index(style_name)
    values = bot_settings(name, settings, {"delay": "FRAMES", "noise": "SHARE", "script": "FILE"})
    delay = whole_setting(name, "delay", values.get("delay", str(BOTS[style].delay)), MAX_DELAY - 1, "frames")
    noise = number_setting(name, "noise", values.get("noise", str(BOTS[style].noise)), 0, 1)
    if "script" in values and style != CLOCKWORK:
        raise ConfigError(f"bot {name!r}: only clockwork takes a script")
    script = load_script(Path(values.get("script", DEFAULT_SCRIPT))) if style == CLOCKWORK else ()
    return BotSpec(style, delay, noise, script)


def _parse_habits(name: str, settings: str) -> BotSpec:
    """Read the settings of a bot with habits; what is not set is drawn for every match."""
    values = bot_settings(name, settings, {"family": "NUMBER", "delay": "FRAMES", "noise": "SHARE"})
    family, delay, noise = DRAWN, DRAWN, float(DRAWN)
    if "family" in values:
        family = whole_setting(name, "family", values["family"], FAMILIES - 1, "family")
    if "delay" in values:
        delay = whole_setting(name, "delay", values["delay"], MAX_DELAY - 1, "frames")
    if "noise" in values:
        noise = number_setting(name, "noise", values["noise"], 0, 1)
    return BotSpec(HABITS, delay, noise, family=family)


def load_script(path: Path) -> tuple[tuple[int, int], ...]:
    """Read a script, a YAML list of `{frames: N, keys: [right, light]}`; raise ConfigError if a step is wrong."""
    document = read_yaml(path, "script", MAX_SCRIPT_BYTES)
    try:
        steps = TypeAdapter(list[ScriptStepModel]).validate_python(document)
    except ValidationError as error:
        raise ConfigError(
            f"script {path} must be a list of {{frames: N, keys: [...]}}; it has {list_faults(error)}"
        ) from error
    if not steps:
        raise ConfigError(f"script {path} is empty; give at least one step such as {{frames: 30, keys: [right]}}")
    return tuple((step.frames, _mask(path, step.keys)) for step in steps)


class BrawlArena(Arena, Protocol):
    """What bots need of the environment that they play in."""

    table: MoveTable
    moves: Tensor
    bot_memory: Tensor
    bot_delayed: Tensor
    launcher: Launcher

    def state_arrays(self) -> list[object]:
        """Return players, matches and items as Warp arrays."""


class BrawlBots(KernelBots):
    """A roster of scripted players for one environment; see `ludus.envs.base.Bots`.

    What a bot remembers lives in the environment's state, so that snapshots hold it.
    """

    def __init__(self, env: BrawlArena, names: Sequence[str]) -> None:
        super().__init__(env, names)
        specs = [parse_bot(name) for name in self.names]
        rows: list[dict[str, float]] = []
        steps: list[dict[str, float]] = []
        for spec in specs:
            start, until = len(steps), 0
            for frames, keys in spec.script:
                until += frames
                steps.append({"until": until, "keys": keys})
            script = {"script_start": start, "script_steps": len(spec.script), "script_frames": until}
            drawn = {"family": spec.family, "delay": spec.delay, "noise": spec.noise}
            rows.append({"style": spec.style, **drawn, **script})
        self._env = env
        self._roster = pack_struct(BotSettings, rows).to(env.device)
        self._script = pack_struct(ScriptStep, steps or [{"until": 1, "keys": 0}]).to(env.device)
        self._reaches = _extra_reach(env.table).to(env.device)
        load_kernels(bot_kernels, env.device)

    def _prepare(self) -> Prepared:
        env = self._env
        inputs = [
            *env.state_arrays(),
            struct_array(env.moves, Move),
            wp.from_torch(self._reaches),
            env.rules,
            struct_array(self._roster, BotSettings),
            struct_array(self._script, ScriptStep),
            wp.from_torch(self._assignment),
            struct_array(env.bot_memory, Memo),
            wp.from_torch(env.bot_delayed),
            wp.from_torch(self._actions, dtype=KeyRow),
        ]
        seats = env.num_envs * SEATS
        return env.launcher.prepare(seats, (bot_kernel, inputs), min_slice=SEATS_PER_THREAD)


def _extra_reach(table: MoveTable) -> Tensor:
    """Return how much farther each weapon's light ground moves reach than those of the first one (units)."""
    slots = ("ground_light_neutral", "ground_light_side")
    reaches = [
        max(
            (max(hit.start[0], hit.end[0]) + hit.radius for slot in slots for hit in weapon.moves[slot].hits), default=0
        )
        for weapon in table.weapons.values()
    ]
    return torch.tensor([reach - reaches[0] for reach in reaches], dtype=torch.float32)


def _mask(path: Path, keys: Sequence[str]) -> int:
    for key in keys:
        if key not in KEY_NAMES:
            raise ConfigError(
                f"script {path}: unknown key {key!r}{did_you_mean(key, KEY_NAMES)}; valid: {', '.join(KEY_NAMES)}"
            )
    return sum({1 << KEY_NAMES.index(key) for key in keys})
