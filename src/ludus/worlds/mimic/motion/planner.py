"""Plans gaits: hips that keep the body in balance over the footsteps, and legs that reach them.

Where a foot is always on the ground, the centre of mass moves as a linear inverted pendulum over the feet: with the
height z above the ground, c - (z / g) c'' = p, where p is where the weight rests (Kajita et al. 2003,
doi:10.1109/ROBOT.2003.1241826). Slow steps need wide and slow sways, fast ones hardly any; both follow from it. In
running the body flies between two steps: a parabola in the air, half a sine on the ground.

Legs are solved by inverse kinematics, so one plan serves walkers of any size.
"""

from dataclasses import replace

import mujoco
import numpy as np

from ludus.worlds.mimic.body import SIDES
from ludus.worlds.mimic.capture.legs import angles_of_place
from ludus.worlds.mimic.capture.retarget import plant_feet
from ludus.worlds.mimic.gait import Floats
from ludus.worlds.mimic.model import Walker
from ludus.worlds.mimic.motion.clip import Clip, hips_of, leg_size, turn_matrices
from ludus.worlds.mimic.motion.footsteps import LEAD_STRIDES, Gait, Plan, foot_path, smoothstep
from ludus.worlds.mimic.scoring import GRAVITY_M_S2

_ROUNDS = 4  # of correcting the hips so that the whole body's centre of mass is where it should be
_SWING_REACH, _SWING_SOFT_M = 0.998, 0.002  # largest length of a swinging leg, and over which it comes near


def plan_gait(gait: Gait, walker: Walker, name: str, strides: int = 2) -> Clip:
    """Plan some strides of a gait on a built-in walker; the first frame is where the right foot comes down."""
    plan = Plan(gait, walker, strides)
    feet = [foot_path(plan, foot) for foot in range(len(SIDES))]
    contacts = np.stack([standing for *_, standing, _ in feet], axis=1)
    floors = np.stack([floor for *_, floor in feet], axis=1)
    ankles = np.stack([ankle for ankle, *_ in feet], axis=1)
    soles = np.stack([sole for _, sole, *_ in feet], axis=1)
    turns = _turns(plan)
    goal = _running_goal(plan) if gait.is_running else _balanced_goal(plan)
    clip = Clip(
        name, tuple(joint.name for joint in walker.joints), np.zeros((len(plan.times), len(walker.joints))),
        np.concatenate((goal, np.zeros((len(goal), 1))), axis=1), turns, contacts, floors, plan.rate_hz,
        is_cyclic=not gait.is_standing,
    )  # fmt: skip
    for _ in range(_ROUNDS):
        clip = replace(clip, root=np.concatenate((clip.root[:, :2], _height(plan, clip, ankles)[:, None]), axis=1))
        clip = _solve(plan, clip, ankles, soles)
        off = goal - centre_of_mass(walker, clip)[:, :2]
        clip = replace(clip, root=clip.root + np.concatenate((off, np.zeros((len(off), 1))), axis=1))
    for _ in range(2):
        clip = plant_feet(walker, clip)  # soles roll with the legs, since the ankles bend in one direction alone
    return _cut(plan, clip, strides)


def _cut(plan: Plan, clip: Clip, strides: int) -> Clip:
    """Return the strides in the middle, with the hips at 0 where they begin."""
    start = LEAD_STRIDES * plan.per_stride
    stop = start + strides * plan.per_stride
    begin = clip.root[start] * (1.0, 1.0, 0.0)
    floor = float(clip.floor_m[start].min())
    return replace(
        clip,
        angles=clip.angles[start:stop],
        root=clip.root[start:stop] - begin - np.array((0.0, 0.0, floor)),
        turns=clip.turns[start:stop],
        contacts=clip.contacts[start:stop],
        floor_m=clip.floor_m[start:stop] - floor,
    )


