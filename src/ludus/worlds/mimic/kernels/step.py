"""One control step around the physics: controls and pushes before it; scores, ends, restarts and observations after.

Every formula is that of the host, which computes with tensors: `env.py`, `reference.py`, `scoring.py`, `observation.py`
and `physics.Controls`. They agree to the rounding of float32; `tests/worlds/mimic/test_mimic_warp.py` compares them.
"""

import warp as wp

from ludus.envs.warp_functions import mix, uniform
from ludus.envs.warp_tools import EXACT
from ludus.worlds.mimic import observation, reference, scoring
from ludus.worlds.mimic.kernels.structs import Task, Walkers
from ludus.worlds.mimic.physics import LARGEST
from ludus.worlds.mimic.reference import Stream

wp.set_module_options(EXACT)

_ROOT = wp.constant(7)  # positions before the joints' angles
_HEAD = wp.constant(sum(observation.BLOCKS.values()))  # values of an observation before the joints' angles
_POINTS = wp.constant(scoring.POINT_NUMBERS)
_FOOT_EVENTS = wp.constant(10)  # before the peaks
_MEASURES = wp.constant(9)  # before the joints' errors
_LARGEST = wp.constant(float(LARGEST))
_WIDEST = wp.constant(float(observation.LARGEST))
_TURN_UNIT = wp.constant(float(observation.TURN_UNIT))
_VELOCITY_UNIT = wp.constant(float(observation.VELOCITY_UNIT))
_GRAVITY = wp.constant(float(scoring.GRAVITY_M_S2))
_CARRIES = wp.constant(float(scoring.CARRIES))
_LIFTED = wp.constant(float(scoring.LIFTED))
_SHORTEST_SWING_S = wp.constant(float(scoring.SHORTEST_SWING_S))
_POSE_SHARE = wp.constant(float(scoring.POSE_SHARE))
_POSE_SCALE = wp.constant(float(scoring.POSE_SCALE))
_VELOCITY_SCALE = wp.constant(float(scoring.VELOCITY_SCALE))
_FIXED_SPEEDS = wp.constant(wp.int64(reference.FIXED_SPEEDS))
_SPEED_STRIDE = wp.constant(wp.int64(reference.SPEED_STRIDE))
_LAST_SPEED = wp.constant(float(reference.FIXED_SPEEDS - 1))
_FIRST_PHASE = wp.constant(wp.float64(reference.FIRST_PHASE))
_GOLDEN_RATIO = wp.constant(wp.float64(reference.GOLDEN_RATIO))
_NOISE_SPAN = wp.constant(float(reference.NOISE_SPAN))
_VELOCITY_NOISE = wp.constant(float(reference.VELOCITY_NOISE))
_START = wp.constant(wp.uint32(int(Stream.START)))
_NOISE = wp.constant(wp.uint32(int(Stream.NOISE)))
_COMMAND = wp.constant(wp.uint32(int(Stream.COMMAND)))
_PUSH = wp.constant(wp.uint32(int(Stream.PUSH)))
_DEGREES = wp.constant(180.0 / 3.141592653589793)


@wp.func
def fraction(value: wp.float32) -> wp.float32:
    """Return the remainder by 1, from 0 to 1 for negative numbers too."""
    return value - wp.floor(value)


@wp.func
def drawn(w: Walkers, t: Task, i: int, number: wp.int64) -> wp.uint32:
    """Return the hash of a walker, its episode and a number: the frame, or that of a push."""
    return mix(mix(mix(t.seed[0], wp.uint32(w.game[i])), wp.uint32(w.episode[i])), wp.uint32(number))


@wp.func
def is_mirrored(w: Walkers, t: Task, i: int) -> bool:
    """Return whether a walker is in a left step and sees it as a right one."""
    return t.mirror != 0 and w.phase[i] >= 0.5


