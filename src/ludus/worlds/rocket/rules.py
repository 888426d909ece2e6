"""The rules and physical constants of Rocket, each with its unit; lengths in uu (1 cm), times in s, angles in rad.

Axes: x to the side, y toward the orange goal, z up. Blue is team 0 and defends y < 0. The values are published facts
about car soccer (the RLBot wiki's useful game values, RLUtilities' fits, RocketSim's constants and measurements of the
arena's surfaces); docs/research/rocket-physics.md lists the source of each value.

Constants of the car alone are in `kernels.wheels` (wheels, engine, steering) and `kernels.car` (boost, jumps, dodges,
air control). They are accelerations: its mass is 1 there, because its own motion does not depend on it. Values that
RocketSim states for a mass of 180 and lengths of 50 uu are converted at their definition.
"""

from enum import IntEnum

# Time.
TICK_HZ = 120
DT = 1.0 / TICK_HZ
MAX_CARS, MAX_TEAM = 6, 3

# World.
GRAVITY = -650.0
CONTACT_MARGIN = 1.905  # things that are nearer than this to each other touch
CONTACT_RECOVERY = 0.8  # share of a penetration that is made good in a tick, without a change of velocity
GOAL_LINE_Y = 5124.25  # a goal counts when the whole ball is beyond it

# Ball.
BALL_RADIUS = 91.25
BALL_REST_Z = 93.15  # the radius and nearly all of the contact margin
BALL_MASS = 30.0
BALL_DRAG = 0.03  # share of the velocity that is lost in a second
BALL_MAX_SPEED, BALL_MAX_SPIN = 6000.0, 6.0
BALL_FRICTION, BALL_RESTITUTION = 0.35, 0.6
BALL_BOUNCE_MIN = 10.0  # slower approaches do not bounce, uu/s

# Car: an Octane.
CAR_MASS = 180.0
CAR_MAX_SPEED, CAR_MAX_SPIN = 2300.0, 5.5
CAR_REST_Z = 17.01
BOOST_MAX, BOOST_START = 100.0, 33.333333
BOOST_MIN_S = 0.1  # the shortest burn
DEMOLITION_S = 3.0

# Hull of an Octane: half of its length, width and height, and where its middle lies from the centre of mass.
HULL_HALF_X, HULL_HALF_Y, HULL_HALF_Z = 120.507 / 2.0, 86.6994 / 2.0, 38.6591 / 2.0
HULL_OFFSET_X, HULL_OFFSET_Z = 13.8757, 20.755
HULL_REACH = 94.8  # no point of the hull is farther from the centre of mass
# Moments of inertia of that box over its mass, about forward (roll), left (pitch) and up (yaw), uu^2.
INERTIA_ROLL = (HULL_HALF_Y**2 + HULL_HALF_Z**2) / 3.0
INERTIA_PITCH = (HULL_HALF_X**2 + HULL_HALF_Z**2) / 3.0
INERTIA_YAW = (HULL_HALF_X**2 + HULL_HALF_Y**2) / 3.0

# Contacts of the car.
CAR_WORLD_FRICTION, CAR_WORLD_RESTITUTION = 0.3, 0.3
CAR_BOUNCE_MIN = 50.0  # slower approaches do not bounce, uu/s
CAR_BALL_FRICTION = 2.0
CAR_CAR_FRICTION, CAR_CAR_RESTITUTION = 0.09, 0.1
BUMPER_X = 64.5  # a contact farther forward than this, in the car's axes, is one of the bumper
BUMP_COOLDOWN_S = 0.25

# Arena: walls, corners and fillets; all of it is symmetric in x and in y.
SIDE_X, BACK_Y, CEILING_Z = 4096.0, 5120.0, 2048.0
CORNER_SUM = 8064.0  # |x| + |y| on the corner planes
FLOOR_FILLET = 256.0  # radius between the floor and the side walls and corners
BACK_FILLET = 160.0  # radius between the floor and the back walls
CEILING_FILLET = 512.0
CORNER_FILLET = 512.0 / (2.0 - 2.0**0.5)  # tangent to a corner plane 256 uu in x and in y from its virtual edge
GOAL_HALF_WIDTH, GOAL_HEIGHT, GOAL_DEPTH = 896.0, 640.0, 880.0
GOAL_CHAMFER = 8.0  # of the posts and the bar

# Match.
CLOCK_S = 300.0
KICKOFF_TOUCH_S = 5.0  # a first touch within this time counts as a good kickoff

