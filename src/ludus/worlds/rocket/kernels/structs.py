"""The state of a game as Warp structs: what a kernel loads, changes and stores.

Every field is made of 32-bit words, so that an array of structs is also an int32 tensor `(..., words)`: snapshots are
plain tensor copies, and `warp_tools.struct_views` gives any field as a tensor without copying.

Boost pads are not a struct: `pads[game, pad]` is an int32, the tick of the episode (`Match.tick`) from which the pad is
active again, so an untouched pad costs nothing. Their order and positions are in `layout.PADS`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import warp as wp
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.state import FINITE, FLAG, WORD, Range
from ludus.envs.warp_tools import EXACT, check_state_range, check_struct, struct_views
from ludus.worlds.rocket import rules as const
from ludus.worlds.rocket.actions import action_table
from ludus.worlds.rocket.config import RocketConfig
from ludus.worlds.rocket.layout import BIG, BIG_PADS, KICKOFFS, PAD_COUNT, PADS, RESPAWNS, pad_grid, pad_kind
from ludus.worlds.rocket.rules import Setter

# Warp unrolls loops of up to 16 iterations. For the nested iterations of contacts this took two minutes to compile
# instead of twelve seconds and ran no faster; loops over three axes are still unrolled.
PHYSICS: dict[str, Any] = EXACT | {"max_unroll": 3}

ROUNDING = 1.001
_SLACK = 100.0  # how far anything may be inside a wall, uu

_CONTROLS = ("throttle", "steer", "pitch", "yaw", "roll")
_CAR_FLAGS = (
    *("jump", "boost_key", "handbrake", "jump_before", "supersonic", "on_ground", "body_contact"),
    *("jumping", "jumped", "double_jumped", "dodged", "dodging", "touching_ball"),
)

BALL_RANGES: dict[str, Range] = {"position": FINITE, "velocity": FINITE, "spin": FINITE, "asleep": FLAG}

_TOUCHES = ("last_touch", "last_blue", "last_orange", "before_blue", "before_orange", "shot_seat")

PadRow = wp.types.vector(length=PAD_COUNT, dtype=wp.int32)  # the pads of one game
ControlRow = wp.types.vector(length=const.CONTROLS, dtype=wp.float32)
EventRow = wp.types.vector(length=len(const.EVENTS), dtype=wp.float32)
MeasureRow = wp.types.vector(length=len(const.MEASURES), dtype=wp.float32)


@wp.struct
class Car:
    """One car. Its own axes: x forward, y left, z up."""

    position: wp.vec3f  # of the centre of mass, uu
    velocity: wp.vec3f  # uu/s
    spin: wp.vec3f  # angular velocity in world axes, rad/s
    rotation: wp.quatf  # from the car's axes to the world's
    team: wp.int32  # 0 blue, 1 orange
    # Controls of the present tick.
    throttle: wp.float32
    steer: wp.float32
    pitch: wp.float32
    yaw: wp.float32
    roll: wp.float32
    jump: wp.int32
    boost_key: wp.int32
    handbrake: wp.int32
    jump_before: wp.int32  # jump key in the tick before
    # Boost and speed.
    boost: wp.float32  # 0 to 100
    boosting_s: wp.float32  # since the key went down; 0 if it does not burn
    supersonic: wp.int32
    supersonic_s: wp.float32  # time spent below the speed that switches it on
    handbrake_value: wp.float32  # 0 to 1, rises and falls with the key
    # What the wheels act with in the next tick.
    wheel_drive: wp.float32  # acceleration by the engine, of one wheel, uu/s^2
    wheel_brake: wp.float32  # greatest deceleration, of one wheel
    wheel_angle: wp.float32  # of the front wheels, positive to the right
    # Contact with the world.
    wheels: wp.int32  # wheels in contact
    on_ground: wp.int32  # three or more
    normal: wp.vec3f  # of the surface under the wheels, or that the body touches
    body_contact: wp.int32  # the body touches the arena
    # Jump and dodge.
    jumping: wp.int32  # in the part of a jump in which holding the key accelerates
    jumped: wp.int32  # since the last landing
    double_jumped: wp.int32
    dodged: wp.int32
    dodging: wp.int32  # in the part of a dodge with torque
    jump_s: wp.float32  # since the jump began
    air_s: wp.float32  # since the last wheel left the ground
    air_since_jump_s: wp.float32  # since the jump's acceleration ended
    dodge_s: wp.float32  # since the dodge began
    dodge_x: wp.float32  # direction of its torque: about the car's y axis (pitch) ...
    dodge_y: wp.float32  # ... and about its x axis (roll)
    autoflip_s: wp.float32  # left of the turn back onto the wheels
    autoflip_sign: wp.float32
    # Other cars and the ball.
    demolished_s: wp.float32  # until it is back; 0 if it drives
    bump_s: wp.float32  # until it can bump the same car again
    bump_seat: wp.int32  # which
    hit_ticks: wp.int32  # since the last extra impulse on the ball, counted up to a few
    touching_ball: wp.int32  # in the tick before
    clear_ticks: wp.int32  # since it last touched the ball, counted up to `rules.TOUCH_GAP_TICKS`
    since_touch_s: wp.float32  # or since the start
    inside_pad: wp.int32  # index of the pad that it stands in since it took it, -1 none


def car_ranges(seats: int) -> dict[str, Range]:
    """Return the valid ranges of a `Car` in a snapshot; floats that are not named only have to be finite."""
    return {
        **dict.fromkeys(Car.vars, FINITE),
        **dict.fromkeys(_CONTROLS, (-1, 1)),
        **dict.fromkeys((*_CAR_FLAGS, "team"), FLAG),
        **dict.fromkeys(("hit_ticks", "clear_ticks"), WORD),
        "boost": (0, const.BOOST_MAX * ROUNDING),
        "wheels": (0, 4),
        "demolished_s": (0, const.DEMOLITION_S),
        "bump_seat": (-1, seats - 1),
        "inside_pad": (-1, PAD_COUNT - 1),
    }


@wp.struct
class Ball:
    """The ball."""

    position: wp.vec3f
    velocity: wp.vec3f
    spin: wp.vec3f
    asleep: wp.int32  # it hangs still until something touches it


@wp.struct
class Match:
    """What the cars share, beside the ball."""

    episode: wp.int32
    step: wp.int32  # decisions since the episode began
    tick: wp.int32  # ticks since the episode began; a goal uses up the rest of its decision
    goal: wp.int32  # team that scored in the present step, -1 none
    kickoff_due: wp.int32  # 1 if a kickoff follows at the end of the present step
    clock_s: wp.float32  # time left; negative in overtime
    kickoff: wp.int32  # 1 until the first touch after a kickoff
    since_kickoff_s: wp.float32
    blue_goals: wp.int32
    orange_goals: wp.int32
    untouched_s: wp.float32  # since anyone touched the ball
    last_touch: wp.int32  # seat that touched the ball last, -1 nobody
    last_touch_s: wp.float32  # since then
    last_blue: wp.int32  # the last of each team, -1 nobody
    last_blue_s: wp.float32
    last_orange: wp.int32
    last_orange_s: wp.float32
    before_blue: wp.int32  # who of each team touched it before that, for assists
    before_blue_s: wp.float32
    before_orange: wp.int32
    before_orange_s: wp.float32
    shot_seat: wp.int32  # whose shot is on its way, -1 none
    shot_team: wp.int32  # of that seat
    shot_s: wp.float32  # since the last shot
    setter: wp.int32  # which state setter began the episode


def match_ranges(seats: int) -> dict[str, Range]:
    """Return the valid ranges of a `Match` in a snapshot; floats that are not named only have to be finite."""
    return {
        **dict.fromkeys(Match.vars, FINITE),
        **dict.fromkeys(_TOUCHES, (-1, seats - 1)),
        **dict.fromkeys(("shot_team", "kickoff", "kickoff_due"), FLAG),
        **dict.fromkeys(("tick", "step"), (0, 2**30)),
        **dict.fromkeys(("blue_goals", "orange_goals"), (0, 2**20)),
        "goal": (-1, 1),
        "episode": (0, 2**31 - 2),
        "setter": (0, max(Setter)),
    }


@wp.struct
class Rules:
    """Settings of the environment that kernels read."""

    blue: wp.int32  # cars of each team; seats of blue come first
    orange: wp.int32
    ticks: wp.int32  # per decision
    delay_ticks: wp.int32  # ticks of a decision in which the controls of the one before still hold
    ends_by_goal: wp.int32  # 1: an episode is over with a goal; 0: a match with a clock
    match_s: wp.float32  # length of a match
    overtime: wp.int32
    overtime_s: wp.float32  # after which a match is a draw, 0 never
    episode_s: wp.float32  # an episode is cut off after this time, 0 never
    no_touch_s: wp.float32  # and after this time without a touch, 0 never
    boost_rate: wp.float32  # times the usual consumption; 0 for unlimited boost
    shuffle: wp.int32  # whether slots of other cars in observations change places
    seed_hash: wp.uint32  # the two halves of the seed, mixed
    first_game: wp.int32


@wp.struct
class Tables:
    """Constant tables in the memory of the device."""

    pad_grid: wp.array2d[wp.int32]  # pad that a cell of the field meets, -1 none
    pads: wp.array[wp.vec4f]  # x, y, square of the radius, 1 if it is big
    kickoffs: wp.array[wp.vec4f]  # x, y of blue's slots, z and w of the rotation
    respawns: wp.array[wp.vec2f]  # x, y of blue's places
    setters: wp.array[wp.float32]  # ends of the setters' parts of [0, 1]
    actions: wp.array[ControlRow]


def setter_bounds(weights: Mapping[str, float]) -> NDArray[np.float32]:
    """Return the cumulative probability of each setter; a draw from [0, 1) chooses the first bound above it."""
    parts = np.cumsum([weights.get(name, 0.0) for name in const.SETTERS], dtype=np.float64)
    bounds: NDArray[np.float32] = (parts / parts[-1]).astype(np.float32)
    bounds[bounds == bounds[-1]] = 2.0  # no number drawn can lie beyond the last one with a weight
    return bounds


def make_tables(device: torch.device, setters: Mapping[str, float]) -> Any:  # noqa: ANN401 - structs have no static type
    """Return the tables on a device, with these weights of the state setters by name."""
    pads = [(x, y, pad_kind(pad).radius ** 2, float(pad in BIG_PADS)) for pad, (x, y) in enumerate(PADS)]
    kickoffs = [(x, y, np.sin(heading / 2), np.cos(heading / 2)) for x, y, heading in KICKOFFS]
    tables = Tables()
    tables.pad_grid = wp.array(pad_grid(), dtype=wp.int32, device=str(device))
    tables.pads = wp.array(np.array(pads, np.float32), dtype=wp.vec4f, device=str(device))
    tables.kickoffs = wp.array(np.array(kickoffs, np.float32), dtype=wp.vec4f, device=str(device))
    tables.respawns = wp.array(np.array(RESPAWNS, np.float32), dtype=wp.vec2f, device=str(device))
    tables.setters = wp.array(setter_bounds(setters), dtype=wp.float32, device=str(device))
    tables.actions = wp.array(action_table(), dtype=ControlRow, device=str(device))
    return tables


def check_state(snapshot: Mapping[str, Tensor], config: RocketConfig) -> None:
    """Raise SnapshotError unless a state is possible in an environment with these settings.

    Kernels use some of its numbers as indices without checking them, and a snapshot may come from an untrusted
    checkpoint: a wrong number would read or write beyond an array.
    """
    check_struct(snapshot["cars"], Car, car_ranges(config.seats), "rocket: car")
    check_struct(snapshot["balls"], Ball, BALL_RANGES, "rocket: ball")
    check_struct(snapshot["matches"], Match, match_ranges(config.seats), "rocket: match")
    cars = struct_views(snapshot["cars"].contiguous(), Car)
    teams = torch.tensor([0] * config.blue + [1] * config.orange, device=cars["team"].device)
    check_state_range(cars["team"] - teams, 0, 0, "rocket: difference of a car's team from its seat's")
    check_state_range(cars["rotation"].norm(dim=-1), 0.99, 1.01, "rocket: size of a car's rotation")
    _check_motion("car", cars, const.CAR_MAX_SPEED, const.CAR_MAX_SPIN)
    _check_motion("ball", struct_views(snapshot["balls"].contiguous(), Ball), const.BALL_MAX_SPEED, const.BALL_MAX_SPIN)
    ticks = struct_views(snapshot["matches"].contiguous(), Match)["tick"]
    latest = ticks.unsqueeze(-1) + round(BIG.back_s * const.TICK_HZ)
    check_state_range(snapshot["pads"] - latest, -(2**30), 0, "rocket: time until a pad is back, in ticks,")


def _check_motion(kind: str, views: Mapping[str, Tensor], max_speed: float, max_spin: float) -> None:
    position = views["position"]
    check_state_range(position[..., 0].abs(), 0, const.SIDE_X + _SLACK, f"rocket: {kind} x")
    check_state_range(position[..., 1].abs(), 0, const.BACK_Y + const.GOAL_DEPTH + _SLACK, f"rocket: {kind} y")
    check_state_range(position[..., 2], -_SLACK, const.CEILING_Z + _SLACK, f"rocket: {kind} z")
    check_state_range(views["velocity"].norm(dim=-1), 0, max_speed * ROUNDING, f"rocket: {kind} speed")
    check_state_range(views["spin"].norm(dim=-1), 0, max_spin * ROUNDING, f"rocket: {kind} spin")
