"""The observation of a seat: every value with its name, bounds and meaning.

Every seat sees the world as blue: for orange it is turned by 180 degrees about the middle, boost pads included, so that
the own goal always lies at y < 0. Values named `ahead`, `left` and `above` are in the axes of the own car.

It has the same 136 values for all team sizes. Other cars lie in slots, two for teammates and three for
opponents; which car lies in which slot is drawn for each episode and seat if the setting `shuffle` is on, else they lie
in the order of their seats. Empty slots are 0.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ludus.envs.base import Reflection
from ludus.worlds.rocket.layout import PAD_COUNT, PADS

MATES = 2  # slots for teammates
RIVALS = 3  # slots for opponents

POSITION_X, POSITION_Y, POSITION_Z = 4096.0, 6000.0, 2048.0
LENGTH = 4096.0  # of distances
FARTHEST = 3.7  # no two places are farther from each other, in units of `LENGTH`
CAR_SPEED = 2300.0
BALL_SPEED = 3000.0  # half of the fastest
CAR_SPIN = 5.5
LANDING_S = 4.0  # unit of the time in which the ball comes down
LANDING_MOST = 1.5
NEAR = 300.0  # distance at which `nearness` is one half
DODGE_S = 1.25  # a second jump is possible for this long after the first
PAD_S = 10.0
GOALS = 16  # a lead larger than this looks like this


@dataclass(frozen=True, slots=True)
class Field:
    """One value of an observation."""

    name: str  # block and name, such as `ball.x`
    low: float
    high: float
    meaning: str  # what it says, with its unit
    sign: float = 1.0  # what it is multiplied with when the world is mirrored in x


@dataclass(frozen=True)
class Layout:
    """All values, in the order of the observation."""

    fields: tuple[Field, ...]

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.fields)

    @cached_property
    def low(self) -> NDArray[np.float32]:
        """Lowest value of each field."""
        return np.array([field.low for field in self.fields], np.float32)

    @cached_property
    def high(self) -> NDArray[np.float32]:
        """Highest value of each field."""
        return np.array([field.high for field in self.fields], np.float32)

    @cached_property
    def blocks(self) -> dict[str, tuple[int, int]]:
        """First and last place (exclusive) of each block, such as `ball`; slots of a kind are one block."""
        names = [field.name.partition(".")[0].rstrip("0123456789_") for field in self.fields]
        return {name: (names.index(name), len(names) - names[::-1].index(name)) for name in dict.fromkeys(names)}

    @cached_property
    def reflection(self) -> Reflection:
        """The reflection that gives the observation of the world mirrored in x."""
        places = {field.name: place for place, field in enumerate(self.fields)}
        mirrored = {f"pads.{pad}": f"pads.{PADS.index((0.0 - x, y))}" for pad, (x, y) in enumerate(PADS)}
        source = tuple(places[mirrored.get(field.name, field.name)] for field in self.fields)
        return Reflection(source, tuple(field.sign for field in self.fields))


def _vector(names: tuple[str, str, str], limit: float, meaning: str, odd: str) -> tuple[Field, ...]:
    """Return three values of one vector; `odd` names those that change their sign in a mirror."""
    return tuple(Field(name, -limit, limit, meaning, -1.0 if name in odd.split() else 1.0) for name in names)


def _block(name: str, *fields: Field) -> tuple[Field, ...]:
    return tuple(replace(field, name=f"{name}.{field.name}") for field in fields)


def _flag(name: str, meaning: str) -> Field:
    return Field(name, 0.0, 1.0, f"1 {meaning}")


def _places(who: str) -> tuple[Field, ...]:
    return (
        Field("x", -1.0, 1.0, f"position of {who} / 4096 uu", -1.0),
        Field("y", -1.0, 1.0, "position / 6000 uu, own goal at -1"),
        Field("z", 0.0, 1.0, "height / 2048 uu"),
    )


_OFFSET = ("ahead", "left", "above")
_OWN = _block(
    "self",
    *_places("the own car"),
    *_vector(("vx", "vy", "vz"), 1.0, "velocity / 2300 uu/s", "vx"),
    *_vector(("forward_x", "forward_y", "forward_z"), 1.0, "where the nose points", "forward_x"),
    *_vector(("up_x", "up_y", "up_z"), 1.0, "where the roof points", "up_x"),
    *_vector(("speed_ahead", "speed_left", "speed_above"), 1.0, "velocity in own axes / 2300 uu/s", "speed_left"),
    *_vector(
        ("spin_ahead", "spin_left", "spin_above"), 1.0, "spin about own axes / 5.5 rad/s", "spin_ahead spin_above"
    ),
    Field("boost", 0.0, 1.0, "boost / 100"),
    _flag("on_ground", "if at least three wheels touch a surface"),
    _flag("has_jump", "if the jump key would jump off a surface"),
    _flag("has_dodge", "if the jump key would jump a second time or dodge"),
    Field("dodge_time", 0.0, 1.0, "time left for the second jump / 1.25 s; 1 without a first one"),
    _flag("jump_held", "if the jump key was held in the last tick: it acts when it goes down"),
    Field("handbrake", 0.0, 1.0, "how far the handbrake is drawn"),
    _flag("dodging", "while the torque of a dodge acts"),
    _flag("supersonic", "while supersonic: fast enough to demolish"),
    Field("demolished", 0.0, 1.0, "time until the car is back / 3 s; 0 if it drives"),
)
_BALL = _block(
    "ball",
    *_places("the ball"),
    *_vector(("vx", "vy", "vz"), 2.0, "velocity / 3000 uu/s", "vx"),
    *_vector(_OFFSET, FARTHEST, "ball minus car in own axes / 4096 uu", "left"),
    *_vector(("way_ahead", "way_left", "way_above"), 1.0, "unit vector to the ball in own axes", "way_left"),
    Field("nearness", 0.0, 1.0, "300 uu / (300 uu + distance)"),
    *_vector(
        ("speed_ahead", "speed_left", "speed_above"), 3.7, "ball's minus own velocity in own axes / 2300 uu/s",
        "speed_left",
    ),
    *_vector(
        ("landing_ahead", "landing_left", "landing_above"), FARTHEST,
        "where the ball comes down to 180 uu, minus car, in own axes / 4096 uu", "landing_left",
    ),
    Field("landing_time", 0.0, LANDING_MOST, "time until then / 4 s; 0 below that height"),
)  # fmt: skip
_GOALS = _block(
    "goals",
    *_vector(("other_ahead", "other_left", "other_above"), 1.0, "unit vector from the ball to the middle of the other "
             "goal, in own axes", "other_left"),
    *_vector(("own_ahead", "own_left", "own_above"), 1.0, "unit vector from the car to the middle of the own goal, in "
             "own axes", "own_left"),
)  # fmt: skip
_OTHER = (
    _flag("present", "if a car plays in this slot"),
    *_vector(_OFFSET, FARTHEST, "its minus own position in own axes / 4096 uu; 0 while demolished", "left"),
    *_vector(
        ("speed_ahead", "speed_left", "speed_above"), 2.0,
        "its minus own velocity in own axes / 2300 uu/s; 0 while demolished", "speed_left",
    ),
    Field("boost", 0.0, 1.0, "its boost / 100"),
    Field("demolished", 0.0, 1.0, "time until it is back / 3 s; 0 if it drives"),
)  # fmt: skip
_GAME = _block(
    "game",
    Field("clock", -1.0, 1.0, "time left / 300 s; in overtime minus the time played in it"),
    Field("lead", -1.0, 1.0, "tanh(goal difference / 5)"),
    _flag("kickoff", "from a kickoff to the first touch"),
)

LAYOUT = Layout(
    (
        *_OWN,
        *_BALL,
        *_GOALS,
        *(field for slot in range(MATES) for field in _block(f"teammate_{slot}", *_OTHER)),
        *(field for slot in range(RIVALS) for field in _block(f"opponent_{slot}", *_OTHER)),
        *_block("pads", *(Field(f"{pad}", 0.0, 1.0, "1 if the pad is there, else 1 - time until then / 10 s")
                          for pad in range(PAD_COUNT))),
        *_GAME,
    )
)  # fmt: skip
OTHER_SIZE = len(_OTHER)
