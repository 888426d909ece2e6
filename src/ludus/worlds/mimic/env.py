"""`mimic-v1`: thousands of walkers that follow a reference gait, advanced by MuJoCo on the host."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.core.random import stream_hash_tensor, uniform
from ludus.core.state import FINITE, MAX_COUNT
from ludus.envs import base
from ludus.envs.base import BatchedEnv, Columns, EnvRequest, EnvSpec, Observations, StepResult
from ludus.envs.settings import read_settings
from ludus.worlds.mimic import observation
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.model import Walker, make_walker
from ludus.worlds.mimic.motion.reference import follow_motion
from ludus.worlds.mimic.physics import FRICTION_LEVELS, Controls, Physics
from ludus.worlds.mimic.reference import STREAMS, Frame, Reference, draw_starts, first_states, normal_reference
from ludus.worlds.mimic.rendering.figure import WalkerView, reference_positions
from ludus.worlds.mimic.scoring import Scorer

if TYPE_CHECKING:
    from ludus.worlds.mimic.rendering.painter import WalkerPainter

SPEED_CHANGE_M_S2 = 0.3  # how fast the reference follows a new desired speed
_USUAL_SPEEDS = (0.1, 0.8)  # of the reference's range, where nothing is asked of a body of the user's own
_OF_BUILT_IN_BODIES = frozenset(("walker", "height_m", "mass_kg", "joint_damping", "solver_iterations"))
_SPEED_TOLERANCE_M_S = 0.005  # ranges are shown with two digits
# Numbers of the random streams; each has room for as many as it needs.
_STREAM_START, _STREAM_FRICTION, _STREAM_NOISE, _STREAM_COMMAND, _STREAM_PUSH = 0, 8, 16, 64, 80


class MimicEnv(BatchedEnv):
    """A walker with the sizes and masses of a person learns to walk as people do.

    The reference gait gives, for a desired speed and a phase of the stride, the angles and velocities of all joints,
    the height, orientation and velocity of the hips and where heels and balls of the feet are. It runs on its own
    clock; the walker is rewarded for being like it. With `mirror` left steps are seen, and acted on, as right steps.

    Observation, entry `vector`, float32 (J joints: 8, or 13 with trunk and hip rotation):

    | index | field | unit |
    |---|---|---|
    | 0, 1 | cosine and sine of the phase of the step (of the stride without `mirror`) | |
    | 2, 3 | speed of the reference, desired speed | m/s |
    | 4 | height of the hips over standing | dm |
    | 5 - 7 | roll, pitch and yaw of the trunk (of the pelvis with 13 joints) | rad |
    | 8 - 10 | velocity of the hips ahead, to the left, up, in the direction it faces | m/s |
    | 11 - 13 | angular velocity about the trunk's own axes | 5 rad/s |
    | 14 ... 13 + J | joint angles | rad |
    | 14 + J ... 13 + 2 J | joint velocities | 10 rad/s |

    Action, `Box(-1, 1, (J,))`: `torque`, shares of each joint's largest torque; `target`, angles from the lowest to the
    highest of each joint with 0 at the reference's mean; `delta`, differences from the present angles. Values beyond
    the range are clipped.

    Events: `reward` (similarity to the reference, 0 to 1: 0.8 exp(-3 pose_error) + 0.2 exp(-0.05 velocity_error)),
    `distance` (m along the way), `energy` (J of all joints), `strikes_right`, `strikes_left` (feet that came down),
    `step_right`, `step_left` (m from the other heel to theirs), `falls`, `completed`, `pushes`, `faults` (numbers of
    the physics that went wrong), and `peak_JOINT` (N m by which the largest torque of the episode grew).

    Measures: `pose_error`, `velocity_error` (sums of squares over joints and trunk, rad and rad/s), `root_error`
    (squares of height in dm, of forward and of sideways speed in m/s), `effector_error` (m^2, heels and balls), `power`
    (W), `mass` (kg), `speed`, `desired` (m/s), `height` (m), `tilt` (rad), `phase` (of the stride) and `error_JOINT`
    (deg^2).

    Start: on the reference, at a random phase and speed, with a little noise.

    End: the hips below `lowest_height` of standing, the trunk tilted beyond `largest_tilt_deg`, or physics that broke;
    truncated after `episode_s`.
    """

    def __init__(self, request: EnvRequest) -> None:
        config = read_settings(MimicConfig, request.config, "mimic-v1")
        _check(config)
        self.walker = make_walker(config)
        self.reference, speed_range, warnings = _make_reference(config, self.walker)
        config = self.config = config.model_copy(update={"speed_range": speed_range})
        self.warnings = (*warnings, *_speed_warnings(config, self.reference))
        self.spec = _spec(config, self)
        self.num_envs, self.seed, self.first_game = request.num_envs, request.seed, request.first_game
        self.device = base.resolve_device(request.device, self.spec.id, self.spec.device_types)
        joints = self.walker.joints
        self._painter: WalkerPainter | None = None
        self._physics = Physics(self.walker, config, self.num_envs)
        self._controls = Controls(self.walker, self.reference, config)
        self._scorer = Scorer(self.walker, config, self.num_envs)
        self._reflection = observation.observation_reflection(joints, stride=False)
        self._joint_reflection = observation.joint_reflection(joints)
        numbers = torch.arange(self.num_envs)
        self._counters = {
            "game": self.first_game + numbers,
            "episode": torch.full_like(numbers, -1),
            "frame": torch.zeros_like(numbers),
        }
        zeros = torch.zeros(self.num_envs)
        self._counters["change"] = torch.zeros_like(numbers)
        self._state = {"phase": zeros, "speed": zeros, "desired": zeros, "failure": zeros - 1.0, "friction": zeros}
        # What a snapshot may hold of it: phases and levels become indices.
        self._ranges = {
            **dict.fromkeys(("game", "frame", "change"), (0, MAX_COUNT)),
            "episode": (-1, MAX_COUNT),
            "seed": (0, 2**32 - 1),
            "phase": (0, 1),
            "failure": (-1, 1),
            "friction": (0, FRICTION_LEVELS - 1),
            **dict.fromkeys(("physics", "speed", "desired", *self._scorer.state()), FINITE),
        }
        self._frame = self.reference.at(self._state["speed"], self._state["phase"])
        self._restart(torch.ones(self.num_envs, dtype=torch.bool))
        self._counters["episode"].fill_(-1)

    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        """Start a new episode; see `BatchedEnv.reset`."""
        self._check_reset(games, seed)
        if seed is not None:
            self.seed = seed
            self._counters["episode"].fill_(-1)
            self._state["failure"] = torch.full((self.num_envs,), -1.0)
        self._restart(torch.ones(self.num_envs, dtype=torch.bool) if games is None else games)
        return self._observe()

    def _advance(self, actions: Tensor) -> StepResult:
        given = actions[:, 0].clamp(-1.0, 1.0).nan_to_num()
        given = torch.where(self._mirrored().unsqueeze(1), self._joint_reflection.apply(given), given)
        controls = self._controls.of(given.double().numpy(), self._physics.positions[:, 7:])
        before = torch.from_numpy(self._physics.positions[:, 0].copy())
        forces, pushed = self._pushes()
        advance = self._physics.advance(controls, forces)
        self._move_reference()
        positions, velocities = self._bodies()
        angles = observation.euler_angles(positions[:, 3:7])
        frame = self._frame
        fell = self._has_fallen(positions, angles)
        broken = torch.from_numpy(advance.broken)
        terminated = fell | broken
        truncated = (self._counters["frame"] >= (self.spec.step_limit or 0)) & ~terminated
        travelled = torch.from_numpy(self._physics.positions[:, 0]) - before
        events, state_metrics = self._scorer.score(
            positions, velocities, angles, frame, torch.from_numpy(advance.sensors).float()
        )
        events["distance"], events["pushes"] = travelled.float(), pushed
        events["falls"], events["completed"], events["faults"] = fell.float(), truncated.float(), broken.float()
        state_metrics["desired"], state_metrics["phase"] = self._state["desired"], self._state["phase"]
        final_observations = self._observe(angles)
        ended = terminated | truncated
        self._state["failure"] = torch.where(terminated, self._state["phase"], self._state["failure"])
        packed_events = _packed(events, self.spec.events)
        packed_measures = _packed(state_metrics, self.spec.state_metrics)
        observations = final_observations
        if bool(ended.any()):
            self._restart(ended)
            observations = self._observe()
        return StepResult(observations, terminated, truncated, final_observations, packed_events, packed_measures)

    @property
    def controls(self) -> Controls:
        """What turns actions into controls."""
        return self._controls

    def frame(self) -> Frame:
        """Return the current frame of the reference of every game."""
        return self._frame

    def positions(self, game: int) -> NDArray[np.float64]:
        """Return a copy of the positions of one walker, as MuJoCo has them: root, then joints."""
        return np.array(self._physics.positions[game])

    def view(self, game: int) -> WalkerView:
        """Return the view of one walker."""
        forces, _ = self._pushes()
        push = (0.0, 0.0) if forces is None else (float(forces[game, 0]), float(forces[game, 1]))
        time_s = float(self._counters["frame"][game]) / self.spec.rate_hz
        ghost = reference_positions(self.frame(), game)
        return WalkerView(self.positions(game), ghost, time_s, float(self._state["desired"][game]), push)

    def render(self, game: int = 0) -> NDArray[np.uint8]:
        """Draw one walker and the reference beside it as an RGB picture; see `rendering.gl` for what it needs."""
        from ludus.worlds.mimic.rendering.painter import WalkerPainter  # only who draws pays for it

        if self._painter is None:
            self._painter = WalkerPainter(self.walker)
        return self._painter.paint(self.view(game))

    def _bodies(self) -> tuple[Tensor, Tensor]:
        physics = self._physics
        return torch.from_numpy(physics.positions).float(), torch.from_numpy(physics.velocities).float()

    def _has_fallen(self, positions: Tensor, angles: Tensor) -> Tensor:
        config = self.config
        low = positions[:, 2] < config.lowest_height * self.walker.standing_m
        limit = math.radians(config.largest_tilt_deg)
        return low | (angles[:, 0].abs() > limit) | (angles[:, 1].abs() > limit)

    def _move_reference(self) -> None:
        """Advance phase and speed, and draw a new desired speed where one is due."""
        state, counters, step_s = self._state, self._counters, 1.0 / self.spec.rate_hz
        state["phase"] = (state["phase"] + step_s / self._frame.period_s) % 1.0
        change = SPEED_CHANGE_M_S2 * step_s
        state["speed"] = state["speed"] + (state["desired"] - state["speed"]).clamp(-change, change)
        counters["frame"] = counters["frame"] + 1
        due = counters["frame"] == counters["change"]
        if bool(due.any()):
            speeds, frames = self._next_speeds()
            state["desired"] = torch.where(due, speeds, state["desired"])
            counters["change"] = torch.where(due, frames, counters["change"])
        self._frame = self.reference.at(state["speed"], state["phase"])

    def _next_speeds(self) -> tuple[Tensor, Tensor]:
        """Draw the next desired speeds `(games,)`, and the frames at which others will follow them; 0 is never."""
        config = self.config
        random = uniform(self._hash(_STREAM_COMMAND, 2))
        low, high = config.speed_range
        seconds = config.speed_change_s * (0.5 + random[:, 1])
        frames = self._counters["frame"] + (seconds * self.spec.rate_hz).long().clamp(min=1)
        changes = config.speed is None and config.speed_change_s > 0.0
        return low + (high - low) * random[:, 0], frames if changes else torch.zeros_like(frames)

    def _pushes(self) -> tuple[NDArray[np.float64] | None, Tensor]:
        """Return forces `(games, 2)` in N, and in which games a push begins."""
        config, none = self.config.pushes, torch.zeros(self.num_envs)
        if config.impulse_ns == 0.0:
            return None, none
        every, lasts = (max(1, round(value * self.spec.rate_hz)) for value in (config.every_s, config.duration_s))
        frames = self._counters["frame"]
        number, since = frames // every, frames % every
        keys = (self._counters["game"], self._counters["episode"], number)
        directions = 2.0 * math.pi * uniform(stream_hash_tensor(self.seed, *keys, _STREAM_PUSH)).double().numpy()
        active = ((number >= 1) & (since < lasts)).numpy()
        force = active * config.impulse_ns * self.spec.rate_hz / lasts
        forces = np.stack((force * np.cos(directions), force * np.sin(directions)), axis=1)
        return forces, ((number >= 1) & (since == 0)).float()

    def _restart(self, games: Tensor) -> None:
        """Begin the next episode of the games in the mask `(games,)`."""
        counters, state, physics = self._counters, self._state, self._physics
        counters["episode"] = counters["episode"] + games
        counters["frame"] = counters["frame"].masked_fill(games, 0)
        phases, speeds = draw_starts(
            self.config, counters["game"], state["failure"], self._hash(_STREAM_START, STREAMS)
        )
        for name, value in (("phase", phases), ("speed", speeds), ("desired", speeds)):
            state[name] = torch.where(games, value, state[name])
        counters["change"] = torch.where(games, self._next_speeds()[1], counters["change"])
        self._frame = self.reference.at(state["speed"], state["phase"])
        rows = games.nonzero().squeeze(1)
        noise = uniform(self._hash(_STREAM_NOISE, 2 * len(self.walker.joints), rows))
        begun = Frame(*(part[rows] for part in self._frame))
        chosen = rows.numpy()
        physics.states[chosen, 0] = 0.0
        physics.positions[chosen], physics.velocities[chosen] = first_states(begun, noise, self.config.start_noise)
        if self.config.friction_range is not None:
            levels = self._hash(_STREAM_FRICTION, 1)[:, 0] % FRICTION_LEVELS
            state["friction"] = torch.where(games, levels.float(), state["friction"])
            physics.choose_friction(state["friction"].long().numpy())
        self._scorer.restart(games)

    def _mirrored(self) -> Tensor:
        """Return `(games,)` bool, games that are in a left step and see it as a right one."""
        return (self._state["phase"] >= 0.5) & self.config.mirror

    def _observe(self, angles: Tensor | None = None) -> Observations:
        positions, velocities = self._bodies()
        angles = observation.euler_angles(positions[:, 3:7]) if angles is None else angles
        state = self._state
        phases = (2.0 * state["phase"]) % 1.0 if self.config.mirror else state["phase"]
        speeds = torch.stack((state["speed"], state["desired"]), dim=1)
        vector = observation.observe(positions, velocities, angles, phases, speeds, self.walker.standing_m)
        vector = torch.where(self._mirrored().unsqueeze(1), self._reflection.apply(vector), vector)
        return {"vector": vector.unsqueeze(1)}

    def _hash(self, stream: int, count: int, rows: Tensor | None = None) -> Tensor:
        """Return hashes `(games, count)` of this frame of each game, or of those in `rows` alone."""
        keys = [self._counters[name].unsqueeze(1) for name in ("game", "episode", "frame")]
        keys = keys if rows is None else [key[rows] for key in keys]
        return stream_hash_tensor(self.seed, *keys, stream + torch.arange(count))

    def _whole_state(self) -> dict[str, Tensor]:
        halves = [self.seed & 0xFFFFFFFF, (self.seed >> 32) & 0xFFFFFFFF]  # seeds may be larger than int64
        whole = {"seed": torch.tensor(halves), "physics": torch.from_numpy(self._physics.states)}
        whole |= self._counters | self._state | self._scorer.state()
        return {f"{self._prefix}{name}": tensor for name, tensor in whole.items()}

    @property
    def _prefix(self) -> str:
        return f"{self.spec.id}/{self.walker.name}/"

    def snapshot(self) -> dict[str, Tensor]:
        """Return the whole state as tensors that later steps do not touch."""
        return {name: tensor.clone() for name, tensor in self._whole_state().items()}

    def restore(self, snapshot: Mapping[str, Tensor]) -> Observations:
        """Restore a snapshot, including seed and game numbers, and return its observations."""
        ranges = {f"{self._prefix}{name}": limits for name, limits in self._ranges.items()}
        base.check_snapshot(snapshot, self._whole_state(), self.spec.id, ranges)
        taken = {name.rpartition("/")[2]: tensor.cpu().clone() for name, tensor in snapshot.items()}
        self.seed = int(taken["seed"][0]) | int(taken["seed"][1]) << 32
        self.first_game = int(taken["game"][0])
        self._physics.states[:] = taken["physics"].numpy()
        for part in (self._counters, self._state):
            part.update({name: taken[name] for name in part})
        self._scorer.load_state(taken)
        self._physics.choose_friction(self._state["friction"].long().numpy())
        self._frame = self.reference.at(self._state["speed"], self._state["phase"])
        return self._observe()

    def close(self) -> None:
        """End the threads and release what was drawn with; may be called twice."""
        self._physics.close()
        if self._painter is not None:
            self._painter.close()
            self._painter = None


def _packed(columns: Mapping[str, Tensor], names: tuple[str, ...]) -> Columns:
    return Columns(torch.stack([columns[name] for name in names], dim=-1).unsqueeze(1), names)


def _spec(config: MimicConfig, env: MimicEnv) -> EnvSpec:
    joints = env.walker.joints
    mirror = None
    if not config.mirror:
        reflection = observation.observation_reflection(joints, stride=True)
        mirror = base.Mirror({"vector": reflection}, observation.joint_reflection(joints))
    return EnvSpec(
        name="mimic",
        version=1,
        teams=(0,),
        observation_space=observation.observation_space(len(joints)),
        action_space=spaces.Box(-1.0, 1.0, (len(joints),), np.float32),
        rate_hz=config.control_rate_hz,
        step_limit=round(config.episode_s * config.control_rate_hz),
        events=(*Scorer.events(joints), "distance", "pushes", "falls", "completed", "faults"),
        state_metrics=(*Scorer.state_metrics(joints), "desired", "phase"),
        blocks={"vector": observation.observation_blocks(len(joints))},
        fields={"vector": observation.observation_fields(joints)},
        device_types=("cpu",),
        mirror=mirror,
    )


def _check(config: MimicConfig) -> None:
    """Raise ConfigError where settings do not fit each other."""
    steps = 1.0 / (config.control_rate_hz * config.physics_step_s)
    if steps < 0.999 or abs(steps - round(steps)) > 1e-6:
        raise ConfigError(
            f"a decision at {config.control_rate_hz:g} Hz takes {steps:g} physics steps of {config.physics_step_s:g} "
            "s; it must be a whole number: change control_rate_hz or physics_step_s"
        )
    of_people = sorted(_OF_BUILT_IN_BODIES & config.model_fields_set)
    if config.body is not None and of_people:
        raise ConfigError(f"{', '.join(of_people)} cannot be set for a body of your own, whose file decides")
    for name, pair in (("speed_range", config.speed_range), ("friction_range", config.friction_range)):
        if pair is not None and pair[0] > pair[1]:
            raise ConfigError(f"{name} must go from low to high, got {pair[0]:g} to {pair[1]:g}")


def _make_reference(config: MimicConfig, walker: Walker) -> tuple[Reference, tuple[float, float], tuple[str, ...]]:
    """Return the reference, the range of desired speeds, and warnings."""
    if config.motion is None:
        reference = normal_reference(walker)
        if config.body is None or "speed_range" in config.model_fields_set:
            return reference, config.speed_range, ()
        low, high = reference.speeds
        usual = (low + share * (high - low) for share in _USUAL_SPEEDS)
        return reference, (next(usual), next(usual)), ()
    return follow_motion(config.motion, config, walker)


def _speed_warnings(config: MimicConfig, reference: Reference) -> tuple[str, ...]:
    """Warn of a desired speed at which the reference cannot be played."""
    asked = config.speed_range if config.speed is None else (config.speed, config.speed)
    low, high = reference.speeds
    if low - _SPEED_TOLERANCE_M_S <= asked[0] and asked[1] <= high + _SPEED_TOLERANCE_M_S:
        return ()
    wanted = f"{asked[0]:g}" if config.speed is not None else f"{asked[0]:g} to {asked[1]:g}"
    motion = "normal gait" if config.motion is None else f"motion {config.motion}"
    return (
        f"a desired speed of {wanted} m/s is outside the range of the {motion}, {low:.2f} to {high:.2f} m/s: the "
        "reference stays within its range, so numbers such as speed_error and imitation mean little; choose scenarios "
        "and speeds within the range",
    )
