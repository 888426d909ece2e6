"""How Brawl is shown and played: frames with names and capsules, a keyboard, and what `player.js` draws."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ludus.core.errors import UnsupportedError
from ludus.core.files import JSON
from ludus.envs.base import BatchedEnv
from ludus.envs.display import SCALE, BrowserGame, Display, KeyHelp, Painter, ReplayView, encode_columns, scaled
from ludus.envs.world import Settings
from ludus.worlds.brawl.env import BrawlEnv
from ludus.worlds.brawl.moves import MoveModel, MoveTable
from ludus.worlds.brawl.rendering.poses import is_heavy
from ludus.worlds.brawl.rules import KEYS, Key
from ludus.worlds.brawl.view import PlayerView


class Control(NamedTuple):
    """A key of the keyboard, by its lower-case name, and what it does."""

    name: str
    key: Key
    meaning: str


CONTROLS = (
    Control("w", Key.UP, "aim up"),
    Control("a", Key.LEFT, "left"),
    Control("s", Key.DOWN, "down: aim, fast fall, drop through the platform"),
    Control("d", Key.RIGHT, "right"),
    Control("space", Key.JUMP, "jump"),
    Control("h", Key.PICKUP, "pick up / drop a weapon"),
    Control("l", Key.DODGE, "dash (with a direction) / dodge"),
    Control("j", Key.LIGHT, "light attack"),
    Control("k", Key.HEAVY, "heavy attack, hold to charge"),
    Control("g", Key.TAUNT, "taunt"),
)
# The same on two lines, for a card on the screen.
KEY_LINES = (
    "A D move   W aim up   S aim down, fall fast, drop   Space jump",
    "J light   K heavy, hold to charge   L dash or dodge   H weapon   G taunt",
)
# What a log holds of each fighter, in this order.
_COLUMNS = (
    *("x", "y", "facing", "state", "damage", "stocks", "weapon", "safe"),
    *("timer", "move", "move_frame", "charge"),
)
_SWAPPED = {Key.LEFT: Key.RIGHT, Key.RIGHT: Key.LEFT}


def sees_mirrored(env: BrawlEnv, game: int, seat: int) -> bool:
    """Return whether left on the screen is right in the seat's own frame, in which its own start is on the left."""
    starts_high = int(env.fields()["home"][game, seat]) > 0
    return starts_high != env.config.mirrored


def keyboard_action(held: Collection[str], *, mirrored: bool) -> Tensor:
    """Return the action `(10,)` int8 of a seat whose player holds these keys; for `mirrored` see `sees_mirrored`."""
    action = torch.zeros(KEYS, dtype=torch.int8)
    for control in CONTROLS:
        if control.name in held:
            action[_SWAPPED.get(control.key, control.key) if mirrored else control.key] = 1
    return action


class BrawlKeyboard:
    """Keyboard input for a seat of the first game."""

    def __init__(self, env: BatchedEnv, seat: int) -> None:
        self._env, self._seat = _brawl(env), seat

    def action(self, held: Collection[str]) -> Tensor:
        """Return the action `(10,)` of the held keys, as the person sees the screen."""
        return keyboard_action(held, mirrored=sees_mirrored(self._env, 0, self._seat))


def make_painter(env: BatchedEnv, names: Sequence[str], *, debug: bool) -> Painter:
    """Draw the first game; see `ludus.envs.display.PainterMaker`."""
    from ludus.worlds.brawl.render import Renderer  # pygame is optional

    brawl = _brawl(env)
    renderer = Renderer(brawl.table, debug=debug, names=(names[0], names[1]) if len(names) == 2 else None)
    return Painter(brawl, lambda: renderer.frame(brawl.view(0)))


def left_first(env: BatchedEnv) -> Settings | None:
    """Return the settings under which the first seat starts on the left, or None if it already does."""
    brawl = _brawl(env)
    return {"swap_sides": not brawl.config.swap_sides} if brawl.view(0).players[0].x > 0.0 else None


