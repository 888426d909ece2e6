"""Footsteps of a gait along a path, and feet that roll over heel and ball from one to the next.

A standing foot is held at the sphere of heel or ball that carries it, so planned feet neither slide nor float.
"""

from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from ludus.worlds.mimic.body import SIDES
from ludus.worlds.mimic.capture.skeleton import turns_about
from ludus.worlds.mimic.gait import NORMAL_HEIGHT_M, Floats
from ludus.worlds.mimic.model import CONTACT_RADIUS_M, Walker
from ludus.worlds.mimic.motion.clip import body_of

LEAD_STRIDES = 3  # planned before and after what is kept, so that it is steady
_PLAN_HZ = 200.0
_SOFT_M = 0.015  # over which the lowest point of a swinging foot changes from toe to heel


@dataclass(frozen=True, slots=True)
class Gait:
    """A way to move, for a body of 1.75 m; lengths grow with the body, times with the square root of it."""

    speed_m_s: float = 1.0  # along the path
    heading_deg: float = 0.0  # of the path against where the body faces: 90 is to the left, 180 backward
    turn_deg_s: float = 0.0  # how fast path and body turn to the left
    period_s: float = 1.1  # of a stride
    duty: float = 0.62  # share of the stride that a foot stands
    half_width_m: float = 0.06  # of the track, from its middle to a foot's
    clearance_m: float = 0.03  # of the lowest point of a swinging foot, at its highest
    land_deg: float = 18.0  # pitch of the foot where it comes down; toes up is positive
    leave_deg: float = -45.0  # and where it leaves the ground
    hurry: float = 1.0  # how much earlier a swinging foot goes forward; 1 is evenly
    land_share: float = 0.3  # of the path's speed that a foot still has where it comes down
    flat: tuple[float, float] = (0.12, 0.45)  # shares of the stance between which the foot is flat
    fold_deg: float = -55.0  # pitch of the swinging foot where it points down most
    peak: float = 0.35  # share of the swing at which clearance and fold are largest
    lean_deg: float = 3.0  # of the trunk, forward
    ahead_m: float = 0.09  # of a running body before the ankle it stands on, in the middle of the stance
    straight: float = 0.99  # largest length of a standing leg, as a share of a straight one
    turns_pelvis_deg: float = 0.0  # to each side, with a trunk that turns against it
    stairs_m: tuple[float, float] | None = None  # depth and height of each step of a stair

    @property
    def is_running(self) -> bool:
        """Whether there are times at which no foot is on the ground."""
        return self.duty < 0.5

    @property
    def is_standing(self) -> bool:
        """Whether it never leaves its place: feet stand all the time."""
        return self.speed_m_s == 0.0


@dataclass(frozen=True, slots=True)
class Step:
    """A foot's stay on the ground."""

    start_s: float
    stop_s: float  # infinite where it stands all the time
    lasts_s: float  # how long it would be in steady walking
    place: Floats  # `(3,)` of the point below the ankle
    heading: float  # rad

    def share(self, gait: Gait, times: Floats) -> Floats:
        """Return the shares of the stance at some times; who stands all the time is in its middle, with a flat foot."""
        end = 1.0 if np.isfinite(self.stop_s) else 0.5 * sum(gait.flat)
        share: Floats = ((times - self.start_s) / self.lasts_s).clip(0.0, end)
        return share


