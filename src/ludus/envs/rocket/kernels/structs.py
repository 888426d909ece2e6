"""The state of a game as Warp structs: what a kernel loads, changes and stores.

Every field is made of 32-bit words, so that an array of structs is also an int32 tensor `(..., words)`: snapshots are
plain tensor copies, and `warp_tools.struct_views` gives any field as a tensor without copying.

Boost pads are not a struct: `pads[game, pad]` is an int32, the tick of the episode (`Match.tick`) from which the pad is
there again; so a pad that nobody takes costs nothing. Their order and places are in `layout.PADS`.
"""

import warp as wp


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
    clock_s: wp.float32  # left; goes on below 0 in overtime
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


@wp.struct
class Rules:
    """Settings of the environment that kernels read."""

    blue: wp.int32  # cars of each team; seats of blue come first
    orange: wp.int32
    ticks: wp.int32  # a decision
    delay_ticks: wp.int32  # ticks of a decision in which the controls of the one before still hold
    ends_by_goal: wp.int32  # 1: an episode is over with a goal; 0: a match with a clock
    match_s: wp.float32  # length of a match
    overtime: wp.int32
    overtime_s: wp.float32  # after which a match is a draw, 0 never
    episode_s: wp.float32  # an episode is cut off after this time, 0 never
    no_touch_s: wp.float32  # and after this time without a touch, 0 never
    boost_rate: wp.float32  # times the usual consumption; 0 for unlimited boost
    bins: wp.int32  # of an axis, if actions are bins
    per_bin: wp.float32  # what one of them is worth
    shuffle: wp.int32  # whether slots of other cars in observations change places
    seed_hash: wp.uint32  # the two halves of the seed, mixed
    first_game: wp.int32
