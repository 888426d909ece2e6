"""Rocket as a batched environment."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
import warp as wp
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.random import stream_hash
from ludus.envs.base import (
    Columns,
    EnvRequest,
    EnvSpec,
    Mirror,
    Reflection,
    StepResult,
    action_dtypes,
    packed,
    resolve_device,
)
from ludus.envs.kernel_env import KernelEnv
from ludus.envs.rocket.actions import MIRRORED, action_space
from ludus.envs.rocket.bots import BOT_NAMES, RocketBots
from ludus.envs.rocket.config import RocketConfig
from ludus.envs.rocket.gpu_step import GpuStep, goes_in_step
from ludus.envs.rocket.kernels import controls as control_kernels
from ludus.envs.rocket.kernels import likeness as likeness_kernels
from ludus.envs.rocket.kernels import match as match_kernels
from ludus.envs.rocket.kernels import observe as observe_kernels
from ludus.envs.rocket.kernels import restart as restart_kernels
from ludus.envs.rocket.kernels import ticks as tick_kernels
from ludus.envs.rocket.kernels.bots import MAX_DELAY
from ludus.envs.rocket.kernels.controls import bins_kernel, continuous_kernel, table_kernel
from ludus.envs.rocket.kernels.match import step_kernel
from ludus.envs.rocket.kernels.restart import finish_kernel, restart_kernel
from ludus.envs.rocket.kernels.sight import PadRow
from ludus.envs.rocket.kernels.structs import Ball, Car, Match, Rules
from ludus.envs.rocket.kernels.tables import BinRow, ControlRow, EventRow, MeasureRow, make_tables
from ludus.envs.rocket.layout import PAD_COUNT
from ludus.envs.rocket.observation import LAYOUTS
from ludus.envs.rocket.rules import CONTROLS, EVENTS, MEASURES, TICK_HZ
from ludus.envs.rocket.state_check import check_state
from ludus.envs.rocket.view import MatchView, match_view
from ludus.envs.settings import read_settings
from ludus.envs.warp_tools import (
    Launcher,
    TiledKernel,
    fill_struct,
    load_kernels,
    struct_array,
    struct_views,
    struct_words,
)

if TYPE_CHECKING:
    from ludus.envs.rocket.render import Renderer

VERSION = 1


class RocketEnv(KernelEnv):
    """Car soccer at 120 ticks a second, one to three cars a team; 15 decisions a second unless set otherwise.

    Cars drive on floor, walls and ceiling, jump, dodge and fly with boost; they hit, bump and demolish. Lengths in uu
    (1 cm); x to the side, y toward the goal of orange, z up. Seats: blue's first, then orange's.

    ## Actions
    By the setting `actions`, for each seat:

    | setting | space | meaning |
    |---|---|---|
    | `table` | `Discrete(90)` | rows of `actions.action_table`: 24 combinations for the ground, 66 for the air |
    | `bins` | `MultiDiscrete([bins] * 5 + [2] * 3)` | steps from -1 to 1 of five axes, then three buttons |
    | `continuous` | `Box(-1, 1, (8,))` | five axes, then three buttons, pressed above 0 |

    Axes and buttons in this order: throttle, steer, pitch, yaw, roll; jump, boost, handbrake. Steer, yaw and roll are
    to the right if positive, pitch is nose up. Numbers outside a space count as the nearest inside, NaN as 0. Jump acts
    when the button goes down: in the air a second time as a double jump, or with a direction as a dodge.

    ## Observations
    `{"vector": (136,)}` with the setting `compact`, `(180,)` with `full`; float32. Every value has its name, bounds and
    meaning in `observation.LAYOUTS`. Every seat sees the world as blue: its own goal lies at y < 0.

    | block of `compact` | columns | what it holds |
    |---|---|---|
    | `self` | 0-27 | place, velocity, axes and spin of the own car, boost, what jump and dodge can do, its state |
    | `ball` | 28-47 | place and velocity, where it is seen from the car, where it comes down |
    | `goals` | 48-53 | the way from the ball to the other goal and from the car to the own one |
    | `teammate` | 54-71 | two slots of 9; empty ones are 0 |
    | `opponent` | 72-98 | three slots of 9 |
    | `pads` | 99-132 | 34 boost pads: 1 if there |
    | `game` | 133-135 | clock, lead, kickoff |

    ## Events and measures
    Events a step and seat, in the order of `rules.Event`: goals of the seat, of its team and of the others, assists,
    shots, saves, touches (also aerial ones, and the change of the ball's velocity by them), demolitions scored and
    suffered, bumps of opponents, pads taken, boost gained and used, jumps, dodges, kickoffs decided and won, and at the
    end wins, losses and draws. Measures, in the order of `rules.Measure`, say where things stand, seen as blue; after a
    goal they are those of the moment it was scored. Both are `Columns` of one tensor.

    ## Start
    A kickoff with both teams in the same slots of five, or another state setter of `setters.Setter`, by the weights of
    the setting `setters`.

    ## End
    With `episode: goal`, `terminated` by a goal; `truncated` after `episode_s`, or after `no_touch_s` without a touch.
    With `episode: match`, `terminated` when the clock has run out and a team leads; a draw goes on with a kickoff until
    the next goal, or until `overtime_s` have passed. Goals use up their decision, and a kickoff follows.
    """

    def __init__(self, request: EnvRequest) -> None:
        self.config = read_settings(RocketConfig, request.config, f"rocket-v{VERSION}")
        self.spec = rocket_spec(self.config)
        self.device = resolve_device(request.device, self.spec.id, self.spec.device_types)
        self.num_games, self.seed, self.first_game = request.num_games, request.seed, request.first_game
        self._renderer: Renderer | None = None
        self._gpu: GpuStep | None = None
        self.launcher = Launcher(self.device, self.config.threads)
        self.rules = self._make_rules()
        self.tables = make_tables(self.device, self.config.setters)
        self._allocate()
        step_kernels = (likeness_kernels, tick_kernels) if goes_in_step(self.device) else (match_kernels,)
        for module in (control_kernels, *step_kernels, restart_kernels, observe_kernels):
            load_kernels(module, self.device)
        self._start()

    def _advance(self, actions: Tensor) -> StepResult:
        result = super()._advance(actions)
        if self._gpu is not None:
            self._gpu.play()
        return result

    def bots(self, names: Sequence[str]) -> RocketBots:
        """Makes scripted players; a name may carry settings, such as `shooter:delay=3,noise=0.1`."""
        return RocketBots(self, names)

    def view(self, game: int = 0) -> MatchView:
        """Takes one game apart for people."""
        self._check_game(game)
        state = self.cars[game], self.balls[game], self.matches[game], self.pads[game]
        return match_view(*state, has_clock=self.config.episode == "match")

    def render(self, game: int = 0) -> NDArray[np.uint8]:
        """Draws one game from above as an RGB picture `(720, 1280, 3)`."""
        from ludus.envs.rocket.render import Renderer  # pygame is optional

        if self._renderer is None:
            self._renderer = Renderer()
        return self._renderer.frame(self.view(game))

    def close(self) -> None:
        """Ends the simulation threads."""
        self.launcher.close()
        self._renderer = None

    def fields(self) -> dict[str, Tensor]:
        """Gives every field of `structs.Car` as a live view: numbers `(games, seats)`, vectors `(games, seats, n)`."""
        return struct_views(self.cars, Car)

    def _state(self) -> dict[str, Tensor]:
        return {
            "cars": self.cars,
            "balls": self.balls,
            "matches": self.matches,
            "pads": self.pads,
            "bot_delayed": self.bot_delayed,
            "seed": self._seed,
        }

    def _check_state(self, snapshot: Mapping[str, Tensor]) -> None:
        check_state(snapshot, self.config)

    def _forget_episodes(self) -> None:
        self.bot_delayed.zero_()
        struct_views(self.matches, Match)["episode"].fill_(-1)

    def _make_rules(self) -> Rules:
        config = self.config
        rules = Rules()
        fill_struct(
            rules,
            {
                "blue": config.blue,
                "orange": config.orange,
                "ticks": config.ticks,
                "delay_ticks": config.input_delay_ticks,
                "ends_by_goal": int(config.episode == "goal"),
                "match_s": config.match_s,
                "overtime": int(config.overtime_s != 0),
                "overtime_s": config.overtime_s or 0.0,
                "episode_s": config.episode_s or 0.0,
                "no_touch_s": config.no_touch_s or 0.0,
                "boost_rate": float(config.boost == "normal"),
                "bins": config.bins,
                "per_bin": 2.0 / (config.bins - 1),
                "shuffle": int(config.shuffle),
                "seed_hash": stream_hash(self.seed),
                "first_game": self.first_game,
            },
        )
        return rules

    def _allocate(self) -> None:
        games, seats, device = self.num_games, self.spec.seats, self.device

        def words(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.int32, device=device)

        def floats(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.float32, device=device)

        self.cars = words(games, seats, struct_words(Car))
        self.balls = words(games, struct_words(Ball))
        self.matches = words(games, struct_words(Match))
        self.pads = words(games, PAD_COUNT)
        self.bot_delayed = words(games, seats, MAX_DELAY)
        self._seed = torch.zeros((), dtype=torch.int64)
        space = self.spec.action_space
        shape = (games, seats, *(space.shape or ()))
        self._actions = torch.zeros(shape, dtype=action_dtypes(space)[0], device=device)
        self._controls = floats(games, seats, CONTROLS)
        self._chosen = torch.zeros(games, dtype=torch.bool, device=device)
        size = LAYOUTS[self.config.observation].size
        self._observations = {"vector": floats(games, seats, size)}
        self._result = StepResult(
            observations=self._observations,
            terminated=torch.zeros(games, dtype=torch.bool, device=device),
            truncated=torch.zeros(games, dtype=torch.bool, device=device),
            final_observations={"vector": floats(games, seats, size)},
            events=Columns(floats(games, seats, len(EVENTS)), EVENTS),
            measures=Columns(floats(games, seats, len(MEASURES)), MEASURES),
        )

    def state_arrays(self) -> list[object]:
        """Gives cars, balls, matches and pads as Warp arrays, the first arguments of every kernel."""
        return [
            struct_array(self.cars, Car),
            struct_array(self.balls, Ball),
            struct_array(self.matches, Match),
            wp.from_torch(self.pads, dtype=PadRow),
        ]

    def _prepare(self) -> None:
        state, tables, rules = self.state_arrays(), self.tables, self.rules
        controls = wp.from_torch(self._controls, dtype=ControlRow)
        ends = [wp.from_torch(self._result.terminated), wp.from_torch(self._result.truncated)]
        counted = packed(self._result.events, EVENTS)
        events = wp.from_torch(counted, dtype=EventRow)
        measures = wp.from_torch(packed(self._result.measures, MEASURES), dtype=MeasureRow)
        finish = (finish_kernel, [*state, tables, rules, *ends])
        restart = (restart_kernel, [*state, tables, rules, wp.from_torch(self._chosen)])
        observe_all, observe_final, observe_tiles = observe_kernels.KERNELS[self.config.observation]
        final = self._result.final_observations["vector"]
        row = wp.types.vector(length=final.shape[-1], dtype=wp.float32)
        last = (observe_final, [*state, rules, *ends, wp.from_torch(final, dtype=row)])
        seen = self._observations["vector"]
        observe: tuple[object, list[object]] | TiledKernel
        observe = (observe_all, [*state, rules, wp.from_torch(seen, dtype=row)])
        games, decoding = self.num_games, self._decoding(controls)
        if self.device.type == "cuda":
            flat = wp.from_torch(seen.view(-1, seen.shape[-1]))
            block = observe_kernels.OBSERVE_TILE
            observe = TiledKernel(observe_tiles, [*state, rules, flat], games * self.spec.seats, block)
        if goes_in_step(self.device):
            after = last, finish, observe
            self._gpu = GpuStep(state, controls, tables, rules, counted, measures, ends, self.launcher, after)
            self._run_step = self.launcher.prepare(games, decoding, self._gpu.likeness)
        else:
            step = (step_kernel, [*state, controls, tables, rules, events, measures, *ends])
            self._run_step = self.launcher.prepare(games, decoding, step, last, finish, observe)
        self._run_restart = self.launcher.prepare(self.num_games, restart, observe)
        self._run_observe = self.launcher.prepare(self.num_games, observe)

    def _decoding(self, controls: object) -> tuple[object, list[object]]:
        """The launch that turns actions into controls."""
        if self.config.actions == "table":
            return table_kernel, [wp.from_torch(self._actions), self.tables, self.rules, controls]
        if self.config.actions == "bins":
            return bins_kernel, [wp.from_torch(self._actions, dtype=BinRow), self.rules, controls]
        return continuous_kernel, [wp.from_torch(self._actions, dtype=ControlRow), self.rules, controls]


def rocket_spec(config: RocketConfig) -> EnvSpec:
    """Describes a Rocket environment with these settings."""
    layout = LAYOUTS[config.observation]
    mirror = None
    if layout.reflection is not None and config.actions == "continuous":  # other actions have no sign to change
        mirror = Mirror({"vector": layout.reflection}, Reflection(tuple(range(CONTROLS)), MIRRORED))
    return EnvSpec(
        name="rocket",
        version=VERSION,
        teams=(0,) * config.blue + (1,) * config.orange,
        observation_space=spaces.Dict({"vector": spaces.Box(layout.low, layout.high)}),
        action_space=action_space(config),
        rate_hz=TICK_HZ / config.ticks,
        step_limit=config.step_limit,
        events=EVENTS,
        measures=MEASURES,
        bots=BOT_NAMES,
        blocks={"vector": layout.blocks},
        mirror=mirror,
        truncates=config.episode == "goal" and (config.episode_s is not None or config.no_touch_s is not None),
    )


def make(request: EnvRequest) -> RocketEnv:
    """Makes a Rocket environment; the registry's entry."""
    return RocketEnv(request)