def _brawl(env: BatchedEnv) -> BrawlEnv:
    env = env.unwrapped
    if not isinstance(env, BrawlEnv):
        raise UnsupportedError(f"this is the display of brawl, not of {env.spec.id}")
    return env


def drawn_weapons(table: MoveTable) -> list[JSON]:
    """Return what `figure.js` needs to draw weapons and attacks, in the order of their indices."""
    weapons: list[JSON] = []
    for name, weapon in table.weapons.items():
        moves: list[JSON] = [_drawn_move(move) for move in weapon.moves.values()]
        look: dict[str, JSON] = {"color": list(weapon.color), "length": weapon.length, "heavy": is_heavy(weapon)}
        weapons.append({"name": name, **look, "moves": moves})
    return weapons


def _drawn_move(move: MoveModel) -> JSON:
    hits: list[JSON] = [
        {"frames": list(hit.frames), "start": list(hit.start), "end": list(hit.end), "radius": hit.radius}
        for hit in move.hits
    ]
    charge: JSON = None if move.charge is None else [move.charge.frame, move.charge.max_frames]
    return {"total": move.total, "charge": charge, "hits": hits}


def live_data(env: BatchedEnv) -> dict[str, JSON]:
    """Return what `live.js` has to know about a game: keys, weapons and the length of a match."""
    brawl = _brawl(env)
    controls: list[JSON] = [[control.name, int(control.key), control.meaning] for control in CONTROLS]
    return {"controls": controls, "arsenal": drawn_weapons(brawl.table), "step_limit": brawl.config.step_limit}


class BrawlLog:
    """Fighters, platform, weapons that lie about, and capsules that hit."""

    def __init__(self, env: BrawlEnv) -> None:
        self._env = env
        self._rows: list[list[float]] = []
        self._hits: dict[str, JSON] = {}
        self._items: dict[str, JSON] = {}
        self._lying: list[JSON] = []

    def record(self) -> None:
        """Record the current state; see `TrajectoryLog`."""
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
            [seat, *(scaled(number) for number in (*hit.start, *hit.end, hit.radius))]
            for seat, player in enumerate(view.players)
            for hit in player.hits
        ]
        if hits:
            self._hits[str(frame)] = hits
        lying: list[JSON] = [[scaled(item.x), scaled(item.y), weapons.index(item.weapon)] for item in view.items]
        if lying != self._lying:
            self._items[str(frame)] = self._lying = lying

    def _player(self, player: PlayerView) -> list[float]:
        weapon = self._env.table.names.index(player.weapon)
        return [
            SCALE * player.x, SCALE * player.y, player.facing, int(player.state), player.damage, player.stocks, weapon,
            int(player.invincible > 0), player.timer, -1 if player.slot is None else int(player.slot),
            player.move_frame, player.charge,
        ]  # fmt: skip

    def content(self) -> dict[str, JSON]:
        """Return what was recorded; see `TrajectoryLog`."""
        view, names = self._env.view(0), _COLUMNS
        columns = [f"{name}{seat}" for seat in (0, 1) for name in names] + ["platform_x", "platform_y"]
        return {
            "columns": encode_columns(columns, self._rows),
            "hits": self._hits,
            "items": self._items,
            "weapons": list(self._env.table.names),
            "arsenal": drawn_weapons(self._env.table),
            "mirrored": view.mirrored,
        }


DISPLAY = Display(
    bots=("aggressive", "edge-guarder"),
    left_first=left_first,
    painter=make_painter,
    keyboard=BrawlKeyboard,
    keys=tuple(KeyHelp(control.name, control.meaning) for control in CONTROLS),
    key_lines=KEY_LINES,
)
_PAINTER = ("ludus.worlds.brawl:figure.js", "ludus.worlds.brawl:player.js")
REPLAY_VIEW = ReplayView(lambda env: BrawlLog(_brawl(env)), _PAINTER)
BROWSER = BrowserGame(scripts=(*_PAINTER, "ludus.worlds.brawl:live.js"), data=live_data)