@wp.func
def look_up_motion(w: Walkers, t: Task, i: int, motion: int, share: wp.float32):
    """Let the row of a motion have a share in that of the reference; see `Reference.rows`."""
    count = t.counts[motion]
    place = wp.clamp((w.speed[i] - t.slowest[motion]) / t.spans[motion], 0.0, 1.0) * wp.float32(count - 1)
    row = wp.min(wp.floor(place), wp.float32(wp.max(count - 2, 0)))
    along = place - row
    column = w.phase[i] * wp.float32(t.phases)
    first = wp.floor(column)
    across = column - first
    start = wp.int32(first) % t.phases
    following = (start + 1) % t.phases
    base = (t.firsts[motion] + wp.int32(row)) * t.phases
    above = base
    if count > 1:
        above = base + t.phases
    for channel in range(t.table.shape[1]):
        slower = wp.lerp(t.table[base + start, channel], t.table[base + following, channel], across)
        faster = wp.lerp(t.table[above + start, channel], t.table[above + following, channel], across)
        value = wp.lerp(slower, faster, along)
        if share < 1.0:
            value = wp.lerp(w.reference[i, channel], value, share)
        w.reference[i, channel] = value


@wp.func
def look_up(w: Walkers, t: Task, i: int):
    """Write the row of the reference at the walker's speed, phase and motion; see `MimicEnv._reference_rows`."""
    if w.blend[i] < 1.0:
        look_up_motion(w, t, i, wp.int32(w.previous[i]), 1.0)
    look_up_motion(w, t, i, wp.int32(w.motion[i]), w.blend[i])


@wp.func
def turn_world(w: Walkers, t: Task, i: int):
    """Turn a walker against the turn of its motion; see `MimicEnv._turned` and `MujocoPhysics.turn`."""
    turn = -wp.lerp(t.turns[wp.int32(w.previous[i])], t.turns[wp.int32(w.motion[i])], w.blend[i])
    cos = wp.cos(0.5 * turn)
    sin = wp.sin(0.5 * turn)
    qw = w.positions[i, 3]
    x = w.positions[i, 4]
    y = w.positions[i, 5]
    z = w.positions[i, 6]
    w.positions[i, 3] = cos * qw - sin * z
    w.positions[i, 4] = cos * x - sin * y
    w.positions[i, 5] = cos * y + sin * x
    w.positions[i, 6] = cos * z + sin * qw
    ahead = w.velocities[i, 0]
    left = w.velocities[i, 1]
    cos = wp.cos(turn)
    sin = wp.sin(turn)
    w.velocities[i, 0] = cos * ahead - sin * left
    w.velocities[i, 1] = sin * ahead + cos * left


@wp.func
def switch_motion(w: Walkers, t: Task, i: int, h: wp.uint32):
    """Let a walker go over into another motion; see `MimicEnv._switch`."""
    if w.blend[i] >= 1.0:
        drawn_motion = wp.floor(uniform(mix(h, _COMMAND + wp.uint32(2))) * wp.float32(t.motions))
        w.previous[i] = w.motion[i]
        w.blend[i] = wp.where(drawn_motion == w.motion[i], 1.0, 0.0)
        w.motion[i] = drawn_motion


@wp.func
def next_change(w: Walkers, t: Task, i: int, h: wp.uint32) -> wp.int64:
    """Return the frame in which the desired speed changes next."""
    seconds = t.speed_change_s * (0.5 + uniform(mix(h, _COMMAND + wp.uint32(1))))
    return w.frame[i] + wp.max(wp.int64(seconds * t.rate_hz), wp.int64(1))


@wp.func
def move_reference(w: Walkers, t: Task, i: int):
    """Advance phase and speed, and draw a new desired speed where one is due; see `MimicEnv._move_reference`."""
    period_s = w.reference[i, t.table.shape[1] - 1]
    w.phase[i] = fraction(w.phase[i] + t.step_s / period_s)
    w.speed[i] = w.speed[i] + wp.clamp(w.desired[i] - w.speed[i], -t.speed_step, t.speed_step)
    w.frame[i] = w.frame[i] + wp.int64(1)
    if t.motions > 0:
        w.blend[i] = wp.min(w.blend[i] + t.transition_step, 1.0)
    if t.changes_speed != 0 and w.frame[i] == w.change[i]:
        h = drawn(w, t, i, w.frame[i])
        if t.motions > 0 and t.command < 0:
            switch_motion(w, t, i, h)
        motion = wp.int32(w.motion[i])
        span = t.high_speeds[motion] - t.low_speeds[motion]
        w.desired[i] = t.low_speeds[motion] + span * uniform(mix(h, _COMMAND))
        w.change[i] = next_change(w, t, i, h)
    look_up(w, t, i)