class Plan:
    """Times, path and footsteps of a gait on a walker, sampled at `_PLAN_HZ` or a little more."""

    def __init__(self, gait: Gait, walker: Walker, strides: int) -> None:
        body = body_of(walker)
        self.gait, self.walker, self.body = gait, walker, body
        self.scale = body.height_m / NORMAL_HEIGHT_M
        self.pace = self.scale**0.5  # of times and, with lengths, of speeds: equal Froude numbers
        self.period_s = gait.period_s * self.pace
        self.per_stride = round(self.period_s * _PLAN_HZ)
        self.rate_hz = self.per_stride / self.period_s
        self.lead_s = LEAD_STRIDES * self.period_s
        total = (2 * LEAD_STRIDES + strides) * self.per_stride
        self.times = np.arange(total) / self.rate_hz
        self.steps = [self._steps(foot) for foot in range(len(SIDES))]

    def path(self, times: Floats) -> tuple[Floats, Floats]:
        """Return places `(times, 2)` and headings `(times,)` along the path, whose middle is at 0."""
        gait = self.gait
        speed = gait.speed_m_s * self.scale / self.pace
        turn = np.deg2rad(gait.turn_deg_s) / self.pace
        since = times - self.lead_s
        way = speed * since
        heading = turn * since
        side = np.deg2rad(gait.heading_deg)
        if abs(turn) < 1e-9:
            places = np.stack((np.cos(side) * way, np.sin(side) * way), axis=1)
        else:
            radius = speed / turn
            along, across = radius * np.sin(heading), radius * (1.0 - np.cos(heading))
            places = np.stack(
                (np.cos(side) * along - np.sin(side) * across, np.sin(side) * along + np.cos(side) * across), axis=1
            )
        return places, heading

    def _steps(self, foot: int) -> list[Step]:
        gait, sign = self.gait, (-1.0 if foot == 0 else 1.0)
        lasts = gait.duty * self.period_s
        begins = np.arange(-2, 2 * LEAD_STRIDES + 40) * self.period_s + 0.5 * foot * self.period_s
        begins = begins[begins < self.times[-1] + 2.0 * self.period_s]
        steps = []
        for begin in begins.tolist():
            middle, heading = self.path(np.array([begin + 0.5 * lasts]))
            aside = sign * gait.half_width_m * self.scale
            place = np.array(
                (
                    middle[0, 0] - aside * np.sin(heading[0]),
                    middle[0, 1] + aside * np.cos(heading[0]),
                    0.0,
                )
            )
            if gait.stairs_m is not None:
                place[0], place[2] = self._stair(place[0])
            stop = np.inf if gait.is_standing else begin + lasts
            steps.append(Step(begin, stop, lasts, place, float(heading[0])))
            if gait.is_standing:
                break
        return steps

    def _stair(self, x: float) -> tuple[float, float]:
        """Return the middle of the nearest step of a stair, and its height."""
        assert self.gait.stairs_m is not None  # noqa: S101 - asked for stairs alone
        depth, height = (self.scale * size for size in self.gait.stairs_m)
        number = round(x / depth)
        return number * depth, number * height


def smoothstep(share: Floats) -> Floats:
    """Return 0 to 1 for 0 to 1 with no slope and no bend at both ends."""
    share = share.clip(0.0, 1.0)
    eased: Floats = share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
    return eased


def _stance_pitch(gait: Gait, share: Floats) -> Floats:
    """Return a standing foot's pitch in rad over shares of its stance."""
    first, last = gait.flat
    down = 1.0 - np.sin(0.5 * np.pi * (share / first).clip(0.0, 1.0))
    up = 1.0 - np.cos(0.5 * np.pi * ((share - last) / (1.0 - last)).clip(0.0, 1.0))
    pitch: Floats = np.deg2rad(gait.land_deg) * down + np.deg2rad(gait.leave_deg) * up
    return pitch


def _held(plan: Plan, step: Step, pitch: Floats) -> Floats:
    """Return where the ankle is, `(frames, 3)`, while heel or ball hold the ground and the foot has this pitch."""
    body = plan.body
    centre = CONTACT_RADIUS_M - body.ankle_height_m
    heel, ball = np.array((CONTACT_RADIUS_M - body.heel_m, centre)), np.array((body.ball_m, centre))
    pivot = np.where((pitch > 0.0)[:, None], heel, ball)
    along = np.cos(pitch) * pivot[:, 0] - np.sin(pitch) * pivot[:, 1]
    up = np.sin(pitch) * pivot[:, 0] + np.cos(pitch) * pivot[:, 1]
    x = pivot[:, 0] - along
    forward = np.array((np.cos(step.heading), np.sin(step.heading)))
    level = step.place[:2] + x[:, None] * forward
    return np.concatenate((level, (step.place[2] + CONTACT_RADIUS_M - up)[:, None]), axis=1)


def _depth(plan: Plan, pitch: Floats, soft_m: Floats) -> Floats:
    """Return the height of the ankle over the lowest point of a foot; heel and toe blend over `soft_m`."""
    body = plan.body
    centre = CONTACT_RADIUS_M - body.ankle_height_m
    depths = [
        CONTACT_RADIUS_M - np.sin(pitch) * x - np.cos(pitch) * centre
        for x in (CONTACT_RADIUS_M - body.heel_m, body.ball_m)
    ]
    apart = depths[0] - depths[1]
    return 0.5 * (depths[0] + depths[1] + np.sqrt(apart**2 + soft_m**2))