def _turns(plan: Plan) -> Floats:
    gait = plan.gait
    _, heading = plan.path(plan.times)
    phase = (plan.times / plan.period_s) % 1.0
    sway = np.deg2rad(gait.turns_pelvis_deg) * np.cos(2.0 * np.pi * phase)  # the side that comes down is in front
    pitch = np.full_like(phase, np.deg2rad(gait.lean_deg))
    has_trunk = _has_trunk(plan.walker)
    if has_trunk:
        return np.stack((np.zeros_like(phase), 0.5 * pitch, heading + sway), axis=1)
    return np.stack((np.zeros_like(phase), pitch, heading), axis=1)


def _has_trunk(walker: Walker) -> bool:
    return any(joint.segment == "upper" for joint in walker.joints)


def _balanced_goal(plan: Plan) -> Floats:
    """Return where the centre of mass must be, `(frames, 2)`: a linear inverted pendulum over the standing feet."""
    times = plan.times
    height = 0.56 * plan.body.height_m  # of the centre of mass (Winter)
    rest = _pressure(plan)
    # c_n - s (c_{n+1} - 2 c_n + c_{n-1}) = p_n with s = z / g * rate^2. What one p_n adds to all c decays on both sides
    # as q^|n|, where q < 1 solves s q^2 - (2 s + 1) q + s = 0.
    s = height / GRAVITY_M_S2 * plan.rate_hz**2
    decay = (2.0 * s + 1.0 - np.sqrt(4.0 * s + 1.0)) / (2.0 * s)
    reach = int(np.ceil(np.log(1e-12) / np.log(decay)))
    kernel = decay ** np.abs(np.arange(-reach, reach + 1))
    kernel /= kernel.sum()
    slope = [rest[1] - rest[0], rest[-1] - rest[-2]]
    before = rest[0] + np.arange(-reach, 0)[:, None] * slope[0]
    after = rest[-1] + np.arange(1, reach + 1)[:, None] * slope[1]
    padded = np.concatenate((before, rest, after))
    return np.stack([np.convolve(padded[:, axis], kernel, mode="valid") for axis in range(2)], axis=1)[: len(times)]


def _pressure(plan: Plan) -> Floats:
    """Return where the weight rests, `(frames, 2)`: it rolls from heel to ball, and goes over in double support."""
    times, body = plan.times, plan.body
    total, weighted = np.zeros(len(times)), np.zeros((len(times), 2))
    double = (plan.gait.duty - 0.5) * plan.period_s
    for foot in range(len(SIDES)):
        for step in plan.steps[foot]:
            share = step.share(plan.gait, times)
            coming, going = (smoothstep(part / double) for part in (times - step.start_s, step.stop_s - times))
            weight = np.minimum(coming, going)
            rolls = -0.3 * body.heel_m + (0.7 * body.ball_m + 0.3 * body.heel_m) * _rolled(plan.gait, share)
            forward = np.array((np.cos(step.heading), np.sin(step.heading)))
            total += weight
            weighted += weight[:, None] * (step.place[:2] + rolls[:, None] * forward)
    rest: Floats = weighted / np.maximum(total, 1e-9)[:, None]
    return rest


def _rolled(gait: Gait, share: Floats) -> Floats:
    """Return how far weight has rolled over a foot, 0 to 1, at shares of its stance; backward it rolls to the heel."""
    rolled = smoothstep(share)
    if gait.land_deg <= 0.0 <= gait.leave_deg:
        return 1.0 - rolled if gait.land_deg < 0.0 else np.full_like(share, 0.5)
    return rolled


def _running_goal(plan: Plan) -> Floats:
    places, heading = plan.path(plan.times)
    ahead = plan.scale * plan.gait.ahead_m
    return places + ahead * np.stack((np.cos(heading), np.sin(heading)), axis=1)


