"""Brawl as a batched environment."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
import warp as wp
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import UnknownNameError
from ludus.core.random import stream_hash
from ludus.envs import warp_tools
from ludus.envs.base import Columns, EnvRequest, EnvSpec, StepResult, packed, resolve_device
from ludus.envs.kernel_env import KernelEnv
from ludus.envs.settings import read_settings
from ludus.envs.warp_tools import TiledKernel, struct_array, struct_views, struct_words
from ludus.worlds.brawl.bots import BOT_NAMES, HABITS_NAME, MEMO_WORDS, BrawlBots
from ludus.worlds.brawl.config import BrawlConfig
from ludus.worlds.brawl.kernels import bots as bot_kernels
from ludus.worlds.brawl.kernels import match as match_kernels
from ludus.worlds.brawl.kernels.observe import Row
from ludus.worlds.brawl.kernels.structs import Hit, Item, Match, Move, Player, Rules, check_state
from ludus.worlds.brawl.moves import clash_rules, load_move_table, pack_moves
from ludus.worlds.brawl.observation import BLOCKS, FIELDS, HIGH, LOW, MIRROR, SIZE
from ludus.worlds.brawl.rules import EVENTS, ITEM_SLOTS, KEYS, MAX_DELAY, MEASURES, RATE_HZ, SEATS
from ludus.worlds.brawl.view import MatchView, match_view

if TYPE_CHECKING:
    from ludus.worlds.brawl.render import Renderer

VERSION = 1


class BrawlEnv(KernelEnv):
    """A two-player platform fighter at 30 decisions per second.

    Two grounds of different height over a deadly gap, a moving one-way platform, three weapons that appear on the
    stage, three stocks each. Who leaves the kill box (14 units to either side, 8 up and down) loses a stock.

    ## Actions
    Ten keys, `MultiBinary(10)`: 0 up, 1 left, 2 down, 3 right, 4 jump, 5 pick up / drop, 6 dash / dodge, 7 light,
    8 heavy, 9 taunt. Left and right are from the seat's own side: right is always away from its own start. Jump,
    dodge, taunt and drop act when the key goes down; attacks and pick-up while it is held; heavy ground moves charge
    while it stays held. Dodge with a direction on the ground is a dash or back-dash.

    ## Observations
    `{"vector": (156,)}`, float32, from the seat's own side: its own start lies on the left. Three blocks:
    `self` (0, 52), `opponent` (52, 104) of the same layout, `world` (104, 156).

    | in a player block | name | range | meaning |
    |---|---|---|---|
    | 0 | x | -1 ... 1 | position / 14, own start on the left |
    | 1 | y | -1 ... 1 | position / 8, downward |
    | 2 | vx | -2.25 ... 2.25 | velocity / 20 units/s |
    | 3 | vy | -2.25 ... 2.25 | velocity / 20 units/s, downward |
    | 4 | facing | -1 ... 1 | +1 away from the viewer's start, -1 toward it |
    | 5 | damage | 0 ... 3.5 | damage / 200 |
    | 6 | stocks | 0 ... 1 | stocks left / stocks at the start |
    | 7 | air_jumps | 0 ... 1 | air jumps left / 2 |
    | 8 | jump_cooldown | 0 ... 1 | frames until the next jump / 6 |
    | 9 | dodge_cooldown | 0 ... 1 | frames until the next dodge / 92 |
    | 10 | recovery_ready | 0 ... 1 | 1 if the recovery move is left in this airtime |
    | 11 | invincible | 0 ... 1 | frames of invincibility left / 90 |
    | 12 | on_ground | 0 ... 1 | 1 on solid ground |
    | 13 | on_platform | 0 ... 1 | 1 on the platform |
    | 14 | clearance | 0 ... 2 | distance down to what could be stood on, or to the kill box, / 8 |
    | 15 | timer | 0 ... 3 | frames left in a timed state / 30 |
    | 16 | move_progress | 0 ... 1 | frame of the move / its length |
    | 17 | phase_startup | 0 ... 1 | 1 before the first active frame |
    | 18 | phase_charging | 0 ... 1 | 1 while the move waits and charges |
    | 19 | phase_active | 0 ... 1 | 1 from the first to the last active frame |
    | 20 | phase_recovery | 0 ... 1 | 1 after the last active frame |
    | 21 | charge | 0 ... 1 | frames charged / most for this move |
    | 22 | connected | 0 ... 1 | 1 if the move has hit |
    | 23 | dropping | 0 ... 1 | frames left of falling through the platform / 8 |
    | 24-36 | state_* | 0 ... 1 | one-hot, in the order of `rules.State`; all 0 in a clash |
    | 37-47 | move_* | 0 ... 1 | one-hot while attacking, in the order of `rules.Slot` |
    | 48-51 | weapon_* | 0 ... 1 | one-hot, in the order of the move table |

    | column | name | range | meaning |
    |---|---|---|---|
    | 104 | clock | 0 ... 1 | time left / time limit |
    | 105 | high_side | -1 ... 1 | +1 if the high ground is on the opponent's side, -1 if on the own side |
    | 106 | platform_x | -1 ... 1 | centre of its top / 14 |
    | 107 | platform_y | -1 ... 1 | centre of its top / 8 |
    | 108 | platform_vx | -1 ... 1 | units/s |
    | 109 | platform_vy | -1 ... 1 | units/s |
    | 110 | opponent_dx | -2 ... 2 | opponent minus self / 14 |
    | 111 | opponent_dy | -2 ... 2 | opponent minus self / 8 |
    | 112 | platform_dx | -2 ... 2 | platform minus self / 14 |
    | 113 | platform_dy | -2 ... 2 | platform minus self / 8 |
    | 114-123 | held_* | 0 ... 1 | own keys held in the last frame, in the order of `rules.Key` |

    Then four places for weapons on the stage, by first column: near_spawn 124, far_spawn 132, own_drop 140,
    opponent_drop 148; each:

    | in a place | name | range | meaning |
    |---|---|---|---|
    | 0 | present | 0 ... 1 | 1 if a weapon lies there |
    | 1 | dx | -2 ... 2 | weapon minus self / 14 |
    | 2 | dy | -2 ... 2 | weapon minus self / 8 |
    | 3 | ready | 0 ... 1 | 1 if it can be taken |
    | 4 | life | 0 ... 1 | frames left / 350 |
    | 5-7 | is_* | 0 ... 1 | one-hot of its kind, without the first weapon of the table |

    ## Events and measures
    Events per step and seat: damage dealt and taken, hits, hits during stun, knockouts scored and suffered, falls (a
    stock lost without having been hit since standing safely), attacks begun, pick-ups and their value, drops, wins,
    losses, draws. Measures: own x and y (units), distance (units) and heading to the opponent (+1 facing it), damage,
    stocks, state, grounded, weapon, keys held, closing (units/s at which the own velocity alone shortens the distance;
    0 when there is none), the opponent's x and y as this seat sees them. Both are `Columns` of one tensor.

    ## Start
    One fighter at x = 5 above the high ground, the other at -5 above the low one; sides are drawn for every match.

    ## End
    `terminated` when a fighter has no stock left, or at the step limit: the clock is a rule of the game and part of the
    observation, so a match is never truncated. More stocks win, then less damage, else it is a draw.
    """

    def __init__(self, request: EnvRequest) -> None:
        self.config = read_settings(BrawlConfig, request.config, f"brawl-v{VERSION}")
        self.table = load_move_table(self.config.move_table, self.config.rules)
        self.spec = brawl_spec(self.config)
        self.device = resolve_device(request.device, self.spec.id, self.spec.device_types)
        self.num_envs, self.seed, self.first_game = request.num_envs, request.seed, request.first_game
        self._renderer: Renderer | None = None
        self._set_length = 1  # matches in a row over which bots keep their habits
        self.launcher = warp_tools.Launcher(self.device, self.config.threads)
        self.rules = self._make_rules()
        self._allocate()
        tiled = {match_kernels: (warp_tools.BLOCK, match_kernels.OBSERVE_TILE)}
        warp_tools.load_kernels((match_kernels,), self.device, blocks=tiled, soon=(bot_kernels,))
        self._start()

    def bots(self, names: Sequence[str]) -> BrawlBots:
        """Make scripted players; a name may carry settings, such as `aggressive:delay=8,noise=0.1`."""
        return BrawlBots(self, names)

    def play_sets(self, matches: int) -> None:
        """Let bots keep their habits over a set; see `BatchedEnv.play_sets`."""
        self._set_length = matches
        self._take_seed(self.seed)  # makes the rules again, of which it is one

    def view(self, game: int = 0) -> MatchView:
        """Decode one game into plain numbers."""
        self._check_game(game)
        state, config = (self.players[game], self.matches[game], self.items[game]), self.config
        return match_view(*state, self.table, config.step_limit, mirrored=config.mirrored)

    def render(self, game: int = 0) -> NDArray[np.uint8]:
        """Draw one game as an RGB picture `(720, 1280, 3)`."""
        from ludus.worlds.brawl.render import Renderer  # pygame is optional

        if self._renderer is None:
            self._renderer = Renderer(self.table)
        return self._renderer.frame(self.view(game))

    def close(self) -> None:
        """End the simulation threads."""
        self.launcher.close()
        self._renderer = None

    def fields(self) -> dict[str, Tensor]:
        """Return every field of `structs.Player` as a live view `(games, seats)`."""
        return struct_views(self.players, Player)

    def _state(self) -> dict[str, Tensor]:
        return {
            "players": self.players,
            "matches": self.matches,
            "items": self.items,
            "bot_memory": self.bot_memory,
            "bot_delayed": self.bot_delayed,
            "seed": self._seed,
        }

    def _check_state(self, snapshot: Mapping[str, Tensor]) -> None:
        weapons, config = len(self.table.names), self.config
        check_state(snapshot, weapons, config.stocks, config.step_limit, clashes=self.table.clash is not None)

    def _forget_episodes(self) -> None:
        for tensor in (self.bot_memory, self.bot_delayed):
            tensor.zero_()
        struct_views(self.matches, Match)["episode"].fill_(-1)

    def _make_rules(self) -> Rules:
        config, weapons = self.config, self.table.names
        fixed = config.fixed_weapons or ()
        fixed_weapons = [self._weapon_index(name) for name in fixed] or [-1, -1]
        rules = Rules()
        warp_tools.fill_struct(
            rules,
            {
                "step_limit": config.step_limit,
                "stocks": config.stocks,
                "per_frame": 1.0 / config.step_limit,
                "per_stock": 1.0 / config.stocks,
                "weapons": len(weapons),
                "weapon_spawns": int(config.weapon_spawns and not fixed and len(weapons) > 1),
                "fixed_weapon_0": fixed_weapons[0],
                "fixed_weapon_1": fixed_weapons[1],
                "swap_sides": int(config.swap_sides),
                "seed_hash": stream_hash(self.seed),
                "first_game": self.first_game,
                "set_length": self._set_length,
                **clash_rules(self.table.clash),
            },
        )
        return rules

    def _weapon_index(self, name: str) -> int:
        if name not in self.table.names:
            raise UnknownNameError("weapon", name, self.table.names)
        return self.table.names.index(name)

    def _allocate(self) -> None:
        games, device = self.num_envs, self.device
        words = partial(torch.zeros, dtype=torch.int32, device=device)
        floats = partial(torch.zeros, dtype=torch.float32, device=device)
        flags = partial(torch.zeros, games, dtype=torch.bool, device=device)
        self.players = words(games, SEATS, struct_words(Player))
        self.matches = words(games, struct_words(Match))
        self.items = words(games, ITEM_SLOTS, struct_words(Item))
        self.bot_memory = words(games, SEATS, MEMO_WORDS)
        self.bot_delayed = words(games, SEATS, MAX_DELAY)
        self._seed = torch.zeros((), dtype=torch.int64)
        self.moves, self._hits = (part.to(device) for part in pack_moves(self.table))
        self._values = torch.tensor([weapon.value for weapon in self.table.weapons.values()], device=device)
        self._actions = torch.zeros((games, SEATS, KEYS), dtype=torch.int8, device=device)
        self._chosen = flags()
        self._observations = {"vector": floats(games, SEATS, SIZE)}
        self._result = StepResult(
            observations=self._observations,
            terminated=flags(),
            truncated=flags(),
            final_observations={"vector": floats(games, SEATS, SIZE)},
            events=Columns(floats(games, SEATS, len(EVENTS)), EVENTS),
            state_metrics=Columns(floats(games, SEATS, len(MEASURES)), MEASURES),
        )

    def state_arrays(self) -> list[object]:
        """Return players, matches and items as Warp arrays, the first arguments of every kernel."""
        return [struct_array(self.players, Player), struct_array(self.matches, Match), struct_array(self.items, Item)]

    def _prepare(self) -> None:
        state, moves = self.state_arrays(), struct_array(self.moves, Move)
        observed = [*state, moves, self.rules]
        terminated = wp.from_torch(self._result.terminated)
        step = [
            *state,
            wp.from_torch(self._actions, dtype=match_kernels.KeyRow),
            moves,
            struct_array(self._hits, Hit),
            wp.from_torch(self._values),
            self.rules,
            wp.from_torch(packed(self._result.events, EVENTS), dtype=match_kernels.EventRow),
            wp.from_torch(packed(self._result.state_metrics, MEASURES), dtype=match_kernels.MeasureRow),
            terminated,
        ]
        final = struct_array(self._result.final_observations["vector"], Row)
        finish = (match_kernels.finish_kernel, [*observed, terminated, final])
        observe = self._observe_launch(observed, self._observations["vector"])
        restart = (match_kernels.restart_kernel, [*state, wp.from_torch(self._chosen), self.rules])
        self._run_step = self.launcher.prepare(self.num_envs, (match_kernels.step_kernel, step), finish, observe)
        self._run_restart = self.launcher.prepare(self.num_envs, restart, observe)
        self._run_observe = self.launcher.prepare(self.num_envs, observe)

    def _observe_launch(self, inputs: list[object], out: Tensor) -> tuple[object, list[object]] | TiledKernel:
        if self.device.type == "cuda":
            rows = wp.from_torch(out.view(-1, SIZE))
            tiles, inputs = match_kernels.observe_tiles_kernel, [*inputs, rows]
            return TiledKernel(tiles, inputs, self.num_envs * SEATS, match_kernels.OBSERVE_TILE)
        return match_kernels.observe_kernel, [*inputs, struct_array(out, Row)]


def brawl_spec(config: BrawlConfig) -> EnvSpec:
    """Describe a Brawl environment with these settings."""
    return EnvSpec(
        name="brawl",
        version=VERSION,
        teams=(0, 1),
        observation_space=spaces.Dict({"vector": spaces.Box(LOW, HIGH)}),
        action_space=spaces.MultiBinary(KEYS),
        rate_hz=float(RATE_HZ),
        step_limit=config.step_limit,
        events=EVENTS,
        state_metrics=MEASURES,
        bots=BOT_NAMES,
        bot_families=(HABITS_NAME,),
        blocks={"vector": BLOCKS},
        fields={"vector": tuple(field.name for field in FIELDS)},
        truncates=False,
        mirror=MIRROR,
    )
