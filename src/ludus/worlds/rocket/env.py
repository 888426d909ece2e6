"""Rocket as a batched environment."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import warp as wp
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.random import stream_hash
from ludus.envs import base, warp_tools
from ludus.envs.base import Columns, EnvRequest, EnvSpec, StepResult
from ludus.envs.kernel_env import KernelEnv
from ludus.envs.settings import read_settings
from ludus.envs.warp_tools import SizedKernel, TiledKernel, struct_array, struct_views, struct_words
from ludus.worlds.rocket.actions import MIRRORED, action_space
from ludus.worlds.rocket.bots import BOT_NAMES, RocketBots
from ludus.worlds.rocket.config import RocketConfig
from ludus.worlds.rocket.kernels import bots as bot_kernels
from ludus.worlds.rocket.kernels import controls as control_kernels
from ludus.worlds.rocket.kernels import gpu_sort as sort_kernels
from ludus.worlds.rocket.kernels import gpu_step as gpu_kernels
from ludus.worlds.rocket.kernels import match as match_kernels
from ludus.worlds.rocket.kernels import observe as observe_kernels
from ludus.worlds.rocket.kernels import restart as restart_kernels
from ludus.worlds.rocket.kernels import structs
from ludus.worlds.rocket.kernels.bots import MAX_DELAY
from ludus.worlds.rocket.kernels.sight import OBSERVE_TILE
from ludus.worlds.rocket.layout import PAD_COUNT
from ludus.worlds.rocket.observation import LAYOUT
from ludus.worlds.rocket.rules import CONTROLS, EVENTS, MEASURES, TICK_HZ
from ludus.worlds.rocket.view import MatchView, match_view

if TYPE_CHECKING:
    from ludus.worlds.rocket.render import Renderer

DRIVE_BLOCK = 64  # threads per block
REST_BLOCK = 128
GPU_BLOCKS = (warp_tools.BLOCK, REST_BLOCK, DRIVE_BLOCK)  # all sizes in which kernels of `gpu_step` are launched

VERSION = 2


def runs_in_lockstep(device: torch.device) -> bool:
    """Return whether the threads of a device run in lockstep, so that a decision is best split into kernels."""
    return device.type == "cuda"


class GpuStep:
    """The kernels of a decision on a GPU, between decoding actions and observing, and the order of threads.

    `sort_keys` is the launch that computes the sort keys of cars and games; it comes before `play`.
    """

    def __init__(
        self,
        state: Sequence[Any],
        controls: Any,  # noqa: ANN401 - Warp arrays and structs have no static type
        tables: Any,  # noqa: ANN401
        rules: Any,  # noqa: ANN401
        events: Tensor,
        state_metrics: Any,  # noqa: ANN401
        ends: Sequence[Any],
        launcher: warp_tools.Launcher,
        after: Sequence[Any],
    ) -> None:
        """Prepare the kernels; `state` holds the Warp arrays of cars, balls, matches and pads.

        The kernels `after` are launched behind those of the decision.
        """
        cars, balls, matches, pads = state
        device, self._events = events.device, events
        counted = wp.from_torch(events, dtype=structs.EventRow)
        games, seats = cars.shape
        self._of_cars = torch.zeros((games, seats), dtype=torch.int16, device=device)
        self._of_games = torch.zeros(games, dtype=torch.uint8, device=device)
        self._car_order = torch.arange(games * seats, device=device)
        self._game_order = torch.arange(games, device=device)
        self._sorted = torch.empty_like(self._of_cars.view(-1)), torch.empty_like(self._of_games)
        numbers = [wp.from_torch(self._of_cars), wp.from_torch(self._of_games)]
        self.sort_keys = SizedKernel(sort_kernels.sort_key_kernel, [cars, balls, rules, *numbers], games)
        self._last_ticks = torch.zeros(games, dtype=torch.int32, device=device)
        last_ticks = wp.from_torch(self._last_ticks)
        car_order, game_order, meets = wp.from_torch(self._car_order), wp.from_torch(self._game_order), numbers[1]
        ball = [cars, balls, matches, meets, rules, counted, last_ticks]
        alone = [cars, matches, pads, meets, controls, car_order, tables, rules, counted, last_ticks]
        kernels = [SizedKernel(gpu_kernels.ball_kernel, ball, games)]
        kernels.append(SizedKernel(gpu_kernels.alone_kernel, alone, games * seats, DRIVE_BLOCK))
        rest = [cars, balls, matches, pads, meets, game_order, tables, rules, counted]
        for tick in range(rules.ticks):
            drive = [cars, matches, meets, controls, car_order, rules, counted, tick]
            kernels.append(SizedKernel(gpu_kernels.drive_kernel, drive, games * seats, DRIVE_BLOCK))
            kernels.append(SizedKernel(gpu_kernels.rest_kernel, rest, games, REST_BLOCK))
        end = [cars, balls, matches, controls, rules, counted, last_ticks, state_metrics, *ends]
        kernels.append(SizedKernel(gpu_kernels.end_kernel, end, games))
        self._run = launcher.prepare(games, *kernels, *after)

    def play(self) -> None:
        """Play the decision, with similar cars and games in adjacent threads, sorted by `sort_keys`."""
        self._events.zero_()
        torch.sort(self._of_cars.view(-1), out=(self._sorted[0], self._car_order))
        torch.sort(self._of_games, out=(self._sorted[1], self._game_order))
        self._run()


class RocketEnv(KernelEnv):
    """Car soccer at 120 ticks per second, one to three cars per team; 15 decisions per second by default.

    Cars drive on floor, walls and ceiling, jump, dodge and fly with boost; they hit, bump and demolish. Lengths in uu
    (1 cm); x to the side, y toward the goal of orange, z up. Seats: blue's first, then orange's.

    ## Actions
    By the setting `actions`, for each seat:

    | setting | space | meaning |
    |---|---|---|
    | `table` | `Discrete(90)` | rows of `actions.action_table`: 24 combinations for the ground, 66 for the air |
    | `continuous` | `Box(-1, 1, (8,))` | five axes, then three buttons, pressed above 0 |

    Axes and buttons in this order: throttle, steer, pitch, yaw, roll; jump, boost, handbrake. Steer, yaw and roll are
    to the right if positive, pitch is nose up. Numbers outside a space count as the nearest inside, NaN as 0. Jump acts
    when the button goes down: in the air a second time as a double jump, or with a direction as a dodge.

    ## Observations
    `{"vector": (136,)}` float32, for all team sizes. Every value has its name, bounds and meaning in
    `observation.LAYOUT`. Every seat sees the world as blue: its own goal lies at y < 0.

    | block | columns | what it holds |
    |---|---|---|
    | `self` | 0-27 | place, velocity, axes and spin of the own car, boost, what jump and dodge can do, its state |
    | `ball` | 28-47 | place and velocity, where it is seen from the car, where it comes down |
    | `goals` | 48-53 | the way from the ball to the other goal and from the car to the own one |
    | `teammate` | 54-71 | two slots of 9; empty ones are 0 |
    | `opponent` | 72-98 | three slots of 9 |
    | `pads` | 99-132 | 34 boost pads: 1 if there |
    | `game` | 133-135 | clock, lead, kickoff |

    ## Events and measures
    Events per step and seat, in the order of `rules.Event`: goals of the seat, of its team and of the others, assists,
    shots, saves, touches (also aerial ones, and the change of the ball's velocity by them), demolitions scored and
    suffered, bumps of opponents, pads taken, boost gained and used, jumps, dodges, kickoffs decided and won, and at the
    end wins, losses and draws. Measures, in the order of `rules.Measure`, say where things stand, seen as blue; after a
    goal they are those of the moment it was scored. Both are `Columns` of one tensor.

    ## Start
    A kickoff with both teams in the same slots of five, or another state setter of `rules.Setter`, by the weights of
    the setting `setters`.

    ## End
    With `episode: goal`, `terminated` by a goal; `truncated` after `episode_s`, or after `no_touch_s` without a touch.
    With `episode: match`, `terminated` when the clock has run out and a team leads; a draw continues with a kickoff
    until the next goal, or until `overtime_s` have passed. Goals use up their decision, and a kickoff follows.
    """

    def __init__(self, request: EnvRequest) -> None:
        self.config = read_settings(RocketConfig, request.config, f"rocket-v{VERSION}")
        self.spec = rocket_spec(self.config)
        self.device = base.resolve_device(request.device, self.spec.id, self.spec.device_types)
        self.num_envs, self.seed, self.first_game = request.num_envs, request.seed, request.first_game
        self._renderer: Renderer | None = None
        self._gpu: GpuStep | None = None
        self.launcher = warp_tools.Launcher(self.device, self.config.threads)
        self.rules = self._make_rules()
        self.tables = structs.make_tables(self.device, self.config.setters)
        self._allocate()
        step_kernels = (sort_kernels, gpu_kernels) if runs_in_lockstep(self.device) else (match_kernels,)
        modules = (control_kernels, *step_kernels, restart_kernels, observe_kernels)
        blocks = {gpu_kernels: GPU_BLOCKS, observe_kernels: (warp_tools.BLOCK, OBSERVE_TILE)}
        warp_tools.load_kernels(modules, self.device, blocks=blocks, soon=(bot_kernels,))
        self._start()

    def _advance(self, actions: Tensor) -> StepResult:
        result = super()._advance(actions)
        if self._gpu is not None:
            self._gpu.play()
        return result

    def bots(self, names: Sequence[str]) -> RocketBots:
        """Make scripted players; a name may carry settings, such as `shooter:delay=3,noise=0.1`."""
        return RocketBots(self, names)

    def view(self, game: int = 0) -> MatchView:
        """Decode one game into plain numbers."""
        self._check_game(game)
        state = self.cars[game], self.balls[game], self.matches[game], self.pads[game]
        return match_view(*state, has_clock=self.config.episode == "match")

    def render(self, game: int = 0) -> NDArray[np.uint8]:
        """Draw one game from above as an RGB picture `(720, 1280, 3)`."""
        from ludus.worlds.rocket.render import Renderer  # pygame is optional

        if self._renderer is None:
            self._renderer = Renderer()
        return self._renderer.frame(self.view(game))

    def close(self) -> None:
        """End the simulation threads."""
        self.launcher.close()
        self._renderer = None

    def fields(self) -> dict[str, Tensor]:
        """Return every field of `structs.Car` as a live view: numbers `(games, seats)`, vectors `(games, seats, n)`."""
        return struct_views(self.cars, structs.Car)

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
        structs.check_state(snapshot, self.config)

    def _forget_episodes(self) -> None:
        self.bot_delayed.zero_()
        struct_views(self.matches, structs.Match)["episode"].fill_(-1)

    def _make_rules(self) -> structs.Rules:
        config = self.config
        rules = structs.Rules()
        warp_tools.fill_struct(
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
                "shuffle": int(config.shuffle),
                "seed_hash": stream_hash(self.seed),
                "first_game": self.first_game,
            },
        )
        return rules

    def _allocate(self) -> None:
        games, seats, device = self.num_envs, self.spec.seats, self.device
        words = partial(torch.zeros, dtype=torch.int32, device=device)
        floats = partial(torch.zeros, dtype=torch.float32, device=device)
        flags = partial(torch.zeros, games, dtype=torch.bool, device=device)
        self.cars = words(games, seats, struct_words(structs.Car))
        self.balls = words(games, struct_words(structs.Ball))
        self.matches = words(games, struct_words(structs.Match))
        self.pads = words(games, PAD_COUNT)
        self.bot_delayed = words(games, seats, MAX_DELAY)
        self._seed = torch.zeros((), dtype=torch.int64)
        space = self.spec.action_space
        shape = (games, seats, *(space.shape or ()))
        self._actions = torch.zeros(shape, dtype=base.action_dtypes(space)[0], device=device)
        self._controls = floats(games, seats, CONTROLS)
        self._chosen = flags()
        self._observations = {"vector": floats(games, seats, LAYOUT.size)}
        self._result = StepResult(
            observations=self._observations,
            terminated=flags(),
            truncated=flags(),
            final_observations={"vector": floats(games, seats, LAYOUT.size)},
            events=Columns(floats(games, seats, len(EVENTS)), EVENTS),
            state_metrics=Columns(floats(games, seats, len(MEASURES)), MEASURES),
        )

    def state_arrays(self) -> list[object]:
        """Return cars, balls, matches and pads as Warp arrays, the first arguments of every kernel."""
        return [
            struct_array(self.cars, structs.Car),
            struct_array(self.balls, structs.Ball),
            struct_array(self.matches, structs.Match),
            wp.from_torch(self.pads, dtype=structs.PadRow),
        ]

    def _prepare(self) -> None:
        state, tables, rules = self.state_arrays(), self.tables, self.rules
        controls = wp.from_torch(self._controls, dtype=structs.ControlRow)
        ends = [wp.from_torch(self._result.terminated), wp.from_torch(self._result.truncated)]
        counted = base.packed(self._result.events, EVENTS)
        events = wp.from_torch(counted, dtype=structs.EventRow)
        state_metrics = wp.from_torch(base.packed(self._result.state_metrics, MEASURES), dtype=structs.MeasureRow)
        finish = (restart_kernels.finish_kernel, [*state, tables, rules, *ends])
        restart = (restart_kernels.restart_kernel, [*state, tables, rules, wp.from_torch(self._chosen)])
        final = self._result.final_observations["vector"]
        row = wp.types.vector(length=final.shape[-1], dtype=wp.float32)
        last = (observe_kernels.observe_final_kernel, [*state, rules, *ends, wp.from_torch(final, dtype=row)])
        seen = self._observations["vector"]
        observe: tuple[object, list[object]] | TiledKernel
        observe = (observe_kernels.observe_kernel, [*state, rules, wp.from_torch(seen, dtype=row)])
        games, decoding = self.num_envs, decode_launch(self.config, self._actions, tables, rules, controls)
        if self.device.type == "cuda":
            flat = wp.from_torch(seen.view(-1, seen.shape[-1]))
            tiles = observe_kernels.observe_tiles_kernel
            observe = TiledKernel(tiles, [*state, rules, flat], games * self.spec.seats, OBSERVE_TILE)
        if runs_in_lockstep(self.device):
            after = last, finish, observe
            self._gpu = GpuStep(state, controls, tables, rules, counted, state_metrics, ends, self.launcher, after)
            self._run_step = self.launcher.prepare(games, decoding, self._gpu.sort_keys)
        else:
            step = (match_kernels.step_kernel, [*state, controls, tables, rules, events, state_metrics, *ends])
            self._run_step = self.launcher.prepare(games, decoding, step, last, finish, observe)
        self._run_restart = self.launcher.prepare(self.num_envs, restart, observe)
        self._run_observe = self.launcher.prepare(self.num_envs, observe)


def decode_launch(
    config: RocketConfig, actions: Tensor, tables: object, rules: object, controls: object
) -> tuple[Any, list[object]]:
    """Return the kernel that turns actions into controls, and its arguments."""
    if config.actions == "table":
        return control_kernels.table_kernel, [wp.from_torch(actions), tables, rules, controls]
    return control_kernels.continuous_kernel, [wp.from_torch(actions, dtype=structs.ControlRow), rules, controls]


def rocket_spec(config: RocketConfig) -> EnvSpec:
    """Describe a Rocket environment with these settings."""
    mirror = None
    if config.actions == "continuous":  # rows of the table have no sign to change
        mirror = base.Mirror({"vector": LAYOUT.reflection}, base.Reflection(tuple(range(CONTROLS)), MIRRORED))
    return EnvSpec(
        name="rocket",
        version=VERSION,
        teams=(0,) * config.blue + (1,) * config.orange,
        observation_space=spaces.Dict({"vector": spaces.Box(LAYOUT.low, LAYOUT.high)}),
        action_space=action_space(config),
        rate_hz=TICK_HZ / config.ticks,
        step_limit=config.step_limit,
        events=EVENTS,
        state_metrics=MEASURES,
        bots=BOT_NAMES,
        blocks={"vector": LAYOUT.blocks},
        fields={"vector": tuple(field.name for field in LAYOUT.fields)},
        mirror=mirror,
        truncates=config.episode == "goal" and (config.episode_s is not None or config.no_touch_s is not None),
    )