def _height(plan: Plan, clip: Clip, ankles: Floats) -> Floats:
    """Return the height of the hips `(frames,)`: as high as standing legs allow, or as bodies fly."""
    size, hips, turn = leg_size(plan.walker), hips_of(plan.walker), turn_matrices(clip.turns)
    reach = plan.gait.straight * (size.thigh_m + size.shank_m)
    highest = np.full(len(plan.times), np.inf)
    for foot, side in enumerate(SIDES):
        hip = turn @ hips[side]
        away = ankles[:, foot] - clip.root - hip
        level = np.linalg.norm(away[:, :2], axis=1)
        allowed = ankles[:, foot, 2] - hip[:, 2] + np.sqrt(np.maximum(reach**2 - level**2, 0.01))
        highest = np.minimum(highest, np.where(clip.contacts[:, foot], allowed, np.inf))
    if plan.gait.is_running:
        profile = _flying(plan)
        limit = np.where(np.isfinite(highest), highest - profile, np.inf)
        return profile + float(limit[plan.per_stride : -plan.per_stride].min())
    width = max(3, round(0.10 * plan.period_s * plan.rate_hz))
    padded = np.pad(highest, 2 * width, mode="edge")
    lowest = np.lib.stride_tricks.sliding_window_view(padded, 2 * width + 1).min(axis=1)
    kernel = np.hanning(2 * width + 3)[1:-1]
    return np.convolve(lowest, kernel / kernel.sum(), mode="valid")


def _flying(plan: Plan) -> Floats:
    """Return the height of a running body over where it lands: in the air a parabola, on the ground half a sine."""
    step = 0.5 * plan.period_s
    on = plan.gait.duty * plan.period_s
    air = step - on
    since = plan.times % step
    speed = 0.5 * GRAVITY_M_S2 * air  # where it takes off
    ground = -speed * on / np.pi * np.sin(np.pi * (since / on).clip(0.0, 1.0))
    flight = np.maximum(since - on, 0.0)
    height: Floats = np.where(since < on, ground, speed * flight - 0.5 * GRAVITY_M_S2 * flight**2)
    return height


def _solve(plan: Plan, clip: Clip, ankles: Floats, soles: Floats) -> Clip:
    size, hips, turn = leg_size(plan.walker), hips_of(plan.walker), turn_matrices(clip.turns)
    angles = np.zeros_like(clip.angles)
    for foot, side in enumerate(SIDES):
        place = np.einsum("fji,fj->fi", turn, ankles[:, foot] - clip.root) - hips[side]
        sole = np.einsum("fji,fj->fi", turn, soles[:, foot])
        place = np.where(clip.contacts[:, foot, None], place, _within_reach(place, size.thigh_m + size.shank_m))
        has_rotation = f"{side}_hip_rotation" in clip.joints
        bend = np.cross(np.array((0.0, 0.0, 1.0)), _level(sole)) if has_rotation else None
        solved = angles_of_place(place, sole, size, side, has_rotation=has_rotation, bend=bend)
        for kind, values in solved.items():
            angles[:, clip.joints.index(f"{side}_{kind}")] = values
    if _has_trunk(plan.walker):
        phase = (plan.times / plan.period_s) % 1.0
        angles[:, clip.joints.index("trunk_flexion")] = np.deg2rad(0.5 * plan.gait.lean_deg)
        back = -1.5 * np.deg2rad(plan.gait.turns_pelvis_deg) * np.cos(2.0 * np.pi * phase)
        angles[:, clip.joints.index("trunk_rotation")] = back
    return replace(clip, angles=angles)


def _within_reach(place: Floats, length_m: float) -> Floats:
    """Return places `(frames, 3)` of an ankle from the hip that a leg reaches without a jerk of its knee."""
    far = np.linalg.norm(place, axis=1, keepdims=True)
    limit = _SWING_REACH * length_m
    near = limit - _SWING_SOFT_M * np.logaddexp(0.0, (limit - far) / _SWING_SOFT_M)
    reached: Floats = place * (near / far)
    return reached


def _level(vectors: Floats) -> Floats:
    """Return the headings `(frames, 3)` of soles, also of those that point down steeply."""
    heading = np.arctan2(vectors[:, 1], np.maximum(vectors[:, 0], 0.05))
    return np.stack((np.cos(heading), np.sin(heading), np.zeros(len(vectors))), axis=1)


def centre_of_mass(walker: Walker, clip: Clip) -> Floats:
    """Return the place of the whole body's centre of mass `(frames, 3)`."""
    model, data = walker.model, mujoco.MjData(walker.model)
    centres = np.empty((clip.frames, 3))
    for frame, positions in enumerate(clip.positions()):
        data.qpos[:] = positions
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        centres[frame] = data.subtree_com[0]
    return centres