@wp.func
def start_on_reference(w: Walkers, t: Task, i: int, h: wp.uint32):
    """Put the body of a walker on the reference, with noise; see `reference.first_states`."""
    spread = 2.0 * _NOISE_SPAN * t.start_noise
    root = 2 * t.joints
    cr = wp.cos(0.5 * w.reference[i, root + 1])
    cp = wp.cos(0.5 * w.reference[i, root + 2])
    cy = wp.cos(0.5 * w.reference[i, root + 3])
    sr = wp.sin(0.5 * w.reference[i, root + 1])
    sp = wp.sin(0.5 * w.reference[i, root + 2])
    sy = wp.sin(0.5 * w.reference[i, root + 3])
    w.time[i] = 0.0
    w.positions[i, 0] = 0.0
    w.positions[i, 1] = 0.0
    w.positions[i, 2] = w.reference[i, root]
    w.positions[i, 3] = cy * cp * cr + sy * sp * sr
    w.positions[i, 4] = cy * cp * sr - sy * sp * cr
    w.positions[i, 5] = cy * sp * cr + sy * cp * sr
    w.positions[i, 6] = sy * cp * cr - cy * sp * sr
    for number in range(6):
        w.velocities[i, number] = w.reference[i, root + 4 + number]
    for joint in range(t.joints):
        noise = spread * (uniform(mix(h, _NOISE + wp.uint32(joint))) - 0.5)
        w.positions[i, _ROOT + joint] = w.reference[i, joint] + noise
        noise = spread * (uniform(mix(h, _NOISE + wp.uint32(t.joints + joint))) - 0.5)
        w.velocities[i, 6 + joint] = w.reference[i, t.joints + joint] + _VELOCITY_NOISE * noise


@wp.func
def start_phase(w: Walkers, t: Task, i: int, h: wp.uint32) -> wp.float32:
    """Return the phase of a stride to begin at; see `reference.draw_starts`."""
    if t.fixed_starts != 0:
        game = w.game[i]
        within = _FIRST_PHASE + _GOLDEN_RATIO * wp.float64(game)
        within = within - wp.floor(within)
        return wp.float32(wp.float64(0.5) * wp.float64(game % wp.int64(2)) + wp.float64(0.5) * within)
    return uniform(mix(h, _START))


@wp.func
def start_speed(w: Walkers, t: Task, i: int, h: wp.uint32) -> wp.float32:
    """Return the speed to begin at; see `reference.draw_starts`."""
    motion = wp.int32(w.motion[i])
    slowest = t.low_speeds[motion]
    fastest = t.high_speeds[motion]
    if t.has_speed != 0:
        return wp.where(t.motions > 0, wp.clamp(t.own_speed, slowest, fastest), t.own_speed)
    span = fastest - slowest
    if t.fixed_starts != 0:
        number = w.game[i] * _SPEED_STRIDE % _FIXED_SPEEDS
        return slowest + span * wp.float32(number) / _LAST_SPEED
    return slowest + span * uniform(mix(h, _START + wp.uint32(1)))


@wp.func
def start_motion(w: Walkers, t: Task, i: int, h: wp.uint32) -> wp.float32:
    """Return the motion to begin with; see `reference.draw_motions`."""
    if t.command >= 0:
        return wp.float32(t.command)
    if t.fixed_starts != 0:
        return wp.float32(w.game[i] % wp.int64(t.motions))
    return wp.floor(uniform(mix(h, _START + wp.uint32(4))) * wp.float32(t.motions))


@wp.func
def restart(w: Walkers, t: Task, i: int):
    """Begin the next episode of a walker; see `MimicEnv._restart`."""
    w.episode[i] = w.episode[i] + wp.int64(1)
    w.frame[i] = wp.int64(0)
    h = drawn(w, t, i, wp.int64(0))
    w.phase[i] = start_phase(w, t, i, h)
    if t.motions > 0:
        w.motion[i] = start_motion(w, t, i, h)
        w.previous[i] = w.motion[i]
        w.blend[i] = 1.0
    w.speed[i] = start_speed(w, t, i, h)
    w.desired[i] = w.speed[i]
    w.change[i] = wp.int64(0)  # which is never due
    if t.changes_speed != 0:
        w.change[i] = next_change(w, t, i, h)
    look_up(w, t, i)
    start_on_reference(w, t, i, h)
    for number in range(4):
        w.feet[i, number] = 0.0
    for joint in range(t.joints):
        w.peaks[i, joint] = 0.0