# What the scorekeeper needs.
SHOT_SPEED = 1750.0  # of the ball toward the goal
SHOT_TIME_S = 2.0  # within which it would arrive
SHOT_COOLDOWN_S = 1.0
ASSIST_S = 2.0
GOAL_CREDIT_S = 4.0
AERIAL_Z = 200.0  # height of the ball from which a touch is an aerial one


# What a touch is, beside a contact.
TOUCH_GAP_TICKS = 12  # contacts of one car that follow each other faster are one touch
SHOT_TOUCH_S = 0.3  # a shot counts for who touched the ball within this time

# What RLBot packets leave to be counted: the handbrake's value, and the time for a second jump.
HANDBRAKE_RISE, HANDBRAKE_FALL = 5.0, 2.0  # 1/s
SECOND_JUMP_S = 1.25  # after the jump ended


class Stream(IntEnum):
    """Names of the independent random streams within one tick of one game."""

    SLOTS = 0  # kickoff places
    RESPAWN = 1
    SETTER = 2  # which state setter begins an episode
    SCENE = 3  # the numbers that a setter draws
    SHUFFLE = 4  # slots of other cars in observations
    BOTS, RANDOM_ACTIONS = 5, 6


class Setter(IntEnum):
    """What begins an episode; one team has the attacking part in it, blue or orange at random."""

    KICKOFF = 0  # the usual start: both teams in the same slots, the ball in the middle
    RANDOM = 1  # ball and cars anywhere, some in the air, at any speed
    GOALIE = 2  # a shot is on its way to the goal of the defending team, one of whom is near it
    SHOOTER = 3  # the ball lies or rolls in front of an attacker, between it and the goal
    AERIAL = 4  # the ball is high, an attacker with boost below or already in the air
    WALL = 5  # the ball is at a side wall, an attacker drives on the wall or toward it
    RECOVERY = 6  # all cars tumble through the air with little boost


SETTERS = tuple(setter.name.lower() for setter in Setter)


class Control(IntEnum):
    """Columns of a car's controls; the first five from -1 to 1, the last three are buttons, 0 or 1."""

    THROTTLE, STEER, PITCH, YAW, ROLL, JUMP, BOOST, HANDBRAKE = range(8)


CONTROLS = len(Control)


class Event(IntEnum):
    """Columns of a step's events, of each seat."""

    GOALS = 0  # scored by this seat: the last of its team to touch the ball
    TEAM_GOALS = 1  # scored by its team, by whomever
    CONCEDED = 2  # scored by the other team
    ASSISTS, SHOTS, SAVES = range(3, 6)
    TOUCHES = 6  # begun in this step
    AERIAL_TOUCHES = 7
    TOUCH_POWER = 8  # change of the ball's velocity by this seat's touches, uu/s
    DEMOLITIONS, DEMOLISHED, BUMPS, BIG_PADS, SMALL_PADS, BOOST_GAINED, BOOST_USED, JUMPS, DODGES = range(9, 18)
    KICKOFFS = 18  # begun before this step's end and now decided: touched, or too late
    KICKOFF_TOUCHES = 19  # of those, this seat's team touched the ball first and within KICKOFF_TOUCH_S
    WINS, LOSSES, DRAWS = range(20, 23)


EVENTS = tuple(event.name.lower() for event in Event)


class Measure(IntEnum):
    """Columns of where things stand after a step, of each seat, seen as blue: its own goal lies at y < 0."""

    X, Y, Z, VX, VY, VZ, SPEED, BOOST, ON_GROUND, SUPERSONIC, DEMOLISHED = range(11)
    BALL_X, BALL_Y, BALL_Z, BALL_VX, BALL_VY, BALL_VZ, BALL_SPEED, BALL_DISTANCE = range(11, 19)
    SPEED_TO_BALL = 19  # of the car, toward the ball, uu/s
    BALL_SPEED_TO_GOAL = 20  # of the ball, toward the middle of the other goal, uu/s
    BALL_SPEED_TO_OWN_GOAL = 21
    FACING_BALL = 22  # cosine between the car's nose and the way to the ball
    BETWEEN = 23  # cosine between the ways from the own goal to the car and to the ball
    TEAM_RANK = 24  # 0 for the car of its team that is nearest to the ball, then 1 and 2
    TEAMMATE_DISTANCE = 25  # to the nearest, 0 without one
    SINCE_TOUCH_S = 26  # since this seat touched the ball, or since the start
    GOAL_DIFFERENCE = 27
    CLOCK_S = 28  # left; negative in overtime: minus the overtime played
    KICKOFF = 29  # 1 until the first touch after a kickoff
    POSSESSION = 30  # 1 if its team was the last to touch the ball since the kickoff or start


MEASURES = tuple(measure.name.lower() for measure in Measure)
