"""What the kernels read and write: the walkers, all arrays with a walker per row, and the settings of their task."""

import warp as wp

from ludus.envs.warp_tools import EXACT

wp.set_module_options(EXACT)


@wp.struct
class Walkers:
    """The state of all walkers, that of the physics among it, and what a step leaves for the next one."""

    game: wp.array[wp.int64]
    episode: wp.array[wp.int64]
    frame: wp.array[wp.int64]
    change: wp.array[wp.int64]
    phase: wp.array[wp.float32]
    speed: wp.array[wp.float32]
    desired: wp.array[wp.float32]
    feet: wp.array2d[wp.float32]
    peaks: wp.array2d[wp.float32]
    reference: wp.array2d[wp.float32]  # the frame of the reference: a row of its table
    time: wp.array[wp.float32]
    positions: wp.array2d[wp.float32]
    velocities: wp.array2d[wp.float32]
    before: wp.array2d[wp.float32]  # positions and velocities before the physics
    controls: wp.array2d[wp.float32]
    forces: wp.array2d[wp.float32]
    sensors: wp.array2d[wp.float32]
    pushed: wp.array[wp.float32]  # 1 where a push began
    vector: wp.array2d[wp.float32]  # an observation before it is mirrored
    motion: wp.array[wp.float32]  # the one of several motions that is asked for
    previous: wp.array[wp.float32]  # the one before it
    blend: wp.array[wp.float32]  # how far the one has gone over into the other, 0 to 1


@wp.struct
class Task:
    """The settings of an environment, and tables; times are in control steps where they are whole numbers."""

    seed: wp.array[wp.uint32]  # its hash; one number, which a recorded graph reads where it lies
    table: wp.array2d[wp.float32]  # of the reference, `(rows * phases, channels)`
    firsts: wp.array[wp.int32]  # of each motion: its first row in the table, and how many it has
    counts: wp.array[wp.int32]
    slowest: wp.array[wp.float32]  # speed of its first row
    spans: wp.array[wp.float32]  # by which that of its last row is higher
    low_speeds: wp.array[wp.float32]  # desired speeds
    high_speeds: wp.array[wp.float32]
    ways: wp.array2d[wp.float32]  # direction, ahead and to the left
    turns: wp.array[wp.float32]  # rad by which it turns in a step
    low: wp.array[wp.float32]  # lowest angles
    high: wp.array[wp.float32]  # highest angles
    neutral: wp.array[wp.float32]  # target angles of the action 0
    joint_source: wp.array[wp.int32]  # reflections: where each number comes from, and its sign
    joint_sign: wp.array[wp.float32]
    vector_source: wp.array[wp.int32]
    vector_sign: wp.array[wp.float32]
    joints: wp.int32
    motions: wp.int32  # that observations tell apart; 0 where there is one
    command: wp.int32  # the one that never changes; -1 where they are drawn
    transition_step: wp.float32  # share of a transition in a step
    turning: wp.int32  # whether any motion turns
    phases: wp.int32  # columns of the table
    torques: wp.int32  # whether actions are torques and not target angles
    mirror: wp.int32
    fixed_starts: wp.int32
    start_noise: wp.float32
    has_speed: wp.int32  # whether there is one that never changes
    own_speed: wp.float32
    changes_speed: wp.int32
    speed_change_s: wp.float32
    speed_step: wp.float32  # by which the reference's speed changes at most in a step
    rate_hz: wp.float32
    step_s: wp.float32
    step_limit: wp.int64
    lowest_m: wp.float32
    largest_tilt: wp.float32
    standing_m: wp.float32
    mass_kg: wp.float32
    push_every: wp.int64
    push_lasts: wp.int64
    push_n: wp.float32  # 0 for no pushes