@wp.func
def euler_angles(w: Walkers, i: int) -> wp.vec3:
    """Return roll, pitch and yaw; see `observation.euler_angles`."""
    qw = w.positions[i, 3]
    x = w.positions[i, 4]
    y = w.positions[i, 5]
    z = w.positions[i, 6]
    roll = wp.atan2(2.0 * (qw * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = wp.asin(wp.clamp(2.0 * (qw * y - x * z), -1.0, 1.0))
    yaw = wp.atan2(2.0 * (qw * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return wp.vec3(roll, pitch, yaw)


@wp.func
def observe(w: Walkers, t: Task, i: int, angles: wp.vec3, out: wp.array3d[wp.float32]):
    """Write what a walker observes; see `observation.observe`."""
    phase = w.phase[i]
    if t.mirror != 0:
        phase = fraction(2.0 * phase)
    turn = 2.0 * wp.pi * phase
    vector = w.vector[i]
    vector[0] = wp.cos(turn)
    vector[1] = wp.sin(turn)
    vector[2] = w.speed[i]
    vector[3] = w.desired[i]
    vector[4] = (w.positions[i, 2] - t.standing_m) * 10.0
    ahead = wp.cos(angles[2])
    left = wp.sin(angles[2])
    for axis in range(3):
        vector[5 + axis] = angles[axis]
        vector[11 + axis] = w.velocities[i, 3 + axis] / _TURN_UNIT
    vector[8] = w.velocities[i, 0] * ahead + w.velocities[i, 1] * left
    vector[9] = w.velocities[i, 1] * ahead - w.velocities[i, 0] * left
    vector[10] = w.velocities[i, 2]
    for joint in range(t.joints):
        vector[_HEAD + joint] = w.positions[i, _ROOT + joint]
        vector[_HEAD + t.joints + joint] = w.velocities[i, 6 + joint] / _VELOCITY_UNIT
    told = _HEAD + 2 * t.joints
    for motion in range(t.motions):
        share = wp.where(motion == wp.int32(w.previous[i]), 1.0 - w.blend[i], 0.0)
        vector[told + motion] = share + wp.where(motion == wp.int32(w.motion[i]), w.blend[i], 0.0)
    mirrored = is_mirrored(w, t, i)
    for place in range(told + t.motions):
        value = vector[place]
        if mirrored:
            value = t.vector_sign[place] * vector[t.vector_source[place]]
        out[i, 0, place] = wp.clamp(value, -_WIDEST, _WIDEST)


@wp.func
def control_of(t: Task, joint: int, action: wp.float32) -> wp.float32:
    """Return the actuator's control of an action; see `physics.Controls`."""
    if t.torques != 0:
        return action
    reach = t.neutral[joint] - t.low[joint]
    if action > 0.0:
        reach = t.high[joint] - t.neutral[joint]
    return t.neutral[joint] + action * reach


@wp.kernel
def decide_kernel(w: Walkers, t: Task, actions: wp.array3d[wp.float32]):
    """Turn actions into controls, push walkers, and keep their state in case the physics breaks."""
    i = wp.tid()
    mirrored = is_mirrored(w, t, i)
    for joint in range(t.joints):
        action = actions[i, 0, joint]
        if mirrored:
            action = t.joint_sign[joint] * actions[i, 0, t.joint_source[joint]]
        if wp.isnan(action):
            action = 0.0
        w.controls[i, joint] = control_of(t, joint, wp.clamp(action, -1.0, 1.0))
    if t.push_n > 0.0:
        push = w.frame[i] // t.push_every
        since = w.frame[i] % t.push_every
        w.pushed[i] = 0.0
        w.forces[i, 0] = 0.0
        w.forces[i, 1] = 0.0
        if push >= wp.int64(1) and since < t.push_lasts:
            direction = 2.0 * wp.pi * uniform(mix(drawn(w, t, i, push), _PUSH))
            w.forces[i, 0] = t.push_n * wp.cos(direction)
            w.forces[i, 1] = t.push_n * wp.sin(direction)
            if since == wp.int64(0):
                w.pushed[i] = 1.0
    places = w.positions.shape[1]
    for number in range(places):
        w.before[i, number] = w.positions[i, number]
    for number in range(w.velocities.shape[1]):
        w.before[i, places + number] = w.velocities[i, number]


@wp.func
def safe(value: wp.float32) -> wp.float32:
    """Return a number in the place of one that is none."""
    if wp.isnan(value):
        return 0.0
    return wp.clamp(value, -_LARGEST, _LARGEST)


@wp.func
def put_back(w: Walkers, i: int) -> bool:
    """Return whether the numbers of a walker have gone wrong; it then gets back those from before."""
    places = w.positions.shape[1]
    broken = bool(False)
    for number in range(places):
        if not wp.abs(w.positions[i, number]) < _LARGEST:  # NaN is not less than anything
            broken = True
    for number in range(w.velocities.shape[1]):
        if not wp.abs(w.velocities[i, number]) < _LARGEST:
            broken = True
    if broken:
        for number in range(places):
            w.positions[i, number] = safe(w.before[i, number])
        for number in range(w.velocities.shape[1]):
            w.velocities[i, number] = safe(w.before[i, places + number])
        for number in range(w.sensors.shape[1]):
            w.sensors[i, number] = 0.0
    return broken


@wp.func
def follow_foot(w: Walkers, t: Task, i: int, foot: int, events: wp.array3d[wp.float32]):
    """Follow a foot, 0 right or 1 left, and write whether it came down; see `scoring.follow_feet`."""
    load = w.sensors[i, _POINTS + foot] / (t.mass_kg * _GRAVITY)
    was_down = w.feet[i, foot] > 0.5
    is_down = load > _CARRIES or (was_down and load > _LIFTED)
    struck = float(0.0)
    length = float(0.0)
    swing = float(0.0)
    if is_down and not was_down and w.feet[i, 2 + foot] >= _SHORTEST_SWING_S:
        struck = 1.0
        length = w.sensors[i, 6 * foot] - w.sensors[i, 6 - 6 * foot]  # from the other heel forward
        swing = w.feet[i, 2 + foot]
    events[i, 0, 2 + foot] = struck
    events[i, 0, 4 + foot] = length
    events[i, 0, 6 + foot] = swing
    events[i, 0, 8 + foot] = wp.where(is_down, t.step_s, 0.0)
    if is_down:
        w.feet[i, foot] = 1.0
        w.feet[i, 2 + foot] = 0.0
    else:
        w.feet[i, foot] = 0.0
        w.feet[i, 2 + foot] = w.feet[i, 2 + foot] + t.step_s


@wp.func
def square(value: wp.float32) -> wp.float32:
    """Return the square."""
    return value * value


@wp.func
def score(
    w: Walkers, t: Task, i: int, angles: wp.vec3, events: wp.array3d[wp.float32], metrics: wp.array3d[wp.float32]
):
    """Compare a walker with the reference, and follow its feet and torques; see `Scorer.score`."""
    pose = float(0.0)
    motion = float(0.0)
    power = float(0.0)
    root = 2 * t.joints
    for joint in range(t.joints):
        off = w.positions[i, _ROOT + joint] - w.reference[i, joint]
        pose = pose + off * off
        velocity = w.velocities[i, 6 + joint]
        motion = motion + square(velocity - w.reference[i, t.joints + joint])
        torque = w.sensors[i, _POINTS + 2 + joint]
        power = power + wp.abs(torque * velocity)
        peak = wp.max(w.peaks[i, joint], wp.abs(torque))
        events[i, 0, _FOOT_EVENTS + joint] = peak - w.peaks[i, joint]
        w.peaks[i, joint] = peak
        metrics[i, 0, _MEASURES + joint] = square(off * _DEGREES)
    tilted = float(0.0)
    turning = float(0.0)
    for axis in range(3):
        tilted = tilted + square(angles[axis] - w.reference[i, root + 1 + axis])
        turning = turning + square(w.velocities[i, 3 + axis] - w.reference[i, root + 7 + axis])
    pose = pose + tilted
    motion = motion + turning
    drift = square(w.velocities[i, 0] - w.reference[i, root + 4])
    drift = drift + square(w.velocities[i, 1] - w.reference[i, root + 5])
    effectors = float(0.0)
    for number in range(_POINTS):
        effectors = effectors + square(w.sensors[i, number] - w.reference[i, root + 10 + number])
    follow_foot(w, t, i, 0, events)
    follow_foot(w, t, i, 1, events)
    like = _POSE_SHARE * wp.exp(-_POSE_SCALE * pose) + (1.0 - _POSE_SHARE) * wp.exp(-_VELOCITY_SCALE * motion)
    events[i, 0, 0] = like
    events[i, 0, 1] = power * t.step_s
    metrics[i, 0, 0] = pose
    metrics[i, 0, 1] = motion
    metrics[i, 0, 2] = square(10.0 * (w.positions[i, 2] - w.reference[i, root])) + drift
    metrics[i, 0, 3] = effectors
    metrics[i, 0, 4] = power
    metrics[i, 0, 5] = t.mass_kg
    metrics[i, 0, 7] = w.positions[i, 2]
    metrics[i, 0, 8] = wp.max(wp.abs(angles[0]), wp.abs(angles[1]))
    metrics[i, 0, _MEASURES + t.joints] = w.desired[i]
    metrics[i, 0, _MEASURES + t.joints + 1] = w.phase[i]


@wp.kernel
def conclude_kernel(
    w: Walkers,
    t: Task,
    terminated: wp.array[wp.bool],
    truncated: wp.array[wp.bool],
    events: wp.array3d[wp.float32],
    metrics: wp.array3d[wp.float32],
    final: wp.array3d[wp.float32],
    observations: wp.array3d[wp.float32],
):
    """Score a step, end episodes and begin the next ones; see `MimicEnv._conclude`."""
    i = wp.tid()
    broken = put_back(w, i)
    motion = wp.int32(w.motion[i])
    travelled = (w.positions[i, 0] - safe(w.before[i, 0])) * t.ways[motion, 0]
    travelled = travelled + (w.positions[i, 1] - safe(w.before[i, 1])) * t.ways[motion, 1]
    if t.turning != 0:
        turn_world(w, t, i)
    metrics[i, 0, 6] = w.velocities[i, 0] * t.ways[motion, 0] + w.velocities[i, 1] * t.ways[motion, 1]
    move_reference(w, t, i)
    angles = euler_angles(w, i)
    fell = w.positions[i, 2] < t.lowest_m
    fell = fell or wp.abs(angles[0]) > t.largest_tilt or wp.abs(angles[1]) > t.largest_tilt
    is_terminated = fell or broken
    is_truncated = w.frame[i] >= t.step_limit and not is_terminated
    score(w, t, i, angles, events, metrics)
    last = _FOOT_EVENTS + t.joints
    events[i, 0, last] = travelled
    events[i, 0, last + 1] = w.pushed[i]
    events[i, 0, last + 2] = wp.where(fell, 1.0, 0.0)
    events[i, 0, last + 3] = wp.where(is_truncated, 1.0, 0.0)
    events[i, 0, last + 4] = wp.where(broken, 1.0, 0.0)
    terminated[i] = is_terminated
    truncated[i] = is_truncated
    observe(w, t, i, angles, final)
    if is_terminated or is_truncated:
        restart(w, t, i)
        observe(w, t, i, euler_angles(w, i), observations)
    else:
        for place in range(observations.shape[2]):
            observations[i, 0, place] = final[i, 0, place]


@wp.kernel
def restart_kernel(w: Walkers, t: Task, chosen: wp.array[wp.bool], observations: wp.array3d[wp.float32]):
    """Begin the next episode of the chosen walkers, and observe all."""
    i = wp.tid()
    if chosen[i]:
        restart(w, t, i)
    observe(w, t, i, euler_angles(w, i), observations)


@wp.kernel
def resume_kernel(w: Walkers, t: Task, observations: wp.array3d[wp.float32]):
    """Compute what follows from a state that was restored."""
    i = wp.tid()
    look_up(w, t, i)
    observe(w, t, i, euler_angles(w, i), observations)
