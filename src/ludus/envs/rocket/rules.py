"""The rules and physical constants of Rocket, each with its unit; lengths in uu (1 cm), times in s, angles in rad.

Axes: x to the side, y toward the orange goal, z up. Blue is team 0 and defends y < 0. The values are published facts
about car soccer (the RLBot wiki's useful game values, RLUtilities' fits, RocketSim's constants and measurements of the
arena's surfaces); docs/rocket.md says which value comes from where.
"""

from enum import IntEnum

# Time.
TICK_HZ = 120
DT = 1.0 / TICK_HZ
MAX_CARS = 6
MAX_TEAM = 3

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
BALL_MAX_SPEED = 6000.0
BALL_MAX_SPIN = 6.0
BALL_FRICTION = 0.35
BALL_RESTITUTION = 0.6
BALL_BOUNCE_MIN = 10.0  # slower approaches do not bounce, uu/s

# Car: an Octane.
CAR_MASS = 180.0
CAR_MAX_SPEED = 2300.0
CAR_MAX_SPIN = 5.5
CAR_REST_Z = 17.01
SUPERSONIC_ON = 2200.0
SUPERSONIC_OFF = 2100.0
SUPERSONIC_GRACE_S = 1.0
BOOST_MAX = 100.0
BOOST_START = 33.333333
DEMOLITION_S = 3.0

# Hull of an Octane: half of its length, width and height, and where its middle lies from the centre of mass.
HULL_HALF_X = 120.507 / 2.0
HULL_HALF_Y = 86.6994 / 2.0
HULL_HALF_Z = 38.6591 / 2.0
HULL_OFFSET_X = 13.8757
HULL_OFFSET_Z = 20.755
HULL_REACH = 94.8  # no point of the hull is farther from the centre of mass
# Moments of inertia of that box over its mass, about forward (roll), left (pitch) and up (yaw), uu^2.
INERTIA_ROLL = (HULL_HALF_Y**2 + HULL_HALF_Z**2) / 3.0
INERTIA_PITCH = (HULL_HALF_X**2 + HULL_HALF_Z**2) / 3.0
INERTIA_YAW = (HULL_HALF_X**2 + HULL_HALF_Y**2) / 3.0

# Contacts of the car.
CAR_WORLD_FRICTION = 0.3
CAR_WORLD_RESTITUTION = 0.3
CAR_BOUNCE_MIN = 50.0  # slower approaches do not bounce, uu/s
CAR_BALL_FRICTION = 2.0
CAR_CAR_FRICTION = 0.09
CAR_CAR_RESTITUTION = 0.1
BUMPER_X = 64.5  # a contact farther forward than this, in the car's axes, is one of the bumper
BUMP_COOLDOWN_S = 0.25

# Arena: walls, corners and fillets; all of it is symmetric in x and in y.
SIDE_X = 4096.0
BACK_Y = 5120.0
CEILING_Z = 2048.0
CORNER_SUM = 8064.0  # |x| + |y| on the corner planes
FLOOR_FILLET = 256.0  # radius between the floor and the side walls and corners
BACK_FILLET = 160.0  # radius between the floor and the back walls
CEILING_FILLET = 512.0
CORNER_FILLET = 512.0 / (2.0 - 2.0**0.5)  # tangent to a corner plane 256 uu in x and in y from its virtual edge
GOAL_HALF_WIDTH = 896.0
GOAL_HEIGHT = 640.0
GOAL_DEPTH = 880.0
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


class Stream(IntEnum):
    """Names of the independent random streams within one tick of one game."""

    SLOTS = 0  # kickoff places
    RESPAWN = 1
    SETTER = 2  # which state setter begins an episode
    SCENE = 3  # the numbers that a setter draws
    SHUFFLE = 4  # slots of other cars in observations
    BOTS = 5
    RANDOM_ACTIONS = 6


class Control(IntEnum):
    """Columns of a car's controls; the first five from -1 to 1, the last three are buttons, 0 or 1."""

    THROTTLE = 0
    STEER = 1
    PITCH = 2
    YAW = 3
    ROLL = 4
    JUMP = 5
    BOOST = 6
    HANDBRAKE = 7


CONTROLS = len(Control)


class Event(IntEnum):
    """Columns of a step's events, of each seat."""

    GOALS = 0  # scored by this seat: the last of its team to touch the ball
    TEAM_GOALS = 1  # scored by its team, by whomever
    CONCEDED = 2  # scored by the other team
    ASSISTS = 3
    SHOTS = 4
    SAVES = 5
    TOUCHES = 6  # begun in this step
    AERIAL_TOUCHES = 7
    TOUCH_POWER = 8  # change of the ball's velocity by this seat's touches, uu/s
    DEMOLITIONS = 9
    DEMOLISHED = 10
    BUMPS = 11
    BIG_PADS = 12
    SMALL_PADS = 13
    BOOST_GAINED = 14
    BOOST_USED = 15
    JUMPS = 16
    DODGES = 17
    KICKOFFS = 18  # begun before this step's end and now decided: touched, or too late
    KICKOFF_TOUCHES = 19  # of those, this seat's team touched the ball first and within KICKOFF_TOUCH_S
    WINS = 20
    LOSSES = 21
    DRAWS = 22


EVENTS = tuple(event.name.lower() for event in Event)


class Measure(IntEnum):
    """Columns of where things stand after a step, of each seat, seen as blue: its own goal lies at y < 0."""

    X = 0
    Y = 1
    Z = 2
    VX = 3
    VY = 4
    VZ = 5
    SPEED = 6
    BOOST = 7
    ON_GROUND = 8
    SUPERSONIC = 9
    DEMOLISHED = 10
    BALL_X = 11
    BALL_Y = 12
    BALL_Z = 13
    BALL_VX = 14
    BALL_VY = 15
    BALL_VZ = 16
    BALL_SPEED = 17
    BALL_DISTANCE = 18
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