def foot_path(plan: Plan, foot: int) -> tuple[Floats, Floats, NDArray[np.bool_], Floats]:
    """Return a foot's ankle `(frames, 3)`, where its sole points, when it stands, and the ground under it."""
    times, gait = plan.times, plan.gait
    ankle, pitch = np.zeros((len(times), 3)), np.zeros(len(times))
    heading, standing, floor = np.zeros(len(times)), np.zeros(len(times), dtype=bool), np.zeros(len(times))
    for step, following in zip_longest(plan.steps[foot], plan.steps[foot][1:]):
        on = np.flatnonzero((times >= step.start_s) & (times < step.stop_s))
        if len(on):
            pitch[on] = _stance_pitch(gait, step.share(gait, times[on]))
            ankle[on], heading[on] = _held(plan, step, pitch[on]), step.heading
            standing[on], floor[on] = True, step.place[2]
        if following is None:
            break
        off = np.flatnonzero((times >= step.stop_s) & (times < following.start_s))
        if len(off):
            swing = _swing(plan, step, following, times[off])
            ankle[off], pitch[off], heading[off] = swing
            floor[off] = np.minimum(step.place[2], following.place[2])
    soles = turns_about(2, heading) @ turns_about(1, -pitch)
    return ankle, soles[:, :, 0], standing, floor


def _swing(plan: Plan, step: Step, following: Step, times: Floats) -> tuple[Floats, Floats, Floats]:
    """Return ankle, pitch and heading of a foot between two steps."""
    gait = plan.gait
    lasts = following.start_s - step.stop_s
    share = (times - step.stop_s) / lasts
    tiny = 1e-4
    ends = np.array((1.0 - tiny, 1.0))
    starts = np.array((0.0, tiny))
    stance = step.lasts_s
    leaving, landing = _stance_pitch(gait, ends), _stance_pitch(gait, starts)
    rates = [float(np.diff(pair)[0]) / (tiny * stance) * lasts for pair in (leaving, landing)]
    pitch = _hermite(share, float(leaving[-1]), float(landing[0]), rates[0], rates[1])
    # Folded more, where the foot is lifted most.
    fold = np.deg2rad(gait.fold_deg) - np.interp(gait.peak, share, pitch)
    pitch = pitch + min(fold, 0.0) * _bump(share, gait.peak)
    first, last = _held(plan, step, leaving), _held(plan, following, landing)
    speeds = [np.diff(pair, axis=0)[0] / (tiny * stance) * lasts for pair in (first, last)]
    before, now = plan.path(np.array((following.start_s - tiny, following.start_s)))[0]
    speeds[1][:2] += gait.land_share * (now - before) / tiny * lasts
    early = 1.0 - (1.0 - share) ** gait.hurry
    begin, end = speeds[0] / gait.hurry, speeds[1]
    ankle = np.stack(
        [_hermite(early, first[-1, axis], last[0, axis], begin[axis], end[axis]) for axis in range(2)], axis=1
    )
    rise = following.place[2] - step.place[2]
    floor = step.place[2] + rise * smoothstep(share / 0.6 if rise > 0.0 else (share - 0.4) / 0.6)
    lifted = plan.scale * gait.clearance_m * _bump(share, gait.peak)
    soft = _SOFT_M * np.sin(np.pi * share) ** 2
    height = floor + lifted + _depth(plan, pitch, soft)
    heading = step.heading + (following.heading - step.heading) * smoothstep(share)
    return np.concatenate((ankle, height[:, None]), axis=1), pitch, heading


def _bump(share: Floats, peak: float) -> Floats:
    """Return 0 at both ends, without slope, and 1 at `peak`."""
    # share^a (1 - share)^b is highest at a / (a + b); both exponents are at least 2.
    a, b = (2.0, 2.0 * (1.0 - peak) / peak) if peak <= 0.5 else (2.0 * peak / (1.0 - peak), 2.0)
    top = peak**a * (1.0 - peak) ** b
    bump: Floats = share**a * (1.0 - share) ** b / top
    return bump


def _hermite(share: Floats, first: float, last: float, start_slope: float, end_slope: float) -> Floats:
    """Return the quintic from `first` to `last` with these slopes and no bend at both ends."""
    s = share
    return (
        first
        + (last - first) * smoothstep(s)
        + start_slope * (s - 6.0 * s**3 + 8.0 * s**4 - 3.0 * s**5)
        + end_slope * (-4.0 * s**3 + 7.0 * s**4 - 3.0 * s**5)
    )
