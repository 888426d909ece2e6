"""Settings of a Mimic environment."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ludus.envs.settings import EnvSettings
from ludus.envs.stored import OutsideName
from ludus.worlds.mimic.body import HEIGHT_RANGE_M, MASS_RANGE_KG

Speed = Annotated[float, Field(ge=0.0, le=5.0)]
MotionPath = Annotated[
    Path, OutsideName("motion", "ludus.worlds.mimic.motion.library:is_library_motion"), Field(strict=False)
]
MAX_MOTIONS = 16


class PushConfig(EnvSettings):
    """Pushes at the hips, for a short time, in a random horizontal direction."""

    impulse_ns: Annotated[float, Field(ge=0.0, le=200.0)] = 0.0  # force times time, in N s; 0 switches pushes off
    every_s: Annotated[float, Field(ge=0.1, le=60.0)] = 3.0  # time from one push to the next
    duration_s: Annotated[float, Field(gt=0.0, le=0.5)] = 0.1  # how long the force lasts


class BodyConfig(EnvSettings):
    """A body of the user's own.

    Attributes:
        file: MJCF file with a free root, hinges with ranges, and one actuator with a largest torque for each; the body
            stands straight where all angles are 0; x is forward, y left, z up.
        joints: Name in the file of each joint of the reference: hips, knees and ankles of both sides at least. Others
            are held straight by the reference.
    """

    file: Annotated[Path, OutsideName("body"), Field(strict=False)]
    joints: dict[str, str]


class MimicConfig(EnvSettings):
    """What can be set about the walker, its physics, its reference and its episodes.

    Attributes:
        walker: `walker-8` (hips, knees and ankles) or `walker-13` (trunk and hip rotation too).
        body: A body of your own instead; its sizes, masses, passive damping and solver are those of its file.
        height_m: Standing height of the body.
        mass_kg: Its mass.
        strength: Factor of all torque limits.
        action: What actions mean: shares of the largest torques, or target angles over the joints' ranges.
        stiffness: Factor of the servos' stiffness, for all but `torque`.
        damping: Damping ratio of the servos.
        joint_damping: Passive damping of every joint, N m s/rad per kg of body mass.
        control_rate_hz: Decisions per second.
        physics_step_s: Length of a physics step; a decision takes a whole number of them.
        integrator: MuJoCo's integrator.
        solver_iterations: Most iterations of the contact solver in a physics step.
        friction: Of feet on the ground.
        motion: File with a motion to imitate, or the name of one of the package's; None for its normal gait.
        motions: Several of them for one policy, which observes the one that is asked for; each has its own speeds, and
            one goes over into another within an episode.
        command: The one of `motions` that is asked for all the time; None draws them.
        speed_range: Lowest and highest desired speed in m/s.
        speed: A desired speed that never changes; None draws it from `speed_range`.
        speed_change_s: Mean time between changes of the desired speed, and motion, within an episode; 0 for none.
        mirror: Whether left steps are seen, and acted on, as right steps.
        starts: `random` phases, or `fixed`: the same phase and speed for a game every time, and another one for every
            game.
        start_noise: Deviation of joint angles (rad) and velocities (rad/s, ten times as much) at the start.
        episode_s: Length of an episode, after which it is cut off.
        lowest_height: Height of the hips, as a share of standing, below which a walker has fallen.
        largest_tilt_deg: Tilt of the trunk beyond which it has fallen.
        pushes: Pushes against the hips.
        threads: Host threads that advance the walkers; None for all cores.
        physics: What advances the walkers: `mujoco`, MuJoCo on the CPU; `warp`, MuJoCo Warp on the device of the games;
            `auto`, MuJoCo on a CPU and MuJoCo Warp on a CUDA device.
        deterministic: Whether MuJoCo Warp is to give the same bits in every run on a CUDA device: constraint rows are
            sorted, and sums are made in the order of threads; costs speed there.
    """

    removed_keys: ClassVar[Mapping[str, str]] = {
        "delta_deg": "mimic.md#removed",
        "friction_range": "mimic.md#removed",
    }

    walker: Literal["walker-8", "walker-13"] = "walker-8"
    body: BodyConfig | None = None
    height_m: Annotated[float, Field(ge=HEIGHT_RANGE_M[0], le=HEIGHT_RANGE_M[1])] = 1.75
    mass_kg: Annotated[float, Field(ge=MASS_RANGE_KG[0], le=MASS_RANGE_KG[1])] = 75.0
    strength: Annotated[float, Field(gt=0.0, le=5.0)] = 1.0
    action: Literal["torque", "target"] = "target"
    stiffness: Annotated[float, Field(gt=0.0, le=10.0)] = 1.0
    damping: Annotated[float, Field(ge=0.0, le=5.0)] = 0.7
    joint_damping: Annotated[float, Field(ge=0.0, le=1.0)] = 0.01
    control_rate_hz: Annotated[float, Field(ge=10.0, le=500.0)] = 100.0
    physics_step_s: Annotated[float, Field(ge=0.0005, le=0.02)] = 0.005
    integrator: Literal["Euler", "implicitfast", "implicit", "RK4"] = "implicitfast"
    solver_iterations: Annotated[int, Field(ge=1, le=100)] = 4
    friction: Annotated[float, Field(ge=0.05, le=3.0)] = 1.0
    motion: MotionPath | None = None
    motions: Annotated[tuple[MotionPath, ...], Field(strict=False, max_length=MAX_MOTIONS)] = ()
    command: str | None = None
    speed_range: Annotated[tuple[Speed, Speed], Field(strict=False)] = (0.8, 1.4)
    speed: Speed | None = None
    speed_change_s: Annotated[float, Field(ge=0.0, le=3600.0)] = 4.0
    mirror: bool = True
    starts: Literal["random", "fixed"] = "random"
    start_noise: Annotated[float, Field(ge=0.0, le=0.2)] = 0.01
    episode_s: Annotated[float, Field(ge=0.1, le=3600.0)] = 15.0
    lowest_height: Annotated[float, Field(ge=0.2, le=0.95)] = 0.75
    largest_tilt_deg: Annotated[float, Field(ge=10.0, le=120.0)] = 45.0
    pushes: PushConfig = PushConfig()
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    physics: Literal["auto", "mujoco", "warp"] = "auto"
    deterministic: bool = False
