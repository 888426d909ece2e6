"""The constants of the car alone, each with its unit: wheels, engine, steering, boost, jumps, dodges and air control.

Lengths in uu, times in s, angles in rad, and forces as accelerations: the car's mass is 1 here, because nothing in its
own motion depends on it. The values are published facts (RocketSim's constants, the RLBot wiki, RLUtilities' fits);
those that RocketSim states for a mass of 180 and lengths of 50 uu are converted beside their definition.
"""

from ludus.envs.rocket.rules import CAR_MASS, DT, INERTIA_PITCH, INERTIA_ROLL, INERTIA_YAW

# Turning of the body by a push: the inverse of its inertia for a mass of 1, 1/uu^2.
INVERSE_INERTIA_X = 1.0 / INERTIA_ROLL
INVERSE_INERTIA_Y = 1.0 / INERTIA_PITCH
INVERSE_INERTIA_Z = 1.0 / INERTIA_YAW

# Wheels. A ray goes down from each hard point; front and rear differ.
FRONT_X, FRONT_Y = 51.25, 25.90
REAR_X, REAR_Y = -33.75, 29.50
HARD_POINT_Z = 20.755
TRAVEL = 12.0  # of a spring, both ways
FRONT_FREE = 38.755 - TRAVEL + 12.5  # from hard point to surface when the spring has no load: its length and the radius
REAR_FREE = 37.055 - TRAVEL + 15.0
SLACK = 2.5  # a ray ends this much before the longest spring, and a pressed spring meets its stop at this much
REST_RAY = 37.77  # from hard point to floor when the car stands: the surface is looked for around it
WHEEL_REACH = 64.0  # no wheel touches anything that is farther than this from the centre of mass
STIFFNESS = 500.0
DAMPING_IN = 25.0  # compressing
DAMPING_OUT = 40.0  # relaxing
FRONT_SPRING = 35.75 / CAR_MASS  # scale of the front springs
REAR_SPRING = 54.265 / CAR_MASS
STOP_SHARE = 0.25  # of the speed into the surface that the stop takes at a wheel ...
STOP_RATE = 12.0  # ... and the speed out of it, 1/s times the way that the spring is pressed beyond it

# Driving, accelerations of one wheel.
WHEEL_DRIVE = 400.0
DRIVE_FADE_SPEED = 1400.0  # the drive falls to a tenth at this speed ...
DRIVE_END_SPEED = 1410.0  # ... and to nothing at this one
WHEEL_BRAKE = 875.0
BRAKE_RATE = 113.73963 / 3.0  # 1/s: a brake takes at most this share of the rolling speed, so that it does not reverse
COAST_BRAKE = 0.15
STOP_SPEED = 25.0  # below it a car without throttle brakes fully
THROTTLE_DEADZONE = 0.001
# Share of the lateral velocity at a wheel that its friction takes in a tick: a damping of 0.2, mass / 3 and DT.
GRIP = 0.2 * CAR_MASS / 3.0 * DT
SLIP_SPEED = 5.0  # below it a wheel does not slip
SLIP_GRIP = 0.2  # lateral grip of a wheel that only slips, of 1 that only rolls
SLIDE_GRIP = 0.1  # factor of lateral grip with the handbrake
SLIDE_ROLL_LOW, SLIDE_ROLL_HIGH = 0.5, 0.9  # factors of drive and brake with the handbrake, without and with slip
HANDBRAKE_RISE, HANDBRAKE_FALL = 5.0, 2.0  # 1/s
STICK = 0.5  # of gravity toward the surface
SPEEDS = (0.0, 500.0, 1000.0, 1500.0, 1750.0, 3000.0)
STEER_ANGLES = (0.53356, 0.31930, 0.18203, 0.10570, 0.08507, 0.03454)  # of the front wheels at these speeds
SLIDE_ANGLE, SLIDE_ANGLE_SLOPE = 0.39235, (0.12610 - 0.39235) / 2500.0  # with the handbrake
SLIDE_ANGLE_SPEED = 2500.0

# Boost.
BOOST_GROUND = 991.6667
BOOST_AIR = 991.6667  # plus full air throttle
BOOST_PER_S = 33.333333
BOOST_MIN_S = 0.1

# Jump, double jump, dodge.
JUMP_SPEED = 291.6667
JUMP_ACCELERATION = 1458.3333
JUMP_EARLY = 0.62  # share of it in the first JUMP_MIN_S
JUMP_MIN_S = 0.025
JUMP_MAX_S = 0.2
JUMP_RESET_S = 0.025  # the ground does not end a jump before this much after JUMP_MIN_S
SECOND_JUMP_S = 1.25  # after the jump ended
DODGE_DEADZONE = 0.5  # of |pitch| + |yaw| + |roll|
DODGE_AXIS_DEADZONE = 0.1
DODGE_SPEED = 500.0
DODGE_SIDE_GAIN = 0.9  # at full speed
DODGE_BACK_GAIN = 1.5
DODGE_BACK = 16.0 / 15.0
DODGE_SLOW = 100.0  # a slower car dodges backward if the stick says so, a faster one if it goes against its motion
DODGE_ROLL, DODGE_PITCH = 260.0, 224.0  # rad/s^2
DODGE_S = 0.65
DODGE_CANCEL_S = 0.041  # until then the torque cannot be cancelled
DODGE_LIFT = 0.65  # factor of the vertical speed in a tick ...
DODGE_LIFT_START_S, DODGE_LIFT_END_S = 0.15, 0.21  # ... from the first time on; after the second only when falling
DODGE_PITCH_LOCK_S = 0.95  # no pitch control until then

# Air control, rad/s^2 and 1/s.
_TORQUE = 0.0958738
AIR_PITCH, AIR_YAW, AIR_ROLL = 130.0 * _TORQUE, 95.0 * _TORQUE, 400.0 * _TORQUE
DAMP_PITCH, DAMP_YAW, DAMP_ROLL = 30.0 * _TORQUE, 20.0 * _TORQUE, 50.0 * _TORQUE
AIR_THROTTLE = 66.66667

# Back onto the wheels.
AUTOROLL_PULL = 100.0  # toward the surface
AUTOROLL_TURN = 80.0  # rad/s^2
AUTOFLIP_NORMAL_Z = 0.70710678
AUTOFLIP_TANGENT = 0.35552983  # tan(pi - 2.8): how far from upside down, about the car's length
AUTOFLIP_SPEED = 200.0
AUTOFLIP_TURN = 50.0
AUTOFLIP_S = 0.4
